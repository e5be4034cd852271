/* Finds the server program of local nodes and asks it for its version. */
#include "backends/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VERSION_TIMEOUT_MS 5000

extern char **environ;

static bool is_program(const char *path) {
    struct stat stat_;
    return stat(path, &stat_) == 0 && S_ISREG(stat_.st_mode) && access(path, X_OK) == 0;
}

/* Nodes run in directories of their own: a path must not depend on ours. NULL without memory. */
static char *absolute(const char *path) {
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    char *out = NULL;
    if (path[0] == '/') {
        return strdup(path);
    }
    if (here == NULL || asprintf(&out, "%s/%s", here, path) < 0) {
        out = NULL;
    }
    free(here);
    return out;
}

static char *find_in_path(const char *name) {
    const char *next = getenv("PATH");
    while (next != NULL) {
        const char *end = strchrnul(next, ':');
        char *path;
        int length = (int)(end - next);
        if (asprintf(&path, "%.*s%s%s", length, next, length > 0 ? "/" : "", name) < 0) {
            return NULL;
        }
        if (is_program(path)) {
            char *found = absolute(path);
            free(path);
            return found;
        }
        free(path);
        next = *end == ':' ? end + 1 : NULL;
    }
    return NULL;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What it writes, until it ends or says no more for too long. */
static void read_all(int fd, char *text, size_t size) {
    int64_t deadline_ms = now_ms() + VERSION_TIMEOUT_MS;
    size_t length = 0;
    while (length + 1 < size) {
        struct pollfd poll_ = {fd, POLLIN, 0};
        int64_t left_ms = deadline_ms - now_ms();
        int ready = left_ms > 0 ? poll(&poll_, 1, (int)left_ms) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        ssize_t got = ready > 0 ? read(fd, text + length, size - 1 - length) : 0;
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
    }
    text[length] = '\0';
}

/* What `path --version` says, perhaps "". False with errno if it cannot be run. */
static bool ask_version(const char *path, char *text, size_t size) {
    char *argv[] = {(char *)(uintptr_t)path, (char *)(uintptr_t) "--version", NULL};
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return false;
    }
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid = 0;
    sigemptyset(&none);
    int result = posix_spawn_file_actions_init(&actions);
    if (result == 0) {
        result = posix_spawnattr_init(&attributes);
        if (result == 0) {
            (void)posix_spawnattr_setsigmask(&attributes, &none);
            (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
            result = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
            result = result != 0 ? result : posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
            result = result != 0 ? result : posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
            result = result != 0 ? result : posix_spawn(&pid, path, &actions, &attributes, argv, environ);
            posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    close(fds[1]);
    if (result == 0) {
        read_all(fds[0], text, size);
        (void)kill(pid, SIGKILL); /* it is not waited for: what it is, is known or never will be */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    close(fds[0]);
    errno = result;
    return result == 0;
}

/* "Redis server v=7.0.15 sha=…", "Valkey server v=8.0.1 …"; warnings may come first. */
static bool parse_version(struct chaos_server *server, const char *text) {
    const char *redis = strstr(text, "Redis server v=");
    const char *valkey = strstr(text, "Valkey server v=");
    const char *version = valkey != NULL ? valkey : redis;
    server->valkey = valkey != NULL;
    return version != NULL && sscanf(strchr(version, '=') + 1, "%d.%d", &server->major, &server->minor) == 2;
}

bool chaos_server_find(struct chaos_server *server, const char *name, char *error, size_t error_size) {
    memset(server, 0, sizeof *server);
    if (name == NULL) {
        server->path = find_in_path("redis-server");
        server->path = server->path != NULL ? server->path : find_in_path("valkey-server");
    } else {
        server->path = strchr(name, '/') != NULL ? absolute(name) : find_in_path(name);
    }
    if (server->path == NULL) {
        snprintf(
            error, error_size,
            "no program %s was found in PATH; install one (Debian and Ubuntu: apt-get install redis-server), or say "
            "where it is",
            name != NULL ? name : "redis-server or valkey-server");
        return false;
    }
    char text[512] = "";
    if (!ask_version(server->path, text, sizeof text)) {
        snprintf(error, error_size, "the server program %s cannot be run: %s", server->path, strerror(errno));
    } else if (!parse_version(server, text)) {
        snprintf(error, error_size, "%s is no Redis or Valkey server: asked for its --version it said \"%.*s\"",
                 server->path, (int)strcspn(text, "\r\n"), text);
    } else if (!server->valkey && server->major < 6) {
        snprintf(error, error_size, "%s is Redis %d.%d, which knows no users; use 6.0 or a later version", server->path,
                 server->major, server->minor);
    } else {
        return true;
    }
    chaos_server_clear(server);
    return false;
}

void chaos_server_clear(struct chaos_server *server) {
    free(server->path);
    server->path = NULL;
}

bool chaos_server_debug_is_off(const struct chaos_server *server) {
    return server->valkey || server->major >= 7;
}

bool chaos_server_has_channel_rights(const struct chaos_server *server) {
    return server->valkey || server->major > 6 || server->minor >= 2;
}
