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

static const struct redlock_result_others *others_of(const redlock_result *result) {
    static const struct redlock_result_others unknown = {.waiters = -1, .waited_ms = -1, .readers = -1};
    return result->others ? result->others : &unknown;
}

int64_t redlock_result_waiters(const redlock_result *result) {
    return others_of(result)->waiters;
}

int64_t redlock_result_waited_ms(const redlock_result *result) {
    return others_of(result)->waited_ms;
}

int64_t redlock_result_readers(const redlock_result *result) {
    return others_of(result)->readers;
}

int redlock_result_reader(const redlock_result *result, size_t index, redlock_lock_reader *reader) {
    const struct redlock_result_others *others = others_of(result);
    struct redlock_error_text nowhere = {0};
    if (redlock_check_struct(&nowhere, "reader", reader) != REDLOCK_OK || index >= others->named_readers) {
        return REDLOCK_ERR_INVALID;
    }
    const struct redlock_result_name *from = &others->named[index];
    const redlock_lock_reader full = {.token = from->token,
                                      .holder_text = redlock_token_holder(from->token),
                                      .nodes = from->nodes,
                                      .ttl_ms = from->ms};
    redlock_fill_struct(reader, &full, sizeof full);
    return REDLOCK_OK;
}

int redlock_result_waiter(const redlock_result *result, size_t index, redlock_lock_waiter *waiter) {
    const struct redlock_result_others *others = others_of(result);
    struct redlock_error_text nowhere = {0};
    if (redlock_check_struct(&nowhere, "waiter", waiter) != REDLOCK_OK ||
        index >= others->named_count - others->named_readers) {
        return REDLOCK_ERR_INVALID;
    }
    const struct redlock_result_name *from = &others->named[others->named_readers + index];
    const redlock_lock_waiter full = {.token = from->token,
                                      .holder_text = redlock_token_holder(from->token),
                                      .nodes = from->nodes,
                                      .waited_ms = from->ms,
                                      .reads = redlock_holder_reads(from->token, strlen(from->token))};
    redlock_fill_struct(waiter, &full, sizeof full);
    return REDLOCK_OK;
}

size_t redlock_result_vote_count(const redlock_result *result) {
    return result->count;
}

static const struct redlock_result_holder *holder_at(const redlock_result *result, size_t index) {
    static const struct redlock_result_holder nobody = {.token = "", .ttl_ms = -1};
    assert(index < result->count);
    return result->holders ? &result->holders[index] : &nobody;
}

int redlock_result_vote(const redlock_result *result, size_t index, redlock_vote *vote) {
    struct redlock_error_text nowhere = {0};
    if (redlock_check_struct(&nowhere, "vote", vote) != REDLOCK_OK || index >= result->count) {
        return REDLOCK_ERR_INVALID;
    }
    const struct redlock_result_vote *from = &result->votes[index];
    const redlock_vote full = {.node = result->nodes[index],
                               .kind = (redlock_vote_kind)from->kind,
                               .error = redlock_text_string(from->text),
                               .latency_us = from->latency_us,
                               .holder = holder_at(result, index)->token,
                               .holder_ttl_ms = holder_at(result, index)->ttl_ms,
                               .holder_text = redlock_result_holder_at(result, index),
                               .readers = holder_at(result, index)->readers};
    redlock_fill_struct(vote, &full, sizeof full);
    return REDLOCK_OK;
}

const char *redlock_result_holder_at(const redlock_result *result, size_t index) {
    const char *token = holder_at(result, index)->token;
    return token[0] ? redlock_token_holder(token) : redlock_holder_of_text(result->votes[index].text);
}

static const char *put(char **at, const char *string) {
    const size_t size = strlen(string) + 1;
    char *copy = memcpy(*at, string, size);
    *at += size;
    return copy;
}

/* The bytes of the strings of a copy. */
static size_t strings_size(const redlock_result *result) {
    size_t size = strlen(result->resource) + 1 + (result->reason ? strlen(result->reason) + 1 : 0);
    for (unsigned i = 0; i < result->count; i++) {
        size += strlen(result->nodes[i]) + strlen(redlock_text_string(result->votes[i].text)) +
                strlen(holder_at(result, i)->token) + 3;
    }
    for (size_t i = 0; i < others_of(result)->named_count; i++) {
        size += strlen(others_of(result)->named[i].token) + 1;
    }
    return size;
}

redlock_result *redlock_result_copy(const redlock_result *result) {
    assert(result->resource && (result->votes || result->count == 0));
    const size_t count = result->count, named_count = others_of(result)->named_count;
    struct redlock_result_others *others;
    struct redlock_text *texts;
    struct redlock_result_holder *holders;
    const char **nodes;
    const size_t size = sizeof *result + sizeof *others +
                        count * (sizeof *texts + sizeof *holders + sizeof *nodes + sizeof *result->votes) +
                        named_count * sizeof *others->named + strings_size(result);
    redlock_result *copy = malloc(size);
    if (!copy) {
        return NULL;
    }
    *copy = *result;
    others = (struct redlock_result_others *)(copy + 1);
    *others = *others_of(result);
    texts = (struct redlock_text *)(others + 1);
    holders = (struct redlock_result_holder *)(texts + count);
    nodes = (const char **)(holders + count);
    copy->votes = (struct redlock_result_vote *)(nodes + count);
    copy->holders = holders;
    copy->nodes = nodes;
    copy->others = others;
    others->named = (struct redlock_result_name *)(copy->votes + count);
    char *at = (char *)(others->named + named_count);
    copy->resource = put(&at, result->resource);
    copy->reason = result->reason ? put(&at, result->reason) : NULL;
    for (unsigned i = 0; i < count; i++) {
        const struct redlock_text *text = result->votes[i].text;
        texts[i] =
            (struct redlock_text){.string = put(&at, redlock_text_string(text)), .cause = redlock_text_cause(text)};
        holders[i] = (struct redlock_result_holder){.token = put(&at, holder_at(result, i)->token),
                                                    .ttl_ms = holder_at(result, i)->ttl_ms,
                                                    .readers = holder_at(result, i)->readers};
        nodes[i] = put(&at, result->nodes[i]);
        copy->votes[i] = result->votes[i];
        copy->votes[i].text = &texts[i];
    }
    for (size_t i = 0; i < named_count; i++) {
        others->named[i] = result->others->named[i];
        others->named[i].token = put(&at, result->others->named[i].token);
    }
    assert(at == (char *)copy + size);
    return copy;
}

redlock_result *redlock_result_refused(enum redlock_result_of of, const char *resource, int code, const char *reason) {
    assert(code != REDLOCK_OK);
    const redlock_result result = {
        .code = code, .of = of, .resource = resource ? resource : "", .attempts = 0, .reason = reason};
    return redlock_result_copy(&result);
}

void redlock_result_free(redlock_result *result) {
    free(result);
}
