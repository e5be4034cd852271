# What the tests of whole experiments begin and end with. Sourced by bash.
# shellcheck shell=bash disable=SC2034

for program in redis-server jq; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed" && exit 77; }
done
# What a loaded machine may add to an operation's deadline: other tests run beside this one.
slack=(--slack 5s)
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
out=$temp/run

die() {
    echo "$(basename "$0"): $*"
    echo "the load: $(cut -d ' ' -f 1-3 /proc/loadavg); too much of it makes each request too late"
    tail -n 40 "$temp/err"
    exit 1
}

# run_it ARGUMENT… : redlock-chaos run; sets status, and last to the last line.
run_it() {
    status=0
    "${chaos:?}" run "$@" "${slack[@]}" --output "$out" >"$temp/out" 2>"$temp/err" </dev/null || status=$?
    cat "$temp/out"
    last=$(tail -n 1 "$temp/out")
}

# porcupine_agrees N : Porcupine, where it was built, has the same verdict on each of N histories.
# What is illegal is drawn.
porcupine_agrees() {
    local again=0 illegal page
    [[ -x ${REDLOCK_PORCUPINE:-} ]] || { echo 'Porcupine did not judge it: it was not built' && return; }
    "$chaos" check --porcupine "${slack[@]}" "$out" >"$temp/porcupine" 2>"$temp/err" || again=$?
    grep '^Porcupine' -A 20 "$temp/porcupine" | grep -v '=' || true
    [[ $again == "$status" && $(tail -n 1 "$temp/porcupine") == "$last" ]] ||
        die "judged by Porcupine: exit status $again, not $status"
    [[ $(grep -c '^Porcupine agrees' "$temp/porcupine") == "$1" ]] || die 'Porcupine does not agree'
    illegal=$(grep -c '^Porcupine agrees.*, [1-9][0-9]* illegal' "$temp/porcupine") || true
    page=$(find "$out" -name porcupine-whole.html -size +0 | wc -l)
    [[ $page == "$illegal" ]] || die "Porcupine found something in $illegal histories, and drew that of $page"
}

# Nothing runs that has the run's directory in its command line, or that is its working directory.
nothing_is_left() {
    local proc told
    for proc in /proc/[0-9]*; do
        [[ ${proc#/proc/} != "$$" ]] || continue
        told=$({ tr '\0' ' ' <"$proc/cmdline" && readlink "$proc/cwd"; } 2>/dev/null) || continue
        [[ $told != *"$out"* ]] || die "process ${proc#/proc/} is left: $told"
    done
}
