"""Makes mutants of C source: finds each place where one small change is possible."""

import dataclasses
import re

TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<other>\d+\.\d*)
  | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|&&|\|\||[<>=!+\-*/%&|^]=|<<|>>|[{}()\[\];,?:.~!<>=+\-*/%&|^])
  | (?P<space>\s+)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)")
LARGE = 100  # such a number is a tuned one: doubled and halved, for one more or less tells nothing
SHORT = 20  # fewer characters of a line do not tell which one it is
PLANTED = "REDLOCK_PLANTED"
KEYWORDS = {
    "if", "while", "for", "switch", "return", "sizeof", "case", "default", "do", "else", "goto", "break", "continue",
}
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "&": "|", "|": "&", "^": "&", "<<": ">>", ">>": "<<",
    "|=": "=", "&=": "=", "+=": "-=", "-=": "+=", "^=": "=", "++": "--", "--": "++",
}
UNSPACED = {"++", "--"}
ASSIGNMENTS = {"=", "|=", "&=", "+=", "-=", "^=", "*=", "/=", "<<=", ">>="}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Mutant:
    """The bytes from start to end of the file are replaced."""

    file: str
    line: int
    function: str
    start: int
    end: int
    replacement: str
    operator: str
    before: str
    after: str

    def apply(self, source):
        return source[: self.start] + self.replacement + source[self.end :]

    def key(self):
        """What an explanation names it by: no line number, which changes with each edit above."""
        return (self.file, self.function, self.before, self.after)


class Text:
    """A file whose places are changed."""

    def __init__(self, file, text):
        self.file = file
        self.text = text

    def line_of(self, position):
        return self.text.count("\n", 0, position) + 1

    def mutant_at(self, start, end, replacement, operator, function):
        begin = self.text.rfind("\n", 0, start) + 1
        finish = self.text.find("\n", end)
        finish = len(self.text) if finish < 0 else finish
        # A bare "return;" names no place: the lines above it do.
        while begin > 0 and len(" ".join(self.text[begin:finish].split())) < SHORT:
            begin = self.text.rfind("\n", 0, begin - 1) + 1
        before = " ".join(self.text[begin:finish].split())
        after = " ".join((self.text[begin:start] + replacement + self.text[end:finish]).split())
        return Mutant(self.file, self.line_of(start), function, start, end, replacement, operator, before, after)


class Source(Text):
    """The tokens of one file, which function each is in, and what is not to be changed."""

    def __init__(self, file, text):
        super().__init__(file, text)
        self.tokens = []
        self.directives = []
        for match in TOKEN.finditer(text):
            kind = match.lastgroup
            token = Token(kind, match.group(), match.start(), match.end())
            if kind == "directive":
                self.directives.append(token)
            elif kind not in ("comment", "space"):
                self.tokens.append(token)
        self.partner = self._partners()
        self.bracketed = self._bracketed()
        self.functions = self._functions()
        self.skipped = self._skipped()

    def is_sign(self, index, text):
        return 0 <= index < len(self.tokens) and self.tokens[index].text == text

    def _partners(self):
        partner, opened = {}, []
        for i, token in enumerate(self.tokens):
            if token.text in ("(", "[", "{"):
                opened.append(i)
            elif token.text in (")", "]", "}") and opened:
                partner[i] = opened.pop()
                partner[partner[i]] = i
        return partner

    def _bracketed(self):
        """Where no statement begins: inside parentheses, as in the head of a loop."""
        inside = set()
        for i, token in enumerate(self.tokens):
            if token.text == "(" and i in self.partner:
                inside.update(range(i, self.partner[i] + 1))
        return inside

    def _functions(self):
        """The function that each token of a body is in; others have none."""
        functions, i = {}, 0
        while i < len(self.tokens):
            if self.tokens[i].text == "{" and i in self.partner:
                close = self.partner[i]
                if self.is_sign(i - 1, ")") and i - 1 in self.partner:
                    name = self.tokens[self.partner[i - 1] - 1].text
                    functions.update(dict.fromkeys(range(i, close + 1), name))
                i = close
            i += 1
        return functions

    def _skipped(self):
        """Assertions, and all that belongs to bugs that tests plant."""
        skipped = set()
        planted = {PLANTED}
        for directive in self.directives:
            if PLANTED in directive.text and DEFINE.match(directive.text):
                planted.add(DEFINE.match(directive.text).group(1))
        lines = {self.line_of(t.start) for t in self.tokens if t.text in planted}
        for i, token in enumerate(self.tokens):
            if self.line_of(token.start) in lines or "planted" in self.functions.get(i, ""):
                skipped.add(i)
            if token.text == "assert" and i + 1 in self.partner:
                skipped.update(range(i, self.partner[i + 1] + 1))
            if token.text == "if" and i + 2 < len(self.tokens) and self.tokens[i + 2].text in planted:
                body = self.partner[i + 1] + 1
                skipped.update(range(i, self.partner.get(body, body) + 1))
        return skipped

    def mutant(self, first, last, replacement, operator):
        """One that replaces the tokens from first to last. It has as many lines as the original."""
        start, end = self.tokens[first].start, self.tokens[last].end
        replacement += "\n" * (self.text.count("\n", start, end) - replacement.count("\n"))
        return self.mutant_at(start, end, replacement, operator, self.functions.get(first, ""))


def is_binary(source, i):
    token = source.tokens[i]
    text = source.text
    return text[token.start - 1 : token.start] in (" ", "\n") and text[token.end : token.end + 1] in (" ", "\n")


def numbers_beside(text):
    """What a number is changed to."""
    digits = re.match(r"0[xX][0-9a-fA-F]+|\d+", text).group()
    suffix = text[len(digits) :]
    value = int(digits, 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10)
    if value >= LARGE:
        return [f"{value * 2}{suffix}", f"{value // 2}{suffix}"]
    return [f"{value + 1}{suffix}"] + ([f"{value - 1}{suffix}"] if value > 0 else [])


def signs(source, i):
    token = source.tokens[i]
    if token.kind == "sign" and token.text in SWAPS and (token.text in UNSPACED or is_binary(source, i)):
        yield source.mutant(i, i, SWAPS[token.text], "sign")
        if token.text in ("&", "&=") and source.is_sign(i + 1, "~"):
            yield source.mutant(i + 1, i + 1, "", "sign")
    elif token.text == "!":
        yield source.mutant(i, i, "", "not")
    elif token.text in ("true", "false"):
        yield source.mutant(i, i, "false" if token.text == "true" else "true", "bool")
    elif token.kind == "number":
        for number in numbers_beside(token.text):
            yield source.mutant(i, i, number, "number")


def is_negated_by_another(source, first, last):
    """A change of its only sign makes the same of it."""
    texts = [t.text for t in source.tokens[first : last + 1]]
    if any(text in ("&&", "||", "?") for text in texts):
        return False
    return texts[0] == "!" or any(text in ("==", "!=") for text in texts)


def conditions(source, i):
    token = source.tokens[i]
    if token.text in ("if", "while") and i + 1 in source.partner:
        first, last = i + 2, source.partner[i + 1] - 1
        if not is_negated_by_another(source, first, last):
            inner = source.text[source.tokens[first].start : source.tokens[last].end]
            yield source.mutant(first, last, f"!({inner})", "condition")
    if token.text == "?":
        first, depth = i - 1, 0
        while first >= 0:
            text = source.tokens[first].text
            depth += (text in (")", "]")) - (text in ("(", "["))
            if depth < 0 or (depth == 0 and text in ASSIGNMENTS | {"return", ",", ";", "{", "?", ":"}):
                break
            first -= 1
        if not is_negated_by_another(source, first + 1, i - 1):
            inner = source.text[source.tokens[first + 1].start : source.tokens[i - 1].end]
            yield source.mutant(first + 1, i - 1, f"!({inner})", "condition")


def is_declaration(tokens):
    """Of what stands to the left of an assignment."""
    kinds = [t.kind if t.text != "*" else "*" for t in tokens]
    pairs = list(zip(kinds, kinds[1:]))
    return ("name", "name") in pairs or ("name", "*") in pairs


def statement_end(source, i):
    while i < len(source.tokens):
        text = source.tokens[i].text
        if text in ("(", "[", "{"):
            i = source.partner.get(i, i)
        elif text == ";":
            return i
        elif text == "}":
            return None
        i += 1
    return None


def statements(source, i):
    """Of the statement that begins at token i: it is left out, or it returns nothing."""
    if i - 1 in source.bracketed or source.tokens[i - 1].text not in (";", "{", "}", ":"):
        return
    end = statement_end(source, i)
    first = source.tokens[i]
    if end is None or end == i:
        return
    if first.text in ("break", "continue") or (first.text == "return" and end == i + 1):
        yield source.mutant(i, end, ";", "statement")
        return
    if first.text == "return":
        value = source.text[source.tokens[i + 1].start : source.tokens[end].start]
        if value not in ("0", "NULL", "true", "false"):
            yield source.mutant(i + 1, end - 1, "0", "return")
        return
    if first.text in KEYWORDS:
        return
    call = i + 3 if [t.text for t in source.tokens[i : i + 3]] == ["(", "void", ")"] else i
    if source.tokens[call].kind == "name" and source.is_sign(call + 1, "(") and source.partner.get(call + 1) == end - 1:
        yield source.mutant(i, end, ";", "call")
        return
    for j in range(i, end):
        if source.tokens[j].text in ASSIGNMENTS | {"++", "--"}:
            if not is_declaration(source.tokens[i:j]) and not any(t.text == "{" for t in source.tokens[i:j]):
                yield source.mutant(i, end, ";", "statement")
            return


def defines(source):
    """The number of a macro that is one."""
    for directive in source.directives:
        match = re.match(r"[ \t]*#[ \t]*define[ \t]+\w+[ \t]+\(?(?:U?INT(?:64|32)_C\()?(\d+[uUlL]*)\)*[ \t]*$",
                         re.sub(r"/\*.*?\*/", lambda m: " " * len(m.group()), directive.text))
        if match:
            start = directive.start + match.start(1)
            for number in numbers_beside(match.group(1)):
                yield source.mutant_at(start, directive.start + match.end(1), number, "number", "")


def mutants(file, text):
    """All mutants of one file, in the order of the text; always the same ones."""
    source = Source(file, text)
    found = {}
    made = list(defines(source))
    for i in source.functions:
        if i not in source.skipped:
            for make in (signs, conditions, statements):
                made.extend(make(source, i))
    for mutant in made:
        found.setdefault((mutant.start, mutant.end, mutant.replacement), mutant)
    return sorted(found.values(), key=lambda m: (m.start, m.end, m.replacement))
