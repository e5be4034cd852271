/* A timer in the schedule of a group, for the layer above. */
#ifndef REDLOCK_GROUP_ALARM_H
#define REDLOCK_GROUP_ALARM_H

#include "group/owner.h"

/* Embed it. It sends nothing; an owner only because the schedule knows these. */
struct redlock_alarm {
    struct redlock_owner owner;
    void (*ring)(struct redlock_alarm *alarm); /* may close the alarm */
};

/* False if there is no memory. After that, setting it cannot fail. */
bool redlock_alarm_open(struct redlock_group *group, struct redlock_alarm *alarm,
                        void (*ring)(struct redlock_alarm *alarm));
void redlock_alarm_close(struct redlock_group *group, struct redlock_alarm *alarm);
/* Rings once, in a later turn. REDLOCK_NEVER_NS: not. */
void redlock_alarm_set(struct redlock_group *group, struct redlock_alarm *alarm, int64_t when_ns);

#endif
