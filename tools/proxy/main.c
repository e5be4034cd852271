/* redlock-proxy: TCP links on loopback that misbehave on command. See README.md. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "serve.h"

enum { LINKS_MAX = 1024 };

int main(int argc, char **argv) {
    static struct proxy_ports ports[LINKS_MAX];
    int count = argc - 1;
    char rest;
    for (int i = 0; i < count && i < LINKS_MAX; i++) {
        if (sscanf(argv[i + 1], "%hu=%hu%c", &ports[i].listen, &ports[i].target, &rest) != 2) {
            count = 0;
        }
    }
    if (count < 1 || count > LINKS_MAX || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        (void)fputs("usage: redlock-proxy PORT=PORT …    (a port to listen on, or 0 for any, and its node's port)\n",
                    stderr);
        return 64;
    }
    return proxy_serve(STDIN_FILENO, STDOUT_FILENO, ports, (size_t)count);
}
