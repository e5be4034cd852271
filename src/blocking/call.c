/* A blocking call, and the sentence about an invalid argument, for calls without a result. */
#include "blocking/call.h"

#include <assert.h>
#include <stdio.h>

/* Each thread has its own, so that no call of another thread replaces it. */
struct redlock_error_text redlock_call_failure(void) {
    static _Thread_local char sentence[REDLOCK_INVALID_SIZE];
    return (struct redlock_error_text){sentence, sizeof sentence};
}

size_t redlock_client_invalid(redlock_client *client, char *buffer, size_t size) {
    (void)client;
    return (size_t)snprintf(buffer, size, "%s", redlock_call_failure().text);
}

struct redlock_call redlock_call_of(int (*begin)(struct redlock_call *call), enum redlock_result_of of,
                                    const char *resource, redlock_result **result) {
    if (result != NULL) {
        *result = NULL;
    }
    return (struct redlock_call){
        .begin = begin, .answers = true, .of = of, .resource = resource != NULL ? resource : "", .result = result};
}

int redlock_call_refuse(struct redlock_call *call, int code, const char *reason) {
    const bool is_invalid = code == REDLOCK_ERR_INVALID;
    assert(code != REDLOCK_OK && (reason != NULL || !is_invalid));
    char *sentence = call->sentence != NULL ? call->sentence : redlock_call_failure().text;
    call->code = code;
    if (is_invalid && reason != sentence) {
        (void)snprintf(sentence, REDLOCK_INVALID_SIZE, "%s", reason);
    }
    if (call->result != NULL && call->resource != NULL && (is_invalid || code == REDLOCK_ERR_CANCELLED)) {
        *call->result = redlock_result_refused(call->of, call->resource, code, is_invalid ? reason : NULL);
    }
    return code;
}
