/* How the parts of the handshake speak: commands, warnings, reasons. */
#include "server/handshake_state.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/resp.h"

void redlock_handshake_warn(struct redlock_handshake *handshake, const char *format, ...) {
    size_t used = strlen(handshake->warning);
    va_list arguments;
    if (used > 0 && used + 3 < sizeof handshake->warning) {
        memcpy(handshake->warning + used, "; ", 3);
        used += 2;
    }
    va_start(arguments, format);
    (void)vsnprintf(handshake->warning + used, sizeof handshake->warning - used, format, arguments);
    va_end(arguments);
}

enum redlock_handshake_state redlock_handshake_refuse(struct redlock_handshake *handshake,
                                                      enum redlock_handshake_state state, enum redlock_cause cause,
                                                      const char *format, ...) {
    va_list arguments;
    assert(state == REDLOCK_HANDSHAKE_RETRY || state == REDLOCK_HANDSHAKE_UNUSABLE);
    handshake->cause = cause;
    va_start(arguments, format);
    (void)vsnprintf(handshake->reason, sizeof handshake->reason, format, arguments);
    va_end(arguments);
    return state;
}

bool redlock_handshake_say_words(struct redlock_outbox *outbox, const char *const *words, size_t count) {
    char header[REDLOCK_RESP_HEADER_SIZE_MAX];
    if (!redlock_outbox_append(outbox, header, (size_t)(redlock_resp_array(header, count) - header))) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(words[i]);
        if (!redlock_outbox_append(outbox, header, (size_t)(redlock_resp_header(header, size) - header)) ||
            !redlock_outbox_append(outbox, words[i], size) || !redlock_outbox_append(outbox, "\r\n", 2)) {
            return false;
        }
    }
    return true;
}

bool redlock_handshake_say(struct redlock_outbox *outbox, const char *const words[4]) {
    assert(words[0] != NULL);
    size_t count = 0;
    while (count < 4 && words[count] != NULL) {
        count++;
    }
    return redlock_handshake_say_words(outbox, words, count);
}

void redlock_handshake_error(const struct redlock_handshake *handshake, const struct redlock_reply *reply,
                             char text[REDLOCK_WIRE_ERROR_SIZE]) {
    text[0] = '\0';
    if (reply->value.type == REDLOCK_REPLY_ERROR) {
        (void)redlock_wire_error(&reply->value, handshake->told.credentials->password, text);
    }
}

enum redlock_handshake_state redlock_handshake_no_lua(struct redlock_handshake *handshake,
                                                      const struct redlock_reply *reply) {
    char error[REDLOCK_WIRE_ERROR_SIZE];
    redlock_handshake_error(handshake, reply, error);
    return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA,
                                    "the server runs no Lua scripts (%s), and a node must: load its Lua module, which "
                                    "Valkey has from 9.1 on",
                                    error);
}
