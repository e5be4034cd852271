/* The delaying proxy: what its parts share. */
#ifndef BENCH_DELAY_H
#define BENCH_DELAY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "contender.h"
#include "delay_queue.h"

enum delay_source_kind { DELAY_SOURCE_INPUT, DELAY_SOURCE_TIMER, DELAY_SOURCE_LISTENER, DELAY_SOURCE_END };

/* What an event of epoll points to: the first member of what it is about. */
struct delay_source {
    enum delay_source_kind kind;
    int fd;
};

struct delay_link {
    struct delay_source listener;
    int64_t delay_ns; /* one way */
    struct sockaddr_storage target;
    socklen_t target_size;
};

/* From one end to the other. */
struct delay_way {
    struct delay_connection *connection;
    struct delay_socket *from, *to;
    struct delay_queue queue;
    int64_t wake_ns; /* when it wants its turn */
    size_t place;    /* in the heap, from 1; 0: not there */
    bool again;      /* in the list of those that have more to do than fits into one turn */
    struct delay_way *next_again;
};

/* One end of a connection. Events are edge-triggered: the flags hold until a call says EAGAIN. */
struct delay_socket {
    struct delay_source source;
    struct delay_connection *connection;
    bool readable, writable, hung_up;
};

struct delay_connection {
    const struct delay_link *link;
    struct delay_socket ends[2]; /* the client, the target */
    struct delay_way ways[2];    /* from the client, from the target */
    unsigned finished;           /* ways whose FIN was passed on */
    bool connecting, closed;
    struct delay_connection *next_closed;
};

/* Which way has its turn when: a heap by wake_ns, the first at 1, and those that go on at once. */
struct delay_agenda {
    struct delay_way **heap;
    size_t count, room;
    struct delay_way *again_first, **again_last;
    int timer;
    int64_t armed_ns;
};

struct delay_proxy {
    int epoll;
    struct delay_agenda agenda;
    struct delay_connection *closed; /* freed when no event of this turn can point to them */
};

/* delay.c: ends the program with a message. */
__attribute__((format(printf, 1, 2), noreturn)) void delay_fatal(const char *format, ...);
void delay_watch(const struct delay_proxy *proxy, struct delay_source *source, uint32_t events);

/* delay_agenda.c. The way has its turn at when_ns; DELAY_NEVER_NS takes it off. */
void delay_agenda_at(struct delay_agenda *agenda, struct delay_way *way, int64_t when_ns);
/* It goes on in the next turn of the loop. */
void delay_agenda_again(struct delay_agenda *agenda, struct delay_way *way);
/* The way that is first, if it is due; else NULL. */
struct delay_way *delay_agenda_due(const struct delay_agenda *agenda, int64_t now_ns);
/* How long the loop may wait for descriptors, of which the timer is one: 0, or -1 for ever. */
int delay_agenda_timeout_ms(struct delay_agenda *agenda);

/* delay_connection.c. Takes the client's socket. */
void delay_connection_open(struct delay_proxy *proxy, const struct delay_link *link, int client);
void delay_connection_event(struct delay_proxy *proxy, struct delay_socket *end, uint32_t events);
/* A way's turn: reads and writes as long as both do something. */
void delay_connection_pump(struct delay_proxy *proxy, struct delay_way *way);
/* At the end of a turn of the loop: those that go on have their turn, and what is closed is freed. */
void delay_connection_turn(struct delay_proxy *proxy);

#endif
