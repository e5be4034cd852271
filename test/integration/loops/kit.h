/* What the tests of loops share: the loop with a timer and a socket of its own, managers on it, and
 * what the linker puts between the library and the system. */
#ifndef TEST_INTEGRATION_LOOPS_KIT_H
#define TEST_INTEGRATION_LOOPS_KIT_H

#include <sys/timerfd.h>
#include <time.h>

#include "kind.h"
#include "world.h"

extern struct own {
    int ticks;   /* of the loop's own timer */
    int echoes;  /* over its own sockets */
    int ends[2]; /* of these */
    int closed;  /* managers */
} own;

/* The machine was suspended for this long: only CLOCK_BOOTTIME has gone on. */
extern time_t kit_suspended_s;
/* The last timerfd and its clock. */
extern int kit_timer_fd;
extern clockid_t kit_timer_clock;
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
/* The writes of the library. */
extern int kit_sends;

int kit_setup(void **state);
int kit_teardown(void **state);
#define LOOP_TEST(function) TEST_WITH(function, kit_setup, kit_teardown)

/* The loop's own work, which setup starts. */
void kit_on_tick(void);
void kit_start_own(void);
void kit_stop_own(void);

/* All servers, and time enough to connect under load. */
redlock_manager_options kit_options(void);
/* A manager; one whose first connections are made; one with all servers. */
redlock_manager *kit_try_manager(redlock_manager_options *options);
redlock_manager *kit_connected(redlock_manager_options *options);
redlock_manager *kit_new_manager(void);
void kit_on_closed(void *data); /* counts own.closed */
void kit_close_manager(redlock_manager *manager);
/* Must succeed. */
redlock_lease *kit_acquire(redlock_manager *manager, const char *resource, redlock_acquire_options *options);
/* Returns the code of the result. */
int kit_release(redlock_lease *lease);

#endif
