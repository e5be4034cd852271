/* Reads a caller's option struct. */
#include "base/options.h"

#include <string.h>

bool redlock_options_read(void *known, size_t known_size, const void *given, size_t given_size) {
    if (given_size == 0 || given_size > known_size) {
        return false;
    }
    memcpy(known, given, given_size);
    return true;
}
