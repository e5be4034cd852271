/* A small blocking RESP client. Tests look at a server without the library. */
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

/* Zero is not a valid struct raw: start with one of these two. Returns false if nobody listens. */
bool raw_open_tcp(struct raw *raw, const char *host, int port);
bool raw_open_unix(struct raw *raw, const char *path);

/*
 * Sends argv (NULL-terminated, so without NUL bytes inside) and waits for the reply. Returns it as
 * text: a status, bulk or integer as it is, "(nil)", an error with '-' before it, or the elements
 * of an array, each followed by a newline. Returns "-IO ..." and closes the connection if no reply
 * came in five seconds or it broke. Valid until the next call.
 */
const char *raw_ask_argv(struct raw *raw, const char *const *argv);
#define raw_ask(raw, ...) raw_ask_argv((raw), (const char *const[]){__VA_ARGS__, NULL})

/* The parts of that: send several commands, then read their replies. */
bool raw_send_argv(struct raw *raw, const char *const *argv);
#define raw_send(raw, ...) raw_send_argv((raw), (const char *const[]){__VA_ARGS__, NULL})
const char *raw_read(struct raw *raw);

/* Closes it and frees the last reply. May be called twice. */
void raw_close(struct raw *raw);

#endif
