/* When each way through the delaying proxy has its turn. */
#include "delay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

/* A process that sleeps wakes up this late: so it wakes earlier, and looks until it is time. Not for a long delay, of which so
 * little is nothing: looking takes a processor from those who are measured. */
#define EARLY_NS      40000
#define LONG_DELAY_NS 5000000

static void heap_put(struct delay_agenda *agenda, size_t place, struct delay_way *way) {
    agenda->heap[place] = way;
    way->place = place;
}

static void heap_sift(struct delay_agenda *agenda, size_t place, struct delay_way *way) {
    while (place > 1 && agenda->heap[place / 2]->wake_ns > way->wake_ns) {
        heap_put(agenda, place, agenda->heap[place / 2]);
        place /= 2;
    }
    for (size_t child; (child = 2 * place) <= agenda->count; place = child) {
        if (child < agenda->count && agenda->heap[child + 1]->wake_ns < agenda->heap[child]->wake_ns) {
            child++;
        }
        if (agenda->heap[child]->wake_ns >= way->wake_ns) {
            break;
        }
        heap_put(agenda, place, agenda->heap[child]);
    }
    heap_put(agenda, place, way);
}

static void heap_remove(struct delay_agenda *agenda, struct delay_way *way) {
    size_t place = way->place;
    struct delay_way *last = agenda->heap[agenda->count--];
    way->place = 0;
    if (last != way) {
        heap_sift(agenda, place, last);
    }
}

void delay_agenda_at(struct delay_agenda *agenda, struct delay_way *way, int64_t when_ns) {
    if (when_ns == DELAY_NEVER_NS) {
        if (way->place > 0) {
            heap_remove(agenda, way);
        }
        return;
    }
    if (way->place > 0 && way->wake_ns == when_ns) {
        return;
    }
    way->wake_ns = when_ns;
    if (way->place == 0 && agenda->count + 1 >= agenda->room) {
        agenda->room = agenda->room == 0 ? 64 : 2 * agenda->room;
        agenda->heap = realloc(agenda->heap, agenda->room * sizeof *agenda->heap);
        if (agenda->heap == NULL) {
            delay_fatal("out of memory");
        }
    }
    heap_sift(agenda, way->place > 0 ? way->place : ++agenda->count, way);
}

void delay_agenda_again(struct delay_agenda *agenda, struct delay_way *way) {
    if (way->again) {
        return;
    }
    way->again = true;
    way->next_again = NULL;
    *agenda->again_last = way;
    agenda->again_last = &way->next_again;
}

struct delay_way *delay_agenda_due(const struct delay_agenda *agenda, int64_t now_ns) {
    return agenda->count > 0 && agenda->heap[1]->wake_ns <= now_ns ? agenda->heap[1] : NULL;
}

/* At when_ns or earlier: it is rarely set, and rings in vain now and then. */
static void arm(struct delay_agenda *agenda, int64_t when_ns) {
    if (when_ns >= agenda->armed_ns) {
        return;
    }
    struct itimerspec at = {.it_value = {.tv_sec = when_ns / 1000000000, .tv_nsec = when_ns % 1000000000}};
    if (timerfd_settime(agenda->timer, TFD_TIMER_ABSTIME, &at, NULL) != 0) {
        delay_fatal("timerfd_settime: %s", strerror(errno));
    }
    agenda->armed_ns = when_ns;
}

int delay_agenda_timeout_ms(struct delay_agenda *agenda) {
    if (agenda->again_first != NULL) {
        return 0;
    }
    if (agenda->count == 0) {
        return -1;
    }
    const struct delay_way *next = agenda->heap[1];
    int64_t ring_ns = next->wake_ns - (next->connection->link->delay_ns < LONG_DELAY_NS ? EARLY_NS : 0);
    if (ring_ns <= contender_now_ns()) {
        return 0;
    }
    arm(agenda, ring_ns);
    return -1;
}
