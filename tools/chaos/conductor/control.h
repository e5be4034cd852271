/* The socket of a run, by which `redlock-chaos fault` asks for faults by hand. */
#ifndef CHAOS_CONTROL_H
#define CHAOS_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "faults/error.h"

/* Listens at DIRECTORY/control.sock, however long the directory's name is. The descriptor, or -1
 * with a sentence. */
int chaos_control_listen(const char *directory, struct chaos_error *error);

/* Removes the socket, too. */
void chaos_control_close(const char *directory, int listener);

/* Does what one line asks for. False with a sentence. */
typedef bool (*chaos_control_handler)(void *ctx, const char *line, struct chaos_error *error);

/* Takes one connection that waits, reads its line, one message (200 ms at most), has it done, and
 * answers. Nothing that a stranger sends does harm. */
void chaos_control_serve(int listener, chaos_control_handler handler, void *ctx);

/* Asks the run in DIRECTORY. False with a sentence. */
bool chaos_control_ask(const char *directory, const char *line, struct chaos_error *error);

#endif
