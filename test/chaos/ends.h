/* Both ends of a link, played by the test: it listens as the nodes and connects as the clients. */
#ifndef TEST_CHAOS_ENDS_H
#define TEST_CHAOS_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "links/links.h"
#include "support.h"

/* Each function waits until it has happened, at most 20 s. A failure fails the test. No socket
 * blocks. */

int ends_listen(uint16_t *port);
int ends_connect(uint16_t port);
int ends_accept(int listener);
/* Returns whether a connection comes within ms. */
bool ends_is_called(int listener, int ms);

/* Sends all bytes, however long the other side takes. */
void ends_send(int fd, const void *bytes, size_t size);
void ends_say(int fd, const char *text);
/* Expects exactly this text next. */
void ends_hear(int fd, const char *text);
/* Expects neither bytes nor an end within ms. A slow machine never fails this. */
void ends_hear_nothing(int fd, int ms);
/* Expects the end. */
void ends_hear_fin(int fd);
void ends_hear_reset(int fd);
/* Reads until an end, or until `size` bytes have come. */
size_t ends_take(int fd, char *bytes, size_t size);
void ends_close(int fd);
void ends_close_both(int one, int other);
void ends_reset(int fd);

/* A proxy, with the test listening as its nodes. */
struct ends {
    struct chaos_links links;
    int listeners[4];
    uint16_t ports[4];
};

void ends_start(struct ends *ends, size_t clients, size_t nodes);
void ends_stop(struct ends *ends);
/* A client's connection to a node: its two ends. */
void ends_join(struct ends *ends, size_t client, size_t node, int *near, int *far);
void ends_set(struct ends *ends, size_t client, size_t node, struct chaos_link_rule rule);
void ends_cut(struct ends *ends, size_t client, size_t node);
void ends_silence(struct ends *ends, size_t client, size_t node, bool silent);

/* The number of open descriptors of a process. */
size_t ends_files(pid_t pid);
void ends_wait_files(pid_t pid, size_t count);
/* The processor time that a process has used. */
int64_t ends_cpu_ms(pid_t pid);

#endif
