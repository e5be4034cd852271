# A contender for the driver's own tests: it speaks the protocol, locks nothing, and its figures are made up from its arguments.
# Usage: fake_contender.py NAME LATENCY_US [hangs-on WORD | dies-on WORD | refuses WORD | burns-on WORD]
import json
import sys
import time


def answer(words: list[str], latency_us: float) -> dict[str, object]:
    if words[0] == "connect":
        return {}
    if words[0] == "cycles":
        workers, ms, samples = (int(word) for word in words[1:])
        cycles = int(workers * ms * 1000 / latency_us)
        kept = min(samples, cycles)
        return {
            "cycles": cycles,
            "failed": 0,
            "seconds": ms / 1000,
            "acquire_us": [latency_us * (1 + number % 100 / 100) for number in range(kept)],
            "release_us": [latency_us / 2] * kept,
        }
    if words[0] == "contend":
        clients = int(words[1])
        return {"grants": [10] * clients, "seconds": 1.0, "handover_us": [100.0, 200.0], "failed": 0, "overlaps": 0}
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
