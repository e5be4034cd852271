/* What the tests of new credentials begin with. */
#include "credentials_kit.h"

#include "test.h"
void offer(const char *user, const char *password) {
    struct redlock_credentials credentials;
    assert_true(redlock_credentials_copy(&credentials, user, password));
    redlock_node_offer(peer.node, &credentials);
    assert_null(credentials.password);
}

/* A server of this version hears the beginning of a handshake with this AUTH. */
void hear_auth(const char *auth) {
    peer_accept(&peer);
    peer_expect(&peer, auth);
    peer_expect(&peer, "*1\r\n$4\r\nINFO\r\n*1\r\n$4\r\nTIME\r\n*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n");
}

void welcome(const char *version) {
    char info[128], bytes[256];
    (void)snprintf(info, sizeof info, "redis_version:%s\r\nrole:master\r\nrun_id:r1\r\n", version);
    (void)snprintf(bytes, sizeof bytes, "+OK\r\n$%zu\r\n%s\r\n-ERR no time\r\n-ERR no id\r\n", strlen(info), info);
    peer_say(&peer, bytes);
    peer_introduced(&peer);
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

void refuse_handshake(void) {
    peer_say(&peer, REFUSED "-NOAUTH a\r\n-NOAUTH b\r\n-NOAUTH c\r\n");
}

void connect_with(const char *auth) {
    hear_auth(auth);
    welcome("7.0.15");
}

void assert_accepted(void) {
    PEER_UNTIL(&peer, !peer_info(&peer).credentials_pending);
    assert_string_equal(peer_info(&peer).credentials_error, "");
    assert_string_equal(peer_info(&peer).warning, "");
}

void assert_no_secret_in(const char *text) {
    static const char *const secrets[] = {"geheim", "neu-1", "neu-2", "neu-3"};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        assert_lacks(text, secrets[i]);
    }
}

int credentials_teardown(void **state) {
    assert_no_secret_in(peer.log);
    assert_no_secret_in(peer_info(&peer).warning);
    assert_no_secret_in(peer_info(&peer).error);
    assert_no_secret_in(peer_info(&peer).credentials_error);
    return subscriber_teardown(state);
}
