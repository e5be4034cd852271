/* Bytes on their way: what came, in order, and when each piece of it may leave. No I/O, no clock. */
#ifndef BENCH_DELAY_QUEUE_H
#define BENCH_DELAY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELAY_NEVER_NS         INT64_MAX
#define DELAY_QUEUE_READ_SIZE  16384 /* that much is asked for in one read, or more */
#define DELAY_QUEUE_BYTES_MAX  (64 * DELAY_QUEUE_READ_SIZE)
#define DELAY_QUEUE_PIECES_MAX 32768

/* What follows the last byte. */
enum delay_end { DELAY_END_NONE, DELAY_END_FIN, DELAY_END_RESET };

struct delay_piece {
    int64_t due_ns;
    size_t size;
};

/* An array that is used from first to last - 1, and grows up to a bound. */
struct delay_span {
    size_t first, last, room;
};

/* Zeroed is empty. */
struct delay_queue {
    char *bytes;
    struct delay_piece *pieces;
    struct delay_span bytes_used, pieces_used;
    enum delay_end end;
    bool end_taken;
    int64_t end_ns;
};

void delay_queue_clear(struct delay_queue *queue);

/* Where the next bytes may be put, *size of them; NULL where a bound is reached (until more has left), or memory is out. */
char *delay_queue_room(struct delay_queue *queue, size_t *size);

/* So many bytes were put there, and leave at due_ns; but never before those that came earlier, as the delay may have changed. */
void delay_queue_came(struct delay_queue *queue, size_t size, int64_t due_ns);

/* Nothing comes any more. A reset overrules a FIN, even one that was taken. */
void delay_queue_ends(struct delay_queue *queue, enum delay_end end, int64_t due_ns);

/* The bytes that may leave by now: their number, 0 for none. */
size_t delay_queue_due(const struct delay_queue *queue, int64_t now_ns, const char **bytes);

/* So many of those have left. */
void delay_queue_left(struct delay_queue *queue, size_t size);

/* When the end may be passed on: a FIN after all bytes; a reset at its time, even if nobody takes the bytes before it. */
int64_t delay_queue_end_ns(const struct delay_queue *queue);

/* The end, once, when it is due; else DELAY_END_NONE. */
enum delay_end delay_queue_take_end(struct delay_queue *queue, int64_t now_ns);

/* When something is due next, bytes or the end; DELAY_NEVER_NS for nothing. */
int64_t delay_queue_next_ns(const struct delay_queue *queue);

#endif
