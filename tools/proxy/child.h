/* The proxy as a child process, and the commands to it. */
#ifndef PROXY_CHILD_H
#define PROXY_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proxy_child {
    pid_t pid;      /* 0: not running */
    int control;    /* a socket; -1: none */
    unsigned owing; /* answers to abandoned commands, which may still come */
};

/*
 * Forks the process. It dies with the thread that called this. Link i goes from ports[i], which
 * this writes, to targets[i], both on 127.0.0.1. Returns false with an error. Later the proxy
 * reports a lack of resources on standard error.
 */
bool proxy_child_start(struct proxy_child *child, const uint16_t *targets, size_t count, uint16_t *ports, char *error,
                       size_t error_size);
/*
 * Sends one command, without its newline. Returns after it has taken effect: true with the text
 * after "ok". Returns false with an error if the proxy refused, has died, or did not answer in 5 s.
 */
__attribute__((format(printf, 4, 5))) bool proxy_child_ask(struct proxy_child *child, char *answer, size_t size,
                                                           const char *format, ...);
/* Ends the process, and waits for it unless the caller has. A second call does nothing. */
void proxy_child_stop(struct proxy_child *child);

#endif
