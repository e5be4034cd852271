/* Alarms: an owner that only has a place in the schedule. */
#include "group/alarm.h"

bool redlock_alarm_open(struct redlock_group *group, struct redlock_alarm *alarm,
                        void (*ring)(struct redlock_alarm *alarm)) {
    *alarm = (struct redlock_alarm){.owner = {.kind = REDLOCK_OWNER_ALARM}, .ring = ring};
    return redlock_schedule_reserve(&group->schedule);
}

void redlock_alarm_close(struct redlock_group *group, struct redlock_alarm *alarm) {
    redlock_schedule_unreserve(&group->schedule, &alarm->owner.due);
}

void redlock_alarm_set(struct redlock_group *group, struct redlock_alarm *alarm, int64_t when_ns) {
    redlock_schedule_set(&group->schedule, &alarm->owner.due, when_ns);
    redlock_group_rearm(group);
}
