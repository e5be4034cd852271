#!/usr/bin/env bash
# Searches the specification with TLC: each configuration, and each variant that is broken. The list
# is in `searches`. Fails if a search that should find nothing finds something or misses a goal, or
# if a broken variant has no counterexample. Prints a row for each search.
#
#     spec/check.sh                 what CI runs
#     spec/check.sh --all           all of them
#     spec/check.sh NAME ...        these
#     spec/check.sh --trace NAME    prints TLC's output, with the counterexample
#     spec/check.sh --markdown ...  rows for README.md
#
# TLA2TOOLS   tla2tools.jar
# JOBS        so many searches run beside each other (2)
# WORKERS     so many threads has each (1: then no counterexample is shorter than its own)
# TLC_MEMORY  of each (2g)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
jar=${TLA2TOOLS:-$here/tla2tools.jar}
jobs=${JOBS:-2}
workers=${WORKERS:-1}
memory=${TLC_MEMORY:-2g}

fail() {
    echo "check.sh: $*" >&2
    exit 2
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
        sed_arguments+=(-e 's/^SPECIFICATION .*/SPECIFICATION FairSpec/' -e '/^SYMMETRY/d')
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

search() {
    local name=$1 module=$2 comes=$3 changes=$4 scratch=$5
    local output=$scratch/$name.out began=$SECONDS generated distinct steps wrong
    configure "$module" "$comes" "$changes" >"$scratch/$name.cfg"
    # A search that finds a counterexample has an exit code of its own: the output says what it is.
    (cd "$scratch" && java -Xmx"$memory" -XX:+UseSerialGC -cp "$jar" tlc2.TLC -nowarning -deadlock \
        -workers "$workers" -metadir "$name.states" -config "$name.cfg" "$module") \
        >"$output" 2>&1 || true
    rm -rf "$scratch/$name.states"
    wrong=$(judge "$comes" "$output")
    read -r generated distinct < <(
        sed -n 's/,//g; s/^\([0-9]*\) states generated \([0-9]*\) distinct states found.*/\1 \2/p' \
            "$output" | tail -n 1) || true
    steps=$(grep -Ec '^State [0-9]+:' "$output") || true
    [[ $steps == 0 ]] && steps='' || steps="$((steps - 1)) steps"
    # shellcheck disable=SC2059
    printf "$row" "$name" "$(grouped "${distinct:-?}")" "$(grouped "${generated:-?}")" \
        "$((SECONDS - began)) s" "$steps" "${wrong:-ok}"
    [[ $trace == no ]] || cat "$output"
    [[ -z $wrong ]] || touch "$scratch/$name.wrong"
}

# shellcheck disable=SC2016 # Markdown's
markdown_row='| `%s` | %s | %s | %s | %s | %s |\n'
all=no trace=no named=no row='%-36s %13s %14s %8s  %-9s %s\n'
declare -A wanted=()
for argument in "$@"; do
    case $argument in
    --all) all=yes ;;
    --trace) trace=yes ;;
    --markdown) row=$markdown_row ;;
    -*) fail "no option $argument" ;;
    *) named=yes wanted[$argument]=1 ;;
    esac
done
[[ -f $jar ]] || fail "set TLA2TOOLS to tla2tools.jar (README.md says where it comes from)"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$here"/*.tla "$scratch"
jar=$(realpath "$jar")

running=0
while IFS='|' read -r when name module comes changes; do
    when=$(trim "$when") name=$(trim "$name")
    [[ $when && $when != \#* ]] || continue
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
    search "$name" "$(trim "$module")" "$(trim "$comes")" "$(trim "$changes")" "$scratch" \
        </dev/null &
    running=$((running + 1))
done <"$here/searches"
while ((running > 0)); do
    wait -n
    running=$((running - 1))
done
((${#wanted[@]} == 0)) || fail "no search ${!wanted[*]}"
shopt -s nullglob
wrong=("$scratch"/*.wrong)
((${#wrong[@]} == 0)) || {
    echo "${#wrong[@]} searches are not as they must be" >&2
    exit 1
}
