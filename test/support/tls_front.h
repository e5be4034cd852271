/* The TLS side of a node, which a test commands. */
/*
 * It ends TLS in the test's own loop and passes the bytes on to a server without TLS. The test
 * decides when replies leave, in records of which size, and where a connection breaks: it counts
 * the bytes of the wire, which are encrypted. Functions take effect at once. Nothing happens while
 * the loop does not run. A failure that no test expects ends the program. It raises no SIGPIPE.
 */
#ifndef TEST_SUPPORT_TLS_FRONT_H
#define TEST_SUPPORT_TLS_FRONT_H

#include <stdbool.h>
#include <stddef.h>

#include <ev.h>

#define TLS_FRONT_RECORD_MAX 16384

struct tls_front;

struct tls_front_options {
    int target_port; /* of 127.0.0.1 */
    const char *cert_file, *key_file;
    /* Asks for a client's certificate of this authority; NULL: asks for none. */
    const char *client_ca_file;
    bool tls12;        /* no TLS 1.3 */
    bool small_window; /* the kernel takes few bytes for us that we have not read */
};

enum tls_front_way { TLS_FRONT_REQUESTS, TLS_FRONT_REPLIES };
/* TLS' own farewell and FIN; FIN alone; RST alone; FIN and RST, after which a write is a broken
 * pipe. */
enum tls_front_end { TLS_FRONT_NOTIFY, TLS_FRONT_FIN, TLS_FRONT_RST, TLS_FRONT_FIN_RST };

/* What has happened since the start. */
struct tls_front_seen {
    long long bytes[2]; /* of the wire */
    int connections, handshakes;
    int open_links; /* now */
    size_t held;    /* now: bytes of replies that have not left */
    /* In the last handshake: the name that the client asked for, and the one in its certificate; ""
     * for none. */
    char asked_name[128], client_name[128];
};

struct tls_front *tls_front_start(struct ev_loop *loop, const struct tls_front_options *options);
void tls_front_stop(struct tls_front *front);

/* rediss://127.0.0.1:port and 127.0.0.1:port. The front owns both. */
const char *tls_front_uri(const struct tls_front *front);
const char *tls_front_name(const struct tls_front *front);

/* Keeps replies until it is off again. */
void tls_front_hold(struct tls_front *front, bool on);
/* Puts at most so many bytes of replies into a record; TLS_FRONT_RECORD_MAX at the start. */
void tls_front_record_size(struct tls_front *front, size_t bytes);
/* Reads nothing from clients. */
void tls_front_deafen(struct tls_front *front, bool on);

/* Ends the connection on which one more byte would pass this way, after so many have from now on;
 * once. -1: never. */
void tls_front_cut_after(struct tls_front *front, enum tls_front_way way, long long bytes, enum tls_front_end how);
/* Ends all connections. */
void tls_front_cut_now(struct tls_front *front, enum tls_front_end how);

/* Changes our key, on all connections, and asks the client to change its own. */
void tls_front_update_keys(struct tls_front *front);

/* Valid until the next call. */
const struct tls_front_seen *tls_front_seen(struct tls_front *front);

#endif
