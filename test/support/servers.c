/* Starts, stops, kills, pauses and asks real redis-servers. */
#include "servers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define START_TIMEOUT_MS 20000
#define LIVE_MAX         64

/* What exit() must clean up. Only the main thread starts servers. */
static struct server *live[LIVE_MAX];
static pid_t live_owner;

static void end_process(struct server *server, int signal_number) {
    if (server->pid <= 0) {
        return;
    }
    kill(server->pid, signal_number);
    if (server->paused && signal_number != SIGKILL) {
        kill(server->pid, SIGCONT);
    }
    int64_t deadline = support_now_ms() + 10000;
    while (waitpid(server->pid, NULL, WNOHANG) == 0) {
        if (support_now_ms() > deadline) {
            kill(server->pid, SIGKILL);
        }
        support_pause_ms(1);
    }
    server->pid = 0;
    server->paused = false;
    raw_close(&server->raw);
    server->raw_ready = false;
}

static void discard(struct server *server) {
    end_process(server, SIGKILL);
    if (server->directory[0]) {
        support_remove_tree(server->directory);
    }
    server->directory[0] = '\0';
}

static void clean_up_at_exit(void) {
    if (getpid() != live_owner) {
        return;
    }
    for (size_t i = 0; i < LIVE_MAX; i++) {
        if (live[i]) {
            discard(live[i]);
        }
    }
}

static void remember(struct server *server) {
    if (!live_owner) {
        live_owner = getpid();
        atexit(clean_up_at_exit);
    }
    for (size_t i = 0; i < LIVE_MAX; i++) {
        if (live[i]) {
            continue;
        }
        live[i] = server;
        return;
    }
    support_fatal("more than %d servers at once", LIVE_MAX);
}

static void forget(struct server *server) {
    for (size_t i = 0; i < LIVE_MAX; i++) {
        if (live[i] == server) {
            live[i] = NULL;
        }
    }
}

static void write_tls(FILE *out, const struct server_tls *tls) {
    fprintf(out, "tls-cert-file %s\ntls-key-file %s\ntls-auth-clients %s\n", tls->cert_file, tls->key_file,
            tls->client_ca_file ? "yes" : "no");
    if (tls->client_ca_file) {
        fprintf(out, "tls-ca-cert-file %s\n", tls->client_ca_file);
    }
    if (tls->protocols) {
        fprintf(out, "tls-protocols \"%s\"\n", tls->protocols);
    }
}

static void write_config(const struct server *server) {
    const struct server_options *options = &server->options;
    char path[96], *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        support_fatal("out of memory");
    }
    fprintf(out, "%s %d\nbind 127.0.0.1%s\nunixsocket %s\nunixsocketperm 700\ndir %s\nlogfile %s/log\n",
            options->tls ? "port 0\ntls-port" : "port", server->port, options->ipv6 ? " ::1" : "", server->socket,
            server->directory, server->directory);
    if (options->tls) {
        write_tls(out, options->tls);
    }
    fprintf(out, "save \"\"\ndaemonize no\nappendonly %s\nappendfsync always\n", options->append_only ? "yes" : "no");
    if (options->password && !options->no_default_user) {
        fprintf(out, "requirepass %s\n", options->password);
    }
    if (options->no_default_user) {
        fprintf(out, "user default off\nuser admin on >%s ~* &* +@all\n", options->password);
    }
    if (options->config) {
        fputs(options->config, out);
    }
    fclose(out);
    snprintf(path, sizeof path, "%s/redis.conf", server->directory);
    support_write_file(path, text);
    free(text);
}

static void spawn(struct server *server) {
    char config[96], log[96];
    snprintf(config, sizeof config, "%s/redis.conf", server->directory);
    snprintf(log, sizeof log, "%s/log", server->directory);
    unlink(log);
    pid_t parent = getpid();
    server->pid = fork();
    if (server->pid < 0) {
        support_fatal("fork: %s", strerror(errno));
    }
    if (server->pid > 0) {
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
    setpgid(0, 0); /* Ctrl-C and signals to the group reach the test only, which then stops us */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execlp("redis-server", "redis-server", config, (char *)NULL);
    _exit(127);
}

/* Only this process writes this log. So the line proves that it listens, and not a stranger on its
 * port. */
static bool says_ready(const struct server *server) {
    char path[96];
    snprintf(path, sizeof path, "%s/log", server->directory);
    char *text = support_read_file(path);
    bool ready = text && strstr(text, "eady to accept connections");
    free(text);
    return ready;
}

static bool has_ended(struct server *server, int *status) {
    if (waitpid(server->pid, status, WNOHANG) != server->pid) {
        return false;
    }
    server->pid = 0;
    return true;
}

/* Returns false if the server has ended. It ends when another process took its port first. */
static bool wait_until_ready(struct server *server) {
    int64_t deadline = support_now_ms() + START_TIMEOUT_MS;
    int status = 0;
    while (!says_ready(server)) {
        if (has_ended(server, &status)) {
            if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
                support_fatal("redis-server is not installed, or not in PATH");
            }
            return false;
        }
        if (support_now_ms() > deadline) {
            support_fatal("redis-server in %s is not ready after %d ms", server->directory, START_TIMEOUT_MS);
        }
        support_pause_ms(2);
    }
    if (strcmp(server_ask(server, "PING"), "PONG") != 0) {
        support_fatal("redis-server on port %d answers PING with %s", server->port, server_ask(server, "PING"));
    }
    return true;
}

/* Uses locals, because gcc takes the members of an array's element for one object (-Wrestrict). */
static void set_names(struct server *server) {
    const char *password = server->options.password ? server->options.password : "";
    const char *scheme = server->options.tls ? "rediss" : "redis";
    char name[sizeof server->name], uri[sizeof server->uri];
    snprintf(name, sizeof name, "127.0.0.1:%d", server->port);
    if (server->options.no_default_user) {
        snprintf(uri, sizeof uri, "%s://admin:%s@%s", scheme, password, name);
    } else {
        snprintf(uri, sizeof uri, "%s://%s%s%s%s", scheme, *password ? ":" : "", password, *password ? "@" : "", name);
    }
    strcpy(server->name, name);
    strcpy(server->uri, uri);
}

static void make_directory(struct server *server) {
    char directory[sizeof server->directory] = "/tmp/redlock-test-XXXXXX", path[sizeof server->socket];
    if (!mkdtemp(directory)) {
        support_fatal("mkdtemp: %s", strerror(errno));
    }
    support_remove_tree_at_death(directory);
    strcpy(server->directory, directory);
    snprintf(path, sizeof path, "%s/socket", directory);
    strcpy(server->socket, path);
    snprintf(server->socket_uri, sizeof server->socket_uri, "unix://%s", path);
}

struct server *servers_add(struct servers *servers, const struct server_options *options) {
    if (servers->count == SERVERS_MAX) {
        support_fatal("more than %d servers in a set", SERVERS_MAX);
    }
    struct server *server = &servers->at[servers->count];
    memset(server, 0, sizeof *server);
    server->raw.fd = -1;
    if (options) {
        server->options = *options;
    }
    make_directory(server);
    remember(server);
    for (int tries = 0; tries < 20; tries++) {
        server->port = support_free_port();
        write_config(server);
        spawn(server);
        if (wait_until_ready(server)) {
            set_names(server);
            servers->uris[servers->count++] = server->uri;
            return server;
        }
    }
    char log[96];
    snprintf(log, sizeof log, "%s/log", server->directory);
    support_fatal("redis-server does not start: %s", support_read_file(log));
}

void servers_start(struct servers *servers, size_t count, const struct server_options *options) {
    servers->count = 0;
    for (size_t i = 0; i < count; i++) {
        servers_add(servers, options);
    }
}

void servers_stop(struct servers *servers) {
    for (size_t i = 0; i < servers->count; i++) {
        discard(&servers->at[i]);
        forget(&servers->at[i]);
    }
    servers->count = 0;
}

void servers_reset(struct servers *servers) {
    for (size_t i = 0; i < servers->count; i++) {
        struct server *server = &servers->at[i];
        if (server->pid == 0) {
            server_restart(server);
        }
        if (server->paused) {
            server_resume(server);
        }
        if (strcmp(server_ask(server, "FLUSHALL"), "OK") != 0) {
            support_fatal("FLUSHALL on port %d: %s", server->port, server_ask(server, "FLUSHALL"));
        }
    }
}

void server_stop(struct server *server) {
    end_process(server, SIGTERM);
}

void server_kill(struct server *server) {
    end_process(server, SIGKILL);
}

void server_restart_without_waiting(struct server *server) {
    if (server->pid != 0) {
        support_fatal("server_restart: the server on port %d still runs", server->port);
    }
    spawn(server);
}

void server_restart(struct server *server) {
    int64_t deadline = support_now_ms() + START_TIMEOUT_MS;
    do {
        server_restart_without_waiting(server);
        if (wait_until_ready(server)) {
            return;
        }
        support_pause_ms(50); /* for a moment the port belongs to some client's socket */
    } while (support_now_ms() < deadline);
    support_fatal("redis-server does not start again on port %d", server->port);
}

void server_pause(struct server *server) {
    int status;
    if (kill(server->pid, SIGSTOP) != 0 || waitpid(server->pid, &status, WUNTRACED) != server->pid ||
        !WIFSTOPPED(status)) {
        support_fatal("cannot pause the server on port %d", server->port);
    }
    server->paused = true;
}

void server_resume(struct server *server) {
    if (kill(server->pid, SIGCONT) != 0) {
        support_fatal("cannot resume the server on port %d: %s", server->port, strerror(errno));
    }
    server->paused = false;
}

const char *server_ask_argv(struct server *server, const char *const *argv) {
    if (!server->raw_ready || server->raw.fd < 0) {
        raw_close(&server->raw);
        server->raw_ready = server->options.tls ? raw_open_unix(&server->raw, server->socket)
                                                : raw_open_tcp(&server->raw, "127.0.0.1", server->port);
        const char *password = server->options.password;
        if (server->raw_ready && server->options.no_default_user) {
            raw_ask(&server->raw, "AUTH", "admin", password);
        } else if (server->raw_ready && password) {
            raw_ask(&server->raw, "AUTH", password);
        }
    }
    return raw_ask_argv(&server->raw, argv);
}

static int64_t number(struct server *server, const char *text) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end) {
        support_fatal("the server on port %d answers: %s", server->port, text);
    }
    return value;
}

int64_t server_pttl_ms(struct server *server, const char *key) {
    return number(server, server_ask(server, "PTTL", key));
}

bool server_has_key(struct server *server, const char *key) {
    return number(server, server_ask(server, "EXISTS", key)) == 1;
}

int64_t server_key_count(struct server *server) {
    return number(server, server_ask(server, "DBSIZE"));
}

size_t servers_with_key(struct servers *servers, const char *key) {
    size_t count = 0;
    for (size_t i = 0; i < servers->count; i++) {
        if (servers->at[i].pid != 0 && !servers->at[i].paused && server_has_key(&servers->at[i], key)) {
            count++;
        }
    }
    return count;
}

int64_t servers_key_count(struct servers *servers) {
    int64_t count = 0;
    for (size_t i = 0; i < servers->count; i++) {
        if (servers->at[i].pid != 0 && !servers->at[i].paused) {
            count += server_key_count(&servers->at[i]);
        }
    }
    return count;
}

bool servers_wait_without_key(struct servers *servers, const char *key, int timeout_ms) {
    int64_t deadline = support_now_ms() + timeout_ms;
    while (key ? servers_with_key(servers, key) > 0 : servers_key_count(servers) > 0) {
        if (support_now_ms() > deadline) {
            return false;
        }
        support_pause_ms(5);
    }
    return true;
}

void servers_each(struct servers *servers, size_t first, size_t end, void (*what)(struct server *server)) {
    for (size_t i = first; i < end; i++) {
        what(&servers->at[i]);
    }
}
