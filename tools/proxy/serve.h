/* The proxy: serves its links and obeys the lines of its input. README.md describes both. */
#ifndef PROXY_SERVE_H
#define PROXY_SERVE_H

#include <stddef.h>
#include <stdint.h>

/* Ports of 127.0.0.1. */
struct proxy_ports {
    uint16_t listen; /* 0: any free port */
    uint16_t target;
};

/* Runs until the input ends. The caller ignores SIGPIPE. Returns the process's exit status. */
int proxy_serve(int input, int output, const struct proxy_ports *ports, size_t count);

#endif
