/* Accessors and copies of results. */
#include "result/result.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/holder.h"

int redlock_result_code(const redlock_result *result) {
    return result->code;
}

redlock_lease *redlock_result_lease(const redlock_result *result) {
    return result->lease;
}

const char *redlock_result_resource(const redlock_result *result) {
    return result->resource;
}

uint64_t redlock_result_attempts(const redlock_result *result) {
    return result->attempts;
}

uint64_t redlock_result_passed_over(const redlock_result *result) {
    return result->passed_over;
}

int64_t redlock_result_waiters(const redlock_result *result) {
    return result->of == REDLOCK_RESULT_INSPECT ? result->waiters : -1;
}

int64_t redlock_result_waited_ms(const redlock_result *result) {
    return result->of == REDLOCK_RESULT_INSPECT ? result->waited_ms : -1;
}

int64_t redlock_result_readers(const redlock_result *result) {
    return result->of == REDLOCK_RESULT_INSPECT ? result->readers : -1;
}

size_t redlock_result_vote_count(const redlock_result *result) {
    return result->count;
}

int redlock_result_vote(const redlock_result *result, size_t index, redlock_vote *vote) {
    struct redlock_error_text nowhere = {0};
    if (redlock_check_struct(&nowhere, "vote", vote) != REDLOCK_OK || index >= result->count) {
        return REDLOCK_ERR_INVALID;
    }
    const struct redlock_result_vote *from = &result->votes[index];
    const redlock_vote full = {.node = from->node,
                               .kind = from->kind,
                               .error = redlock_text_string(from->text),
                               .latency_us = from->latency_us,
                               .holder = from->holder,
                               .holder_ttl_ms = from->holder_ttl_ms,
                               .holder_text = redlock_holder_of_vote(from)};
    redlock_fill_struct(vote, &full, sizeof full);
    return REDLOCK_OK;
}

const char *redlock_holder_of_vote(const struct redlock_result_vote *vote) {
    return vote->holder[0] ? redlock_token_holder(vote->holder) : redlock_holder_of_text(vote->text);
}

static const char *put(char **at, const char *string) {
    const size_t size = strlen(string) + 1;
    char *copy = memcpy(*at, string, size);
    *at += size;
    return copy;
}

redlock_result *redlock_result_copy(const redlock_result *result) {
    assert(result->resource && (result->votes || result->count == 0));
    size_t size = sizeof *result + result->count * (sizeof result->votes[0] + sizeof *result->votes[0].text) +
                  strlen(result->resource) + 1 + (result->reason ? strlen(result->reason) + 1 : 0);
    for (unsigned i = 0; i < result->count; i++) {
        const struct redlock_result_vote *vote = &result->votes[i];
        size += strlen(vote->node) + strlen(redlock_text_string(vote->text)) + strlen(vote->holder) + 3;
    }
    redlock_result *copy = malloc(size);
    if (!copy) {
        return NULL;
    }
    *copy = *result;
    copy->votes = (struct redlock_result_vote *)(copy + 1);
    struct redlock_text *texts = (struct redlock_text *)(copy->votes + result->count);
    char *at = (char *)(texts + result->count);
    copy->resource = put(&at, result->resource);
    copy->reason = result->reason ? put(&at, result->reason) : NULL;
    for (unsigned i = 0; i < result->count; i++) {
        copy->votes[i] = result->votes[i];
        copy->votes[i].node = put(&at, result->votes[i].node);
        texts[i] = (struct redlock_text){.string = put(&at, redlock_text_string(result->votes[i].text)),
                                         .cause = redlock_text_cause(result->votes[i].text)};
        copy->votes[i].text = &texts[i];
        copy->votes[i].holder = put(&at, result->votes[i].holder);
    }
    assert(at == (char *)copy + size);
    return copy;
}

redlock_result *redlock_result_refused(enum redlock_result_of of, const char *resource, int code, const char *reason) {
    assert(code != REDLOCK_OK);
    const redlock_result result = {.code = code,
                                   .of = of,
                                   .resource = resource ? resource : "",
                                   .attempts = 0,
                                   .reason = reason,
                                   .waiters = -1,
                                   .waited_ms = -1,
                                   .readers = -1};
    return redlock_result_copy(&result);
}

void redlock_result_free(redlock_result *result) {
    free(result);
}
