#!/usr/bin/env bash
# Searches the specification with TLC: each configuration, and each variant that is broken. The list
# is in `searches`. Fails if a search that should find nothing finds something or misses a goal, or
# if a broken variant has no counterexample. Prints a row for each search: distinct states, states
# generated, processor time, and the steps of the counterexample.
#
#     spec/check.sh                 what CI runs
#     spec/check.sh --all           all of them
#     spec/check.sh NAME ...        these
#     spec/check.sh --module Lock   with --all or not: those of one module
#     spec/check.sh --trace NAME    prints TLC's output, with the counterexample
#     spec/check.sh --record ...    writes the rows into README.md, and leaves its other rows
#
# Without Java or TLC it says so, and exits with 77.
#
# TLA2TOOLS   tla2tools.jar (where scripts/install-tlc.sh puts it)
# JOBS        so many searches run beside each other (2)
# WORKERS     so many threads has each (1: then no counterexample is shorter than its own)
# TLC_MEMORY  of each (2g)
# LIMIT       a search that takes more seconds of a processor has no end: its row says how far it
#             came
# SEARCHES    the list
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
searches=${SEARCHES:-$here/searches}
jar=${TLA2TOOLS:-$here/tla2tools.jar}
jobs=${JOBS:-2}
workers=${WORKERS:-1}
memory=${TLC_MEMORY:-2g}
limit=${LIMIT:-unlimited}

fail() {
    echo "check.sh: $*" >&2
    exit 2
}

skip() {
    echo "skipped: $*"
    exit 77
}

trim() {
    local text=$1
    text=${text#"${text%%[![:space:]]*}"}
    printf '%s' "${text%"${text##*[![:space:]]}"}"
}

# Prints the module's .cfg for this search.
configure() {
    local module=$1 comes=$2 changes=$3 kind names properties='' invariants='' change name
    local -a sed_arguments=()
    read -r kind names <<<"$comes"
    while IFS= read -r -d ';' change; do
        change=$(trim "$change")
        [[ $change ]] || continue
        name=${change%% *}
        grep -Eq "^ *$name( |\$)" "$here/$module.cfg" || fail "$module.cfg has no $name"
        if [[ $name == INVARIANTS || $name == PROPERTIES ]]; then
            sed_arguments+=(-e "s/^$name .*/$change/")
        else
            sed_arguments+=(-e "s/^ *$name (=|<-) .*/    $change/")
        fi
    done <<<"$changes;"
    if [[ $kind == lives || $kind == dies ]]; then
        sed_arguments+=(-e 's/^SPECIFICATION .*/SPECIFICATION FairSpec/' -e '/^(SYMMETRY|CONSTRAINT)/d')
        properties=$names
    fi
    if [[ $kind == breaks ]]; then
        for name in $names; do
            # What speaks of a step is a property.
            if grep -A 1 "^$name ==" "$here/${module#MC}.tla" | grep -qF '[]['; then
                properties+=" $name"
            else
                invariants+=" $name"
            fi
        done
    fi
    if [[ $kind != good ]]; then
        sed_arguments+=(-e '/^(ACTION_CONSTRAINT|INVARIANTS|PROPERTIES)/d')
    fi
    sed -E "${sed_arguments[@]}" -e '/^$/d' "$here/$module.cfg"
    [[ -z $invariants ]] || echo "INVARIANTS $invariants"
    [[ -z $properties ]] || echo "PROPERTIES $properties"
}

# What is wrong with TLC's output for this search; nothing if it is as it must be.
judge() {
    local comes=$1 output=$2 found=no
    if grep -Eq '^Error: (Invariant|Action property|Temporal properties) .*violated' "$output"; then
        found=yes
    elif ! grep -q '^Model checking completed. No error has been found' "$output"; then
        echo 'TLC FAILED'
        return
    fi
    case ${comes%% *}:$found in
    good:yes | lives:yes) echo 'VIOLATION' ;;
    breaks:no | dies:no) echo 'NO COUNTEREXAMPLE' ;;
    good:no)
        local goal
        sed -n 's/^<<"expected", "\(.*\)">>$/\1/p' "$output" | while IFS= read -r goal; do
            grep -qF "<<\"met\", \"$goal\">>" "$output" || echo "NEVER MET: $goal"
        done
        ;;
    esac
}

# 1234567 as 1,234,567.
grouped() {
    sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta' <<<"$1"
}

# Puts the rows of this run in place of those of README.md, in the order of `searches`. Their sum,
# and the table beside the search in C, follow from all rows.
record() {
    local list=$1 rows=$2 page=$here/README.md
    awk -F ' *[|] *' '
        function grouped(n) { return n < 1000 ? n : grouped(int(n / 1000)) sprintf(",%03d", n % 1000) }
        FILENAME == ARGV[1] { if ($1 ~ /^(ci|all)$/) order[++count] = "`" $2 "`"; next }
        FILENAME == ARGV[2] { row[$2] = $0; next }
        /^[|] `[^|]*` [|] [0-9,]+ [|] [0-9,]+ [|] [0-9]+ s [|]/ { if (!($2 in row)) row[$2] = $0; next }
        { line[++lines] = $0 }
        END {
            for (i = 1; i <= count; i++)
                if (order[i] in row && split(row[order[i]], tlc)) seconds += tlc[5]
            for (i = 1; i <= lines; i++) {
                sub(/^All rows together: [0-9,]+ s/, "All rows together: " grouped(seconds) " s", line[i])
                if (line[i] ~ /^[|] `[^|]*` [|] [0-9,]+ (states|steps) [|]/) {
                    split(line[i], in_c)
                    found = ""
                    if (in_c[2] in row) {
                        split(row[in_c[2]], tlc)
                        found = tlc[6] ~ /steps/ ? tlc[6] : tlc[3] " states" (tlc[6] == "" ? "" : ", " tlc[6])
                    }
                    line[i] = "| " in_c[2] " | " in_c[3] " | " found (found == "" ? "|" : " |")
                }
                print line[i]
                if (line[i - 1] ~ /^[|] search [|] states [|]/)
                    for (j = 1; j <= count; j++) if (order[j] in row) print row[order[j]]
            }
        }' "$list" "$rows" "$page" >"$rows.page"
    cat "$rows.page" >"$page"
}

search() {
    local when=$1 name=$2 module=$3 comes=$4 changes=$5 scratch=$6
    local output=$scratch/$name.out status=0 seconds generated distinct left steps wrong verdict=''
    local -a compiler=()
    [[ $when != ci ]] || compiler=(-XX:TieredStopAtLevel=1) # a better one would not pay off
    configure "$module" "$comes" "$changes" >"$scratch/$name.cfg"
    # TLC's own modules go there, too: in /tmp, another TLC would delete them.
    mkdir "$scratch/$name.states"
    # A search that finds a counterexample has an exit code of its own: the output says what it is.
    {
        (cd "$scratch" && ulimit -t "$limit" &&
            exec java -Xmx"$memory" -XX:+UseSerialGC "${compiler[@]}" -Djava.io.tmpdir="$name.states" -cp "$jar" \
                tlc2.TLC -nowarning -deadlock -workers "$workers" -metadir "$name.states" -config "$name.cfg" \
                "$module") >"$output" 2>&1
    } 2>/dev/null || status=$? # Bash would say "Killed"
    rm -rf "$scratch/$name.states"
    read -r generated distinct left < <(
        sed -n 's/,//g; s/^.*: //; s/ distinct .* \([0-9]* states left\) .*/ \1/
            s/^\([0-9]*\) states generated\b.* \([0-9]*\) \([0-9]*\) states left$/\1 \2 \3/p' "$output" |
            tail -n 1) || true
    steps=$(grep -Ec '^State [0-9]+:' "$output") || true
    [[ $steps == 0 ]] && steps='' || steps="$((steps - 1)) steps"
    if ((status == 128 + 9)) && [[ $limit != unlimited && ${comes%% *} =~ ^(good|lives)$ ]]; then
        wrong='' steps="no end, none bad, $(grouped "${left:-?}") in the queue"
    else
        wrong=$(judge "$comes" "$output") verdict=ok
    fi
    times >"$scratch/$name.times" # of this subshell, and of those that it waited for
    seconds=$(tr 'ms' '  ' <"$scratch/$name.times" |
        awk 'NR == 2 { printf "%.0f", 60 * ($1 + $3) + $2 + $4 }')
    distinct=$(grouped "${distinct:-?}") generated=$(grouped "${generated:-?}")
    printf '%-36s %13s %14s %8s  %-9s %s\n' "$name" "$distinct" "$generated" "$seconds s" "$steps" "${wrong:-$verdict}"
    [[ $trace == no ]] || cat "$output"
    if [[ $wrong ]]; then
        touch "$scratch/$name.wrong"
    elif [[ $distinct != '?' ]]; then
        # shellcheck disable=SC2016 # Markdown
        printf '| `%s` | %s | %s | %s | %s|\n' "$name" "$distinct" "$generated" "$seconds s" "${steps:+$steps }" \
            >"$scratch/$name.row"
    fi
}

all=no trace=no named=no recorded=no only=''
declare -A wanted=()
while (($#)); do
    case $1 in
    --all) all=yes ;;
    --trace) trace=yes ;;
    --record) recorded=yes ;;
    --module) only=MC${2:?--module needs a name} && shift ;;
    -*) fail "no option $1" ;;
    *) named=yes wanted[$1]=1 ;;
    esac
    shift
done
command -v java >/dev/null || skip 'there is no Java: scripts/install-tlc.sh installs it'
[[ -f $jar ]] || skip "there is no TLC ($jar): scripts/install-tlc.sh installs it"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$here"/*.tla "$scratch"
jar=$(realpath "$jar")

running=0 count=0
while IFS='|' read -r when name module comes changes; do
    when=$(trim "$when") name=$(trim "$name") module=$(trim "$module")
    [[ $when && $when != \#* ]] || continue
    [[ ! $only || $module == "$only" ]] || continue
    if [[ $named == yes ]]; then
        [[ ${wanted[$name]-} ]] || continue
        unset "wanted[$name]"
    else
        [[ $when == ci || $all == yes ]] || continue
    fi
    if ((running == jobs)); then
        wait -n
        running=$((running - 1))
    fi
    count=$((count + 1))
    search "$when" "$name" "$module" "$(trim "$comes")" "$(trim "$changes")" "$scratch" \
        </dev/null &
    running=$((running + 1))
done <"$searches"
while ((running > 0)); do
    wait -n
    running=$((running - 1))
done
((count > 0)) || fail "nothing to search"
((${#wanted[@]} == 0)) || fail "no search ${!wanted[*]}"
shopt -s nullglob
if [[ $recorded == yes ]]; then
    rows=("$scratch"/*.row)
    ((${#rows[@]} == 0)) || { cat "${rows[@]}" >"$scratch/rows" && record "$searches" "$scratch/rows"; }
fi
wrong=("$scratch"/*.wrong)
((${#wrong[@]} == 0)) || {
    echo "${#wrong[@]} searches are not as they must be" >&2
    exit 1
}
