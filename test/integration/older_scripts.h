/* The scripts of a version from before shared locks: older/. */
#ifndef TEST_INTEGRATION_OLDER_SCRIPTS_H
#define TEST_INTEGRATION_OLDER_SCRIPTS_H

#include "wire/script.h"

enum older_script_id { OLDER_WAIT, OLDER_RELEASE, OLDER_EXTEND, OLDER_COUNT };

extern const struct redlock_script older_scripts[OLDER_COUNT];

#endif
