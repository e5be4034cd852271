/* Requests as RESP arrays of bulk strings, written without printf for speed. */
#ifndef REDLOCK_WIRE_RESP_H
#define REDLOCK_WIRE_RESP_H

#include <stddef.h>
#include <stdint.h>

/* The most bytes that a header takes. Callers size their buffers by it. */
#define REDLOCK_RESP_HEADER_SIZE_MAX 24

/* Each returns the end of what it wrote. The caller provides the room. */
char *redlock_resp_array(char *at, size_t count);
/* Starts a bulk string. The caller appends its bytes and CR LF. */
char *redlock_resp_header(char *at, size_t size);
char *redlock_resp_bulk(char *at, const char *bytes, size_t size);
char *redlock_resp_number(char *at, uint64_t number);
char *redlock_resp_negative(char *at, uint64_t magnitude);

static inline char *redlock_resp_integer(char *at, int64_t value) {
    return value >= 0 ? redlock_resp_number(at, (uint64_t)value) : redlock_resp_negative(at, 0 - (uint64_t)value);
}

#endif
