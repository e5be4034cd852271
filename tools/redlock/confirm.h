/* After a release that too few nodes have confirmed: asks again for a while. */
#ifndef TOOL_CONFIRM_H
#define TOOL_CONFIRM_H

#include "session.h"

/*
 * The release of a token that was held found no quorum. Asks again until a quorum of nodes says
 * that the lock is not held under this token any more, for rest_ms (after which the lock has ended
 * anyway) and for the connect timeout at most. Connections that died without a sound have been
 * replaced by then. Returns whether it is confirmed. The session keeps the result of the release.
 */
bool tool_confirm_release(struct tool_session *session, const char *token, int64_t rest_ms);

#endif
