/* The files of a local node: its directory, log, clock and AOF; and its port. */
#ifndef CHAOS_NODE_FILES_H
#define CHAOS_NODE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/clock.h"

/*
 * Chooses ports[n], of 127.0.0.1, on which nobody listens, and none of the other ports. It is none
 * of those that the kernel gives to connections: while the node is dead, a client that tries again
 * and again would be given the node's own port some day, be connected to itself, and keep the node
 * from coming back. False, and 0, if there is none.
 */
bool chaos_node_port(uint16_t *ports, size_t count, size_t n);

/* These return false with errno. A node's directory is DIRECTORY/node-N; redis.conf, log, clock and
 * data are in it, and the server runs in it. */

/* Makes the directory, data (a directory of its own, for an image may look at what is there),
 * and the clock's page, with true time, where `clock` is not NULL. Others may read all of it, as
 * containers may need. */
bool chaos_node_make(const char *directory, struct chaos_clock **clock);
/* Keys on disk: all that is in data. */
bool chaos_node_remove_keys(const char *directory);
/* An empty directory too; what is not there is removed already. */
bool chaos_node_remove_file(const char *directory, const char *name);

/* A file as text, to be freed; NULL if it is empty or cannot be read. */
char *chaos_text_read(const char *path);
/* Whether the log has these words; the first line that has them into line, unless that is NULL. */
bool chaos_node_log_finds(const char *directory, const char *words, char *line, size_t size);
/* Its last lines, in one, for an error. Returns text. */
char *chaos_node_log_end(const char *directory, char *text, size_t size);

#endif
