/* The floor for threads that block: one thread has the floor's sockets, and each worker is a thread
 * that sleeps until its call is decided. It does the least that a lock for such threads needs. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "floor_nodes.h"

#define THREADS_MAX 32 /* a bit of the futex each */
#define ANSWER_MS   5000

enum call_state { CALL_AWAKE, CALL_ASLEEP, CALL_DONE };
enum call_kind { CALL_ACQUIRE, CALL_RELEASE, CALL_END };

struct caller {
    struct team *team;
    pthread_t thread;
    struct caller *next; /* in the mailbox */
    unsigned index;
    atomic_uint state; /* enum call_state */
    enum call_kind kind;
    bool granted;
    uint64_t cycles, failed;
};

struct team {
    struct floor floor; /* first member */
    struct caller callers[THREADS_MAX];
    unsigned count;
    int64_t end_ns;
    pthread_barrier_t start;
    _Atomic(struct caller *) mailbox; /* the last call first */
    atomic_bool waits;                /* the loop waits for its sockets: wake it for a call */
    atomic_uint epoch;                /* the futex */
    /* The loop's: threads that have not ended; whom to wake; calls that were decided. */
    unsigned left;
    uint32_t to_wake;
    unsigned decided;
};

static void must(int failed, const char *what) {
    if (failed) {
        contender_fatal("%s: %s", what, strerror(failed));
    }
}

static void futex(atomic_uint *word, int operation, unsigned value, uint32_t bits) {
    (void)syscall(SYS_futex, word, operation, value, NULL, NULL, bits);
}

/* The loop. */

static void decided(void *data, struct exchange_worker *worker, bool granted) {
    struct team *team = data;
    struct caller *caller = &team->callers[worker - team->floor.exchange.workers];
    caller->granted = granted;
    team->decided++;
    if (atomic_exchange(&caller->state, CALL_DONE) == CALL_ASLEEP) {
        team->to_wake |= UINT32_C(1) << caller->index;
    }
}

static void wake(struct team *team) {
    if (team->to_wake) {
        atomic_fetch_add(&team->epoch, 1);
        futex(&team->epoch, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, team->to_wake);
        team->to_wake = 0;
    }
    /* If there are several, their next calls go out with the same writes. */
    if (team->decided > 1) {
        (void)sched_yield();
    }
    team->decided = 0;
}

static void begin_calls(struct team *team) {
    struct exchange *exchange = &team->floor.exchange;
    struct caller *next;
    for (struct caller *caller = atomic_exchange(&team->mailbox, NULL); caller; caller = next) {
        next = caller->next;
        if (caller->kind == CALL_END) {
            team->left--;
        } else {
            exchange_begin_phase(exchange, &exchange->workers[caller->index], caller->kind == CALL_RELEASE);
        }
    }
}

static void *run_loop(void *data) {
    struct team *team = data;
    struct floor *floor = &team->floor;
    for (;;) {
        wake(team);
        begin_calls(team);
        if (team->left == 0) {
            return NULL;
        }
        floor_flush(floor);
        atomic_store(&team->waits, true);
        const int timeout_ms = atomic_load(&team->mailbox) ? 0 : ANSWER_MS;
        if (!floor_wait(floor, timeout_ms) && timeout_ms > 0) {
            contender_fatal("no answer came in time");
        }
        atomic_store(&team->waits, false);
    }
}

/* A caller. */

static void put(struct caller *caller, enum call_kind kind) {
    struct team *team = caller->team;
    const uint64_t one = 1;
    caller->kind = kind;
    atomic_store(&caller->state, CALL_AWAKE);
    caller->next = atomic_load(&team->mailbox);
    while (!atomic_compare_exchange_weak(&team->mailbox, &caller->next, caller)) {
    }
    if (atomic_load(&team->waits) && atomic_exchange(&team->waits, false)) {
        (void)!write(team->floor.wake_up, &one, sizeof one);
    }
}

/* No wake-up is lost: see src/blocking/eventcount.h. */
static bool call(struct caller *caller, enum call_kind kind) {
    struct team *team = caller->team;
    put(caller, kind);
    for (;;) {
        unsigned seen = atomic_load(&team->epoch), state = CALL_AWAKE;
        if (!atomic_compare_exchange_strong(&caller->state, &state, CALL_ASLEEP) && state == CALL_DONE) {
            return caller->granted;
        }
        futex(&team->epoch, FUTEX_WAIT_BITSET_PRIVATE, seen, UINT32_C(1) << caller->index);
    }
}

static void *run_caller(void *data) {
    struct caller *caller = data;
    struct exchange_worker *worker = &caller->team->floor.exchange.workers[caller->index];
    (void)pthread_barrier_wait(&caller->team->start);
    while (contender_now_ns() < caller->team->end_ns) {
        if (call(caller, CALL_ACQUIRE) && call(caller, CALL_RELEASE)) {
            caller->cycles++;
        } else {
            caller->failed++;
        }
        worker->name = (uint8_t)((worker->name + 1) % CONTENDER_NAMES);
    }
    put(caller, CALL_END);
    return NULL;
}

static void cycles(void *data, struct contender_cycles *cycles, char error[CONTENDER_ERROR_SIZE]) {
    struct team *team = data;
    pthread_t loop;
    if (team->floor.exchange.node_count == 0 || cycles->workers > THREADS_MAX || cycles->acquire.wanted > 0) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE,
                       team->floor.exchange.node_count == 0 ? "not connected" : "unsupported");
        return;
    }
    team->count = team->left = cycles->workers;
    team->floor.exchange.cycles = cycles;
    must(pthread_barrier_init(&team->start, NULL, team->count), "pthread_barrier_init");
    const int64_t began_ns = contender_now_ns();
    team->end_ns = began_ns + cycles->duration_ms * 1000000;
    must(pthread_create(&loop, NULL, run_loop, team), "pthread_create");
    for (unsigned i = 0; i < team->count; i++) {
        team->callers[i] = (struct caller){.team = team, .index = i};
        must(pthread_create(&team->callers[i].thread, NULL, run_caller, &team->callers[i]), "pthread_create");
    }
    for (unsigned i = 0; i < team->count; i++) {
        must(pthread_join(team->callers[i].thread, NULL), "pthread_join");
        cycles->cycles += team->callers[i].cycles;
        cycles->failed += team->callers[i].failed;
    }
    cycles->took_ns = contender_now_ns() - began_ns;
    must(pthread_join(loop, NULL), "pthread_join");
    must(pthread_barrier_destroy(&team->start), "pthread_barrier_destroy");
}

int main(void) {
    const struct contender contender = {.name = "floor_threads",
                                        .version = "1",
                                        .notes = "the floor for threads that block: one loop, a futex",
                                        .connect = floor_connect,
                                        .cycles = cycles};
    static struct team team;
    team.floor.exchange.decided = decided;
    team.floor.wake_up = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (team.floor.wake_up < 0) {
        contender_fatal("eventfd: %s", strerror(errno));
    }
    floor_begin(&team.floor);
    const int status = contender_run(&contender, &team.floor);
    floor_end(&team.floor);
    (void)close(team.floor.wake_up);
    return status;
}
