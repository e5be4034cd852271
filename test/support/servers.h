/* Real redis-servers for the tests. */
/*
 * Real redis-servers for the tests, on free loopback ports, each in a temporary directory of its own. They are stopped
 * and their directories removed at exit(). Should the test process die otherwise, the kernel kills them (start them
 * from its main thread, for their death follows that thread's) and a small process removes the directories. Whatever
 * goes wrong here ends the program with a message.
 */
#ifndef TEST_SUPPORT_SERVERS_H
#define TEST_SUPPORT_SERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "raw.h"

#define SERVERS_MAX 16

struct server_options {
    const char *password; /* of the default user; NULL for none */
    const char *config;   /* more lines for redis.conf, each ended by a newline ("user alice on >pw ~* +@all\n") */
    bool append_only;     /* AOF with appendfsync always: a restart keeps the keys */
    bool ipv6;            /* listens on ::1 too */
    bool no_default_user; /* the config switches the default user off: "admin" with `password` is asked instead */
};

struct server {
    pid_t pid; /* 0: not running */
    int port;
    bool paused;
    bool raw_ready;
    struct server_options options; /* strings are the caller's and must live as long */
    struct raw raw;
    char directory[64];
    char socket[96];      /* its unix socket */
    char uri[128];        /* redis://[:password@]127.0.0.1:port */
    char socket_uri[128]; /* unix:///path */
    char name[32];        /* 127.0.0.1:port, as the library names it */
};

/* `count` servers with the same options; `uris` is ready for redlock_manager_options.nodes. Not to be moved or copied. */
struct servers {
    size_t count;
    struct server at[SERVERS_MAX];
    const char *uris[SERVERS_MAX];
};

/* Starts one more at servers->at[count]; returns it. NULL options: no password, no persistence. */
struct server *servers_add(struct servers *servers, const struct server_options *options);
/* Begins a set of `count` servers. */
void servers_start(struct servers *servers, size_t count, const struct server_options *options);
/* Stops them all and removes their directories. */
void servers_stop(struct servers *servers);
/* All running, none paused, and empty of keys (scripts stay): for the setup of each test. */
void servers_reset(struct servers *servers);

/* SIGTERM, or SIGKILL, and waits for the end. */
void server_stop(struct server *server);
void server_kill(struct server *server);
/* Starts it again on the same port; empty, or with what its AOF has. Waits until it answers, or not. */
void server_restart(struct server *server);
void server_restart_without_waiting(struct server *server);
/* SIGSTOP and SIGCONT; the first returns once the process is stopped. The kernel goes on accepting connections for it. */
void server_pause(struct server *server);
void server_resume(struct server *server);

/* Asks it a command over a connection of our own, as the default user (or "admin"); see raw.h for the answer. */
const char *server_ask_argv(struct server *server, const char *const *argv);
#define server_ask(server, ...) server_ask_argv((server), (const char *const[]){__VA_ARGS__, NULL})
/* PTTL: -2 no key, -1 no ttl. */
int64_t server_pttl_ms(struct server *server, const char *key);
bool server_has_key(struct server *server, const char *key);
/* DBSIZE, of database 0. */
int64_t server_key_count(struct server *server);

/* How many of them, of those that run and are not paused, have the key; have any key. */
size_t servers_with_key(struct servers *servers, const char *key);
int64_t servers_key_count(struct servers *servers);
/* Polls, without a loop running, until no server has the key (NULL: any key). False at the deadline. */
bool servers_wait_without_key(struct servers *servers, const char *key, int timeout_ms);

#endif
