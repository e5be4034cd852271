/* Finds the server program of local nodes and asks it for its version. */
#include "backends/server.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/program.h"

enum { VERSION_MS = 5000 };

/* Runs `name --version`. Nodes run in directories of their own: a path must not depend on ours.
 * Returns false if the path is too long. */
static bool ask_version(struct chaos_server *server, const char *name, struct chaos_said *said) {
    char here[PATH_MAX] = "";
    bool relative = name[0] != '/' && strchr(name, '/') != NULL && getcwd(here, sizeof here) != NULL;
    int size = snprintf(server->path, sizeof server->path, "%s%s%s", here, relative ? "/" : "", name);
    if (size < 0 || (size_t)size >= sizeof server->path) {
        return false;
    }
    chaos_program_run((const char *const[]){server->path, "--version", NULL}, NULL, -1, VERSION_MS, said);
    return true;
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
    struct chaos_said said;
    if (!ask_version(server, name != NULL ? name : "redis-server", &said)) {
        return chaos_fail(error, "the path of the server program is longer than %zu bytes", sizeof server->path - 1);
    }
    if (name == NULL && said.status == CHAOS_CANNOT_RUN) {
        (void)ask_version(server, "valkey-server", &said);
    }
    if (said.status == CHAOS_CANNOT_RUN && strchr(server->path, '/') == NULL) {
        return chaos_fail(error,
                          "no program %s was found in PATH; install one (Debian and Ubuntu: apt-get install "
                          "redis-server), or say where it is",
                          name != NULL ? name : "redis-server or valkey-server");
    }
    if (said.status == CHAOS_CANNOT_RUN) {
        const char *why = strstr(said.text, ": "); /* behind the program's name */
        return chaos_fail(error, "the server program %s cannot be run%.*s", server->path,
                          why == NULL ? 0 : (int)strcspn(why, "\r\n"), why == NULL ? "" : why);
    }
    if (!parse_version(server, said.text)) {
        return chaos_fail(error, "%s is no Redis or Valkey server: asked for its --version it said \"%.*s\"",
                          server->path, (int)strcspn(said.text, "\r\n"), said.text);
    }
    if (!server->valkey && server->major < 6) {
        return chaos_fail(error, "%s is Redis %d.%d, which knows no users; use 6.0 or a later version", server->path,
                          server->major, server->minor);
    }
    return true;
}
