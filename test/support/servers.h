/* Real redis-servers for the tests. */
/*
 * Each server has a free loopback port and its own temporary directory. exit() stops the servers
 * and removes the directories. If the test process dies otherwise, the kernel kills the servers and
 * a small process removes the directories. Start servers from the main thread: they die with the
 * thread that starts them. Any failure here ends the program with a message.
 */
#ifndef TEST_SUPPORT_SERVERS_H
#define TEST_SUPPORT_SERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "raw.h"

#define SERVERS_MAX 16

/* A server that speaks nothing but TLS, except on its unix socket. The files are in PEM. */
struct server_tls {
    const char *cert_file, *key_file;
    /* Clients must show a certificate of this authority; NULL: none is asked for. */
    const char *client_ca_file;
    const char *protocols; /* as "TLSv1.2"; NULL: the server's default */
};

struct server_options {
    const char *password; /* of the default user; NULL for none */
    /* More lines for redis.conf, each ending in a newline ("user alice on >pw ~* +@all\n"). */
    const char *config;
    bool append_only; /* AOF with appendfsync always: keys survive a restart */
    bool ipv6;        /* listen on ::1 too */
    /* `config` disables the default user: log in as "admin" with `password` */
    bool no_default_user;
    const struct server_tls *tls; /* NULL: no TLS */
};

struct server {
    pid_t pid; /* 0: not running */
    int port;
    bool paused;
    bool raw_ready;
    struct server_options options; /* the strings are the caller's and must live as long */
    struct raw raw;
    char directory[64];
    char socket[96];      /* its unix socket */
    char uri[128];        /* redis://[:password@]127.0.0.1:port, or rediss://… */
    char socket_uri[128]; /* unix:///path */
    char name[32];        /* 127.0.0.1:port, as the library names it */
};

/* `count` servers with the same options. `uris` fits redlock_manager_options.nodes. Do not move or
 * copy it. */
struct servers {
    size_t count;
    struct server at[SERVERS_MAX];
    const char *uris[SERVERS_MAX];
};

/* Starts one more at servers->at[count] and returns it. NULL options: no password, no
 * persistence. */
struct server *servers_add(struct servers *servers, const struct server_options *options);
/* Starts a new set of `count` servers. */
void servers_start(struct servers *servers, size_t count, const struct server_options *options);
/* Stops them all and removes their directories. */
void servers_stop(struct servers *servers);
/* The setup of each test: all servers run, none is paused, none has a key (scripts stay). */
void servers_reset(struct servers *servers);

/* Send SIGTERM or SIGKILL, and wait for the end. */
void server_stop(struct server *server);
void server_kill(struct server *server);
/* Start it again on the same port, with the data of its AOF if it has one. The first one waits
 * until it answers. */
void server_restart(struct server *server);
void server_restart_without_waiting(struct server *server);
/* SIGSTOP and SIGCONT. The first returns once the process has stopped. The kernel still accepts
 * connections for it. */
void server_pause(struct server *server);
void server_resume(struct server *server);

/* Sends a command on its own connection, as the default user (or "admin"). See raw.h for the
 * answer. */
const char *server_ask_argv(struct server *server, const char *const *argv);
#define server_ask(server, ...) server_ask_argv((server), (const char *const[]){__VA_ARGS__, NULL})
/* The same of each server from `first` up to `end`; servers_say(): each must answer that. */
#define servers_ask(servers, first, end, ...)                                                                          \
    for (size_t each_ = (first); each_ < (end); each_++)                                                               \
    (void)server_ask(&(servers)->at[each_], __VA_ARGS__)
#define servers_say(servers, first, end, answer, ...)                                                                  \
    for (size_t each_ = (first); each_ < (end); each_++)                                                               \
    assert_string_equal(server_ask(&(servers)->at[each_], __VA_ARGS__), answer)
void servers_each(struct servers *servers, size_t first, size_t end, void (*what)(struct server *server));
/* PTTL: -2 without the key, -1 without a ttl. */
int64_t server_pttl_ms(struct server *server, const char *key);
bool server_has_key(struct server *server, const char *key);
/* DBSIZE of database 0. */
int64_t server_key_count(struct server *server);

/* How many of the servers that run and are not paused have the key, or any key. */
size_t servers_with_key(struct servers *servers, const char *key);
int64_t servers_key_count(struct servers *servers);
/* Polls, without running a loop, until no server has the key (NULL: any key). Returns false at the
 * deadline. */
bool servers_wait_without_key(struct servers *servers, const char *key, int timeout_ms);

#endif
