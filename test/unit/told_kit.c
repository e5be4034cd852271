/* What the tests of events begin with. */
#include "told_kit.h"

#include "group/tell.h"

struct told told[64];
unsigned told_count;
static unsigned looked; /* of these */

static void take_event(const redlock_telemetry_event *event, void *data) {
    assert_ptr_equal(data, told);
    assert_int_equal(event->size, sizeof *event);
    assert_true(told_count < sizeof told / sizeof *told);
    struct told *at = &told[told_count++];
    assert_true(strlen(event->resource) < sizeof at->resource && strlen(event->node) < sizeof at->node);
    at->event = *event;
    strcpy(at->resource, event->resource);
    strcpy(at->node, event->node);
    (void)snprintf(at->reason, sizeof at->reason, "%s", event->reason);
}

#define EVENTS                                                                                                         \
    { .on_event = take_event, .event_data = told }
const struct group_setup three_told = {.node_count = 3, .config = EVENTS};
const struct group_setup five_told = {.node_count = 5, .config = EVENTS};

int open_told(void **state) {
    told_count = looked = 0;
    return open_group(state);
}

void check_told(const redlock_telemetry_kind *kinds, size_t count, int line) {
    for (size_t i = 0; i < count; i++) {
        const char *next = looked < told_count ? redlock_telemetry_kind_name(told[looked].event.kind) : "nothing";
        if (looked == told_count || told[looked].event.kind != kinds[i]) {
            fail_msg("line %d: %s was told, not %s", line, next, redlock_telemetry_kind_name(kinds[i]));
        }
        looked++;
    }
    if (looked != told_count) {
        fail_msg("line %d: %s was told, too", line, redlock_telemetry_kind_name(told[looked].event.kind));
    }
}

void assert_nothing_told(void) {
    assert_int_equal(looked, told_count);
}

const struct told *last(void) {
    assert_true(told_count > 0);
    return &told[told_count - 1];
}

redlock_telemetry snapshot(void) {
    redlock_telemetry now = {.size = sizeof now};
    assert_is(redlock_group_telemetry(fake.group, &now), REDLOCK_OK);
    assert_int_equal(now.size, sizeof now);
    return now;
}
