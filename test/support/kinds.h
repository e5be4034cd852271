/* Short names for the kinds of requests. */
#ifndef KINDS_H
#define KINDS_H

#include "wire/wire.h"

#define SET         REDLOCK_OP_ACQUIRE
#define EXTEND      REDLOCK_OP_EXTEND
#define RELEASE     REDLOCK_OP_RELEASE
#define INSPECT     REDLOCK_OP_INSPECT
#define FENCING     REDLOCK_OP_FENCE
#define TIME        REDLOCK_OP_TIME
#define WAITING     REDLOCK_OP_WAIT
#define LISTING     REDLOCK_OP_LIST
#define HEAL        REDLOCK_OP_HEAL
#define FENCED      (SET | REDLOCK_KIND_FENCED)
#define TIMED       (SET | REDLOCK_KIND_TIMED)
#define BOTH        (FENCED | TIMED)
#define NAMED       (SET | REDLOCK_KIND_HOLDER_QUERY)
#define NAMED_TWICE (NAMED | REDLOCK_KIND_TWICE)
/* SHARE */
#define READ        (SET | REDLOCK_KIND_SHARED)
#define READ_FENCED (FENCED | REDLOCK_KIND_SHARED)
#define READ_TIMED  (TIMED | REDLOCK_KIND_SHARED)
#define READ_BOTH   (BOTH | REDLOCK_KIND_SHARED)
#define READ_ON     (EXTEND | REDLOCK_KIND_SHARED)
#define READ_ON_AT  (EXTENDED | REDLOCK_KIND_SHARED)
#define READ_AGAIN  (HEAL | REDLOCK_KIND_SHARED)
/* SLOTS */
#define TAKE       (SET | REDLOCK_KIND_SLOTS)
#define KEEP       (EXTEND | REDLOCK_KIND_SLOTS)
#define KEEP_AT    (EXTENDED | REDLOCK_KIND_SLOTS)
#define TAKE_AGAIN (HEAL | REDLOCK_KIND_SLOTS)
#define GIVE       (RELEASE | REDLOCK_KIND_SLOTS)
#define EXTENDED   (EXTEND | REDLOCK_KIND_TIMED)
#define DELETING   (RELEASE | REDLOCK_KIND_DELETING)

/* The first is no request of a group. */
static const unsigned kinds[] = {REDLOCK_OP_NONE,
                                 SET,
                                 EXTEND,
                                 RELEASE,
                                 INSPECT,
                                 FENCING,
                                 TIME,
                                 WAITING,
                                 LISTING,
                                 HEAL,
                                 FENCED,
                                 TIMED,
                                 BOTH,
                                 NAMED,
                                 NAMED_TWICE,
                                 EXTENDED,
                                 DELETING,
                                 READ,
                                 READ_FENCED,
                                 READ_TIMED,
                                 READ_BOTH,
                                 READ_ON,
                                 READ_ON_AT,
                                 READ_AGAIN,
                                 TAKE,
                                 KEEP,
                                 KEEP_AT,
                                 TAKE_AGAIN,
                                 GIVE};

#define KIND_COUNT (sizeof kinds / sizeof *kinds)

#endif
