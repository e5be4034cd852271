/* The proxy: serves its links, and does what the lines of its input say. README.md has both. */
#ifndef PROXY_SERVE_H
#define PROXY_SERVE_H

#include <stddef.h>
#include <stdint.h>

/* Ports of 127.0.0.1. */
struct proxy_ports {
    uint16_t listen; /* 0: any that is free */
    uint16_t target;
};

/* Until the input ends. SIGPIPE must be ignored. Returns the process's exit status. */
int proxy_serve(int input, int output, const struct proxy_ports *ports, size_t count);

#endif
