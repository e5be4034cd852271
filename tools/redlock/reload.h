/* New users and passwords for the nodes while the tool runs, from the file that names the nodes. */
#ifndef TOOL_RELOAD_H
#define TOOL_RELOAD_H

#include "session.h"

/*
 * Somebody changes the file to change a password (docs/operations.md). Nobody has to send a signal
 * then: Kubernetes does not, and SIGHUP is for the command. A thread looks each second: a file
 * system that hangs must not keep the loop from renewing a lease. It compares stamps: inode, size,
 * times.
 *
 * | state   | a look finds              | what happens                          | next    |
 * | ------- | ------------------------- | ------------------------------------- | ------- |
 * | SAME    | what was read             |                                       | SAME    |
 * | SAME    | another stamp, or no file | it may still be being written         | CHANGED |
 * | CHANGED | what was read             |                                       | SAME    |
 * | CHANGED | as the last look          | reads it; the loop gets what it holds | SAME    |
 * | CHANGED | another stamp again       |                                       | CHANGED |
 *
 * | what the file holds                            | what the loop does                           |
 * | ---------------------------------------------- | -------------------------------------------- |
 * | it cannot be used                              | warns; changes nothing                       |
 * | other nodes; no password where there was one   | warns; ignores that, and takes the rest      |
 * | a node's user or password differs from the one | gives it to the node, which is PENDING then  |
 * | that it got last, or was refused               |                                              |
 *
 * | a node that is PENDING | what happens                                               | next    |
 * | ---------------------- | ---------------------------------------------------------- | ------- |
 * | accepts                | one line, when no node is PENDING any more                 | none    |
 * | refuses                | warns, once; its connection goes on with the old ones      | PENDING |
 * | is away                | its next connection uses the new ones                      | PENDING |
 *
 * A warning that says what the last one said is left out. Nothing printed has a user or a password.
 */

struct tool_reload;

/* Begins, if the nodes are from a file that can change. Warns if it cannot. */
void tool_reload_begin(struct tool_session *session);

void tool_reload_end(struct tool_session *session);

#endif
