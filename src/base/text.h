/* Error texts that several votes share, each with its cause. References are counted, without locks:
 * one thread only. */
#ifndef REDLOCK_BASE_TEXT_H
#define REDLOCK_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a text is about. Code decides by this, never by the words. */
enum redlock_cause {
    REDLOCK_CAUSE_NONE,       /* the vote itself says it all */
    REDLOCK_CAUSE_HELD,       /* the text names the holder: redlock_holder_of_text() */
    REDLOCK_CAUSE_OURS,       /* this process: no memory, a fork, too many requests in flight */
    REDLOCK_CAUSE_CONNECTION, /* not connected yet, cannot connect, or the connection ended */
    REDLOCK_CAUSE_TIMEOUT,    /* no answer, or nothing could be sent, within the node timeout */
    REDLOCK_CAUSE_STALLED,
    REDLOCK_CAUSE_NOT_A_NODE, /* a Sentinel, or not the Redis protocol */
    REDLOCK_CAUSE_REPLICA,
    REDLOCK_CAUSE_SAME_SERVER,
    REDLOCK_CAUSE_TLS,        /* the settings of one side must change: a certificate, a version */
    REDLOCK_CAUSE_QUARANTINE, /* a guard keeps the node from voting */
    /* The other errors of servers. */
    REDLOCK_CAUSE_AUTH,
    REDLOCK_CAUSE_DATABASE, /* there is no database of the URI's number */
    REDLOCK_CAUSE_NOPERM,
    REDLOCK_CAUSE_NOSCRIPT,
    REDLOCK_CAUSE_OOM,
    REDLOCK_CAUSE_MISCONF, /* the server stops writes by its own settings */
    REDLOCK_CAUSE_LOADING,
    REDLOCK_CAUSE_BUSY, /* ends without help */
    REDLOCK_CAUSE_CLUSTER,
    REDLOCK_CAUSE_SERVER, /* none of these */
    REDLOCK_CAUSE_NO_LUA  /* the server runs no scripts */
};

/* NULL means that there is no text, or that there was no memory for it. */
struct redlock_text {
    const char *string;
    uint32_t references; /* 0: a constant, not counted and never freed */
    enum redlock_cause cause;
};

/* For frequent answers: makes a text of
 * `static const struct redlock_text missing = {.string = "…"};`. */
struct redlock_text *redlock_text_constant(const struct redlock_text *text);

struct redlock_text *redlock_text_new(enum redlock_cause cause, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline struct redlock_text *redlock_text_keep(struct redlock_text *text) {
    if (text != NULL && text->references != 0) {
        text->references++;
    }
    return text;
}

void redlock_text_drop_counted(struct redlock_text *text); /* for redlock_text_drop() */

static inline void redlock_text_drop(struct redlock_text *text) {
    if (text != NULL && text->references != 0) {
        redlock_text_drop_counted(text);
    }
}

/* "" for NULL. */
static inline const char *redlock_text_string(const struct redlock_text *text) {
    return text == NULL ? "" : text->string;
}

static inline enum redlock_cause redlock_text_cause(const struct redlock_text *text) {
    return text == NULL ? REDLOCK_CAUSE_NONE : text->cause;
}

/* Copies a resource, which may hold any bytes. A byte that would break a line or a terminal becomes
 * \xNN. Cuts what does not fit in the buffer, and always terminates it. `size` is 1 or more. */
void redlock_text_printable(const char *string, char *buffer, size_t size);

#endif
