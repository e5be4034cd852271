#!/bin/sh
# fenced-write.sh FILE: replaces FILE by standard input, unless a newer lease than that of
# REDLOCK_FENCE has written it.
# Exit status: 0 written; 1 refused; 2 it could not be tried.
give_up() { echo "fenced-write.sh: $1" >&2 && exit 2; }
case ${REDLOCK_FENCE-} in '' | *[!0-9]*) give_up "REDLOCK_FENCE is no fencing token" ;; esac
file=$1
new=$file.$REDLOCK_FENCE.$$
trap 'rm -f "$new" "$new.fence"' EXIT
{ cat >"$new" && echo "$REDLOCK_FENCE" >"$new.fence"; } || give_up "cannot write $new"

# From here on one writer at a time. The kernel holds this lock: it ends with this process.
exec 9>>"$file.lock"
flock 9 || give_up "cannot lock $file.lock"
highest=0
if [ -e "$file.fence" ]; then
    read -r highest <"$file.fence" || give_up "cannot read $file.fence"
fi
[ "$REDLOCK_FENCE" -ge "$highest" ]
case $? in 0) ;; 1) exit 1 ;; *) give_up "$file.fence holds no number" ;; esac
# The number before the data: wherever this is cut off, older writers stay refused.
# sync: also if the power fails.
{
    sync "$new" "$new.fence" && mv "$new.fence" "$file.fence" &&
        mv "$new" "$file" && sync "$(dirname "$file")"
} || give_up "cannot replace $file"
