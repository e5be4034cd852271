# Tables of instruction counts: prints them, keeps them in instructions.txt, compares them with it.
# instructions.sh sources it, and sets mode and force.
# shellcheck shell=bash disable=SC2154

RECORD=$REDLOCK_ROOT/bench/instructions.txt
SKIPPED=77

# A table is a section of the record, between empty lines. Whoever counts sets these:
kind=''    # client, redis or valkey
built=''   # the line before the header; only tables with the same line compare
about=()   # comments before it
table=''   # the file of the header and the rows
widths=''  # of the columns
compared='' # the columns that must not grow,
limit=''   # by more than so many percent

# For awk: a name in a file of callgrind, where an id stands for it after the first time.
# shellcheck disable=SC2034 # for those who source this file
CALLGRIND_NAMES='
    function value(kind, text, id) {
        match(text, /^\([0-9]+\)/)
        id = substr(text, 1, RLENGTH)
        if (length(text) > RLENGTH) names[kind, id] = substr(text, RLENGTH + 2)
        return names[kind, id]
    }'

aligned() {
    awk -v widths="$widths" '
        BEGIN { split(widths, width, " ") }
        {
            printf "%-" width[1] "s", $1
            for (i = 2; i <= NF; i++) printf " %" width[i] "s", $i
            print ""
        }' "$table"
}

# section KIND : prints it, as it is in the record.
section() {
    [[ ! -r $RECORD ]] || awk -v RS= -v wanted="$1" '
        (/\nbuilt redis / ? "redis" : /\nbuilt valkey / ? "valkey" : "client") == wanted' "$RECORD"
}

record() {
    local each text new=''
    for each in client redis valkey; do
        if [[ $each == "$kind" ]]; then
            text=$(printf '# %s\n' "${about[@]}" && echo "$built" && aligned)
        else
            text=$(section "$each")
        fi
        new+=${text:+${new:+$'\n\n'}$text}
    done
    printf '%s\n' "$new" >"$RECORD" && echo "recorded in $RECORD"
}

# Fails if a figure rose above its limit, or if a row is missing on one side.
compare() {
    local recorded was
    recorded=$(section "$kind")
    was=$(grep '^built ' <<<"$recorded") ||
        redlock_die "$RECORD has no table of the $kind: write it with bench/instructions.sh --record"
    if [[ $was != "$built" ]] && ((!force)); then
        echo "not compared: the counts in $RECORD are for another build ($was; here: $built);" \
            "--force compares anyway"
        return "$SKIPPED"
    fi
    grep -v -e '^#' -e '^built ' <<<"$recorded" | awk -v columns="$compared" -v limit="$limit" '
        function compare(what, was, is) {
            if (was == 0 ? is > 0 : is > was * (1 + limit / 100)) {
                printf "%s: %s rose from %s to %s: find out why, or record it\n", $1, what, was, is
                failed = 1
            } else if (is < was * (1 - limit / 100))
                printf "%s: %s fell from %s to %s: record it (bench/instructions.sh --record)\n", $1, what, was, is
        }
        BEGIN { count = split(columns, names, " ") }
        FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        NR == FNR { for (i = 1; i <= count; i++) old[$1, i] = $column[names[i]]; recorded[$1]; left++; next }
        !($1 in recorded) { printf "%s is not recorded (bench/instructions.sh --record)\n", $1; failed = 1; next }
        {
            left--
            for (i = 1; i <= count; i++) compare(names[i], old[$1, i], $column[names[i]])
        }
        END {
            if (left > 0) { print "an operation of the record was not counted"; failed = 1 }
            if (!failed) print "no figure rose by more than " limit " %"
            exit failed
        }' - "$table"
}

worst=0 # the exit status of the script

# Prints the table, and records or compares it.
conclude() {
    local status=0
    echo "$built"
    aligned
    case $mode in
    record) record || status=1 ;;
    check) compare || status=$? ;;
    esac
    ((worst == 1 || status == 0)) || worst=$status
}
