/* JSON lines, written: one file a process, one write a line, so that a killed process leaves whole
 * lines. */
#ifndef CHAOS_LOG_H
#define CHAOS_LOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct chaos_log {
    int fd;
    /* a failure does not end the process, but is kept, and nothing is written any more */
    bool goes_on;
    char error[160]; /* a sentence; "" for none */
};

/* Ends the process with a sentence and CHAOS_STATUS_BROKEN: nothing that it says later could be
 * relied on, and what it has written is whole. */
enum { CHAOS_STATUS_BROKEN = 70 };
_Noreturn void chaos_break_off(const char *who, const char *what, const char *why);

/* Appends to the file, which is made if it is not there. False with errno. */
bool chaos_log_open(struct chaos_log *log, const char *path);
void chaos_log_close(struct chaos_log *log);
/* A list of the numbers of the bits, from 1; to be taken over by an event. */
json_t *chaos_log_numbers(uint64_t bits);
/*
 * One event at time t_us: the members by a format of json_pack() for an object, without its braces:
 * chaos_log_event(log, now_us, "spawn", "s:i,s:I", "client", 3, "pid", pid). A failure (disk full,
 * no memory) ends the process with a message and status 70, unless goes_on is set: a history with
 * holes proves nothing.
 */
void chaos_log_event(struct chaos_log *log, int64_t t_us, const char *event, const char *format, ...);

#endif
