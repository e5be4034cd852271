/* The sentence about an invalid argument, for calls without a result. Each thread has its own, so
 * that no call of another thread replaces it. */
#include <stdio.h>

#include "blocking/client.h"

struct redlock_error_text redlock_client_failure(void) {
    static _Thread_local char sentence[REDLOCK_INVALID_SIZE];
    return (struct redlock_error_text){sentence, sizeof sentence};
}

size_t redlock_client_invalid(redlock_client *client, char *buffer, size_t size) {
    (void)client;
    return (size_t)snprintf(buffer, size, "%s", redlock_client_failure().text);
}
