/* What the tests need of an event loop, so that one test runs on each. A program has one. */
#ifndef TEST_INTEGRATION_LOOPS_KIND_H
#define TEST_INTEGRATION_LOOPS_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include <redlock/redlock.h>

typedef void (*loop_callback)(void);

void loop_open(void);
int loop_create(const redlock_manager_options *options, redlock_manager **manager, char *error, size_t size);
/* Waits for at least one event and handles what came: one wake-up. */
void loop_turn(void);
/* The loop's own repeating timer, of which there is one at a time. */
void loop_start_timer(int ms, loop_callback callback);
void loop_stop_timer(void);
/* The loop's own watch of a descriptor for reading, of which there is one at a time. */
void loop_start_reading(int fd, loop_callback callback);
void loop_stop_reading(void);
/* Calls back once, in one of the next turns, at the last moment that the loop offers before it
 * waits. False: it offers none. */
bool loop_before_wait(loop_callback callback);
/* In a child process that goes on with the loop. */
void loop_after_fork(void);
/* Returns whether nothing of the library was left on the loop, where the loop can tell. */
bool loop_close(void);

/* Turns the loop until the condition holds. The test's timer ends each wait. */
#define UNTIL(condition)                                                                                               \
    do {                                                                                                               \
        const int64_t end_ms = support_now_ms() + DRIVE_TIMEOUT_MS;                                                    \
        while (!(condition)) {                                                                                         \
            if (support_now_ms() > end_ms) {                                                                           \
                fail_msg("did not happen: %s", #condition);                                                            \
            }                                                                                                          \
            loop_turn();                                                                                               \
        }                                                                                                              \
    } while (0)

#endif
