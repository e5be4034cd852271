/* The queue of a way through the delaying proxy. */
#include "delay_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PIECES_WANTED 64
#define ROOM_AT_FIRST 4 /* times what is wanted, so that moving pays */

/*
 * Makes room for `wanted` elements, by moving the used ones to the front or by growing. At the bound it moves only where
 * that pays; less than is wanted may be free then, or nothing.
 */
static bool make_room(void **array, size_t element, struct delay_span *used, size_t wanted, size_t bound) {
    size_t count = used->last - used->first;
    if (count == 0) {
        used->first = used->last = 0;
    }
    if (used->room - used->last >= wanted) {
        return true;
    }
    if (count <= used->room / 2 ? used->first > 0 : used->room >= bound && used->first >= wanted) {
        memmove(*array, (char *)*array + used->first * element, count * element);
        used->first = 0;
        used->last = count;
    }
    if (used->room - used->last < wanted && used->room < bound) {
        size_t room = used->room == 0 ? ROOM_AT_FIRST * wanted : 2 * used->room;
        void *larger = realloc(*array, room * element);
        if (larger != NULL) {
            *array = larger;
            used->room = room;
        }
    }
    return used->last < used->room;
}

void delay_queue_clear(struct delay_queue *queue) {
    free(queue->bytes);
    free(queue->pieces);
    *queue = (struct delay_queue){0};
}

char *delay_queue_room(struct delay_queue *queue, size_t *size) {
    void *bytes = queue->bytes, *pieces = queue->pieces;
    bool both = make_room(&bytes, 1, &queue->bytes_used, DELAY_QUEUE_READ_SIZE, DELAY_QUEUE_BYTES_MAX);
    both =
        make_room(&pieces, sizeof *queue->pieces, &queue->pieces_used, PIECES_WANTED, DELAY_QUEUE_PIECES_MAX) && both;
    queue->bytes = bytes;
    queue->pieces = pieces;
    *size = both ? queue->bytes_used.room - queue->bytes_used.last : 0;
    return both ? queue->bytes + queue->bytes_used.last : NULL;
}

static bool is_empty(const struct delay_queue *queue) {
    return queue->pieces_used.first == queue->pieces_used.last;
}

/* The last of those that wait, or NULL. */
static struct delay_piece *last_piece(const struct delay_queue *queue) {
    return is_empty(queue) ? NULL : &queue->pieces[queue->pieces_used.last - 1];
}

void delay_queue_came(struct delay_queue *queue, size_t size, int64_t due_ns) {
    struct delay_piece *last = last_piece(queue);
    assert(size > 0 && size <= queue->bytes_used.room - queue->bytes_used.last);
    queue->bytes_used.last += size;
    if (last != NULL && due_ns <= last->due_ns) {
        last->size += size;
        return;
    }
    assert(queue->pieces_used.last < queue->pieces_used.room);
    queue->pieces[queue->pieces_used.last++] = (struct delay_piece){.due_ns = due_ns, .size = size};
}

void delay_queue_ends(struct delay_queue *queue, enum delay_end end, int64_t due_ns) {
    const struct delay_piece *last = last_piece(queue);
    if (queue->end >= end) {
        return;
    }
    queue->end = end;
    queue->end_taken = false;
    queue->end_ns = last != NULL && last->due_ns > due_ns ? last->due_ns : due_ns;
}

size_t delay_queue_due(const struct delay_queue *queue, int64_t now_ns, const char **bytes) {
    size_t size = 0;
    for (size_t i = queue->pieces_used.first; i < queue->pieces_used.last && queue->pieces[i].due_ns <= now_ns; i++) {
        size += queue->pieces[i].size;
    }
    *bytes = size > 0 ? queue->bytes + queue->bytes_used.first : NULL;
    return size;
}

void delay_queue_left(struct delay_queue *queue, size_t size) {
    assert(size <= queue->bytes_used.last - queue->bytes_used.first);
    queue->bytes_used.first += size;
    while (size > 0) {
        struct delay_piece *piece = &queue->pieces[queue->pieces_used.first];
        size_t part = size < piece->size ? size : piece->size;
        piece->size -= part;
        size -= part;
        if (piece->size == 0) {
            queue->pieces_used.first++;
        }
    }
}

int64_t delay_queue_end_ns(const struct delay_queue *queue) {
    bool waits = queue->end == DELAY_END_RESET || (queue->end == DELAY_END_FIN && is_empty(queue));
    return waits && !queue->end_taken ? queue->end_ns : DELAY_NEVER_NS;
}

enum delay_end delay_queue_take_end(struct delay_queue *queue, int64_t now_ns) {
    if (delay_queue_end_ns(queue) > now_ns) {
        return DELAY_END_NONE;
    }
    queue->end_taken = true;
    return queue->end;
}

int64_t delay_queue_next_ns(const struct delay_queue *queue) {
    return is_empty(queue) ? delay_queue_end_ns(queue) : queue->pieces[queue->pieces_used.first].due_ns;
}
