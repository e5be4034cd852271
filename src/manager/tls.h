/* What the caller wants of TLS. */
#ifndef REDLOCK_MANAGER_TLS_H
#define REDLOCK_MANAGER_TLS_H

#include "manager/options.h"
#include "server/tls_context.h"

/* Checks `given`, or takes the defaults for NULL, and makes a context of it. Returns REDLOCK_OK,
 * REDLOCK_ERR_INVALID or REDLOCK_ERR_NO_MEMORY. */
int redlock_manager_tls(const redlock_tls_options *given, struct redlock_tls_context **context,
                        struct redlock_error_text *failure);

#endif
