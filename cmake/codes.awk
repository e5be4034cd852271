# Shows Doxygen the error codes as enumerators with their texts. The header has them only in an
# X-macro. Keeps line numbers.
/^#define REDLOCK_ERROR_MAP\(X\)/ { map = 1 }
map && match($0, /X\([A-Z_]+, -?[0-9]+, "[^"]*"\)/) {
    split(substr($0, RSTART + 2, RLENGTH - 3), field, /, /)
    text = $0
    sub(/^[^"]*"/, "", text)
    sub(/"\).*$/, "", text)
    codes = codes "REDLOCK_" field[1] " = " field[2] ", /**< " text ". */ "
}
map && !/\\$/ { map = 0 }
/^    REDLOCK_ERROR_MAP\(REDLOCK_X\)/ { print codes; next }
/^#(define|undef) REDLOCK_X/ { print ""; next }
{ print }
