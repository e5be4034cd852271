/* A server's error as text for people. */
#include "wire/error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Searches the raw bytes, before they are cut or made printable. */
static bool quotes(const struct redlock_reply_value *error, const char *password) {
    const size_t size = password == NULL ? 0 : strlen(password);
    return size > 0 && error->size >= size && memmem(error->bytes, error->size, password, size) != NULL;
}

size_t redlock_wire_error(const struct redlock_reply_value *error, const char *password,
                          char buffer[REDLOCK_WIRE_ERROR_SIZE]) {
    /* A server quotes the arguments of an unknown command: a token or a password may be among
     * them. */
    static const char arguments[] = ", with args beginning with";
    if (quotes(error, password)) {
        return (size_t)snprintf(buffer, REDLOCK_WIRE_ERROR_SIZE, "an error that quotes the password");
    }
    size_t size = error->size < REDLOCK_WIRE_ERROR_SIZE ? error->size : REDLOCK_WIRE_ERROR_SIZE - 1;
    const char *echoed = error->size == 0 ? NULL : memmem(error->bytes, error->size, arguments, sizeof arguments - 1);
    if (echoed != NULL && (size_t)(echoed - error->bytes) < size) {
        size = (size_t)(echoed - error->bytes);
    }
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)error->bytes[i];
        buffer[i] = byte < 0x20 || byte >= 0x7f ? '?' : (char)byte;
    }
    assert(size < REDLOCK_WIRE_ERROR_SIZE);
    buffer[size] = '\0';
    return size;
}
