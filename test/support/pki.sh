#!/usr/bin/env bash
# Makes the certificates of the TLS tests with the openssl command: pki.sh FOLDER, which must exist.
#
# file               what it is
# ca.pem             the authority that tests trust; ca-dir/ holds it under its hash
# stranger-ca.pem    an authority that nobody trusts
# node.key           the key of all certificates of nodes:
# node.pem             127.0.0.1, ::1 and localhost
# named.pem            node.redlock.test, and no address
# elsewhere.pem        127.0.0.9 and elsewhere.redlock.test
# expired.pem          right names, until 2020
# future.pem           right names, from 2090 on
# stranger.pem         right names, of the authority that nobody trusts
# client.pem/.key    a client; client-2 and client-3 are others
# client-locked.key  client.key under the passphrase "geheim"
# client-stranger.pem  of client.key and the authority that nobody trusts
set -euo pipefail
cd "${1:?usage: pki.sh FOLDER}"

# openssl talks a lot. Its words count only if it fails.
run() {
    openssl "$@" >said 2>&1 </dev/null || {
        printf 'pki.sh: openssl %s: ' "$*" >&2
        cat said >&2
        exit 1
    }
}

cat >conf <<'END'
[ca]
default_ca = ours
[ours]
database = index
new_certs_dir = .
rand_serial = yes
default_md = sha256
default_days = 30
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = nobody
[nobody]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
END
: >index
key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)

# request NAME : a key and a request for a certificate of it.
request() {
    run req -new "${key[@]}" -config conf -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
}

# issue CERTIFICATE REQUEST AUTHORITY USAGE [subjectAltName [FROM UNTIL]] : openssl x509 of 3.0
# refuses a certificate that is back-dated; openssl ca does not.
issue() {
    printf 'basicConstraints = CA:FALSE\nextendedKeyUsage = %s\n' "$4" >extensions
    if (($# > 4)); then
        printf 'subjectAltName = %s\n' "$5" >>extensions
    fi
    local dates=()
    if (($# > 5)); then
        dates=(-startdate "$6" -enddate "$7")
    fi
    run ca -batch -notext -config conf -cert "$3.pem" -keyfile "$3.key" -in "$2.csr" -subj "/CN=$1" \
        -extfile extensions "${dates[@]}" -out "$1.pem"
}

for authority in ca stranger-ca; do
    run req -x509 "${key[@]}" -config conf -extensions authority -days 30 -subj "/CN=redlock test $authority" \
        -keyout "$authority.key" -out "$authority.pem"
done
mkdir ca-dir
cp ca.pem "ca-dir/$(openssl x509 -hash -noout -in ca.pem).0"

here=IP:127.0.0.1,IP:::1,DNS:localhost
request node
issue node node ca serverAuth "$here"
issue named node ca serverAuth DNS:node.redlock.test
issue elsewhere node ca serverAuth IP:127.0.0.9,DNS:elsewhere.redlock.test
issue expired node ca serverAuth "$here" 20200101000000Z 20200102000000Z
issue future node ca serverAuth "$here" 20900101000000Z 20910101000000Z
issue stranger node stranger-ca serverAuth "$here"

for client in client client-2 client-3; do
    request "$client"
    issue "$client" "$client" ca clientAuth
done
issue client-stranger client stranger-ca clientAuth
run pkey -in client.key -aes256 -passout pass:geheim -out client-locked.key
