/* Chooses the way in which nodes are run; and the files of a local node, and a port for it. */
#include "backends/backend.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/fault.h"
#include "faults/lists.h"

enum { PORT_MIN = 10000, PORT_MAX = 65535, PORT_TRIES = 2000, LOG_END_LINES = 3 };

/* As the server will do it. */
static bool is_free(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool worked = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
                  bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0;
    close(fd);
    return worked;
}

/* The larger of the two ranges below and above the kernel's own; all if neither has room. */
static void port_range(int *low, int *high) {
    int kernel_low = PORT_MAX + 1, kernel_high = PORT_MAX;
    char *text = chaos_text_read("/proc/sys/net/ipv4/ip_local_port_range");
    if (text == NULL || sscanf(text, "%d %d", &kernel_low, &kernel_high) != 2) {
        kernel_low = PORT_MAX + 1;
    }
    free(text);
    int below = kernel_low - PORT_MIN, above = PORT_MAX - kernel_high;
    *low = above > below ? kernel_high + 1 : PORT_MIN;
    *high = above > below ? PORT_MAX : kernel_low - 1;
    if (*high - *low < 1000) {
        *low = PORT_MIN;
        *high = PORT_MAX;
    }
}

bool chaos_node_port(uint16_t *ports, size_t count, size_t n) {
    int low, high;
    ports[n] = 0;
    port_range(&low, &high);
    for (int tries = 0; tries < PORT_TRIES; tries++) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
            random = (uint32_t)getpid() * 31 + (uint32_t)tries;
        }
        uint16_t port = (uint16_t)(low + (int)(random % (uint32_t)(high - low + 1)));
        bool known = false;
        for (size_t i = 0; i < count; i++) {
            known |= ports[i] == port;
        }
        if (!known && is_free(port)) {
            ports[n] = port;
            return true;
        }
    }
    return false;
}

/* False with errno if it is too long. */
static bool path_of(char path[PATH_MAX], const char *directory, const char *name) {
    bool fits = snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX;
    errno = fits ? 0 : ENAMETOOLONG;
    return fits;
}

static bool make_directory(const char *path) {
    return (mkdir(path, 0755) == 0 || errno == EEXIST) && chmod(path, 0755) == 0;
}

/* Makes the directory, data (a directory of its own, for an image may look at what is there),
 * and the clock's page, with true time, where `clock` is not NULL. Others may read all of it, as
 * containers may need. */
static bool make_node(const char *directory, struct chaos_clock **clock) {
    char data[PATH_MAX], page[PATH_MAX];
    if (!path_of(data, directory, "data") || !path_of(page, directory, "clock") || !make_directory(directory) ||
        !make_directory(data)) {
        return false;
    }
    return clock == NULL || ((remove(page) == 0 || errno == ENOENT) && (*clock = chaos_clock_open(page)) != NULL &&
                             chmod(page, 0644) == 0);
}

bool chaos_node_remove_file(const char *directory, const char *name) {
    char path[PATH_MAX];
    return path_of(path, directory, name) && (remove(path) == 0 || errno == ENOENT);
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *where) {
    (void)stat;
    (void)type;
    return where->level == 0 ? 0 : remove(path);
}

bool chaos_node_remove_keys(const char *directory) {
    char data[PATH_MAX];
    return path_of(data, directory, "data") &&
           (nftw(data, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT);
}

char *chaos_text_read(const char *path) {
    FILE *in = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    if (in != NULL && getdelim(&text, &size, '\0', in) < 0) {
        free(text);
        text = NULL;
    }
    if (in != NULL) {
        fclose(in);
    }
    return text;
}

static char *read_log(const char *directory) {
    char path[PATH_MAX];
    return path_of(path, directory, "log") ? chaos_text_read(path) : NULL;
}

bool chaos_node_log_finds(const char *directory, const char *words, char *line, size_t size) {
    char *log = read_log(directory);
    const char *at = log == NULL ? NULL : strstr(log, words);
    bool found = at != NULL;
    if (found && line != NULL) {
        while (at > log && at[-1] != '\n') {
            at--;
        }
        snprintf(line, size, "%.*s", (int)strcspn(at, "\n"), at);
    }
    free(log);
    return found;
}

char *chaos_node_log_end(const char *directory, char *text, size_t size) {
    char *log = read_log(directory);
    size_t length = log == NULL ? 0 : strlen(log);
    while (length > 0 && log[length - 1] == '\n') {
        log[--length] = '\0';
    }
    size_t from = length;
    for (int lines = 0; from > 0; from--) {
        lines += log[from - 1] == '\n';
        if (lines == LOG_END_LINES) {
            break;
        }
    }
    snprintf(text, size, "%s", length > 0 ? log + from : "(it is empty)");
    free(log);
    for (char *c = text; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' ? '|' : *c;
    }
    return text;
}

struct chaos_backend *chaos_backend_create(const char *name, const struct chaos_backend_options *options,
                                           struct chaos_error *error) {
    if (options->nodes < 1 || options->nodes > CHAOS_NODES_MAX) {
        chaos_fail(error, "%zu nodes cannot be started; 1 to %d can", options->nodes, CHAOS_NODES_MAX);
        return NULL;
    }
    struct chaos_backend *backend = chaos_allocate(1, sizeof *backend);
    backend->options = *options;
    for (size_t n = 0; n < options->nodes; n++) {
        snprintf(backend->directories[n], PATH_MAX, "%s/node-%zu", options->directory, n + 1);
    }
    bool made = false;
    if (strcmp(name, "process") == 0) {
        made = chaos_backend_process(backend, error);
    } else if (strcmp(name, "compose") == 0) {
        made = chaos_backend_compose(backend, error);
    } else {
        chaos_fail(error, "there is no backend %s; there are process and compose", name);
    }
    if (!made) {
        free(backend);
        return NULL;
    }
    return backend;
}

bool chaos_backend_make_directories(struct chaos_backend *backend, struct chaos_error *error) {
    for (size_t n = 0; n < backend->options.nodes; n++) {
        struct chaos_clock **clock = backend->options.shim != NULL ? &backend->clocks[n] : NULL;
        if (!make_node(backend->directories[n], clock)) {
            return chaos_fail(error, "node %zu: its directory %s cannot be made: %s", n + 1, backend->directories[n],
                              strerror(errno));
        }
    }
    return true;
}

void chaos_backend_destroy(struct chaos_backend *backend) {
    if (backend == NULL) {
        return;
    }
    (void)backend->ops->stop(backend, NULL);
    for (size_t n = 0; n < CHAOS_NODES_MAX; n++) {
        chaos_clock_close(backend->clocks[n]);
    }
    free(backend);
}
