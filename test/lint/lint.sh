#!/usr/bin/env bash
# One check of the form of the sources; the last lines name them. Run from the top of the tree.
set -euo pipefail
shopt -s extglob

skip() {
    echo "skipped: $*"
    exit 77
}

# What belongs to the project: what git knows or would add; in a release tarball every file.
sources() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git -c core.quotePath=false ls-files --cached --others --exclude-standard -- "$@"
    else
        local pattern name=()
        for pattern in "$@"; do
            # One that names a folder is a path; by its last part alone it would match everything.
            if [[ $pattern == */* ]]; then name+=(-o -path "./$pattern"); else name+=(-o -name "$pattern"); fi
        done
        find . -path './build*' -prune -o -type f \( "${name[@]:1}" \) -print
    fi | while read -r file; do [[ -f $file ]] && echo "$file"; done
}

format() {
    command -v clang-format >/dev/null || skip "no clang-format"
    # Other versions lay out the same settings differently.
    [[ $(clang-format --version) == *"version 14."* ]] ||
        skip "clang-format is not of version 14: $(clang-format --version)"
    mapfile -t files < <(sources '*.c' '*.h' '*.cpp' '*.hpp')
    ((${#files[@]} > 10)) || { echo "only ${#files[@]} files were found"; exit 1; }
    clang-format --dry-run -Werror "${files[@]}"
    # The first line says what the file is.
    local file first bad=0
    for file in "${files[@]}"; do
        first=$(head -n 1 "$file")
        [[ $first == '/*'* || $first == '//'* ]] ||
            { echo "$file:1: the first line is no comment that says what the file is"; bad=1; }
    done
    ((bad == 0)) || exit 1
    echo "${#files[@]} files"
}

shell() {
    command -v shellcheck >/dev/null || skip "no shellcheck"
    mapfile -t files < <({ sources '*.sh'; sources '.ci/run'; } | sort -u)
    ((${#files[@]} > 3)) || { echo "only ${#files[@]} scripts were found"; exit 1; }
    shellcheck -x -P SCRIPTDIR "${files[@]}"
    echo "${#files[@]} scripts"
}

man() {
    command -v mandoc >/dev/null || skip "no mandoc"
    mapfile -t files < <(sources 'docs/man/*')
    ((${#files[@]})) || skip "there are no man pages"
    # A style message (such as a missing date of the operating system) is none of ours; warnings and
    # errors are.
    mandoc -T lint -W warning "${files[@]}"
    echo "${#files[@]} pages"
}

# uncited TOP: each heading of a page of docs/ that a comment there cites and that the page does not
# have.
uncited() {
    local page heading
    cd "$1"
    grep -rhzoE 'docs/[a-z-]+\.md,[[:space:]*]*"[^"\]+"' src test include tools --include='*.[ch]' --include='*.lua' |
        tr '\0\n' '\n ' | sed -E 's/ *\* */ /g; s/ +/ /g; s/, ?"/\t/; s/"$//' | sort -u |
        while IFS=$'\t' read -r page heading; do
            sed -nE 's/^##+ //p' "$page" | grep -qxF -- "$heading" || echo "$page has no heading: $heading"
        done
}

# Sources cite pages by their headings.
citations() {
    local wrong
    wrong=$(uncited .)
    [[ -z $wrong ]] || { echo "$wrong"; exit 1; }
    temp=$(mktemp -d)
    trap 'rm -rf "$temp"' EXIT
    cp -r docs src test include tools "$temp"
    sed -i 's/^## Late SETs$/## Early SETs/' "$temp/docs/protocols.md"
    sed -i 's/^## TLS$/## SSL/' "$temp/docs/operations.md"
    wrong=$(uncited "$temp")
    diff - <(echo "$wrong") <<END || { echo "control failed: not what was planted (<) was found (>)"; exit 1; }
docs/operations.md has no heading: TLS
docs/protocols.md has no heading: Late SETs
END
    echo "every cited heading is there"
}

# too_wide FILE…: the lines that are wider than they may be: 120 columns; comments, also behind
# code, and prose 100, but not tables and blocks of code in prose.
too_wide() {
    local file prose=() code=(/dev/null) slashes=(/dev/null) hashes=(/dev/null)
    for file in "$@"; do
        case $file in
        *.md) prose+=("$file") ;;
        *.[ch] | *.[ch]pp | *.go | *.java | *.mjs | *.rs) code+=("$file") slashes+=("$file") ;;
        *.lua) code+=("$file") ;;
        *) code+=("$file") hashes+=("$file") ;;
        esac
    done
    {
        LC_ALL=C.UTF-8 grep -HnE '^.{121,}' "${code[@]}"
        LC_ALL=C.UTF-8 grep -HnE '^.{101,}' "${slashes[@]}" | grep -E ':[0-9]+: *(\*|//) |/\*\*?<? | // '
        LC_ALL=C.UTF-8 grep -HnE '^.{101,}' "${code[@]}" | grep -E '\.lua:[0-9]*:(.* )?-- '
        # Behind code, a # without a quote after it: that is no text.
        LC_ALL=C.UTF-8 grep -HnE '^.{101,}' "${hashes[@]}" | grep -E "^[^:]*:[0-9]*:( *#|.* +# [^\"']*\$)"
        awk 'FNR == 1 { code = 0 } /^ *```/ { code = !code } code || /^ *[|!]/ { next }
            { print FILENAME ":" FNR ":" $0 }' "${prose[@]}" | LC_ALL=C.UTF-8 grep -E '^[^:]*:[0-9]*:.{101,}'
    } | sed -E 's/^([^:]*:[0-9]*):.*/\1: too wide/' | LC_ALL=C sort -u
}

width() {
    local files wrong
    # Not data, and not what a program writes.
    mapfile -t files < <(sources '*.c' '*.h' '*.cpp' '*.hpp' '*.lua' '*.sh' '*.py' '*.cmake' '*.in' '*.txt' '*.md' \
        '*.go' '*.rs' '*.java' '*.mjs' '*.yml' '*.yaml' '*Dockerfile' '.ci/run' |
        grep -vE 'docs/performance/results\.md|test/fuzz/corpus/' | sort -u)
    ((${#files[@]} > 100)) || { echo "only ${#files[@]} files were found"; exit 1; }
    wrong=$(too_wide "${files[@]}" || true)
    [[ -z $wrong ]] || { echo "$wrong"; exit 1; }
    temp=$(mktemp -d)
    trap 'rm -rf "$temp"' EXIT
    printf '%0121d\n' 0 >"$temp/wide.c"
    printf '%0120d\n' 0 >"$temp/narrow.c"
    printf '/* %098d */\n * %098d\n%080d; /* %013d */\n/* %0094d */\n' 0 0 0 0 0 >"$temp/comment.c"
    printf '    // %098d\n%0101d // %03d\n' 0 0 0 >"$temp/comment.go"
    printf '%s %098d\n' '--' 0 >"$temp/comment.lua"
    printf '# %099d\n%0101d # %03d\n"%090d # %05d"\n# %098d\n' 0 0 0 0 0 0 >"$temp/comment.sh"
    # shellcheck disable=SC2016 # a block of code
    printf '%0101d\n| %0101d |\n```\n%0101d\n```\n' 0 0 0 >"$temp/wide.md"
    wrong=$(too_wide "$temp"/*.* | sed "s|^$temp/||" || true)
    diff - <(echo "$wrong") <<END || { echo "control failed: not what was planted (<) was found (>)"; exit 1; }
comment.c:1: too wide
comment.c:2: too wide
comment.c:3: too wide
comment.go:1: too wide
comment.go:2: too wide
comment.lua:1: too wide
comment.sh:1: too wide
comment.sh:2: too wide
wide.c:1: too wide
wide.md:1: too wide
END
    echo "${#files[@]} files"
}

# Whether one of the patterns is a file or a folder.
is_there() {
    local pattern
    for pattern in "$@"; do
        ! compgen -G "$pattern" >/dev/null || return 0
    done
    return 1
}

# shellcheck disable=SC2016 # the backquotes of Markdown
# unknown TOP: what the pages there name in backquotes and the tree does not have: files, functions,
# the layers' files, the tests and bugs of docs/found.md; and the files of layers that
# docs/architecture.md leaves out.
unknown() {
    local page name files
    cd "$1"
    files=$(find . \( -path './build*' -o -path ./.git \) -prune -o -type f -print)
    while read -r page; do
        while read -r name; do
            case $name in
            *NAME* | *://*) ;;
            *'()') grep -rqwF -- "${name%'()'}" src include tools test bench || echo "$page: no function $name" ;;
            */*.* | */ | *.[ch])
                name=${name%/}
                is_there "$name" "${page%/*}/$name" "src/$name" "src/*/$name" ||
                    grep -q "/${name//./\\.}\$" <<<"$files" || echo "$page: no file $name"
                ;;
            esac
        done < <(awk '/^ *```/ { code = !code } !code' "$page" |
            grep -oE '`[A-Za-z0-9_./*<>:-]+(\(\))?`' | tr -d '`' | sort -u)
    done < <(find README.md CONTRIBUTING.md docs spec test tools bench -name '*.md')
    while read -r name; do
        grep -q "/${name/#unit_/test_}\\.[a-z]*\$" <<<"$files" || grep -rqwF -- "$name" test bindings/python/tests ||
            echo "docs/found.md: no test $name"
    done < <(awk -F'|' 'NF == 6 { print $4 }' docs/found.md | grep -oE '`[A-Za-z0-9_-]+`' | tr -d '`' | sort -u)
    while IFS='|' read -r name page; do
        diff <(find "src/$name" -maxdepth 1 -type f | sed -E 's|.*/||; s|\.[ch]$||' | sort -u) \
            <(grep -oE '`[a-z_]+(\.h)?`' <<<"$page" | tr -d '`' | sed 's|\.h$||' | sort -u) |
            sed -n "s|^< |docs/architecture.md: the table leaves out $name/|p
                s|^> |docs/architecture.md: no file $name/|p" || true
    done < <(sed -nE 's#^\| `([a-z]+)/` \|[^|]*\| (.*) \|$#\1|\2#p' docs/architecture.md)
}

names() {
    local wrong
    wrong=$(unknown .)
    [[ -z $wrong ]] || { echo "$wrong"; exit 1; }
    temp=$(mktemp -d)
    trap 'rm -rf "$temp"' EXIT
    cp -r README.md CONTRIBUTING.md docs spec src include tools test bench scripts bindings packaging "$temp"
    local missing=no_function # in two parts, so that this file does not name it
    missing=${missing}_here'()'
    # shellcheck disable=SC2016 # Markdown
    printf '`src/core/none.c` `none.h` `%s` `src/core/lease.c` `redlock_acquire()`\n' "$missing" >>"$temp/README.md"
    # shellcheck disable=SC2016 # Markdown
    printf '| x | y | `unit_spare`: `%s` | z |\n' "${missing%'()'}" >>"$temp/docs/found.md"
    rm "$temp/src/loop/reactor.h"
    touch "$temp/src/base/new.c"
    wrong=$(unknown "$temp" | LC_ALL=C sort)
    diff - <(echo "$wrong") <<END || { echo "control failed: not what was planted (<) was found (>)"; exit 1; }
README.md: no file none.h
README.md: no file src/core/none.c
README.md: no function $missing
docs/architecture.md: no file loop/reactor
docs/architecture.md: no file loop/reactor.h
docs/architecture.md: no file reactor.h
docs/architecture.md: the table leaves out base/new
docs/found.md: no test ${missing%'()'}
END
    echo "every name is there"
}

# misused TOP: where the tree has a word of the table "not" of CONTRIBUTING.md, also as a part of a
# name; and the folders that the table lets off though they have none.
misused() {
    local no words folders later folder pattern found
    cd "$1"
    while IFS='|' read -r _ no _ folders later _; do
        words=$(sed -E 's/^ +| +$//g; s/, /|/g' <<<"$no")
        pattern="(^|[^A-Za-z])($words)s?([^A-Za-z]|\$)"
        read -ra folders <<<"${folders//,/}"
        read -ra later <<<"${later//,/}"
        found=$(grep -rnIiE --include='*.'{c,h,hpp,lua,md,js,css,sh,1,3} -- "$pattern" "${folders[@]}" || true)
        for folder in "${later[@]}"; do
            grep -q "^$folder/" <<<"$found" ||
                echo "CONTRIBUTING.md: $folder has no ${words//|/, } any more: delete it there"
            found=$(grep -v "^$folder/" <<<"$found" || true)
        done
        [[ -z $found ]] || sed -E "s/^([^:]*:[0-9]+):.*/\1: not ${words//|/, }: CONTRIBUTING.md, \"Words\"/" <<<"$found"
    done < <(sed -n '/^| not |/,/^$/p' CONTRIBUTING.md | sed '1,2d; /^$/d')
}

words() {
    local wrong
    wrong=$(misused .)
    [[ -z $wrong ]] || { echo "$wrong"; exit 1; }
    temp=$(mktemp -d)
    trap 'rm -rf "$temp"' EXIT
    cp -r CONTRIBUTING.md src include tools docs "$temp"
    echo '/* Rings the BELLS, or a trapdoor. */' >"$temp/src/base/new.h"
    echo 'void redlock_news_add(void);' >"$temp/src/blocking/new.c"
    sed -i 's/^| door |.*/| door | rundown | src | src\/wire |/' "$temp/CONTRIBUTING.md"
    wrong=$(misused "$temp")
    diff - <(echo "$wrong") <<END || { echo "control failed: not what was planted (<) was found (>)"; exit 1; }
src/base/new.h:1: not bell, ringing: CONTRIBUTING.md, "Words"
CONTRIBUTING.md: src/wire has no door any more: delete it there
src/blocking/new.c:1: not news: CONTRIBUTING.md, "Words"
END
    echo "every word is the right one"
}

docs() {
    command -v doxygen >/dev/null || skip "no doxygen"
    "$REDLOCK_CMAKE" --build "$REDLOCK_BUILD" --target docs
    [[ -s $REDLOCK_BUILD/docs/html/index.html ]] || { echo "no HTML was made"; exit 1; }
}

case ${1-} in
format | width | shell | man | citations | names | words | docs) "$1" ;;
*) echo "usage: lint.sh format|width|shell|man|citations|names|words|docs" >&2 && exit 64 ;;
esac
