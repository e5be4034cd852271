/* When each stream of the proxy runs next. */
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"
#include "values/clock.h"

/*
 * A sleeping process wakes up this late. So the proxy wakes earlier and polls until it is time.
 * After a long delay the error does not matter, and polling would take processor time from the
 * programs under test.
 */
#define EARLY_US      40
#define LONG_DELAY_US 5000

static void take_off(struct proxy_agenda *agenda, struct proxy_stream *stream) {
    *(stream->before != NULL ? &stream->before->after : &agenda->first) = stream->after;
    *(stream->after != NULL ? &stream->after->before : &agenda->last) = stream->before;
    stream->wake_us = PROXY_PIPE_NEVER_US;
}

void proxy_agenda_at(struct proxy_agenda *agenda, struct proxy_stream *stream, int64_t when_us) {
    struct proxy_stream *before = agenda->last;
    if (stream->wake_us == when_us) {
        return;
    }
    if (stream->wake_us != PROXY_PIPE_NEVER_US) {
        take_off(agenda, stream);
        before = agenda->last;
    }
    if (when_us == PROXY_PIPE_NEVER_US) {
        return;
    }
    while (before != NULL && before->wake_us > when_us) {
        before = before->before;
    }
    stream->wake_us = when_us;
    stream->before = before;
    stream->after = before != NULL ? before->after : agenda->first;
    *(before != NULL ? &before->after : &agenda->first) = stream;
    *(stream->after != NULL ? &stream->after->before : &agenda->last) = stream;
}

struct proxy_stream *proxy_agenda_due(struct proxy_agenda *agenda, int64_t now_us) {
    struct proxy_stream *first = agenda->first;
    if (first == NULL || first->wake_us > now_us) {
        return NULL;
    }
    take_off(agenda, first);
    return first;
}

/* Sets the timer only to an earlier time. So it is rarely set, and sometimes fires too early. */
int proxy_agenda_timeout_ms(struct proxy_agenda *agenda) {
    const struct proxy_stream *first = agenda->first;
    if (first == NULL) {
        return -1;
    }
    int64_t ring_us = first->wake_us - (first->pipe.lane->rule.delay_us < LONG_DELAY_US ? EARLY_US : 0);
    if (ring_us <= tool_now_us()) {
        return 0;
    }
    if (ring_us < agenda->armed_us) {
        struct itimerspec at = {
            .it_value = {.tv_sec = (time_t)(ring_us / 1000000), .tv_nsec = (long)(ring_us % 1000000) * 1000}};
        if (timerfd_settime(agenda->timer.fd, TFD_TIMER_ABSTIME, &at, NULL) != 0) {
            return 0; /* never happens; polling still works */
        }
        agenda->armed_us = ring_us;
    }
    return -1;
}

static void on_ring(struct proxy_source *source, uint32_t events) {
    struct proxy_agenda *agenda = (struct proxy_agenda *)((char *)source - offsetof(struct proxy_agenda, timer));
    (void)events;
    agenda->armed_us = PROXY_PIPE_NEVER_US;
}

bool proxy_agenda_open(struct proxy_agenda *agenda) {
    *agenda = (struct proxy_agenda){.armed_us = PROXY_PIPE_NEVER_US};
    agenda->timer = (struct proxy_source){timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC), on_ring};
    return agenda->timer.fd >= 0;
}
