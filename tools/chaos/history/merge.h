/* Joins the processes' files of events into one, by time. */
#ifndef CHAOS_MERGE_H
#define CHAOS_MERGE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Joins `count` files into out_path, which is replaced. Lines without their newline (a killed
 * process's last) are left out. False with a sentence.
 */
bool chaos_merge(const char *const *paths, size_t count, const char *out_path, char *error, size_t error_size);

#endif
