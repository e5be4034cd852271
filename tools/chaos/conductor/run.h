/* The conductor: starts everything, lets the schedule happen, ends everything, and judges what was
 * written down. */
#ifndef CHAOS_RUN_H
#define CHAOS_RUN_H

#include "conductor/options.h"

/* The exit status; *interrupted: a signal ended it early. */
int chaos_run(const struct chaos_options *options, bool *interrupted);
/* Runs it three times, without protection, with fencing tokens, and with guards as well, each in a
 * directory of its own within one. The exit status: clean if the comparison holds. */
int chaos_compare(const struct chaos_options *options);
/* Judges DIRECTORY/history.jsonl, or the three histories of a comparison: the verdict on standard
 * output; the page beside it if with_page; Porcupine's verdict, too, if with_porcupine. The exit
 * status. */
int chaos_judge(const char *directory, int64_t slack_ms, bool with_page, bool with_porcupine);
/* Asks the run in DIRECTORY for a fault by hand. False with a sentence. */
bool chaos_control_ask(const char *directory, const char *line, struct chaos_error *error);

#endif
