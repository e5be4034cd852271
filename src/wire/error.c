/* A server's error: its cause, and its text for people. */
#include "wire/error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool redlock_wire_begins_with(const struct redlock_reply_value *error, const char *words) {
    const size_t length = strlen(words);
    return error->size >= length && memcmp(error->bytes, words, length) == 0 &&
           (error->size == length || error->bytes[length] == ' ');
}

enum redlock_cause redlock_wire_cause(const struct redlock_reply_value *reply) {
    static const struct {
        const char *words;
        enum redlock_cause cause;
    } codes[] = {
        {"NOSCRIPT", REDLOCK_CAUSE_NOSCRIPT},
        {"ERR Could not find scripting engine", REDLOCK_CAUSE_NO_LUA}, /* no module for it */
        {"OOM", REDLOCK_CAUSE_OOM},
        {"READONLY", REDLOCK_CAUSE_REPLICA},
        {"MASTERDOWN", REDLOCK_CAUSE_REPLICA},
        {"NOPERM", REDLOCK_CAUSE_NOPERM},
        {"The user executing the script can't", REDLOCK_CAUSE_NOPERM},     /* Redis 6 */
        {"ERR The user executing the script can't", REDLOCK_CAUSE_NOPERM}, /* 7.0 */
        {"ERR ACL failure in script:", REDLOCK_CAUSE_NOPERM},
        {"NOAUTH", REDLOCK_CAUSE_AUTH},
        {"WRONGPASS", REDLOCK_CAUSE_AUTH},
        {"MISCONF", REDLOCK_CAUSE_MISCONF},
        {"NOREPLICAS", REDLOCK_CAUSE_MISCONF},
        {"LOADING", REDLOCK_CAUSE_LOADING},
        {"BUSY", REDLOCK_CAUSE_BUSY},
        {"TRYAGAIN", REDLOCK_CAUSE_BUSY},
        {"ERR max number of clients", REDLOCK_CAUSE_BUSY},
        {"MOVED", REDLOCK_CAUSE_CLUSTER},
        {"ASK", REDLOCK_CAUSE_CLUSTER},
        {"CROSSSLOT", REDLOCK_CAUSE_CLUSTER},
        {"CLUSTERDOWN", REDLOCK_CAUSE_CLUSTER},
    };
    /* Redis before 7 wraps an error that a script met: "ERR Error running script (call to f_…):
     * @user_script:1: -OOM …". */
    static const char in_script[] = "ERR Error running script";
    static const char *const follows[] = {": -", ": The user"};
    if (reply->type != REDLOCK_REPLY_ERROR) {
        return REDLOCK_CAUSE_NONE;
    }
    struct redlock_reply_value error = *reply;
    const bool wrapped = redlock_wire_begins_with(&error, in_script);
    for (size_t i = 0; wrapped && i < sizeof follows / sizeof *follows; i++) {
        const char *code = memmem(error.bytes, error.size, follows[i], strlen(follows[i]));
        if (code != NULL) {
            code += i == 0 ? 3 : 2; /* behind the sign or the space */
            error.size -= (size_t)(code - error.bytes);
            error.bytes = code;
            break;
        }
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (redlock_wire_begins_with(&error, codes[i].words)) {
            return codes[i].cause;
        }
    }
    return REDLOCK_CAUSE_SERVER;
}

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
    assert(error->type == REDLOCK_REPLY_ERROR || error->type == REDLOCK_REPLY_STRING);
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
