# A contender for the driver's own tests: it speaks the protocol, locks nothing, and its figures are
# made up from its arguments.
# Usage: fake_contender.py NAME LATENCY_US [FAULT WORD]
# FAULT: hangs-on, dies-on, refuses or burns-on
import fcntl
import json
import sys
import time


def waits(words: list[str]) -> list[list[int]]:
    """Everybody has the lock once, one after the other, long after all have begun. Nobody waits for that here."""
    clients, hold_us, begin_us, space_us, _ = (int(word) for word in words[1:6])
    made = []
    for number in range(clients):
        granted_us = begin_us + 2_000_000 + number * (hold_us + 100)
        made.append([number, begin_us + number * space_us, granted_us, granted_us + hold_us])
    if words[0] == "line" and words[6] != "0":
        made.append([clients, begin_us - 2, begin_us - 1, int(words[6])])
    if words[0] == "loop" and words[6] != "-":
        with open(words[6], "r+") as counter:
            fcntl.flock(counter, fcntl.LOCK_EX)
            value = int(counter.read()) + len(made)
            counter.seek(0)
            counter.write(str(value))
    return made


def answer(words: list[str], latency_us: float) -> dict[str, object]:
    if words[0] == "connect":
        return {}
    if words[0] == "cycles":
        workers, ms, samples = (int(word) for word in words[1:4])
        cycles = int(workers * ms * 1000 / latency_us)
        kept = min(samples, cycles)
        return {
            "cycles": cycles,
            "failed": 0,
            "seconds": ms / 1000,
            "acquire_us": [latency_us * (1 + number % 100 / 100) for number in range(kept)],
            "release_us": [latency_us / 2] * kept,
        }
    if words[0] in ("line", "loop"):
        return {"waits": waits(words), "failed": 0}
    if words[0] == "take":
        now_us = time.monotonic_ns() // 1000
        return {"began_us": now_us, "granted_us": now_us}
    return {"error": "unsupported"}


def main() -> None:
    name, latency_us = sys.argv[1], float(sys.argv[2])
    fault, word = (sys.argv[3], sys.argv[4]) if len(sys.argv) > 4 else ("", "")
    print(json.dumps({"name": name, "version": "1", "language": "Python", "notes": "made up"}), flush=True)
    for line in sys.stdin:
        began, words = time.process_time(), line.split()
        if word and word in words:
            if fault == "hangs-on":
                time.sleep(3600)
            if fault == "dies-on":
                sys.exit("the fake contender dies, as it was told")
            if fault == "burns-on":
                while time.process_time() - began < 0.02:
                    pass
            if fault == "refuses":
                print('done\n{"error":"refused, as it was told"}', flush=True)
                continue
        print("done", flush=True)
        print(json.dumps(answer(words, latency_us)), flush=True)


if __name__ == "__main__":
    main()
