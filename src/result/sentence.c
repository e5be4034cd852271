/* The sentence that tells a person the result, what each node said that did not grant, and what to
 * do. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/time.h"
#include "result/result.h"

/* The buffer being filled. Like snprintf(), `length` counts on past the end. */
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

static const struct {
    const char *done, *failed, *granted;
} words[] = {
    [REDLOCK_RESULT_ACQUIRE] = {"acquired", "cannot acquire", "granted it"},
    [REDLOCK_RESULT_EXTEND] = {"extended", "cannot extend", "confirmed it"},
    [REDLOCK_RESULT_RELEASE] = {"released", "cannot release", "confirmed it"},
    [REDLOCK_RESULT_INSPECT] = {"inspected", "cannot inspect", "hold it"},
    [REDLOCK_RESULT_CONNECT] = {"connected", "cannot connect", "are ready"},
    [REDLOCK_RESULT_LIST] = {"listed the locks", "cannot list the locks", "named their locks"},
};

static void add_subject(struct sentence *sentence, const redlock_result *result) {
    char resource[4 * REDLOCK_RESOURCE_SIZE_MAX + 1];
    if (result->of != REDLOCK_RESULT_CONNECT && result->of != REDLOCK_RESULT_LIST) {
        redlock_text_printable(result->resource, resource, sizeof resource);
        add(sentence, " '%s'", resource);
    }
}

/* An inspection needs answers, not holders. */
static void add_tally(struct sentence *sentence, const redlock_result *result) {
    assert(result->of < sizeof words / sizeof *words);
    const bool lacks_answers = result->of == REDLOCK_RESULT_INSPECT && result->code != REDLOCK_OK;
    add(sentence, "%u of %u nodes %s, %u are needed",
        count_votes(result, REDLOCK_VOTE_GRANTED) + (lacks_answers ? count_votes(result, REDLOCK_VOTE_DENIED) : 0),
        result->count, lacks_answers ? "answered" : words[result->of].granted, result->quorum);
    const unsigned pending = count_votes(result, REDLOCK_VOTE_PENDING);
    if (pending > 0 && result->code != REDLOCK_OK) {
        add(sentence, ", %u had not answered yet", pending);
    }
}

/* A vote that was pending when the round was decided says nothing about its node. */
static const char *complaint(const struct redlock_result_vote *vote) {
    const char *text = redlock_text_string(vote->text);
    switch (vote->kind) {
    case REDLOCK_VOTE_FAILED:
    case REDLOCK_VOTE_UNKNOWN:
        return text[0] ? text : "no answer";
    case REDLOCK_VOTE_DENIED:
    case REDLOCK_VOTE_ABSTAINED:
        return text[0] ? text : NULL;
    case REDLOCK_VOTE_PENDING:
    case REDLOCK_VOTE_GRANTED:
        break;
    }
    return NULL;
}

static enum redlock_cause cause_of(const struct redlock_result_vote *vote) {
    return complaint(vote) ? redlock_text_cause(vote->text) : REDLOCK_CAUSE_NONE;
}

static bool is_said_before(const redlock_result *result, unsigned index, const char *text) {
    assert(index < result->count);
    for (unsigned i = 0; i < index; i++) {
        const char *other = complaint(&result->votes[i]);
        if (other && strcmp(other, text) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds " (a, b: connection refused; c: no answer within 50 ms)": each text once, with all its
 * nodes. */
static void add_votes(struct sentence *sentence, const redlock_result *result) {
    const char *separator = " (";
    for (unsigned i = 0; i < result->count; i++) {
        const char *text = complaint(&result->votes[i]);
        if (!text || is_said_before(result, i, text)) {
            continue;
        }
        add(sentence, "%s%s", separator, result->nodes[i]);
        for (unsigned k = i + 1; k < result->count; k++) {
            const char *other = complaint(&result->votes[k]);
            if (other && strcmp(other, text) == 0) {
                add(sentence, ", %s", result->nodes[k]);
            }
        }
        add(sentence, ": %s", text);
        separator = "; ";
    }
    if (separator[0] == ';') {
        add(sentence, ")");
    }
}

/* Waiting for nodes in quarantine helps only if they complete a quorum. */
static bool would_be_quorum(const redlock_result *result) {
    unsigned count = 0;
    for (unsigned i = 0; i < result->count; i++) {
        const redlock_vote_kind kind = result->votes[i].kind;
        count += kind == REDLOCK_VOTE_GRANTED || kind == REDLOCK_VOTE_DENIED || kind == REDLOCK_VOTE_PENDING ||
                 cause_of(&result->votes[i]) == REDLOCK_CAUSE_QUARANTINE;
    }
    return count >= result->quorum;
}

static bool is_cause(const redlock_result *result, enum redlock_cause cause) {
    for (unsigned i = 0; i < result->count; i++) {
        if (cause_of(&result->votes[i]) == cause) {
            return cause != REDLOCK_CAUSE_QUARANTINE || would_be_quorum(result);
        }
    }
    return false;
}

#define TIMEOUT_ADVICE                                                                                                 \
    "Look at these nodes and at the network to them. If they are slow or far away, give a longer node_timeout_ms "     \
    "(--node-timeout)."

/* Returns what to do. The list is in the order in which to fix the causes. */
static const char *advice(const redlock_result *result) {
    static const struct {
        enum redlock_cause cause;
        const char *advice;
    } list[] = {
        {REDLOCK_CAUSE_AUTH,
         "Check user and password in the nodes' URIs: redis://USER:PASSWORD@HOST, or redis://:PASSWORD@HOST."},
        {REDLOCK_CAUSE_DATABASE,
         "Correct the database in the nodes' URIs (redis://HOST:PORT/NUMBER), or leave it out for 0."},
        {REDLOCK_CAUSE_TLS, "Check the certificates and the TLS settings of these nodes and of this client: "
                            "docs/operations.md, \"TLS\"."},
        {REDLOCK_CAUSE_NOPERM,
         "The ACL user lacks a command or the key's pattern: docs/operations.md lists what a lock needs."},
        {REDLOCK_CAUSE_REPLICA, "Correct the list of nodes: each must be a primary of its own."},
        {REDLOCK_CAUSE_SAME_SERVER, "Correct the list of nodes: each must be a server of its own."},
        {REDLOCK_CAUSE_QUARANTINE,
         "Wait until enough nodes may vote again: redlock status with the same guards shows when. Restart nodes "
         "one at a time."},
        {REDLOCK_CAUSE_NO_LUA, "A node must run Lua scripts (EVAL, EVALSHA) and the commands in them: Valkey 9.1 and "
                               "later need their Lua module loaded."},
        {REDLOCK_CAUSE_CLUSTER, "These nodes are parts of a cluster, which sends keys elsewhere: each node must be a "
                                "server of its own, without cluster mode."},
        {REDLOCK_CAUSE_OOM, "The nodes' memory is full: see maxmemory."},
        {REDLOCK_CAUSE_LOADING, "Wait until these nodes have loaded their data."},
        {REDLOCK_CAUSE_BUSY, "Wait: these nodes are busy. If that stays, look at their slow log and at maxclients."},
        {REDLOCK_CAUSE_NOT_A_NODE, "Correct the list of nodes: each must be a Redis or Valkey server, reached without "
                                   "a proxy that answers for it."},
        {REDLOCK_CAUSE_OURS, "Look at the limits of this process: its memory, and its open files (ulimit -n)."},
        {REDLOCK_CAUSE_TIMEOUT, TIMEOUT_ADVICE},
        {REDLOCK_CAUSE_STALLED, TIMEOUT_ADVICE},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (is_cause(result, list[i].cause)) {
            return list[i].advice;
        }
    }
    return "Look at these nodes and at the network to them.";
}

static void add_loss(struct sentence *sentence, const redlock_result *result) {
    switch (result->loss) {
    case REDLOCK_LOSS_DEADLINE:
        add(sentence, "its deadline passed without an extension that a quorum of nodes confirmed");
        add_votes(sentence, result);
        break;
    case REDLOCK_LOSS_CAP:
        add(sentence, "its deadline passed, and it was not renewed after the cap of %" PRId64 " ms", result->cap_ms);
        break;
    case REDLOCK_LOSS_VOTES:
        add(sentence, "so many nodes do not have its key any more that no quorum can have it");
        add_votes(sentence, result);
        break;
    case REDLOCK_LOSS_CLOCK:
        add(sentence, "clocks of nodes jumped, and with them its keys may have gone: too few votes are left");
        add_votes(sentence, result);
        break;
    case REDLOCK_LOSS_NONE:
        break;
    }
}

static void add_lost(struct sentence *sentence, const redlock_result *result) {
    if (result->loss != REDLOCK_LOSS_NONE) {
        add(sentence, "the lease is lost: ");
        add_loss(sentence, result);
        add(sentence, ". Work under it may have overlapped with another holder's.");
        return;
    }
    add(sentence, "only %u of %u nodes had it under this token, %u are needed",
        count_votes(result, REDLOCK_VOTE_GRANTED), result->count, result->quorum);
    add_votes(sentence, result);
    add(sentence, ". It expired, was released before, or resource or token is not the right one.");
}

/* What the tokens at a quorum of nodes say of their holder, or NULL. */
static const char *holder_of(const redlock_result *result) {
    assert(result->quorum > 0 || result->count == 0); /* else nobody would be a quorum, too */
    for (unsigned i = 0; i < result->count; i++) {
        const char *holder = redlock_result_holder_at(result, i);
        unsigned count = 0;
        for (unsigned k = i; holder[0] && k < result->count; k++) {
            count += strcmp(holder, redlock_result_holder_at(result, k)) == 0;
        }
        if (count >= result->quorum) {
            return holder;
        }
    }
    return NULL;
}

/* Who holds it. `otherwise` is who, if that is not known; NULL adds nothing then. */
static void add_holder(struct sentence *sentence, const redlock_result *result, const char *otherwise) {
    const char *holder = holder_of(result);
    if (holder || otherwise) {
        add(sentence, "held by %s: ", holder ? holder : otherwise);
    }
}

static void add_reason(struct sentence *sentence, const redlock_result *result) {
    assert(result->code != REDLOCK_OK);
    switch (result->code) {
    case REDLOCK_ERR_CONTENDED:
        add_holder(sentence, result, "others");
        add_tally(sentence, result);
        add_votes(sentence, result);
        if (result->passed_over > 0) {
            add(sentence, ". %" PRIu64 " that began to wait later got it before", result->passed_over);
        }
        add(sentence, ". Try again once it is released.");
        break;
    case REDLOCK_ERR_NO_QUORUM:
        add(sentence, "no quorum: ");
        add_tally(sentence, result);
        add_votes(sentence, result);
        add(sentence, ". %s",
            result->of == REDLOCK_RESULT_RELEASE ? "The keys that could not be removed end with their ttl."
                                                 : advice(result));
        break;
    case REDLOCK_ERR_TOO_SLOW:
        add(sentence, "too slow: nothing is left of the ttl of %" PRId64 " ms after the time it took and the drift of ",
            result->ttl_ms);
        add(sentence, "%" PRId64 " ms", redlock_drift_ms(result->ttl_ms));
        add_votes(sentence, result);
        add(sentence, ". Ask for a longer ttl.");
        break;
    case REDLOCK_ERR_LOST:
        add_lost(sentence, result);
        break;
    default:
        add(sentence, "%s%s%s.", redlock_strerror(result->code), result->reason ? ": " : "",
            result->reason ? result->reason : "");
    }
}

static struct sentence begin_sentence(char *buffer, size_t size) {
    if (buffer && size) {
        buffer[0] = '\0';
    }
    return (struct sentence){.buffer = buffer, .size = buffer ? size : 0};
}

size_t redlock_message_loss(const struct redlock_result *result, char *buffer, size_t size) {
    assert(result->loss != REDLOCK_LOSS_NONE);
    struct sentence sentence = begin_sentence(buffer, size);
    add_loss(&sentence, result);
    return sentence.length;
}

size_t redlock_message_votes(const struct redlock_result *result, char *buffer, size_t size) {
    struct sentence sentence = begin_sentence(buffer, size);
    add_tally(&sentence, result);
    add_votes(&sentence, result);
    return sentence.length;
}

size_t redlock_result_message(const redlock_result *result, char *buffer, size_t size) {
    struct sentence sentence = begin_sentence(buffer, size);
    if (!result) {
        return 0; /* the blocking API has no result if no node was asked */
    }
    assert(result->of < sizeof words / sizeof *words);
    const bool is_done = result->code == REDLOCK_OK;
    add(&sentence, "%s", is_done ? words[result->of].done : words[result->of].failed);
    add_subject(&sentence, result);
    add(&sentence, ": ");
    if (!is_done) {
        add_reason(&sentence, result);
        return sentence.length;
    }
    if (result->of == REDLOCK_RESULT_INSPECT) {
        add_holder(&sentence, result, NULL);
    }
    add_tally(&sentence, result);
    add_votes(&sentence, result);
    add(&sentence, ".");
    return sentence.length;
}
