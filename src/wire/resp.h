/* Requests as RESP arrays of bulk strings, written without printf for speed. */
#ifndef REDLOCK_WIRE_RESP_H
#define REDLOCK_WIRE_RESP_H

#include <assert.h>
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

static inline char *redlock_resp_integer(char *at, int64_t number) {
    assert(number >= 0);
    return redlock_resp_number(at, (uint64_t)number);
}

#endif
