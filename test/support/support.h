/* The common base of the test helpers: the clock, a fatal error, files and free ports. */
#ifndef TEST_SUPPORT_SUPPORT_H
#define TEST_SUPPORT_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_BOOTTIME, like the library's (R2). */
int64_t support_now_ns(void);
int64_t support_now_ms(void);

/* Ends the program with a message and a failure. Exit handlers run, so servers stop. For errors
 * that no test expects. */
_Noreturn void support_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A short pause between two looks at a condition. No result may depend on its length. */
void support_pause_ms(int ms);

/* A port on 127.0.0.1 (and on ::1 if there is one) that was free a moment ago. */
int support_free_port(void);

/* A listening socket on a free port of 127.0.0.1. */
int support_listen(int *port);

/* Returns the file's text, which the caller frees, or NULL if it cannot be read. */
char *support_read_file(const char *path);
void support_write_file(const char *path, const char *text);

/* Removes a directory with everything in it. */
void support_remove_tree(const char *path);

/* Removes the directory after the death of this process, whatever the cause: a small process waits
 * for it. Call this before any thread starts. */
void support_remove_tree_at_death(const char *path);

#endif
