"""Makes mutants of the Lua scripts that nodes run."""

import re

import operators

TOKEN = re.compile(
    r"""
    (?P<comment>--[^\n]*)
  | (?P<string>'[^'\n]*')
  | (?P<number>\d+)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign>\.\.|[~=<>]=|[-+*/%#<>=(){}\[\],.:])
  | (?P<space>\s+)
    """,
    re.VERBOSE,
)
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "~=", "~=": "==", "+": "-", "-": "+", "*": "/", "/": "*",
         "and": "or", "or": "and", "true": "false", "false": "true"}
# A statement of one line that changes something: a call, or an assignment to what exists already.
STATEMENT = re.compile(r"^ *(?![ ]|(?:local|return|if|elseif|for|while|function)\b)[\w.\[\]#+ ,]+(?:\(| = )")
RETURN = re.compile(r"^[ ]*return (?P<value>.+)$")


def tokens_of(text):
    return [m for m in TOKEN.finditer(text) if m.lastgroup not in ("comment", "space")]


def signs(source, token):
    """One word or number is another."""
    text = token.group()
    binary = source.text[token.start() - 1 : token.start()] == " "
    if token.lastgroup == "number":
        for number in operators.numbers_beside(text):
            yield source.mutant_at(token.start(), token.end(), number, "number", "")
    elif text in SWAPS and (binary or token.lastgroup == "name"):
        kind = "bool" if text in ("true", "false") else "sign"
        yield source.mutant_at(token.start(), token.end(), SWAPS[text], kind, "")
    elif text == "not":
        yield source.mutant_at(token.start(), token.end() + 1, "", "not", "")


def conditions(source, tokens, i):
    """The opposite of a condition that is more than one comparison, whose sign is changed anyway."""
    if tokens[i].group() not in ("if", "elseif"):
        return
    end = next(j for j in range(i, len(tokens)) if tokens[j].group() == "then")
    inside = tokens[i + 1 : end]
    if any(t.group() in ("==", "~=", "not") for t in inside) and not any(t.group() in ("and", "or") for t in inside):
        return
    text = source.text[inside[0].start() : inside[-1].end()]
    yield source.mutant_at(inside[0].start(), inside[-1].end(), f"not ({text})", "condition", "")


def lines(source):
    """A statement of one line is left out, or returns nothing."""
    start = 0
    for line in source.text.split("\n"):
        end = start + len(line)
        if STATEMENT.match(line) and line.count("(") == line.count(")") and line.count("{") == line.count("}"):
            yield source.mutant_at(start, end, "", "statement", "")
        value = RETURN.match(line)
        if value and value["value"] not in ("false", "0") and line.count("{") == line.count("}"):
            yield source.mutant_at(start + value.start("value"), end, "false", "return", "")
        start = end + 1


def mutants(file, text):
    """All mutants of one script, in the order of the text; always the same ones."""
    source = operators.Text(file, text)
    tokens = tokens_of(text)
    made = list(lines(source))
    for i, token in enumerate(tokens):
        made.extend(signs(source, token))
        made.extend(conditions(source, tokens, i))
    found = {(m.start, m.end, m.replacement): m for m in made}
    return sorted(found.values(), key=lambda m: (m.start, m.end, m.replacement))
