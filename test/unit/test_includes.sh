#!/usr/bin/env bash
# Includes only point down the layers of docs/architecture.md; then, as a control, each of some planted bad includes is found.
set -euo pipefail

root=${1:?usage: test_includes.sh TOP_OF_THE_TREE}

# What a layer may include of ours. `env` stands for the doors: env.h, and the texts that go through them.
declare -A allowed=(
    [public]="public"
    [core]="public core"
    [env]="public core env"
    [manager]="public core env manager"
    [wire]="public core env wire reply"
    [reply]="reply"
    [node]="public core env wire reply node"
    [loop]="public core env loop"
    [root]="public core env manager wire reply node loop root"
    [blocking]="public core env loop blocking"
    [tool]="public tool"
    [chaos]="public chaos"
)

# What a layer may include of the system: decisions are pure, only what talks to the world may see it.
pure="assert inttypes limits stdarg stdbool stddef stdint string"
declare -A libc=(
    [public]="stdbool stddef stdint"
    [core]="$pure"
    [env]="$pure stdio stdlib"
    [manager]="$pure stdatomic stdio stdlib"
    [wire]="$pure stdio stdlib"
)

# redlock-chaos: what plans and judges is pure, and knows JSON at most; each edge is one file's business.
chaos_pure=' fault* schedule* experiments* protection* history* check* comparison* availability* verdict* report* '
chaos_pure_libc="$pure errno stdio stdlib jansson"
declare -A chaos_edges=(
    ['<jansson.h>']=' history_read* log* client* auditor* nemesis* crew* run* '
    ['<hiredis/hiredis.h>']=' admin* auditor* backend_compose* '
    ['<ev.h>']=' proxy* '
    ['<redlock/redlock.h>']=' client* main* '
    ['<redlock/blocking.h>']=' client* '
)

# hiredis and libev, and the only files that know them; nobody else of the library includes them.
hiredis_users=" src/reply.c "
ev_users=" src/loop.c src/blocking.c "

# The layer of each file, from the lists that it is built by; a header belongs to its source, those without one are here.
declare -A layer_of
read_layers() {
    local top=$1 layer list file
    layer_of=([env.h]=env [text.h]=env [text.c]=env [options.h]=env [options.c]=env [state.h]=manager [client.h]=blocking [node_state.h]=node [core/planted.h]=core [core/lease_parts.h]=core)
    for layer in core manager wire node loop root blocking; do
        list=$(tr '\n' ' ' <"$top/src/CMakeLists.txt" | sed -n "s/.*set(REDLOCK_${layer^^}_SOURCES \([^)]*\)).*/\1/p")
        [[ -n $list ]] || { echo "src/CMakeLists.txt lists no sources of the layer $layer"; return 1; }
        for file in $list; do
            [[ -n ${layer_of[$file]-} ]] || layer_of[$file]=$layer
            [[ -n ${layer_of[${file%.c}.h]-} ]] || layer_of[${file%.c}.h]=$layer
        done
    done
    layer_of[reply.h]=reply
}

# matches PATTERNS NAME : whether one of the patterns, with spaces around each, is the name's.
matches() {
    local - pattern
    set -o noglob # the words of $1 are no file names
    for pattern in $1; do
        # shellcheck disable=SC2053 # a pattern
        [[ $2 != $pattern ]] || return 0
    done
    return 1
}

check_chaos_include() {
    local top=$1 file=$2 include=$3 name=${2##*/} target
    case $include in
    '"'*)
        target=${include//\"/}
        [[ -f $top/${file%/*}/$target && $target != */* ]] || bad "$file: redlock-chaos may not include $include"
        if matches "$chaos_pure" "$name" && ! matches "$chaos_pure" "$target"; then
            bad "$file: what plans and judges is pure, and may not include $include"
        fi
        ;;
    *)
        target=${include#<} target=${target%.h>}
        if [[ -n ${chaos_edges[$include]-} ]]; then
            matches "${chaos_edges[$include]}" "$name" || bad "$file: only${chaos_edges[$include]}include $include"
        elif [[ $target == redlock/* || $target == hiredis/* ]]; then
            bad "$file: redlock-chaos may not include $include"
        elif matches "$chaos_pure" "$name"; then
            [[ " $chaos_pure_libc " == *" $target "* ]] || bad "$file: what plans and judges is pure, and may not include $include"
        fi
        ;;
    esac
}

bad() {
    echo "$1"
    errors=$((errors + 1))
}

check_include() {
    local top=$1 file=$2 layer=$3 include=$4 target
    if [[ $layer == chaos ]]; then
        check_chaos_include "$top" "$file" "$include"
        return
    fi
    case $include in
    '<hiredis'* | '"hiredis'*)
        [[ $hiredis_users == *" $file "* ]] || bad "$file: only$hiredis_users""includes hiredis"
        ;;
    '<ev.h>' | '"ev.h"' | '<ev++.h>')
        [[ $layer == tool || $ev_users == *" $file "* ]] || bad "$file: only$ev_users""and the tool include ev.h"
        ;;
    '<redlock/'* | '"redlock/'*)
        [[ " ${allowed[$layer]} " == *" public "* ]] || bad "$file: $layer may not include $include"
        ;;
    '<'*)
        target=${include#<} target=${target%.h>}
        [[ -z ${libc[$layer]-} || " ${libc[$layer]} " == *" $target "* ]] || bad "$file: $layer may not include $include"
        ;;
    *)
        target=${include//\"/}
        if [[ $layer == tool ]]; then
            [[ -f $top/${file%/*}/$target && $target != */* ]] || bad "$file: the tool may not include $include"
        elif [[ -z ${layer_of[$target]-} ]]; then
            bad "$file: $include belongs to no layer"
        elif [[ " ${allowed[$layer]} " != *" ${layer_of[$target]} "* ]]; then
            bad "$file: $layer may not include $include, which is of ${layer_of[$target]}"
        fi
        ;;
    esac
}

# Prints what is wrong and how much was looked at; fails if anything is wrong.
check() {
    local top=$1 file layer files=0 includes=0 line
    local -A layers=()
    errors=0
    read_layers "$top" || return 1
    while read -r file; do
        case $file in
        include/*) layer=public ;;
        tools/chaos/*) layer=chaos ;;
        tools/*) layer=tool ;;
        *) layer=${layer_of[${file#src/}]-} ;;
        esac
        [[ -n $layer ]] || bad "$file: belongs to no layer: src/CMakeLists.txt does not list it"
        layers[$file]=$layer
        files=$((files + 1))
    done < <(cd "$top" && find include src tools -name '*.[ch]' | sort)
    while IFS=: read -r file line; do
        [[ -n ${layers[$file]} ]] || continue
        includes=$((includes + 1))
        [[ $line =~ [\"\<].* ]] && check_include "$top" "$file" "${layers[$file]}" "${BASH_REMATCH[0]}"
    done < <(cd "$top" && grep -rHoE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<][^">]*[">]' \
        include src tools)
    ((files >= 40 && includes >= 100)) || bad "only $files files with $includes includes were found"
    echo "$files files, $includes includes, $errors errors"
    ((errors == 0))
}

# plant FILE LINE WORDS: the tree with that line at the end of the file is refused, with these words.
controls=0
plant() {
    local file=$1 line=$2 words=$3 said
    [[ ! -f $temp/$file ]] || cp "$temp/$file" "$temp/saved"
    printf '%s\n' "$line" >>"$temp/$file"
    if said=$(check "$temp"); then
        echo "control failed: '$line' in $file was not found"
        return 1
    fi
    grep -qF -- "$words" <<<"$said" || { echo "control failed: '$line' in $file: $said"; return 1; }
    rm "$temp/$file"
    [[ ! -f $temp/saved ]] || mv "$temp/saved" "$temp/$file"
    controls=$((controls + 1))
}

check "$root"

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cp -r "$root/include" "$root/src" "$root/tools" "$temp/"
plant src/core/lease.c '#include "env.h"' 'src/core/lease.c: core may not include "env.h"'
plant src/core/quorum.h '#  include <time.h>' 'src/core/quorum.h: core may not include <time.h>'
plant src/manager.c '#include "node.h"' 'src/manager.c: manager may not include "node.h"'
plant src/owed.c '#include <unistd.h>' 'src/owed.c: manager may not include <unistd.h>'
plant src/wire.c '#include "node.h"' 'src/wire.c: wire may not include "node.h"'
plant src/node.c '#include "manager.h"' 'src/node.c: node may not include "manager.h"'
plant src/stream.c '#include <hiredis/async.h>' 'src/stream.c: only'
plant src/node.c '#include <ev.h>' 'src/node.c: only'
plant src/loop.c '#include "node.h"' 'src/loop.c: loop may not include "node.h"'
plant src/blocking.c '#include "state.h"' 'src/blocking.c: blocking may not include "state.h"'
plant src/env.h '#include "manager.h"' 'src/env.h: env may not include "manager.h"'
plant include/redlock/redlock.h '#include <ev.h>' 'include/redlock/redlock.h: only'
plant include/redlock/blocking.h '#include <pthread.h>' 'include/redlock/blocking.h: public may not include <pthread.h>'
plant tools/redlock/main.c '#include "core/lease.h"' 'tools/redlock/main.c: the tool may not include "core/lease.h"'
plant tools/redlock/main.c '#include "manager.h"' 'tools/redlock/main.c: the tool may not include "manager.h"'
plant tools/redlock/main.c '#include <hiredis/hiredis.h>' 'tools/redlock/main.c: only'
plant tools/chaos/nemesis.c '#include "manager.h"' 'tools/chaos/nemesis.c: redlock-chaos may not include "manager.h"'
plant tools/chaos/nemesis.c '#include <redlock/redlock.h>' 'tools/chaos/nemesis.c: only'
plant tools/chaos/fault.c '#include <time.h>' 'tools/chaos/fault.c: what plans and judges is pure'
plant tools/chaos/schedule.h '#include "backend.h"' 'tools/chaos/schedule.h: what plans and judges is pure'
plant tools/chaos/run.c '#include <ev.h>' 'tools/chaos/run.c: only'
plant src/stray.c '#include <stdio.h>' 'src/stray.c: belongs to no layer'
check "$temp" >/dev/null || { echo "the controls have left the tree changed"; exit 1; }
echo "$controls planted includes were found"
