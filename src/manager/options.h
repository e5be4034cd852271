/* What the caller wants of a manager and of TLS: the defaults, and what is wrong with it. */
#ifndef REDLOCK_MANAGER_OPTIONS_H
#define REDLOCK_MANAGER_OPTIONS_H

#include <stdbool.h>

#include <redlock/redlock.h>

#include "base/check.h"

#define REDLOCK_CLIENT_NAME "redlock" /* the default */

/* Whether the options have the size of this library's struct or of an older one, and each value is
 * allowed. *known gets them, with the defaults for what the older one lacks. Returns REDLOCK_OK or
 * REDLOCK_ERR_INVALID. */
int redlock_manager_options_read(redlock_manager_options *known, const redlock_manager_options *given,
                                 struct redlock_error_text *failure);

/* The same for TLS; NULL is the defaults. */
int redlock_manager_tls_read(redlock_tls_options *known, const redlock_tls_options *given,
                             struct redlock_error_text *failure);

/* Whether a guard is on. */
bool redlock_manager_is_guarded(const redlock_manager_options *options);

#endif
