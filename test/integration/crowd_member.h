/* What a process of a crowd does. */
#ifndef TEST_INTEGRATION_CROWD_MEMBER_H
#define TEST_INTEGRATION_CROWD_MEMBER_H

#include "crowd.h"

_Noreturn void member_run(struct member *member, const struct servers *servers);

#endif
