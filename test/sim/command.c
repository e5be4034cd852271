/* Parses a request. */
#include "command.h"

#include <string.h>

/* A decimal number and CR LF; moves *at behind them. Returns -1 if there is none. */
static inline long number(const char **at, const char *end) {
    long value = 0;
    const char *p = *at;
    for (unsigned digit; p < end && (digit = (unsigned)*p - '0') <= 9 && value < 1000000; p++) {
        value = value * 10 + (long)digit;
    }
    if (p == *at || end - p < 2 || p[0] != '\r' || p[1] != '\n') {
        return -1;
    }
    *at = p + 2;
    return value;
}

size_t sim_command_parse(const char *bytes, size_t size, struct sim_argument arguments[SIM_ARGUMENTS_MAX]) {
    const char *at = bytes, *end = bytes + size;
    if (at == end || *at++ != '*') {
        return 0;
    }
    long count = number(&at, end);
    if (count < 1 || count > SIM_ARGUMENTS_MAX) {
        return 0;
    }
    for (long i = 0; i < count; i++) {
        if (at == end || *at++ != '$') {
            return 0;
        }
        long length = number(&at, end);
        if (length < 0 || end - at < length + 2 || at[length] != '\r' || at[length + 1] != '\n') {
            return 0;
        }
        arguments[i].bytes = at;
        arguments[i].size = (size_t)length;
        at += length + 2;
    }
    return at == end ? (size_t)count : 0;
}
