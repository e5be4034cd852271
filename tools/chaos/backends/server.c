/* Finds the server program of local nodes and asks it for its version. */
#include "backends/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/program.h"

enum { VERSION_MS = 5000 };

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

/* "Redis server v=7.0.15 sha=…", "Valkey server v=8.0.1 …"; warnings may come first. */
static bool parse_version(struct chaos_server *server, const char *text) {
    const char *redis = strstr(text, "Redis server v=");
    const char *valkey = strstr(text, "Valkey server v=");
    const char *version = valkey != NULL ? valkey : redis;
    server->valkey = valkey != NULL;
    return version != NULL && sscanf(strchr(version, '=') + 1, "%d.%d", &server->major, &server->minor) == 2;
}

bool chaos_server_find(struct chaos_server *server, const char *name, struct chaos_error *error) {
    memset(server, 0, sizeof *server);
    if (name == NULL) {
        server->path = find_in_path("redis-server");
        server->path = server->path != NULL ? server->path : find_in_path("valkey-server");
    } else {
        server->path = strchr(name, '/') != NULL ? absolute(name) : find_in_path(name);
    }
    if (server->path == NULL) {
        return chaos_fail(
            error,
            "no program %s was found in PATH; install one (Debian and Ubuntu: apt-get install redis-server), or say "
            "where it is",
            name != NULL ? name : "redis-server or valkey-server");
    }
    struct chaos_said said;
    chaos_program_run((const char *const[]){server->path, "--version", NULL}, NULL, -1, VERSION_MS, &said);
    if (said.status == CHAOS_CANNOT_RUN) {
        const char *why = strstr(said.text, ": "); /* behind the program's name */
        chaos_fail(error, "the server program %s cannot be run%.*s", server->path,
                   why == NULL ? 0 : (int)strcspn(why, "\r\n"), why == NULL ? "" : why);
    } else if (!parse_version(server, said.text)) {
        chaos_fail(error, "%s is no Redis or Valkey server: asked for its --version it said \"%.*s\"", server->path,
                   (int)strcspn(said.text, "\r\n"), said.text);
    } else if (!server->valkey && server->major < 6) {
        chaos_fail(error, "%s is Redis %d.%d, which knows no users; use 6.0 or a later version", server->path,
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
