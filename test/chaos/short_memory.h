/* Memory that runs out, in a process of its own. */
#ifndef TEST_CHAOS_SHORT_MEMORY_H
#define TEST_CHAOS_SHORT_MEMORY_H

#include <stddef.h>

enum short_end {
    SHORT_ENOUGH,   /* it asked for memory less often */
    SHORT_SURVIVED, /* it worked all the same */
    SHORT_TOLD,     /* it said that it failed */
    SHORT_ENDED,    /* it ended its process with the sentence and status of chaos_no_memory() */
    SHORT_WRONG     /* anything else: the test fails */
};

/* Runs the work in a process of its own, in which one allocation fails: the at-th, from 1. The work
 * returns SHORT_ENOUGH if it worked, else SHORT_TOLD or SHORT_WRONG; it uses no assertion of
 * cmocka. */
enum short_end short_run(long at, enum short_end (*work)(void *what), void *what);

#endif
