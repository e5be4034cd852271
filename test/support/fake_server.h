/* A hostile node: answers whatever a test tells it to. */
/*
 * A hostile node on a thread of its own. It can behave through the handshake and the first requests, as a real node
 * would, and then answers whatever it was told to, once or for ever.
 */
#ifndef TEST_SUPPORT_FAKE_SERVER_H
#define TEST_SUPPORT_FAKE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

struct fake_server;

enum fake_end { FAKE_KEEP_OPEN, FAKE_FIN, FAKE_RST };

/* What is done in place of the reply to each request that is not behaved to. */
struct fake_script {
    bool behave_in_handshake; /* answers AUTH, SELECT, INFO, CLIENT, SCRIPT, HELLO and PING as a real node */
    bool greet;               /* says `bytes` right after accept, before any request */
    const char *bytes;        /* NULL: says nothing */
    size_t size;
    bool for_ever;    /* goes on saying `tail` after `bytes` until the client closes */
    const char *tail; /* NULL with for_ever: 'x' */
    size_t tail_size;
    enum fake_end end; /* then */
};

/* The script is copied, its bytes are not. Ends the program on failure. */
struct fake_server *fake_server_start(const struct fake_script *script);
void fake_server_stop(struct fake_server *fake);

/* redis://127.0.0.1:port and 127.0.0.1:port, owned by the server. */
const char *fake_server_uri(const struct fake_server *fake);
const char *fake_server_name(const struct fake_server *fake);

/* Since the start: connections accepted, requests answered by the script (not by behaving), bytes sent. */
int fake_server_connections(struct fake_server *fake);
int fake_server_hostile_answers(struct fake_server *fake);
long long fake_server_bytes_sent(struct fake_server *fake);

#endif
