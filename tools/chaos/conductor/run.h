/* The conductor: starts everything, lets the schedule happen, ends everything, and judges what was
 * written down. */
#ifndef CHAOS_RUN_H
#define CHAOS_RUN_H

#include "conductor/options.h"
#include "history/history.h"

/* The exit status; *interrupted: a signal ended it early. */
int chaos_run(const struct chaos_options *options, bool *interrupted);
/* Reads DIRECTORY/history.jsonl. False: said why. */
bool chaos_load(const char *directory, struct chaos_history *history);
/* Judges DIRECTORY/history.jsonl: the verdict on standard output; the page beside it if with_page.
 * The exit status. */
int chaos_judge(const char *directory, int64_t slack_ms, bool with_page);

/* What judging a run and a comparison share. */

/* Says what cannot be done with which file, and why. CHAOS_EXIT_BROKEN. */
int chaos_complain(const char *what, const char *path, const char *why);
/* Writes DIRECTORY/report.html by write(page, what). The exit status; said why if it is not
 * CHAOS_EXIT_CLEAN. */
int chaos_write_page(const char *directory, bool (*write)(FILE *page, const void *what), const void *what);

#endif
