#!/usr/bin/env bash
# Includes only point down the layers of docs/architecture.md; then, as a control, each of some
# planted bad includes is found.
set -euo pipefail

root=${1:?usage: test_includes.sh TOP_OF_THE_TREE}

# The folders of src, floor by floor, from the bottom up. A folder is a layer: its files include
# their own folder and the floors below, not the others of their floor. What a group knows of the
# world is its env: it knows no server.
floors=("core base" "result wire loop" "server" "group node" "election" "manager" "blocking")

# What a layer may include of the system: decisions are pure; only some layers see the world.
pure="assert inttypes limits stdarg stdbool stddef stdint string"
declare -A libc=(
    [public]="stdbool stddef stdint"
    [core]="$pure"
    [wire]="$pure stdio stdlib"
    [result]="$pure stdio stdlib"
    [group]="$pure stdatomic stdio stdlib"
    [election]="$pure stdatomic stdlib"
    [values]="$pure stdio time"
)

# redlock-chaos: its folders, and what each may include of the others. A folder
# includes itself and folders listed before it, so there is no circle.
chaos_folders=(
    'faults: faults'
    'history: history faults'
    'backends: backends faults'
    'links: links faults'
    'checks: checks history faults'
    'client: client history faults'
    'report: report checks history faults'
    'conductor: conductor report client checks links backends history faults'
)
# What plans and judges is pure, and knows JSON at most; what talks to the world is one file's
# business each.
chaos_pure=' faults/* history/history* history/lines* checks/* report/* '
chaos_pure_libc="$pure errno stdio stdlib jansson"
declare -A chaos_edges=(
    ['<jansson.h>']=' history/history_read* history/log* report/* '
    ['<hiredis/hiredis.h>']=' backends/admin* client/auditor* '
    ['"proxy/child.h"']=' links/* '
    ['<redlock/redlock.h>']=' client/client* conductor/main* '
    ['<redlock/blocking.h>']=' client/client* '
)

# hiredis, libev and OpenSSL, and the only files that know them; nobody else of the library includes
# them.
hiredis_users=" src/wire/reply.c "
openssl_users=" src/server/tls.c src/server/tls_context.c "
ev_users=" src/loop/libev.c src/blocking/worker.c "

# An adapter is public, too: it knows its own loop, and the libc that inline code needs.
declare -A adapters=(
    [libuv]="uv stdlib"
    [libevent]="event2/event stdlib"
    [glib]="glib stdlib"
    [poll]=""
)

# floor_of FOLDER : sets `floor` to its index in floors, -1 for a folder that is none of them.
floor_of() {
    for ((floor = ${#floors[@]} - 1; floor >= 0; floor--)); do
        [[ " ${floors[floor]} " != *" $1 "* ]] || return 0
    done
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

# The folder of a file of redlock-chaos, by its path there.
chaos_folder() {
    echo "${1%%/*}"
}

# chaos_may INTO FROM: whether a file of the one folder may include one of the other.
chaos_may() {
    local line
    for line in "${chaos_folders[@]}"; do
        [[ ${line%%:*} != "$1" || "${line#*:} " != *" $2 "* ]] || return 0
    done
    return 1
}

# The list itself keeps its order: see chaos_folders.
check_chaos_folders() {
    local line folder known=' '
    for line in "${chaos_folders[@]}"; do
        known+="${line%%:*} "
        for folder in ${line#*:}; do
            [[ $known == *" $folder "* ]] ||
                bad "tools/chaos: ${line%%:*} may not include $folder, which is listed after it"
        done
    done
}

check_chaos_include() {
    local top=$1 file=$2 include=$3 name=${2#tools/chaos/} target
    case $include in
    '"'*)
        target=${include//\"/}
        if [[ $target == values/* && -f $top/tools/$target ]]; then
            [[ $target == values/values.h ]] || ! matches "$chaos_pure" "$name" ||
                bad "$file: what plans and judges is pure, and may not include $include"
            return
        elif [[ -n ${chaos_edges[$include]-} ]] && matches "${chaos_edges[$include]}" "$name"; then
            return
        fi
        if [[ ! -f $top/tools/chaos/$target || $target == *..* ]]; then
            bad "$file: redlock-chaos may not include $include"
        elif ! chaos_may "$(chaos_folder "$name")" "$(chaos_folder "$target")"; then
            bad "$file: $(chaos_folder "$name") may not include $include, which is of $(chaos_folder "$target")"
        elif matches "$chaos_pure" "$name" && ! matches "$chaos_pure" "$target"; then
            bad "$file: what plans and judges is pure, and may not include $include"
        fi
        ;;
    *)
        target=${include#<} target=${target%.h>}
        if [[ -n ${chaos_edges[$include]-} ]]; then
            matches "${chaos_edges[$include]}" "$name" || bad "$file: only${chaos_edges[$include]}include $include"
        elif [[ $target == redlock/* || $target == hiredis/* || $target == ev ]]; then
            bad "$file: redlock-chaos may not include $include"
        elif matches "$chaos_pure" "$name"; then
            [[ " $chaos_pure_libc " == *" $target "* ]] ||
                bad "$file: what plans and judges is pure, and may not include $include"
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
    if [[ $layer == adapter && $include == '<'* && $include != '<redlock/'* ]]; then
        layer=${file##*/} target=${include#<}
        [[ " ${adapters[${layer%.h}]-} " == *" ${target%.h>} "* ]] || bad "$file: an adapter may not include $include"
        return
    fi
    case $include in
    '<hiredis'* | '"hiredis'*)
        [[ $hiredis_users == *" $file "* ]] || bad "$file: only$hiredis_users""includes hiredis"
        ;;
    '<openssl/'* | '"openssl/'*)
        [[ $openssl_users == *" $file "* ]] || bad "$file: only$openssl_users""include OpenSSL"
        ;;
    '<ev.h>' | '"ev.h"' | '<ev++.h>')
        [[ $layer == tool || $ev_users == *" $file "* ]] || bad "$file: only$ev_users""and the tool include ev.h"
        ;;
    '<uv.h>' | '<event2/'* | '<glib'*) bad "$file: only adapters include the loops of others" ;;
    '<redlock/'*) [[ $layer != proxy ]] || bad "$file: the proxy may not include $include" ;;
    '"redlock/'*) bad "$file: the public headers are included with <>" ;;
    '<'*)
        target=${include#<} target=${target%.h>}
        [[ -z ${libc[$layer]-} || " ${libc[$layer]} " == *" $target "* ]] ||
            bad "$file: $layer may not include $include"
        ;;
    *)
        target=${include//\"/}
        if [[ $layer == @(tool|proxy|values) && $target == values/* && -f $top/tools/$target ]]; then
            return
        elif [[ $layer == @(tool|proxy|values) ]]; then
            [[ -f $top/${file%/*}/$target && $target != */* ]] || bad "$file: the $layer may not include $include"
        elif [[ $layer == public || $layer == adapter || ! -f $top/src/$target ]]; then
            bad "$file: $include belongs to no folder of src"
        elif [[ ${target%%/*} != "$layer" ]]; then
            local own
            floor_of "$layer" && own=$floor
            floor_of "${target%%/*}"
            [[ $layer/$target == group/server/* ]] || ((floor < 0 || floor >= own)) || return 0
            bad "$file: $layer may not include $include"
        fi
        ;;
    esac
}

# circles TOP: the sources of src that include each other in a circle. A header is its source.
circles() {
    (cd "$1/src" && grep -rHoE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include "[^"]+"' . |
        sed -E 's|^\./||; s|\.[ch]:[^"]*"| |; s|\.h"$||' | awk '$1 != $2' | { tsort >/dev/null; } 2>&1)
}

# check TOP [FILE]: prints what is wrong in the tree, or in one file of it, and how much was looked
# at; fails if anything is wrong.
check() {
    local top=$1 file layer files=0 includes=0 line where=(include src tools)
    [[ -z ${2-} ]] || where=("$2")
    local -A layers=()
    errors=0
    check_chaos_folders
    while read -r file; do
        case $file in
        include/redlock/adapters/*) layer=adapter ;;
        include/*) layer=public ;;
        tools/chaos/*) layer=chaos ;;
        tools/proxy/*) layer=proxy ;;
        tools/values/*) layer=values ;;
        tools/*) layer=tool ;;
        *) layer=${file#src/} layer=${layer%/*} && floor_of "$layer" && ((floor >= 0)) || layer= ;;
        esac
        [[ -n $layer ]] || bad "$file: belongs to no folder of the floors"
        layers[$file]=$layer
        files=$((files + 1))
    done < <(cd "$top" && find "${where[@]}" -name '*.[ch]' | sort)
    while IFS=: read -r file line; do
        [[ -n ${layers[$file]} ]] || continue
        includes=$((includes + 1))
        [[ $line =~ [\"\<].* ]] && check_include "$top" "$file" "${layers[$file]}" "${BASH_REMATCH[0]}"
    done < <(cd "$top" && grep -rHoE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<][^">]*[">]' \
        "${where[@]}")
    [[ -n ${2-} ]] || line=$(circles "$top") || bad "files of src include each other in a circle: ${line//$'\n'/ }"
    [[ -n ${2-} ]] || ((files >= 40 && includes >= 100)) || bad "only $files files with $includes includes were found"
    echo "$files files, $includes includes, $errors errors"
    ((errors == 0))
}

# plant FILE LINE WORDS: a tree with that line at the end of the file is refused, with these words.
controls=0
plant() {
    local file=$1 line=$2 words=$3 said
    [[ ! -f $temp/$file ]] || cp "$temp/$file" "$temp/saved"
    mkdir -p "$temp/${file%/*}"
    printf '%s\n' "$line" >>"$temp/$file"
    if said=$(check "$temp" "$file"); then
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
plant src/core/lease.c '#include "group/env.h"' 'src/core/lease.c: core may not include "group/env.h"'
plant src/core/lease.c '#include "base/text.h"' 'src/core/lease.c: core may not include "base/text.h"'
plant src/core/quorum.h '#  include <time.h>' 'src/core/quorum.h: core may not include <time.h>'
plant src/group/group.c '#include "node/node.h"' 'src/group/group.c: group may not include "node/node.h"'
plant src/group/owed.c '#include <unistd.h>' 'src/group/owed.c: group may not include <unistd.h>'
plant src/group/group.c '#include "election/campaign.h"' \
    'src/group/group.c: group may not include "election/campaign.h"'
plant src/election/campaign.c '#include "blocking/client.h"' \
    'src/election/campaign.c: election may not include "blocking/client.h"'
plant src/wire/wire.c '#include "node/node.h"' 'src/wire/wire.c: wire may not include "node/node.h"'
plant src/node/node.c '#include "group/group.h"' 'src/node/node.c: node may not include "group/group.h"'
plant src/server/stream.c '#include <hiredis/async.h>' 'src/server/stream.c: only'
plant src/server/server.c '#include "node/node.h"' 'src/server/server.c: server may not include "node/node.h"'
plant src/group/group.c '#include "server/callbacks.h"' \
    'src/group/group.c: group may not include "server/callbacks.h"'
plant src/server/connection.c '#include <openssl/ssl.h>' 'src/server/connection.c: only'
plant src/node/node.c '#include <ev.h>' 'src/node/node.c: only'
plant src/loop/loop.c '#include "node/node.h"' 'src/loop/loop.c: loop may not include "node/node.h"'
plant src/manager/manager.c '#include "blocking/client.h"' \
    'src/manager/manager.c: manager may not include "blocking/client.h"'
plant src/wire/message.h '#include "loop/reactor.h"' 'src/wire/message.h: wire may not include "loop/reactor.h"'
plant src/group/env.h '#include "env.h"' 'src/group/env.h: "env.h" belongs to no folder'
plant include/redlock/redlock.h '#include <ev.h>' 'include/redlock/redlock.h: only'
plant include/redlock/blocking.h '#include <pthread.h>' 'include/redlock/blocking.h: public may not include <pthread.h>'
plant include/redlock/adapters/libuv.h '#include <glib.h>' 'libuv.h: an adapter may not include <glib.h>'
plant include/redlock/adapters/poll.h '#include "loop/loop.h"' 'poll.h: "loop/loop.h" belongs to no folder'
plant src/loop/poll.c '#include <uv.h>' 'src/loop/poll.c: only adapters include the loops'
plant tools/redlock/main.c '#include "core/lease.h"' 'tools/redlock/main.c: the tool may not include "core/lease.h"'
plant tools/redlock/main.c '#include "manager.h"' 'tools/redlock/main.c: the tool may not include "manager.h"'
plant tools/redlock/main.c '#include <hiredis/hiredis.h>' 'tools/redlock/main.c: only'
plant tools/redlock/main.c '#include <openssl/crypto.h>' 'tools/redlock/main.c: only'
plant tools/chaos/conductor/nemesis.c '#include "manager.h"' \
    'tools/chaos/conductor/nemesis.c: redlock-chaos may not include "manager.h"'
plant tools/chaos/conductor/nemesis.c '#include "../src/manager.h"' 'nemesis.c: redlock-chaos may not include'
plant tools/chaos/conductor/nemesis.c '#include <redlock/redlock.h>' 'tools/chaos/conductor/nemesis.c: only'
plant tools/chaos/conductor/run.c '#include <ev.h>' 'tools/chaos/conductor/run.c: redlock-chaos may not include <ev.h>'
plant tools/chaos/conductor/run.c '#include "proxy/child.h"' \
    'tools/chaos/conductor/run.c: redlock-chaos may not include "proxy/child.h"'
plant tools/chaos/faults/fault.c '#include "values/clock.h"' 'tools/chaos/faults/fault.c: what plans and judges is pure'
plant tools/chaos/faults/fault.c '#include <time.h>' 'tools/chaos/faults/fault.c: what plans and judges is pure'
plant tools/chaos/faults/schedule.h '#include "backends/backend.h"' \
    'faults may not include "backends/backend.h", which is of backends'
plant tools/chaos/history/history.h '#include "history/log.h"' \
    'tools/chaos/history/history.h: what plans and judges is pure'
plant tools/chaos/checks/check.c '#include "report/report.h"' \
    'checks may not include "report/report.h", which is of report'
plant tools/chaos/client/crew.c '#include "backends/program.h"' \
    'client may not include "backends/program.h", which is of backends'
plant tools/chaos/backends/program.c '#include "conductor/options.h"' \
    'backends may not include "conductor/options.h", which is of conductor'
plant tools/chaos/stray/stray.c '#include "faults/fault.h"' 'stray may not include "faults/fault.h", which is of faults'
plant tools/chaos/links/links.c '#include "history/log.h"' 'links may not include "history/log.h", which is of history'
rules=("${chaos_folders[@]}")
chaos_folders[0]='faults: faults history'
if check "$temp" >/dev/null; then echo "control failed: a circle in the rules was not found"; exit 1; fi
chaos_folders=("${rules[@]}") controls=$((controls + 1))
plant tools/values/values.c '#include "redlock/text.h"' 'values.c: the public headers are'
plant tools/values/values.c '#include <poll.h>' 'tools/values/values.c: values may not include <poll.h>'
plant tools/proxy/serve.c '#include <hiredis/hiredis.h>' 'tools/proxy/serve.c: only'
plant tools/proxy/serve.c '#include <ev.h>' 'tools/proxy/serve.c: only'
plant tools/proxy/pipe.h '#include <redlock/redlock.h>' 'pipe.h: the proxy may not include <redlock/redlock.h>'
plant tools/proxy/pipe.c '#include "core/lease.h"' 'pipe.c: the proxy may not include "core/lease.h"'
plant tools/proxy/main.c '#include "../redlock/text.h"' 'main.c: the proxy may not include "../redlock/text.h"'
plant src/stray.c '#include <stdio.h>' 'src/stray.c: belongs to no folder'
mkdir "$temp/src/attic"
plant src/attic/stray.c '#include <stdio.h>' 'src/attic/stray.c: belongs to no folder'
printf '#include "core/lease.h"\n' >>"$temp/src/core/quorum.h"
[[ $(check "$temp") == *"in a circle"*core/quorum* ]] || { echo "control failed: a circle was not found"; exit 1; }
cp "$root/src/core/quorum.h" "$temp/src/core/"
check "$temp" >/dev/null || { echo "the controls have left the tree changed"; exit 1; }
echo "$controls planted includes were found"
