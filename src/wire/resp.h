/* Requests as RESP arrays of bulk strings, appended by hand: no printf on the way of a lock. */
#ifndef REDLOCK_WIRE_RESP_H
#define REDLOCK_WIRE_RESP_H

#include <stddef.h>
#include <stdint.h>

/* The most that a header or an integer takes, so that callers can size their buffers. */
#define REDLOCK_RESP_HEADER_SIZE_MAX 24

/* Each returns the end of what it wrote; the caller has made room. */
char *redlock_resp_array(char *at, size_t count);
char *redlock_resp_header(char *at, size_t size); /* of a bulk: its bytes and CR LF are to follow */
char *redlock_resp_bulk(char *at, const char *bytes, size_t size);
char *redlock_resp_integer(char *at, int64_t value);

#endif
