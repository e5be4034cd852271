#!/usr/bin/env python3
"""Holders of a lock are cut off, stopped or killed; the next one's command begins only when the old
one's is dead, although that ignores SIGTERM.

Usage: takeover_check.py TOOL PROXY BEAT PORT,PORT,PORT FOLDER TAKEOVERS LANES LOAD
"""

import itertools
import mmap
import os
import signal
import struct
import subprocess
import sys
import threading
import time

PATIENCE_S = 90
# How the old holder goes, and what its command is.
WAYS = ("cut", "stopped command", "stopped tool", "killed tool", "family", "left group", "left group, stopped tool")
TTLS_MS = (1000, 1500, 2000, 3000, 5000)


class Beat:
    """What a command has written about itself."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(32)
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 32)

    def __getattr__(self, name):
        at = {"first_ns": 0, "last_ns": 8, "told_ns": 16, "pid": 24}[name]
        return struct.unpack_from("q", self.map, at)[0]


class Link:
    """The way of one tool to the nodes."""

    def __init__(self, proxy, ports):
        self.process = subprocess.Popen(
            [proxy, *(f"0={port}" for port in ports)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        words = self.process.stdout.readline().split()
        assert words[0] == "ready", words
        self.nodes = ",".join(f"127.0.0.1:{port}" for port in words[1:])

    def hold(self, held):
        self.process.stdin.write(f"set all hold {held}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().startswith("ok")

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"never came true in {PATIENCE_S} s: {what}")
        time.sleep(0.005)


def signal_group(holder, number):
    try:
        if holder["way"].startswith("left"):
            os.kill(holder["beat"].pid, number)
        else:
            os.killpg(holder["beat"].pid, number)
    except ProcessLookupError:
        pass  # on a busy machine it may have lost its lease before


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Lane:
    """One lock, which is taken over again and again."""

    def __init__(self, test, number):
        self.test, self.number = test, number
        self.links = [Link(test.proxy, test.ports) for _ in range(2)]
        self.count = itertools.count()
        self.children = []

    def hold(self, command, ttl_ms, way, link):
        """A tool that has the lock, or waits for it."""
        turn = next(self.count)
        link.hold(0)
        beat = Beat(f"{self.test.folder}/{self.number}-{turn}.beat")
        wait = ["-w", "forever"] if command == "run" else []
        with open(f"{self.test.folder}/{self.number}-{turn}.err", "wb") as err:
            tool = subprocess.Popen(
                [self.test.tool, "-n", link.nodes, "--node-timeout", "200", "--connect-timeout", "10s",
                 command, "-t", f"{ttl_ms}ms", *wait, f"lane-{self.number}", "--",
                 self.test.beat, beat.path, way], stdout=subprocess.DEVNULL, stderr=err)
        self.children.append(tool)
        return {"tool": tool, "beat": beat, "link": link, "ttl_ms": ttl_ms, "way": way, "command": command}

    def lose(self, old):
        if old["way"].endswith("stopped tool"):
            old["tool"].send_signal(signal.SIGSTOP)
        elif old["way"] == "killed tool":
            old["tool"].kill()
        else:
            old["link"].hold(1)
            if old["way"] == "stopped command":
                signal_group(old, signal.SIGSTOP)

    def clear(self, old):
        """The old tool and its command end."""
        signal_group(old, signal.SIGCONT)  # if it still lived, it would beat
        time.sleep(0.02)
        # To no other: LeakSanitizer stops a process at its end, and waits for ever for a SIGSTOP
        # that SIGCONT takes away.
        if old["way"].endswith("stopped tool"):
            old["tool"].send_signal(signal.SIGCONT)
        until(lambda: is_gone(old["beat"].pid), f"the command of {old['way']} ends")
        old["link"].hold(0)
        if old["command"] == "elect":
            old["tool"].terminate()  # it campaigns again
        try:
            return old["tool"].wait(PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            about = f"/proc/{old['tool'].pid}/"
            with open(about + "status", encoding="ascii") as status, open(about + "wchan", encoding="ascii") as at:
                said = f"{old['way']}: the old tool does not end; it waits in {at.read()}:\n{status.read()}"
            raise RuntimeError(said) from error

    def judge(self, old, new):
        gap_ms = (new["beat"].first_ns - old["beat"].last_ns) / 1e6
        told = old["beat"].told_ns
        grace_ms = (old["beat"].last_ns - told) / 1e6 if told else 0
        self.test.note(old["way"], old["ttl_ms"], gap_ms, grace_ms, f"lane {self.number}, {old['beat'].path}")

    def take_over(self, new):
        """Waits until the command runs. On a busy machine a lease may end before that: once more."""
        while True:
            until(lambda: new["beat"].last_ns > 0 or new["tool"].poll() is not None, "the next one takes over")
            if new["beat"].last_ns > 0:
                return new
            new = self.hold(new["command"], new["ttl_ms"], new["way"], new["link"])

    def run(self, takeovers):
        old = None
        for i in range(takeovers + 1):
            command = ("run", "elect")[(self.number + i) % 2]
            ttl_ms = TTLS_MS[(self.number + i) % len(TTLS_MS)]
            way = WAYS[(self.number * 2 + i) % len(WAYS)]
            new = self.hold(command, ttl_ms, way, self.links[i % 2])
            if old is not None:
                until(lambda: self.test.waits(self.number) or new["beat"].first_ns, "the next one waits")
                self.lose(old)
            new = self.take_over(new)
            if old is not None:
                status = self.clear(old)
                self.judge(old, new)
                # 143: elect campaigned again; 76: it had not come so far.
                wanted = (76,) if old["command"] == "run" else (76, 143)
                if status not in wanted and old["way"] != "killed tool":
                    self.test.fail(f"lane {self.number}: {old['way']}: the tool ended with {status}")
            old = new
        old["tool"].terminate()
        signal_group(old, signal.SIGKILL)
        old["tool"].wait(PATIENCE_S)

    def end(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        for link in self.links:
            link.end()


class Test:
    def __init__(self, tool, proxy, beat, ports, folder):
        self.tool, self.proxy, self.beat, self.folder = tool, proxy, beat, folder
        self.ports = ports.split(",")
        self.mutex = threading.Lock()
        self.gaps, self.failures = {}, []

    def fail(self, text):
        with self.mutex:
            self.failures.append(text)
            print("FAILED:", text, flush=True)

    def note(self, way, ttl_ms, gap_ms, grace_ms, where):
        with self.mutex:
            self.gaps.setdefault((way, ttl_ms), []).append((gap_ms, grace_ms))
        if gap_ms <= 0:
            self.fail(f"{where}: {way}, ttl {ttl_ms} ms: the old command lived for {-gap_ms:.1f} ms beside the new one")

    def waits(self, number):
        answer = subprocess.run(["redis-cli", "-p", self.ports[0], "zcard", f"lane-{number}:wait"],
                                capture_output=True, text=True, check=False)
        return answer.stdout.strip() not in ("", "0")

    def work(self, number, takeovers):
        lane = Lane(self, number)
        try:
            lane.run(takeovers)
        except Exception as error:  # pylint: disable=broad-except
            self.fail(f"lane {number}: {error!r}")
        finally:
            lane.end()

    def control(self):
        """Somebody deletes the keys: the next holder begins beside the old one, and that is seen."""
        lane = Lane(self, 9999)
        try:
            old = lane.hold("run", 30000, "cut", lane.links[0])
            until(lambda: old["beat"].last_ns > 0, "the first one holds")
            new = lane.hold("run", 30000, "cut", lane.links[1])
            until(lambda: self.waits(9999), "the next one waits")
            for port in self.ports:
                subprocess.run(["redis-cli", "-p", port, "del", "lane-9999"], check=True, capture_output=True)
            until(lambda: new["beat"].last_ns > 0, "the next one takes over")
            until(lambda: old["beat"].last_ns > new["beat"].first_ns, "the old one is alive beside it")
        finally:
            for which in (old, new):
                signal_group(which, signal.SIGKILL)
            lane.end()

    def too_late(self):
        """A renewal that succeeds after SIGTERM keeps the lock, but the command ends all the same."""
        lane = Lane(self, 9998)
        try:
            old = lane.hold("run", 20000, "cut", lane.links[0])
            until(lambda: old["beat"].last_ns > 0, "it holds the lock")
            old["link"].hold(1)
            until(lambda: old["beat"].told_ns > 0, "it is told to end")
            old["link"].hold(0)
            until(lambda: self.left_ms(9998) > 12000 or is_gone(old["beat"].pid), "the lock is renewed")
            if is_gone(old["beat"].pid):
                self.fail("the lock was not renewed after SIGTERM")
            status = old["tool"].wait(PATIENCE_S)
            lived_ms = (old["beat"].last_ns - old["beat"].told_ns) / 1e6
            if status != 76 or lived_ms > 4500 or self.left_ms(9998) != -2:
                self.fail(f"after SIGTERM and a renewal: lived for {lived_ms:.0f} ms, status {status}, "
                          f"key {self.left_ms(9998)}")
        finally:
            lane.end()

    def left_ms(self, number):
        answer = subprocess.run(["redis-cli", "-p", self.ports[0], "pttl", f"lane-{number}"],
                                capture_output=True, text=True, check=True)
        return int(answer.stdout)

    def say(self):
        total = 0
        print(f"{'way':24} {'ttl ms':>7} {'count':>6} {'from the last sign to the first one, ms':>48} "
              f"{'from SIGTERM to the end':>24}")
        for (way, ttl_ms), pairs in sorted(self.gaps.items()):
            gaps = sorted(gap for gap, _ in pairs)
            graces = sorted(grace for _, grace in pairs)
            total += len(gaps)
            print(f"{way:24} {ttl_ms:7} {len(gaps):6} least {gaps[0]:8.1f} median {gaps[len(gaps) // 2]:8.1f} "
                  f"most {gaps[-1]:8.1f}   {graces[0]:8.1f} to {graces[-1]:8.1f}")
        print(f"{total} takeovers, {len(self.failures)} failures")
        return total


def main():
    tool, proxy, beat, ports, folder = sys.argv[1:6]
    takeovers, lanes, load = (int(word) for word in sys.argv[6:9])
    test = Test(tool, proxy, beat, ports, folder)
    test.control()
    test.too_late()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    each = -(-takeovers // lanes)
    threads = [threading.Thread(target=test.work, args=(number, each)) for number in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in busy:
        process.kill()
        process.wait()
    total = test.say()
    return 1 if test.failures or total < takeovers else 0


if __name__ == "__main__":
    sys.exit(main())
