#!/usr/bin/env bash
# The tool over TLS: certificates made as docs/operations.md says, options, environment, and what it
# says when they are wrong.
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "$0")/tool_lib.sh"
# With timeouts for a loaded machine.
t=$work/redlock
printf '#!/bin/sh\nexec "%s" --node-timeout 5000 --connect-timeout 10s "$@"\n' "$REDLOCK_TOOL" >"$t"
chmod +x "$t"
page=$REDLOCK_ROOT/docs/operations.md
if [[ $("$t" --version) == *"without TLS"* ]]; then
    echo "skipped: the tool is built without TLS"
    exit 77
fi
command -v openssl >/dev/null || { echo "skipped: no openssl"; exit 77; }

# The first block of shell commands of the section, for nodes on this machine.
commands=$(awk '/^## /{ section = $2 } /^```sh/{ inside = section == "TLS" && !done; next }
    /^```/{ done = done || inside; inside = 0 } inside' "$page" | sed 's/10\.0\.0\.1/127.0.0.1/')
(cd "$work" && bash -euo pipefail -c "$commands") >"$out" 2>"$err" || fail "the commands of the page failed"
openssl verify -CAfile "$work/ca.crt" "$work/node1.crt" >"$out" 2>"$err" || fail "the certificate does not verify"

# start_tls_nodes [redis-server arguments…] : three nodes as the page configures them, and these.
start_tls_nodes() {
    local i port tries=0 settings
    # "tls-port 6379" becomes "--tls-port 6379".
    mapfile -t settings < <(awk '/^## /{ section = $2 } /^```conf/{ inside = section == "TLS"; next }
        /^```/{ inside = 0 } inside { print "--" $1; print $2 }' "$page" | sed "s|/etc/redis|$work|")
    ((${#settings[@]} >= 10)) || fail "the page configures no node"
    ports=() pids=() nodes=
    for i in 1 2 3; do
        port=$((10000 + RANDOM % 20000))
        until try_server "$port" "${settings[@]//6379/$port}" "$@"; do
            ((++tries < 50)) || { cat "$work/$port/log"; exit 1; }
            port=$((10000 + RANDOM % 20000))
        done
        ports+=("$port")
        pids+=("$started")
        nodes+=${nodes:+,}127.0.0.1:$port
    done
}

start_tls_nodes
unset REDLOCK_NODES REDLOCK_TLS REDLOCK_CACERT
ca=(--tls --cacert "$work/ca.crt")
expect 0 "$t" "${ca[@]}" -n "$nodes" acquire -t 1m door
token=$(cat "$out")
expect 75 "$t" "${ca[@]}" -n "$nodes" run door -- true
expect 0 "$t" "${ca[@]}" -n "$nodes" extend -t 2m door "$token"
expect 0 "$t" "${ca[@]}" -n "$nodes" -v release door "$token"
says "$err" 'is ready: .*, TLSv1\.3'
expect 0 "$t" --cacert "$work/ca.crt" -n "rediss://${nodes//,/,rediss://}" run door -- true
expect 0 env REDLOCK_TLS=1 REDLOCK_CACERT="$work/ca.crt" REDLOCK_NODES="$nodes" "$t" status door
says "$out" READY
expect 0 env REDLOCK_TLS=on REDLOCK_INSECURE=yes "$t" -n "$nodes" run door -- true
expect 0 "$t" --tls --insecure -n "$nodes" run door -- true

# Nobody vouches for the nodes; then a name that they do not have.
expect 69 "$t" --tls -n "$nodes" run door -- true
says "$err" 'its certificate is not accepted: .*--cacert'
says "$err" 'docs/operations.md, "TLS"'
expect 69 "$t" "${ca[@]}" --sni other.example -n "$nodes" run door -- true
says "$err" "not for 'other.example'"
expect 0 "$t" "${ca[@]}" --sni node1.example -n "$nodes" run door -- true
mkdir "$work/ca" && cp "$work/ca.crt" "$work/ca/" && openssl rehash "$work/ca"
expect 0 "$t" --tls --cacertdir "$work/ca" -n "$nodes" run door -- true
expect 0 env REDLOCK_CACERTDIR="$work/ca" REDLOCK_SNI=node1.example "$t" --tls -n "$nodes" run door -- true
# The system's store, where OpenSSL is told to look for it.
expect 0 env SSL_CERT_FILE="$work/ca.crt" "$t" --tls -n "$nodes" run door -- true

# Plain, to a TLS port.
expect 69 "$t" -n "$nodes" run door -- true
says "$err" 'does it want TLS \(rediss://\)\?'

# Bad usage says so, before anything is sent.
bad() {
    expect 64 "$t" "${@:2}"
    says "$err" "^redlock: .*$1"
}
bad 'redis://, which is not encrypted' --tls -n "redis://${ports[0]}" status
bad '--cacert is given, but no node uses TLS' --cacert "$work/ca.crt" -n "$nodes" status
bad '.*--cert needs --key' --tls --cert "$work/node1.crt" -n "$nodes" status
bad '.*--key needs --cert' --tls --key "$work/node1.key" -n "$nodes" status
# It names the options of the tool, which the library does not know.
bad "--cacert \(or REDLOCK_CACERT\): ca_file '$work/none' .*No such file" --tls --cacert "$work/none" -n "$nodes" status
bad '--cacertdir \(or REDLOCK_CACERTDIR\): ' --tls --cacertdir "$work/none" -n "$nodes" status
bad '--cert \(or REDLOCK_CERT\): ' --tls --cert "$work/none" --key "$work/node1.key" -n "$nodes" status
bad '--key \(or REDLOCK_KEY\): ' --tls --cert "$work/node1.crt" --key "$work/none" -n "$nodes" status
bad '--sni \(or REDLOCK_SNI\): tls.server_name ' --tls --sni 'a b' -n "$nodes" status
# A key under a passphrase is refused. Nobody asks for it at the terminal, as OpenSSL would.
expect 0 openssl pkey -in "$work/node1.key" -aes256 -passout pass:geheim -out "$work/locked.key"
expect 64 "${TOOL_TERMINAL:?}" 'is encrypted' '' -- \
    "$t" "${ca[@]}" --cert "$work/node1.crt" --key "$work/locked.key" -n "$nodes" status
never_says "$out" 'pass phrase'
expect 64 env REDLOCK_TLS=maybe "$t" -n "$nodes" status
says "$err" "REDLOCK_TLS 'maybe': it must be 1 or 0"
expect 69 env REDLOCK_TLS=0 REDLOCK_CACERT= "$t" -n "$nodes" run door -- true
kill "${pids[@]}"

# TLS, to a plain port: the node's own timeout ends a little later than that of the tool.
ports=() pids=() nodes=
start_node
for command in "status" "run door -- true"; do
    # shellcheck disable=SC2086
    expect 69 "$t" "${ca[@]}" --connect-timeout 200ms -n "rediss://127.0.0.1:${ports[0]}" $command
    cat "$out" "$err" >"$work/both"
    says "$work/both" 'no answer to the TLS handshake within 200 ms; is this a TLS port\?'
done
kill "${pids[@]}"

# Nodes that want a certificate of ours.
start_tls_nodes --tls-auth-clients yes
expect 69 "$t" "${ca[@]}" -n "$nodes" run door -- true
says "$err" 'wants a client certificate .*--cert, --key'
expect 0 "$t" "${ca[@]}" --cert "$work/client1.crt" --key "$work/client1.key" -n "$nodes" run door -- true
expect 0 env REDLOCK_CERT="$work/client1.crt" REDLOCK_KEY="$work/client1.key" \
    "$t" "${ca[@]}" -n "$nodes" run door -- true
finish
