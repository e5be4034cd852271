/* The proxy as a child process, and the commands to it. */
#ifndef PROXY_CHILD_H
#define PROXY_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proxy_child {
    pid_t pid;      /* 0: does not run */
    int control;    /* a socket; -1: none */
    unsigned owing; /* answers that were given up, and may still come */
};

/*
 * Forks the process, which dies with this one (more exactly, with the thread that called). Link i
 * goes from ports[i], which is written, to targets[i], both on 127.0.0.1. False with what is wrong.
 * What runs out in the proxy later on is said on standard error.
 */
bool proxy_child_start(struct proxy_child *child, const uint16_t *targets, size_t count, uint16_t *ports, char *error,
                       size_t error_size);
/*
 * One command, without its end of line. It has taken effect when this returns. True with what
 * follows "ok" in the answer; false with what is wrong: the proxy has refused, has died, or did not
 * answer in 5 s.
 */
__attribute__((format(printf, 4, 5))) bool proxy_child_ask(struct proxy_child *child, char *answer, size_t size,
                                                           const char *format, ...);
/* Ends the process, and waits for it if the caller has not. A second time it does nothing. */
void proxy_child_stop(struct proxy_child *child);

#endif
