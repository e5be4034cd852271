#!/usr/bin/env python3
"""Checks files of metrics against the rules of Prometheus' text format 0.0.4, and those of `promtool
check metrics`. Each fault goes to standard error behind the name of its file; the exit status says
whether there was one. The samples go to standard output, one a line."""
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
SAMPLE = re.compile(r"(%s)(?:\{(%s(?:,%s)*,?)?\})? (\S+)( -?[0-9]+)?$" % (NAME, LABEL, LABEL))
VALUE = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$|NaN$|[-+]?Inf$")
UNITS = ("milliseconds", "microseconds", "minutes", "hours", "percent", "kilobytes", "megabytes")


def check(text):
    faults, helps, types, done, series, family, samples = [], {}, {}, set(), set(), None, []
    if text and not text.endswith("\n"):
        faults.append("the last line has no end")
    for number, line in enumerate(text.split("\n")[:-1], 1):
        def fault(what):
            faults.append("line %d: %s: %s" % (number, what, line))
        if not line:
            continue
        comment = re.match(r"# (HELP|TYPE) (%s) (.+)$" % NAME, line)
        if comment:
            kind, name, rest = comment.groups()
            table = helps if kind == "HELP" else types
            if name in table:
                fault("a second %s" % kind)
            if name in done or (kind == "TYPE" and any(s.startswith(name + "{") or s == name for s in series)):
                fault("%s after samples" % kind)
            if kind == "TYPE" and rest not in ("gauge", "counter", "histogram", "summary", "untyped"):
                fault("no such type")
            table[name] = rest
            if family not in (None, name):
                done.add(family)
            family = name
            continue
        if line.startswith("#"):
            continue
        sample = SAMPLE.match(line)
        if not sample:
            fault("no sample")
            continue
        name, labels, value = sample.group(1), sample.group(2) or "", sample.group(sample.re.groups - 1)
        pairs = re.findall(LABEL, labels)
        if not VALUE.match(value):
            fault("no value")
        if len({pair[0] for pair in pairs}) != len(pairs) or any(pair[0].startswith("__") for pair in pairs):
            fault("bad labels")
        if name in done:
            fault("its family was interrupted")
        if family not in (None, name):
            done.add(family)
        family = name
        key = name + "{" + ",".join(sorted('%s="%s"' % pair for pair in pairs)) + "}"
        if key in series:
            fault("a second sample of one series")
        series.add(key)
        samples.append(key + " " + value)
        if name not in helps or name not in types:
            fault("no HELP or TYPE before it")
        if types.get(name) == "gauge" and name.endswith("_total"):
            fault("a gauge that ends in _total")
        if types.get(name) == "counter" and not name.endswith("_total"):
            fault("a counter that does not end in _total")
        if any(unit in name.split("_") for unit in UNITS) or re.search("[a-z][A-Z]", name):
            fault("no base unit, or camel case")
    return faults, samples


def check_file(path):
    try:
        with open(path, "rb") as file:
            return check(file.read().decode("utf-8"))
    except UnicodeDecodeError as error:
        return ["no UTF-8: %s" % error], []


def main():
    failed = False
    for path in sys.argv[1:]:
        faults, samples = check_file(path)
        failed = failed or bool(faults)
        print("".join(sample + "\n" for sample in samples), end="")
        for fault in faults:
            print("%s: %s" % (path, fault), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
