"""Reads the survivors that have a reason: in each paragraph file, function, the line before and
after, and why."""

import tree


def read(path):
    """Returns the reason of each, by the mutant's key()."""
    reasons = {}
    if not path.exists():
        return reasons
    paragraphs = [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if line.strip():
            paragraphs[-1].append(line)
        else:
            paragraphs.append([])
    for paragraph in filter(None, paragraphs):
        fields = {"file": "", "function": "", "-": [], "+": [], "why": ""}
        for line in paragraph:
            name, _, value = line.partition(" ")
            if name in ("-", "+"):
                fields[name].append(value.strip())
            elif name.rstrip(":") in fields:
                fields[name.rstrip(":")] = value.strip()
            else:
                fields["why"] += " " + line.strip()
        if not (fields["file"] and fields["-"] and fields["why"]) or len(fields["-"]) != len(fields["+"]):
            raise tree.Failure(f"{path}: a paragraph lacks file, lines or why:\n" + "\n".join(paragraph))
        for before, after in zip(fields["-"], fields["+"]):
            reasons[(fields["file"], fields["function"], before, after)] = fields["why"]
    return reasons
