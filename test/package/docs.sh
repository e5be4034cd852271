#!/usr/bin/env bash
# Every link of the installed documents and of CONTRIBUTING.md leads somewhere, and every example
# that the documents and the man pages name is installed. As a control, planted faults are found.
set -euo pipefail
shopt -s extglob

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
"$REDLOCK_CMAKE" --install "$REDLOCK_BUILD" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
doc=$(dirname "$(find "$prefix" -name CHANGELOG.md)")
[[ -e $doc/README.md ]] || { echo "there is no README.md beside CHANGELOG.md:"; find "$prefix"; exit 1; }

# CONTRIBUTING.md is not installed: check it in the tree, in a copy that the control may change.
tree=$work/tree
mkdir "$tree"
ln -s "$REDLOCK_SOURCE"/* "$tree"
cp --remove-destination "$REDLOCK_SOURCE/CONTRIBUTING.md" "$tree"

# The targets of a page's links, outside of blocks of code: [text](target), [text]: target,
# src="target", href="target".
links() {
    awk '/^ *```/ { code = !code; next } !code' "$1" |
        grep -oE '\]\([^) ]+|^\[[^]]+\]: *[^ ]+|(src|href)="[^"]+' | sed -E 's/^(\]\(|\[[^]]+\]: *|(src|href)=")//'
}

# Prints what is missing under the prefix and how much was looked at.
check() {
    local page link name links=0 examples=0 pages=0
    while read -r page; do
        while read -r link; do
            links=$((links + 1))
            [[ $link =~ ^(https?://|#) || -e ${page%/*}/${link%%#*} ]] ||
                echo "${page#@("$doc"|"$tree")/}: the link $link leads nowhere"
        done < <(links "$page")
    done < <(find "$doc" "$tree/CONTRIBUTING.md" -name '*.md')
    while read -r name; do
        examples=$((examples + 1))
        [[ -s $doc/docs/examples/$name ]] || echo "the example $name is not installed"
        [[ $name != *.sh || -x $doc/docs/examples/$name ]] || echo "the example $name cannot be run"
    done < <({ grep -rhoE '\bexamples/[A-Za-z0-9_.-]*[A-Za-z0-9]' "$doc" "$prefix"/share/man --include='*.md' \
        --include='*.[137]' | sed 's|.*/||'
        cat "$prefix"/share/man/man?/* | sed -nE 's/^\.Pa ([a-z-]+\.(sh|sql|lua)).*/\1/p'; } | sort -u)
    while read -r name; do
        pages=$((pages + 1))
        [[ -s $doc/docs/${name#docs/} ]] || echo "a man page names $name, which is not installed"
    done < <(cat "$prefix"/share/man/man?/* | sed -nE 's/^\.Pa ([a-z/-]+\.md).*/\1/p' | sort -u)
    echo "$links links, $examples examples, $pages pages that man pages name"
    ((links >= 50 && examples >= 7 && pages >= 2)) || echo "too few of them were found"
}

# plant WORDS FILE [LINE]: the check says these words if that line is at the end of the file, or if
# the file is missing.
plant() {
    local words=$1 file=$2 said
    cp -p "$file" "$work/saved"
    if (($# > 2)); then printf '%s\n' "$3" >>"$file"; else rm "$file"; fi
    said=$(check)
    cp -p "$work/saved" "$file"
    grep -qF -- "$words" <<<"$said" || { echo "control failed: nobody said \"$words\": $said"; exit 1; }
}

said=$(check)
echo "$said"
(($(wc -l <<<"$said") == 1)) || exit 1

manual=$(find "$prefix"/share/man -name redlock.1)
plant 'README.md: the link nowhere.md leads nowhere' "$doc/README.md" '[x](nowhere.md)'
plant 'docs/safety.md: the link ../no.md#x leads nowhere' "$doc/docs/safety.md" '[x]: ../no.md#x'
plant 'CONTRIBUTING.md: the link docs/none.md leads nowhere' "$tree/CONTRIBUTING.md" '[x](docs/none.md)'
plant 'README.md: the link no.png leads nowhere' "$doc/README.md" '<img src="no.png">'
plant 'README.md: the link docs/fencing.md leads nowhere' "$doc/docs/fencing.md"
plant 'redlock/redlock.h leads nowhere' "$(find "$prefix" -name redlock.h)"
plant 'the example none.sh is not installed' "$doc/docs/operations.md" 'Run docs/examples/none.sh.'
plant 'the example none.lua is not installed' "$manual" '.Pa none.lua'
plant 'the example fenced-set.lua is not installed' "$doc/docs/examples/fenced-set.lua"
plant 'names docs/none.md, which is not' "$manual" '.Pa docs/none.md'
chmod -x "$doc/docs/examples/late-writer.sh"
[[ $(check) == *'late-writer.sh cannot be run'* ]] ||
    { echo "control failed: an example that cannot be run was not found"; exit 1; }
echo "11 planted faults were found"
