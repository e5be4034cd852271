/* Nodes that are processes of this machine, each in a directory of its own, children of ours. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/admin.h"
#include "backends/backend.h"
#include "backends/program.h"
#include "faults/fault.h"
#include "faults/lists.h"
#include "values/clock.h"
#include "values/values.h"

/*
 * A node   DEAD → start, restart: RUNNING      DEAD → kill: DEAD
 *          RUNNING → pause: PAUSED             RUNNING, PAUSED → kill, or by itself: DEAD
 *          PAUSED → resume: RUNNING
 * A node that ends by itself is left for the caller to wait for. A pid is signalled only while its
 * process is surely a child of ours. Who is DEAD has no pid.
 */

enum { START_MS = 10000, END_MS = 10000, VERSION_MS = 5000, CERTIFICATE_MS = 20000, PORT_TRIES = 20 };

#define CERTIFICATE "tls.pem"

struct server {
    char path[PATH_MAX]; /* absolute, or a name without a slash, of PATH */
    bool valkey;
    int major, minor; /* of Valkey's or of Redis's own count */
};

struct processes {
    struct server server;
    /* the file, open: its name may have what LD_PRELOAD takes for a separator; -1 for none */
    int shim;
    bool paused[CHAOS_NODES_MAX];
};

/* Runs `name --version`. Nodes run in directories of their own: a path must not depend on ours.
 * Returns false if the path is too long. */
static bool ask_version(struct server *server, const char *name, struct chaos_said *said) {
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
static bool parse_version(struct server *server, const char *text) {
    const char *redis = strstr(text, "Redis server v=");
    const char *valkey = strstr(text, "Valkey server v=");
    const char *version = valkey != NULL ? valkey : redis;
    server->valkey = valkey != NULL;
    return version != NULL && sscanf(strchr(version, '=') + 1, "%d.%d", &server->major, &server->minor) == 2;
}

/* `name`: a program as a shell would find it; NULL: redis-server, then valkey-server, of PATH. It
 * is run once, with --version. False with a sentence where there is none, where it is something
 * else, and where it is older than Redis 6.0, which knew no users. */
static bool find_server(struct server *server, const char *name, struct chaos_error *error) {
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

/*
 * Makes a certificate for 127.0.0.1 and its key, in one file. The certificate signs itself, so the
 * clients trust this file alone. openssl 1.1.1 knows all of these options.
 */
static bool make_certificate(struct chaos_backend *backend, struct chaos_error *error) {
    struct chaos_said said;
    if (snprintf(backend->certificate, PATH_MAX, "%s/" CERTIFICATE, backend->options.directory) >= PATH_MAX) {
        return chaos_fail(error, "the directory's name is too long for the file " CERTIFICATE " in it");
    }
    const char *const argv[] = {"/bin/sh", "-c",
                                "exec openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "
                                "2 -subj /CN=redlock-chaos "
                                "-addext subjectAltName=IP:127.0.0.1 -keyout \"$0\" -out \"$0\"",
                                backend->certificate, NULL};
    chaos_program_run(argv, NULL, -1, CERTIFICATE_MS, &said);
    if (said.status == CHAOS_CANNOT_RUN) {
        return chaos_fail(error,
                          "--tls makes its certificate with openssl, which cannot be run; install it (Debian and "
                          "Ubuntu: apt-get install openssl)");
    }
    return said.status == 0 ||
           chaos_fail(error, "openssl made no certificate (status %d): %s", said.status, chaos_said_why(&said));
}

/* Paths are relative: the server runs in its directory, whose name may have any character. No
 * rewrite of the AOF: its process would outlive a killed server. */
static bool write_config(const struct chaos_backend *backend, size_t n) {
    const struct processes *own = backend->own;
    const struct server *server = &own->server;
    FILE *out = fopen(TOOL_TEXT(PATH_MAX + 16, "%s/redis.conf", backend->directories[n]), "we");
    if (out == NULL) {
        return false;
    }
    bool has_channel_rights = server->valkey || server->major > 6 || server->minor >= 2;
    bool debug_is_off = server->valkey || server->major >= 7;
    const char *rights = has_channel_rights ? "~* &* +@all" : "~* +@all";
    fprintf(out, "port %u\nbind 127.0.0.1\ndir data\nlogfile ../log\ndaemonize no\nsave \"\"\n", backend->ports[n]);
    if (backend->options.tls) {
        fprintf(out, "tls-port %u\ntls-auth-clients no\n", backend->tls_ports[n]);
        fprintf(out, "tls-cert-file ../../" CERTIFICATE "\ntls-key-file ../../" CERTIFICATE "\n");
    }
    fprintf(out, "appendonly %s\nappendfsync always\nauto-aof-rewrite-percentage 0\n",
            backend->options.append_only ? "yes" : "no");
    fprintf(out, "maxmemory-policy noeviction\n");
    fprintf(out, "%s", debug_is_off ? "enable-debug-command yes\n" : "");
    fprintf(out, "user default on nopass %s\nuser chaos on >chaos %s\n", rights, rights);
    bool failed = ferror(out) != 0;
    return fclose(out) == 0 && !failed;
}

/* "node 2 (127.0.0.1:21034): " and what went wrong. */
#define FAIL(backend, n, error, format, ...)                                                                           \
    chaos_fail(error, "node %zu (127.0.0.1:%u): " format, (n) + 1, (backend)->ports[n], __VA_ARGS__)

static bool *paused(const struct chaos_backend *backend, size_t n) {
    struct processes *own = backend->own;
    return &own->paused[n];
}

/* In the child: ours, with the clock preloaded where there is one. A locale that is not installed
 * would keep the server from starting. */
static bool set_environment(int shim) {
    const char *preload = getenv("LD_PRELOAD");
    char *libraries = NULL;
    bool worked = unsetenv(CHAOS_CLOCK_ENV) == 0 && setenv("LC_ALL", "C", 1) == 0;
    if (worked && shim >= 0) {
        worked = setenv(CHAOS_CLOCK_ENV, "clock", 1) == 0 &&
                 asprintf(&libraries, "/proc/self/fd/%d%s%s", shim, preload != NULL ? ":" : "",
                          preload != NULL ? preload : "") >= 0 &&
                 setenv("LD_PRELOAD", libraries, 1) == 0;
    }
    return worked;
}

/* In the child: becomes the server, or leaves why not in the node's log. */
static _Noreturn void become_server(const struct processes *own, const char *directory, pid_t parent) {
    char *argv[] = {(char *)(uintptr_t)own->server.path, (char *)(uintptr_t) "redis.conf", NULL};
    int log = chdir(directory) == 0 ? open("log", O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (log < 0 || !chaos_program_begin(parent, log)) {
        _exit(127);
    }
    for (int fd = 3; fd < 1024; fd++) {
        /* what the parent has open is none of its business */
        (void)fcntl(fd, F_SETFD, fd == own->shim ? 0 : FD_CLOEXEC);
    }
    if (set_environment(own->shim)) {
        execvp(own->server.path, argv);
    }
    dprintf(2, "redlock-chaos: %s cannot be run: %s\n", own->server.path, strerror(errno));
    _exit(127);
}

static bool spawn(struct chaos_backend *backend, size_t n, struct chaos_error *error) {
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        return FAIL(backend, n, error, "no process could be made for it: fork: %s", strerror(errno));
    }
    if (pid == 0) {
        become_server(backend->own, backend->directories[n], parent);
    }
    *paused(backend, n) = false;
    backend->pids[n] = pid;
    return true;
}

/* Whether it runs, or is paused; one that ended by itself is not waited for. */
static bool is_alive(struct chaos_backend *backend, size_t n) {
    siginfo_t info = {0};
    if (backend->pids[n] == 0) {
        return false;
    }
    if (waitid(P_PID, (id_t)backend->pids[n], &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
        return true;
    }
    backend->pids[n] = 0;
    return false;
}

static bool send_signal(struct chaos_backend *backend, size_t n, int number, const char *name,
                        struct chaos_error *error) {
    pid_t pid = backend->pids[n];
    return kill(pid, number) == 0 ||
           FAIL(backend, n, error, "%s to its process %d: %s", name, (int)pid, strerror(errno));
}

static bool kill_node(struct chaos_backend *backend, size_t n, struct chaos_error *error) {
    if (!is_alive(backend, n)) {
        return true;
    }
    pid_t pid = backend->pids[n];
    if (!send_signal(backend, n, SIGKILL, "SIGKILL", error)) {
        return false;
    }
    int64_t deadline_ms = tool_now_ms() + END_MS;
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (!chaos_wait(deadline_ms)) {
            return FAIL(backend, n, error, "its process %d did not end within %d s of SIGKILL", (int)pid,
                        END_MS / 1000);
        }
    }
    backend->pids[n] = 0;
    return true;
}

static bool restart_node(struct chaos_backend *backend, size_t n, bool empty, struct chaos_error *error) {
    if (is_alive(backend, n)) {
        return true;
    }
    if (empty && !chaos_node_remove_keys(backend->directories[n])) {
        return FAIL(backend, n, error, "its AOF in %s cannot be removed: %s; it stays dead", backend->directories[n],
                    strerror(errno));
    }
    return spawn(backend, n, error);
}

static bool pause_node(struct chaos_backend *backend, size_t n, struct chaos_error *error) {
    if (!is_alive(backend, n)) {
        return FAIL(backend, n, error, "%s", "a dead node cannot be paused; restart it first");
    }
    if (*paused(backend, n)) {
        return true;
    }
    if (!send_signal(backend, n, SIGSTOP, "SIGSTOP", error)) {
        return false;
    }
    int64_t deadline_ms = tool_now_ms() + END_MS;
    while (is_alive(backend, n)) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)backend->pids[n], &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
            *paused(backend, n) = true;
            return true;
        }
        if (!chaos_wait(deadline_ms)) {
            return FAIL(backend, n, error, "its process %d did not stop within %d s of SIGSTOP", (int)backend->pids[n],
                        END_MS / 1000);
        }
    }
    return FAIL(backend, n, error, "it ended by itself when it was to be paused; its log: %s/log",
                backend->directories[n]);
}

static bool resume_node(struct chaos_backend *backend, size_t n, struct chaos_error *error) {
    if (!is_alive(backend, n) || !*paused(backend, n)) {
        return true;
    }
    if (!send_signal(backend, n, SIGCONT, "SIGCONT", error)) {
        return false;
    }
    *paused(backend, n) = false;
    return true;
}

/* Anew: without keys and without a log. */
static bool first_spawn(struct chaos_backend *backend, size_t n, struct chaos_error *error) {
    const char *directory = backend->directories[n];
    if (!chaos_node_port(backend->ports, backend->options.nodes, n) ||
        (backend->options.tls && !chaos_node_port(backend->tls_ports, backend->options.nodes, n))) {
        return FAIL(backend, n, error, "%s", "no free port of 127.0.0.1 was found for it");
    }
    if (!chaos_node_remove_keys(directory) || !chaos_node_remove_file(directory, "log") || !write_config(backend, n)) {
        return FAIL(backend, n, error, "its files in %s cannot be made: %s", directory, strerror(errno));
    }
    return spawn(backend, n, error);
}

/* Whether the process has the page mapped: then the shim was loaded. Otherwise the loader only
 * warns. */
static bool has_clock(const struct chaos_backend *backend, size_t n) {
    char *maps = chaos_text_read(TOOL_TEXT(64, "/proc/%d/maps", (int)backend->pids[n]));
    bool found = maps != NULL && strstr(maps, TOOL_TEXT(48, "/node-%zu/clock\n", n + 1)) != NULL;
    free(maps);
    return found;
}

/* Looks at a node that has just been started: *ready once it answers. If its port is taken
 * meanwhile, it gets another. */
static bool look(struct chaos_backend *backend, size_t n, int *port_tries, bool *ready, struct chaos_error *error) {
    const char *directory = backend->directories[n];
    pid_t pid = backend->pids[n];
    char end[400];
    if (!is_alive(backend, n)) {
        (void)waitpid(pid, NULL, 0);
        if (chaos_node_log_finds(directory, "ddress already in use", NULL, 0) && ++*port_tries < PORT_TRIES) {
            return first_spawn(backend, n, error);
        }
        return FAIL(backend, n, error, "the server ended as soon as it was started; its log, %s/log, ends: %s",
                    directory, chaos_node_log_end(directory, end, sizeof end));
    }
    /* Look in the node's own log: another server on its port would answer PING, too. */
    *ready = chaos_node_log_finds(directory, "eady to accept connections", NULL, 0) &&
             chaos_admin_ping(backend->ports[n], error);
    if (*ready && backend->options.shim != NULL && !has_clock(backend, n)) {
        bool said = chaos_node_log_finds(directory, "preload", end, sizeof end);
        return FAIL(backend, n, error, "the server runs without the clock %s, which could not be loaded into it: %s",
                    backend->options.shim, said ? end : "the loader does not say why");
    }
    return true;
}

static bool start(struct chaos_backend *backend, struct chaos_error *error) {
    bool ready[CHAOS_NODES_MAX] = {0};
    int port_tries[CHAOS_NODES_MAX] = {0};
    if ((backend->options.tls && !make_certificate(backend, error)) ||
        !chaos_backend_make_directories(backend, error)) {
        return false;
    }
    for (size_t n = 0; n < backend->options.nodes; n++) {
        if (!first_spawn(backend, n, error)) {
            return false;
        }
    }
    int64_t deadline_ms = tool_now_ms() + START_MS;
    for (size_t n = 0; n < backend->options.nodes;) {
        if (!look(backend, n, &port_tries[n], &ready[n], error)) {
            return false;
        }
        if (ready[n]) {
            n++;
        } else if (!chaos_wait(deadline_ms)) {
            char end[400];
            const char *directory = backend->directories[n];
            return FAIL(backend, n, error, "no answer within %d s of its start; its log, %s/log, ends: %s",
                        START_MS / 1000, directory, chaos_node_log_end(directory, end, sizeof end));
        }
    }
    return true;
}

static void free_own(struct processes *own) {
    if (own->shim >= 0) {
        close(own->shim);
    }
    free(own);
}

static bool stop(struct chaos_backend *backend, struct chaos_error *error) {
    struct processes *own = backend->own;
    bool ended = true;
    for (size_t n = 0; own != NULL && n < backend->options.nodes; n++) {
        const char *directory = backend->directories[n];
        pid_t pid = backend->pids[n];
        if (!kill_node(backend, n, error)) {
            ended = false;
        } else {
            if (pid > 0) {
                (void)waitpid(pid, NULL, WNOHANG); /* one that had ended by itself */
            }
            (void)chaos_node_remove_keys(directory);
            (void)chaos_node_remove_file(directory, "data");
            (void)chaos_node_remove_file(directory, "clock");
        }
    }
    if (own != NULL) {
        (void)chaos_node_remove_file(backend->options.directory, CERTIFICATE);
        free_own(own);
    }
    backend->own = NULL;
    return ended;
}

static bool lose_packets(struct chaos_backend *backend, size_t n, bool lost, struct chaos_error *error) {
    return !lost || FAIL(backend, n, error, "%s",
                         "a process shares this machine's network, so its packets are not dropped: use --backend "
                         "compose, or the fault partition");
}

bool chaos_backend_process(struct chaos_backend *backend, struct chaos_error *error) {
    static const struct chaos_backend_ops ops = {start,       kill_node,    restart_node, pause_node,
                                                 resume_node, lose_packets, stop};
    struct processes *own = chaos_allocate(1, sizeof *own);
    own->shim = -1;
    const char *shim = backend->options.shim;
    if (shim != NULL && (own->shim = open(shim, O_RDONLY | O_CLOEXEC)) < 0) {
        chaos_fail(error, "the clock %s, which is to be preloaded into the servers, cannot be opened: %s", shim,
                   strerror(errno));
    } else if (find_server(&own->server, backend->options.server, error)) {
        backend->ops = &ops;
        backend->own = own;
        return true;
    }
    free_own(own);
    return false;
}
