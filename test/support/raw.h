/* A tiny blocking RESP client, for tests to look at a server with eyes of their own. */
#ifndef TEST_SUPPORT_RAW_H
#define TEST_SUPPORT_RAW_H

#include <stdbool.h>
#include <stddef.h>

struct raw {
    int fd; /* -1: not connected */
    int timeout_ms;
    size_t start, end; /* of the unread bytes in `input` */
    char input[4096];
    char *text; /* the last reply */
    size_t text_size, text_capacity;
};

/* Zero is not a valid struct raw: begin with one of these two. False when nobody listens. */
bool raw_open_tcp(struct raw *raw, const char *host, int port);
bool raw_open_unix(struct raw *raw, const char *path);

/*
 * Sends argv (NULL-terminated, so no NUL bytes inside) and waits for the reply. As text: a status, bulk or integer as it
 * is, "(nil)", an error with a '-' before it, the elements of an array each followed by a newline; "-IO ..." when there
 * was no reply within five seconds or the connection broke (it is closed then). Valid until the next call.
 */
const char *raw_ask_argv(struct raw *raw, const char *const *argv);
#define raw_ask(raw, ...) raw_ask_argv((raw), (const char *const[]){__VA_ARGS__, NULL})

/* The parts: many commands can be sent before their replies are read. */
bool raw_send_argv(struct raw *raw, const char *const *argv);
#define raw_send(raw, ...) raw_send_argv((raw), (const char *const[]){__VA_ARGS__, NULL})
const char *raw_read(struct raw *raw);

/* Closes it and frees the last reply; may be called twice. */
void raw_close(struct raw *raw);

#endif
