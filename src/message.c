/* The sentence that tells a person what came of a request, what each node that did not grant said, and what to do. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/validity.h"
#include "result.h"
#include "text.h"

/* Where the sentence grows; counts on past the end, as snprintf does. */
struct sentence {
    char *buffer;
    size_t size;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *sentence, const char *format, ...) {
    const size_t used = sentence->length < sentence->size ? sentence->length : sentence->size;
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(sentence->size > used ? sentence->buffer + used : NULL, sentence->size - used, format, arguments);
    va_end(arguments);
    if (length > 0) {
        sentence->length += (size_t)length;
    }
}

static unsigned count_votes(const redlock_result *result, redlock_vote_kind kind) {
    unsigned count = 0;
    for (unsigned i = 0; i < result->count; i++) {
        count += result->votes[i].kind == kind;
    }
    return count;
}

static const char *done_what(enum redlock_result_of of) {
    switch (of) {
    case REDLOCK_RESULT_ACQUIRE:
        return "acquired";
    case REDLOCK_RESULT_EXTEND:
        return "extended";
    case REDLOCK_RESULT_RELEASE:
        return "released";
    case REDLOCK_RESULT_INSPECT:
        return "inspected";
    case REDLOCK_RESULT_CONNECT:
        return "connected";
    }
    return "";
}

static const char *failed_what(enum redlock_result_of of) {
    switch (of) {
    case REDLOCK_RESULT_ACQUIRE:
        return "cannot acquire";
    case REDLOCK_RESULT_EXTEND:
        return "cannot extend";
    case REDLOCK_RESULT_RELEASE:
        return "cannot confirm the release of";
    case REDLOCK_RESULT_INSPECT:
        return "cannot inspect";
    case REDLOCK_RESULT_CONNECT:
        return "cannot connect";
    }
    return "";
}

static void add_subject(struct sentence *sentence, const redlock_result *result) {
    char resource[4 * REDLOCK_RESOURCE_SIZE_MAX + 1];
    if (result->of != REDLOCK_RESULT_CONNECT) {
        redlock_text_printable(result->resource, resource, sizeof resource);
        add(sentence, " '%s'", resource);
    }
}

static const char *granted_word(enum redlock_result_of of) {
    switch (of) {
    case REDLOCK_RESULT_INSPECT:
        return "hold it";
    case REDLOCK_RESULT_CONNECT:
        return "are ready";
    case REDLOCK_RESULT_ACQUIRE:
        return "granted it";
    case REDLOCK_RESULT_EXTEND:
    case REDLOCK_RESULT_RELEASE:
        return "confirmed it";
    }
    return "";
}

static void add_tally(struct sentence *sentence, const redlock_result *result) {
    add(sentence, "%u of %u nodes %s, %u are needed", count_votes(result, REDLOCK_VOTE_GRANTED), result->count,
        granted_word(result->of), redlock_quorum(result->count));
}

/* What was still pending when the round was decided says nothing about the node. */
static void add_votes(struct sentence *sentence, const redlock_result *result) {
    const char *separator = " (";
    for (unsigned i = 0; i < result->count; i++) {
        const struct redlock_result_vote *vote = &result->votes[i];
        if (vote->kind == REDLOCK_VOTE_FAILED || vote->kind == REDLOCK_VOTE_UNKNOWN ||
            (vote->kind == REDLOCK_VOTE_DENIED && vote->error[0])) {
            add(sentence, "%s%s: %s", separator, vote->node, vote->error[0] ? vote->error : "no answer");
            separator = "; ";
        }
    }
    if (separator[0] == ';') {
        add(sentence, ")");
    }
}

static void add_reason(struct sentence *sentence, const redlock_result *result) {
    switch (result->code) {
    case REDLOCK_ERR_CONTENDED:
        add(sentence, "held by others: ");
        add_tally(sentence, result);
        add_votes(sentence, result);
        add(sentence, ". Wait for its release, or wait longer.");
        break;
    case REDLOCK_ERR_NO_QUORUM:
        add(sentence, "no quorum: ");
        add_tally(sentence, result);
        add_votes(sentence, result);
        add(sentence, result->of == REDLOCK_RESULT_RELEASE ? ". The keys that could not be removed end with their ttl."
                                                           : ". Look at these nodes and at the network to them.");
        break;
    case REDLOCK_ERR_TOO_SLOW:
        add(sentence, "too slow: nothing is left of the ttl of %" PRId64 " ms after the time it took and the drift of ",
            result->ttl_ms);
        add(sentence, "%" PRId64 " ms", redlock_drift_ms(result->ttl_ms));
        add_votes(sentence, result);
        add(sentence, ". Ask for a longer ttl.");
        break;
    case REDLOCK_ERR_LOST:
        add(sentence, "it was lost before, expired or taken: ");
        add_tally(sentence, result);
        add_votes(sentence, result);
        add(sentence, ". Work under it may have overlapped with another holder's.");
        break;
    default:
        add(sentence, "%s.", redlock_strerror(result->code));
    }
}

size_t redlock_result_message(const redlock_result *result, char *buffer, size_t size) {
    struct sentence sentence = {.buffer = buffer, .size = buffer ? size : 0};
    if (sentence.size) {
        buffer[0] = '\0';
    }
    if (result->code == REDLOCK_OK) {
        add(&sentence, "%s", done_what(result->of));
        add_subject(&sentence, result);
        add(&sentence, ": ");
        add_tally(&sentence, result);
        add_votes(&sentence, result);
        add(&sentence, ".");
    } else {
        add(&sentence, "%s", failed_what(result->of));
        add_subject(&sentence, result);
        add(&sentence, ": ");
        add_reason(&sentence, result);
    }
    return sentence.length;
}
