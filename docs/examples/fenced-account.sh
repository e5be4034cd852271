#!/bin/sh
# fenced-account.sh DATABASE NAME [BALANCE]: writes the balance of an account, or without BALANCE
# only claims it, unless a newer lease than that of REDLOCK_FENCE has written or claimed it.
# Exit status: 0 done; 1 refused, or there is no such account; 2 it could not be tried.
give_up() { echo "fenced-account.sh: $1" >&2 && exit 2; }
case ${REDLOCK_FENCE-} in '' | *[!0-9]*) give_up "REDLOCK_FENCE is no fencing token" ;; esac
case $2 in '' | *[!A-Za-z0-9_]*) give_up "that is no account's name" ;; esac
case ${3-0} in '' | *[!0-9]*) give_up "the balance is no number" ;; esac

statement=fenced-update.sql
[ $# -gt 2 ] || statement=fenced-claim.sql
changed=$(sqlite3 -batch -bail "$1" ".timeout 10000" ".parameter init" \
    ".parameter set :fence $REDLOCK_FENCE" ".parameter set :name \"'$2'\"" \
    ".parameter set :balance ${3-0}" \
    ".read $(dirname "$0")/$statement" "SELECT changes();") || exit 2
[ "$changed" = 1 ]
