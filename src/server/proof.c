/* What the handshake proves on the server itself. */
#include "server/proof.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "wire/error.h"
#include "wire/rights.h"
#include "wire/script.h"

bool redlock_proof_say(struct redlock_handshake *handshake, struct redlock_outbox *outbox, bool by_source) {
    const struct redlock_script *script = &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_PROBE];
    /* No KEYS: an ACL that limits the keys would refuse the script as a whole. */
    const char *words[6 + REDLOCK_SERVER_OTHERS_MAX] = {by_source ? "EVAL" : "EVALSHA",
                                                        by_source ? script->source : script->sha1,
                                                        "0",
                                                        handshake->told.options->probed,
                                                        "",
                                                        handshake->told.mark};
    size_t count = 6;
    assert(handshake->told.mark != NULL && handshake->told.mark_count <= REDLOCK_SERVER_OTHERS_MAX);
    if (handshake->told.options->marker != NULL && handshake->info.run_id[0] == '\0') {
        words[4] = handshake->told.options->marker;
        for (size_t i = 0; i < handshake->told.mark_count; i++) {
            words[count++] = handshake->told.marks[i];
        }
    }
    return redlock_handshake_say_words(outbox, words, count);
}

bool redlock_proof_say_renewal(struct redlock_handshake *handshake, struct redlock_outbox *outbox) {
    const struct redlock_script *script = redlock_script_get(REDLOCK_SCRIPT_EXTEND);
    const bool by_source = handshake->scripts_refused;
    const char *words[] = {by_source ? "EVAL" : "EVALSHA",
                           by_source ? script->source : script->sha1,
                           "1",
                           handshake->told.options->probed,
                           handshake->told.mark,
                           "1"};
    return redlock_handshake_say_words(outbox, words, sizeof words / sizeof *words);
}

/* A fault that passes, a right or a key that is refused, and a cluster say so in known words. */
static bool is_unknown(const struct redlock_reply *reply) {
    return reply->value.type == REDLOCK_REPLY_ERROR && redlock_wire_cause(&reply->value) == REDLOCK_CAUSE_SERVER;
}

enum redlock_handshake_state redlock_proof_renewal(struct redlock_handshake *handshake,
                                                   const struct redlock_reply *reply) {
    char error[REDLOCK_WIRE_ERROR_SIZE];
    if (!is_unknown(reply) || !handshake->answered) {
        return REDLOCK_HANDSHAKE_WAITING;
    }
    redlock_handshake_error(handshake, reply, error);
    handshake->warning[0] = '\0'; /* what else is amiss does not count */
    return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA,
                                    "the server refuses our scripts (%s), so no lease could be renewed and released "
                                    "here",
                                    error);
}

static enum redlock_handshake_state lacks(struct redlock_handshake *handshake, const struct redlock_rights *rights) {
    static const char why[] = "so no lease could be renewed and released here";
    if (rights->denied[0] != '\0' || rights->absent[0] != '\0' || rights->read_only) {
        handshake->warning[0] = '\0'; /* what else is amiss does not count */
    }
    if (rights->denied[0] != '\0') {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NOPERM,
                                        "this user may not run %s, %s: allow it by ACL SETUSER (%s)", rights->denied,
                                        why, rights->rules);
    }
    if (rights->absent[0] != '\0') {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA,
                                        "the server does not know %s, %s: is it renamed or turned off?", rights->absent,
                                        why);
    }
    if (rights->read_only) {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_REPLICA,
                                        "the node takes no writes (READONLY), as a replica: Redlock needs independent "
                                        "primaries");
    }
    return REDLOCK_HANDSHAKE_WAITING;
}

/* EVALSHA or EVAL itself was refused, or was not. */
static enum redlock_handshake_state take_error(struct redlock_handshake *handshake, const struct redlock_reply *reply,
                                               bool by_source) {
    assert(reply->value.type == REDLOCK_REPLY_ERROR);
    const enum redlock_right right = redlock_rights_of(reply->value.bytes, reply->value.size);
    struct redlock_rights rights = {.denied = ""};
    if (redlock_wire_cause(&reply->value) == REDLOCK_CAUSE_NO_LUA) {
        return redlock_handshake_no_lua(handshake, reply);
    }
    if (right == REDLOCK_RIGHT_DENIED) {
        (void)snprintf(rights.denied, sizeof rights.denied, "%s", by_source ? "EVAL and SCRIPT LOAD" : "EVALSHA");
        (void)snprintf(rights.rules, sizeof rights.rules, "%s", by_source ? "+eval +script|load" : "+evalsha");
    } else if (right == REDLOCK_RIGHT_ABSENT) {
        (void)snprintf(rights.absent, sizeof rights.absent, "%s", by_source ? "EVAL" : "EVALSHA");
    }
    return lacks(handshake, &rights);
}

static void take_mark(struct redlock_handshake *handshake, const struct redlock_reply_value *mark) {
    const bool is_mark = mark->type == REDLOCK_REPLY_STRING && mark->size == REDLOCK_SERVER_MARK_SIZE - 1;
    handshake->marked = is_mark && memcmp(mark->bytes, handshake->told.mark, mark->size) == 0;
    for (size_t i = 0; is_mark && i < handshake->told.mark_count; i++) {
        if (memcmp(mark->bytes, handshake->told.marks[i], mark->size) == 0) {
            memcpy(handshake->twin, handshake->told.marks[i], sizeof handshake->twin);
            handshake->marked = true;
        }
    }
}

enum redlock_handshake_state redlock_proof_reply(struct redlock_handshake *handshake, const struct redlock_reply *reply,
                                                 bool by_source) {
    const struct redlock_reply_value *lines = &reply->elements[0];
    struct redlock_rights rights;
    if (reply->value.type == REDLOCK_REPLY_ERROR) {
        const enum redlock_handshake_state state = take_error(handshake, reply, by_source);
        handshake->probe_again =
            !by_source && (handshake->scripts_refused || redlock_wire_cause(&reply->value) == REDLOCK_CAUSE_NOSCRIPT);
        handshake->probe_renewal = !handshake->probe_again && is_unknown(reply);
        return state;
    }
    /* Where SCRIPT LOAD is refused, somebody else may have loaded this one. EVAL must load the
     * rest. */
    handshake->probe_again = !by_source && handshake->scripts_refused;
    if (reply->value.type != REDLOCK_REPLY_ARRAY || reply->element_count != 2 || lines->type != REDLOCK_REPLY_STRING) {
        return REDLOCK_HANDSHAKE_WAITING; /* another kind of server; it proves nothing */
    }
    redlock_rights_read(&rights, lines->bytes, lines->size);
    (void)snprintf(handshake->no_queue, sizeof handshake->no_queue, "%s%s",
                   rights.wanted[0] == '\0' ? "" : "waiting in order needs ", rights.wanted);
    (void)snprintf(handshake->no_shared, sizeof handshake->no_shared, "%s%s",
                   rights.shared[0] == '\0' ? "" : "reading with others needs ", rights.shared);
    take_mark(handshake, &reply->elements[1]);
    return lacks(handshake, &rights);
}

static void take_word(const struct redlock_reply_value *value, char word[REDLOCK_INFO_WORD_SIZE]) {
    char text[REDLOCK_WIRE_ERROR_SIZE];
    if (value->type == REDLOCK_REPLY_STRING && value->size < REDLOCK_INFO_WORD_SIZE) {
        (void)redlock_wire_error(value, NULL, text);
        (void)snprintf(word, REDLOCK_INFO_WORD_SIZE, "%.63s", text);
    }
}

void redlock_proof_hello(struct redlock_info *info, const struct redlock_reply *reply) {
    char server[REDLOCK_INFO_WORD_SIZE] = "", version[REDLOCK_INFO_WORD_SIZE] = "";
    if (reply->value.type != REDLOCK_REPLY_ARRAY) {
        return;
    }
    for (size_t i = 0; i + 1 < reply->element_count && i + 1 < REDLOCK_REPLY_ELEMENTS_MAX; i += 2) {
        const struct redlock_reply_value *name = &reply->elements[i], *value = name + 1;
        if (redlock_reply_is(name, "server")) {
            take_word(value, server);
        } else if (redlock_reply_is(name, "version")) {
            take_word(value, version);
        } else if (redlock_reply_is(name, "mode")) {
            take_word(value, info->mode);
        } else if (redlock_reply_is(name, "role")) {
            take_word(value, info->role);
        }
    }
    if (info->version[0] == '\0' && version[0] != '\0') {
        (void)snprintf(info->version, sizeof info->version, "%.20s %.40s", server[0] == '\0' ? "redis" : server,
                       version);
    }
}

void redlock_proof_role(struct redlock_info *info, const struct redlock_reply *reply) {
    if (reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count > 0 && info->role[0] == '\0') {
        take_word(&reply->elements[0], info->role);
    }
}

void redlock_proof_warn(struct redlock_handshake *handshake) {
    const struct redlock_info *info = &handshake->info;
    const bool refused = handshake->info_error[0] != '\0';
    const bool unmarked = handshake->told.options->marker != NULL && info->run_id[0] == '\0' && !handshake->marked;
    if (refused) {
        redlock_handshake_warn(handshake, "INFO refused (%s): cannot see whether %s%s%s", handshake->info_error,
                               info->role[0] == '\0' ? "this is a primary, or " : "",
                               unmarked ? "it is the same server as another, or " : "", "it may evict locks");
    } else if (unmarked) {
        redlock_handshake_warn(handshake, "INFO names no run_id: cannot see whether it is the same server as another");
    }
    if (unmarked) {
        redlock_handshake_warn(handshake, "the key %s would show it, if this user may GET and SET it",
                               handshake->told.options->marker);
    }
}
