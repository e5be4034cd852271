/* A hostile node: answers whatever a test tells it to. */
/* A hostile node on its own thread. It can behave like a real node during the handshake and the
 * first requests. Then it gives the scripted answers, once or for ever. */
#ifndef TEST_SUPPORT_FAKE_SERVER_H
#define TEST_SUPPORT_FAKE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

struct fake_server;

enum fake_end { FAKE_KEEP_OPEN, FAKE_FIN, FAKE_RST };

#define FAKE_REPLIES_MAX 6

/* The reply to each request of this command, or to every second one. "SET GET" is a SET of seven
 * words, which SET matches, too: say it first. */
struct fake_reply {
    const char *command, *bytes;
    const char *then; /* NULL: bytes */
};

/* For `then`: the value that this SET has, which is its token. */
extern const char fake_server_own[];

/* What to do with each request that gets no normal answer. */
struct fake_script {
    /* Answer AUTH, SELECT, INFO, CLIENT, SCRIPT, HELLO and PING like a real node. */
    bool behave_in_handshake;
    const char *version; /* INFO's line for it; NULL: redis_version:6.2.14 */
    /* These come before the rest; borrowed. */
    struct fake_reply replies[FAKE_REPLIES_MAX];
    bool greet;        /* send `bytes` right after accept, before any request */
    const char *bytes; /* NULL: send nothing */
    size_t size;
    bool for_ever;    /* after `bytes`, send `tail` until the client closes */
    const char *tail; /* NULL with for_ever: 'x' */
    size_t tail_size;
    enum fake_end end; /* what happens after that */
};

/* Copies the script but not its bytes. Ends the program on failure. */
struct fake_server *fake_server_start(const struct fake_script *script);
void fake_server_stop(struct fake_server *fake);

/* redis://127.0.0.1:port and 127.0.0.1:port. The server owns both. */
const char *fake_server_uri(const struct fake_server *fake);
const char *fake_server_name(const struct fake_server *fake);

/* Since the start: accepted connections, requests with scripted answers, bytes sent. */
int fake_server_connections(struct fake_server *fake);
int fake_server_hostile_answers(struct fake_server *fake);
/* How often a command of `replies` was answered. */
int fake_server_replies(struct fake_server *fake, const char *command);
long long fake_server_bytes_sent(struct fake_server *fake);

#endif
