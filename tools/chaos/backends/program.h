/* Programs that are run for what they say. */
#ifndef CHAOS_PROGRAM_H
#define CHAOS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a program said, its errors too; what is more than this is dropped. */
struct chaos_said {
    /* Its exit status; 128 + n: signal n; CHAOS_CANNOT_RUN; CHAOS_SAID_LATE: it took too long and
     * was killed. */
    int status;
    char text[32768];
};
enum { CHAOS_CANNOT_RUN = 127, CHAOS_SAID_LATE = 256 };

/*
 * Runs argv, found in PATH, for limit_ms at most, and waits for its end. In its environment are
 * `more`, "NAME=value"… up to a NULL, besides ours. out_fd: where its words go instead of into
 * `said`; -1 for none.
 */
void chaos_program_run(const char *const *argv, const char *const *more, int out_fd, int64_t limit_ms,
                       struct chaos_said *said);
/* In a child, before it becomes a program, which says its words to `out`: it inherits neither
 * what we block or ignore nor our terminal, and dies with us. */
bool chaos_program_begin(pid_t parent, int out);
/* The line that says what was wrong; cuts it out of said->text. */
const char *chaos_said_why(struct chaos_said *said);

/* For a loop that waits: sleeps 2 ms. False, at once, if the time is over. */
bool chaos_wait(int64_t deadline_ms);

#endif
