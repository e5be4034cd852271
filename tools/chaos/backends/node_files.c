/* Writes, reads and removes the files of a local node, and finds a port for it. */
#include "backends/node_files.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT_MIN = 10000, PORT_MAX = 65535, PORT_TRIES = 2000, LOG_END_BYTES = 4096, LOG_END_LINES = 3 };

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
    FILE *in = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (in != NULL) {
        if (fscanf(in, "%d %d", &kernel_low, &kernel_high) != 2) {
            kernel_low = PORT_MAX + 1;
        }
        fclose(in);
    }
    int below = kernel_low - PORT_MIN, above = PORT_MAX - kernel_high;
    *low = above > below ? kernel_high + 1 : PORT_MIN;
    *high = above > below ? PORT_MAX : kernel_low - 1;
    if (*high - *low < 1000) {
        *low = PORT_MIN;
        *high = PORT_MAX;
    }
}

uint16_t chaos_node_port(const uint16_t *taken, size_t count) {
    int low, high;
    port_range(&low, &high);
    for (int tries = 0; tries < PORT_TRIES; tries++) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
            random = (uint32_t)getpid() * 31 + (uint32_t)tries;
        }
        uint16_t port = (uint16_t)(low + (int)(random % (uint32_t)(high - low + 1)));
        bool known = false;
        for (size_t i = 0; i < count; i++) {
            known |= taken[i] == port;
        }
        if (!known && is_free(port)) {
            return port;
        }
    }
    return 0;
}

/* False with errno if it is too long. */
static bool path_of(char path[PATH_MAX], const char *directory, const char *name) {
    bool fits = snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX;
    errno = fits ? 0 : ENAMETOOLONG;
    return fits;
}

static FILE *open_file(const char *directory, const char *name, const char *mode) {
    char path[PATH_MAX];
    return path_of(path, directory, name) ? fopen(path, mode) : NULL;
}

/* Paths are relative: the server runs in its directory, whose name may have any character. No
 * rewrite of the AOF: its process would outlive a killed server. */
bool chaos_node_write_config(const char *directory, const struct chaos_server *server, uint16_t port,
                             bool append_only) {
    FILE *out = open_file(directory, "redis.conf", "we");
    if (out == NULL) {
        return false;
    }
    const char *rights = chaos_server_has_channel_rights(server) ? "~* &* +@all" : "~* +@all";
    fprintf(out, "port %u\nbind 127.0.0.1\ndir .\nlogfile log\ndaemonize no\nsave \"\"\n", port);
    fprintf(out, "appendonly %s\nappendfsync always\nauto-aof-rewrite-percentage 0\n", append_only ? "yes" : "no");
    fprintf(out, "maxmemory-policy noeviction\n");
    fprintf(out, "%s", chaos_server_debug_is_off(server) ? "enable-debug-command yes\n" : "");
    fprintf(out, "user default on nopass %s\nuser chaos on >chaos %s\n", rights, rights);
    bool failed = ferror(out) != 0;
    return fclose(out) == 0 && !failed;
}

bool chaos_node_remove_file(const char *directory, const char *name) {
    char path[PATH_MAX];
    return path_of(path, directory, name) && (remove(path) == 0 || errno == ENOENT);
}

/* Removes what matches; `pattern` has no directories. */
static bool remove_matching(const char *directory, const char *pattern) {
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        return errno == ENOENT;
    }
    int error = 0;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        bool dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!dots && fnmatch(pattern, entry->d_name, 0) == 0 && !chaos_node_remove_file(directory, entry->d_name)) {
            error = errno;
        }
    }
    closedir(stream);
    errno = error;
    return error == 0;
}

bool chaos_node_remove_keys(const char *directory) {
    char inner[PATH_MAX]; /* of 7.0 and later */
    return path_of(inner, directory, "appendonlydir") && remove_matching(inner, "*") &&
           chaos_node_remove_file(directory, "appendonlydir") && remove_matching(directory, "*.aof") &&
           remove_matching(directory, "*.rdb");
}

bool chaos_node_log_finds(const char *directory, const char *words, char *line, size_t size) {
    FILE *in = open_file(directory, "log", "re");
    char *text = NULL;
    size_t text_size = 0;
    bool found = false;
    while (in != NULL && !found && getline(&text, &text_size, in) > 0) {
        found = strstr(text, words) != NULL;
    }
    if (found && line != NULL) {
        snprintf(line, size, "%.*s", (int)strcspn(text, "\n"), text);
    }
    free(text);
    if (in != NULL) {
        fclose(in);
    }
    return found;
}

char *chaos_node_log_end(const char *directory, char *text, size_t size) {
    char end[LOG_END_BYTES + 1];
    FILE *in = open_file(directory, "log", "re");
    size_t length = 0;
    if (in != NULL) {
        if (fseek(in, -LOG_END_BYTES, SEEK_END) != 0) {
            rewind(in);
        }
        length = fread(end, 1, LOG_END_BYTES, in);
        fclose(in);
    }
    while (length > 0 && end[length - 1] == '\n') {
        length--;
    }
    end[length] = '\0';
    const char *from = end + length;
    for (int lines = 0; from > end; from--) {
        lines += from[-1] == '\n';
        if (lines == LOG_END_LINES) {
            break;
        }
    }
    snprintf(text, size, "%s", length > 0 ? from : "(it is empty)");
    for (char *c = text; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' ? '|' : *c;
    }
    return text;
}
