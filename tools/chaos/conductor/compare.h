/* One schedule three times: without protection, with fencing tokens, with guards as well; and what
 * that shows. */
#ifndef CHAOS_COMPARE_H
#define CHAOS_COMPARE_H

#include "conductor/options.h"

/* Runs all three, each in a directory of its own within one. The exit status: clean if the
 * comparison holds. */
int chaos_compare(const struct chaos_options *options);
/* Whether a directory is that of a comparison. */
bool chaos_is_comparison(const char *directory);
/* Judges its three histories again: table and words on standard output; the page beside them if
 * with_page. The exit status. */
int chaos_judge_comparison(const char *directory, int64_t slack_ms, bool with_page);

#endif
