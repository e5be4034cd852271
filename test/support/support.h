/* What all test helpers need: the clock, an end with a message, files and free ports. */
#ifndef TEST_SUPPORT_SUPPORT_H
#define TEST_SUPPORT_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_BOOTTIME, as the library's (R2). */
int64_t support_now_ns(void);
int64_t support_now_ms(void);

/* Ends the program with a message and a failure; exit handlers run, so servers stop. For what no test expects to fail. */
_Noreturn void support_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Lets a little time pass between two looks at a condition. Nothing may depend on how much. */
void support_pause_ms(int ms);

/* A port on 127.0.0.1 (and ::1, where there is one) that was free a moment ago. */
int support_free_port(void);

/* A listening socket on a free port of 127.0.0.1. */
int support_listen(int *port);

/* The file's text, to be freed; NULL if it cannot be read. */
char *support_read_file(const char *path);
void support_write_file(const char *path, const char *text);

/* Removes a directory with all that is in it. */
void support_remove_tree(const char *path);

/*
 * Has the directory removed once this process is dead, however it died: by a small process that waits for that. Call it
 * before there are threads.
 */
void support_remove_tree_at_death(const char *path);

#endif
