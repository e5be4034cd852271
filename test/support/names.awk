# Writes a C file with the names of all enumeration constants in the headers of the command line:
# test.c shows them when an assertion fails.
function without_comments(line,    from, length_) {
    comment = 0
    while ((from = index(line, "/*")) > 0) {
        length_ = index(substr(line, from + 2), "*/")
        comment = length_ == 0
        line = substr(line, 1, from - 1) (comment ? "" : substr(line, from + 2 + length_ + 1))
    }
    return line
}
BEGIN { print "/* Made of headers by names.awk. */\n#include \"test.h\"\n" }
FNR == 1 {
    path = FILENAME
    sub(/^.*\/(src|include)\//, "", path)
    includes = includes "#include <" path ">\n"
    inside = 0
}
comment && !/\*\// { next }
comment { sub(/^.*\*\//, "") }
{ $0 = without_comments($0) }
/enum[^;()]*\{/ { inside = 1; number++; sub(/^.*\{/, "") }
inside {
    text = $0
    sub(/\}.*$/, "", text)
    count = split(text, part, ",")
    for (i = 1; i <= count; i++) {
        if (match(part[i], /^ *[A-Z][A-Z0-9]*_[A-Z0-9_]+/) && part[i] !~ /\(REDLOCK_X\)/) {
            sub(/^ */, "", part[i])
            match(part[i], /^[A-Z0-9_]+/)
            names = names sprintf("    {\"%s\", %s, %d},\n", substr(part[i], RSTART, RLENGTH),
                substr(part[i], RSTART, RLENGTH), number)
        }
    }
    if (/\}/) inside = 0
}
END {
    print includes
    print "const struct test_name test_names[] = {"
    print "#define CODE(name, code, text) {\"REDLOCK_\" #name, code, 0},"
    print "    REDLOCK_ERROR_MAP(CODE)"
    print names "    {NULL, 0, 0},\n};"
}
