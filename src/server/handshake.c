/* The handshake. */
#include "server/handshake.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/planted.h"
#include "server/proof.h"
#include "wire/error.h"
#include "wire/read.h"
#include "wire/rights.h"
#include "wire/script.h"

/*
 * step     sent                    reply
 * PING     without AUTH            ignored: a server that answers speaks Redis, and without TLS
 * AUTH     where configured        error → UNUSABLE
 * SELECT   for a database but 0    error → UNUSABLE
 * INFO     always                  a replica, a sentinel → UNUSABLE; loading → RETRY;
 *                                  refused → a warning, but RETRY if all else is refused, too
 * TIME     always                  refused → a warning if it is guarded
 * ID       always                  refused → the connection cannot be killed later
 * then, with the last of these (the server is known now):
 * HELLO    if INFO told no role    a replica, a sentinel → UNUSABLE
 * ROLE     likewise                a replica → UNUSABLE
 * KILL     for the old id, if run_id is that of the old connection (else the id may be a
 *          stranger's); result ignored
 * NAME     always                  refused → a warning
 * LOAD     for each script, and    refused → a warning; requests then send the source
 *          for the probe           no Lua in the server → UNUSABLE
 * PROBE    always: EVALSHA         it, or a command that renewal or release needs, is denied or
 *                                  not there; no writes, as on a replica → UNUSABLE; any other
 *                                  error proves nothing
 * then, only if the server has not kept the script, or LOAD was refused:
 * SOURCE   the probe by EVAL       as PROBE
 * then, only if the last of these was refused in words that we do not know:
 * RENEWAL  of a lease on a key     refused in words that we do not know → UNUSABLE, but RETRY if
 *          that nobody has         all else is refused, too
 */
enum step {
    STEP_PING,
    STEP_AUTH,
    STEP_SELECT,
    STEP_INFO,
    STEP_TIME,
    STEP_ID,
    STEP_HELLO,
    STEP_ROLE,
    STEP_KILL,
    STEP_NAME,
    STEP_LOAD,
    STEP_PROBE,
    STEP_SOURCE,
    STEP_RENEWAL
};

_Static_assert(4 + REDLOCK_SCRIPT_COUNT + 2 <= REDLOCK_HANDSHAKE_STEPS_MAX, "the second part fits");

bool redlock_handshake_auth(const struct redlock_credentials *credentials, const char *words[4]) {
    const char *user = credentials->user, *password = credentials->password == NULL ? "" : credentials->password;
    words[0] = "AUTH";
    words[1] = user != NULL ? user : password;
    words[2] = user != NULL ? password : NULL;
    words[3] = NULL;
    return user != NULL || credentials->password != NULL;
}

static bool say(struct redlock_handshake *handshake, struct redlock_outbox *outbox, enum step step,
                const char *const words[4]) {
    assert(handshake->step_count < REDLOCK_HANDSHAKE_STEPS_MAX);
    handshake->steps[handshake->step_count++] = (uint8_t)step;
    return redlock_handshake_say(outbox, words);
}

enum redlock_handshake_state redlock_handshake_start(struct redlock_handshake *handshake,
                                                     struct redlock_outbox *outbox) {
    const struct redlock_address *address = handshake->told.address;
    const char *auth[4];
    char db[12];
    bool said = true;
    assert(address != NULL && handshake->told.options != NULL && handshake->told.credentials != NULL);
    *handshake = (struct redlock_handshake){.told = handshake->told, .info = {.uptime_s = -1}};
    if (redlock_handshake_auth(handshake->told.credentials, auth)) {
        said = say(handshake, outbox, STEP_AUTH, auth);
    } else {
        said = say(handshake, outbox, STEP_PING, (const char *[4]){"PING"});
    }
    if (said && address->db != 0) {
        (void)snprintf(db, sizeof db, "%u", (unsigned)address->db);
        said = say(handshake, outbox, STEP_SELECT, (const char *[4]){"SELECT", db});
    }
    said = said && say(handshake, outbox, STEP_INFO, (const char *[4]){"INFO"});
    said = said && say(handshake, outbox, STEP_TIME, (const char *[4]){"TIME"});
    said = said && say(handshake, outbox, STEP_ID, (const char *[4]){"CLIENT", "ID"});
    return said ? REDLOCK_HANDSHAKE_WAITING : REDLOCK_HANDSHAKE_NO_MEMORY;
}

static bool say_probe(struct redlock_handshake *handshake, struct redlock_outbox *outbox, enum step step) {
    assert(handshake->step_count < REDLOCK_HANDSHAKE_STEPS_MAX);
    handshake->steps[handshake->step_count++] = (uint8_t)step;
    return step == STEP_RENEWAL ? redlock_proof_say_renewal(handshake, outbox)
                                : redlock_proof_say(handshake, outbox, step == STEP_SOURCE);
}

/* The second part: the server is known now, and may vote. Returns false without memory. */
static bool introduce(struct redlock_handshake *handshake, struct redlock_outbox *outbox) {
    assert(handshake->step_count == 0); /* so the second part fits */
    const char *run_id = handshake->info.run_id;
    char id[24];
    bool said = true;
    if (handshake->info.role[0] == '\0') {
        said = say(handshake, outbox, STEP_HELLO, (const char *[4]){"HELLO", "2"}) &&
               say(handshake, outbox, STEP_ROLE, (const char *[4]){"ROLE"});
    }
    if (said && handshake->told.old_client_id != 0 && run_id[0] != '\0' &&
        strcmp(run_id, handshake->told.old_run_id) == 0 && !REDLOCK_PLANTED(PLAIN_CLOSE)) {
        (void)snprintf(id, sizeof id, "%lld", (long long)handshake->told.old_client_id);
        said = say(handshake, outbox, STEP_KILL, (const char *[4]){"CLIENT", "KILL", "ID", id});
    }
    said = said && say(handshake, outbox, STEP_NAME,
                       (const char *[4]){"CLIENT", "SETNAME", handshake->told.options->client_name});
    for (int i = 0; said && i < REDLOCK_SCRIPT_COUNT; i++) {
        said = say(handshake, outbox, STEP_LOAD,
                   (const char *[4]){"SCRIPT", "LOAD", redlock_script_get((enum redlock_script_id)i)->source});
    }
    return said &&
           say(handshake, outbox, STEP_LOAD,
               (const char *[4]){"SCRIPT", "LOAD", redlock_rare_scripts[REDLOCK_RARE_SCRIPT_PROBE].source}) &&
           say_probe(handshake, outbox, STEP_PROBE);
}

static bool is_error(const struct redlock_reply *reply, const char *word) {
    size_t size = strlen(word);
    return reply->value.type == REDLOCK_REPLY_ERROR && reply->value.size >= size &&
           memcmp(reply->value.bytes, word, size) == 0;
}

bool redlock_handshake_refused(const struct redlock_reply *reply) {
    return redlock_wire_cause(&reply->value) == REDLOCK_CAUSE_NOPERM || is_error(reply, "ERR unknown command");
}

/* By INFO, HELLO or ROLE. */
static enum redlock_handshake_state judge_role(struct redlock_handshake *handshake) {
    const struct redlock_info *info = &handshake->info;
    if (strcmp(info->mode, "sentinel") == 0 || strcmp(info->role, "sentinel") == 0) {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NOT_A_NODE,
                                        "a Sentinel is no node: give the address of a primary");
    }
    if (info->role[0] != '\0' && strcmp(info->role, "master") != 0 && strcmp(info->role, "primary") != 0) {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_REPLICA,
                                        "the node is a replica%s%s: Redlock needs independent primaries",
                                        info->primary[0] == '\0' ? "" : " of ", info->primary);
    }
    return REDLOCK_HANDSHAKE_WAITING;
}

static enum redlock_handshake_state judge(struct redlock_handshake *handshake) {
    const struct redlock_info *info = &handshake->info;
    if (info->loading) {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_LOADING,
                                        "the node is loading its data");
    }
    return judge_role(handshake);
}

/* A server in protected mode says so at once, and closes. */
static enum redlock_handshake_state refuses_us(struct redlock_handshake *handshake, enum redlock_cause cause,
                                               const char *error) {
    return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, cause, "the node refuses us: %s", error);
}

static enum redlock_handshake_state on_info(struct redlock_handshake *handshake, const struct redlock_reply *reply,
                                            const char *error) {
    if (reply->value.type == REDLOCK_REPLY_STRING) {
        redlock_info_parse(&handshake->info, reply->value.bytes, reply->value.size);
        return judge(handshake);
    }
    const enum redlock_cause cause = redlock_wire_cause(&reply->value);
    if (cause == REDLOCK_CAUSE_AUTH) {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, cause, "the node needs a password: %s",
                                        error);
    }
    if (is_error(reply, "DENIED")) {
        return refuses_us(handshake, cause, error);
    }
    /* Services forbid INFO in many words. Whether the server is a primary, and no other node's
     * server, is proven without it where that is possible (proof.h). */
    (void)snprintf(handshake->info_error, sizeof handshake->info_error, "%s", error[0] == '\0' ? "no reason" : error);
    handshake->info_cause = cause;
    return REDLOCK_HANDSHAKE_WAITING;
}

static void on_time(struct redlock_handshake *handshake, const struct redlock_reply *reply, const char *error) {
    const bool told = reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == 2 &&
                      redlock_read_server_time(reply->elements, &handshake->server_us);
    if (told || !handshake->told.options->guarded) {
        return;
    }
    if (reply->value.type == REDLOCK_REPLY_ERROR) {
        redlock_handshake_warn(handshake, "TIME refused (%s): its clock cannot be watched", error);
    } else {
        redlock_handshake_warn(handshake, "TIME tells no time: its clock cannot be watched");
    }
}

/* Returns whether the command can have this reply. If not, this is no Redis server, or its replies
 * are out of step with our commands (R20). */
static bool possible(enum step step, const struct redlock_reply *reply) {
    enum redlock_reply_type type = reply->value.type;
    if (type == REDLOCK_REPLY_ERROR) {
        return true;
    }
    switch (step) {
    case STEP_INFO:
        return type == REDLOCK_REPLY_STRING;
    case STEP_LOAD: /* some servers send a status */
        return type == REDLOCK_REPLY_STRING || type == REDLOCK_REPLY_STATUS;
    case STEP_HELLO:
    case STEP_ROLE:
    case STEP_PROBE:
    case STEP_SOURCE:
    case STEP_RENEWAL:
        return true; /* what is not understood proves nothing */
    case STEP_TIME:
        return type == REDLOCK_REPLY_ARRAY;
    case STEP_ID:
        return type == REDLOCK_REPLY_INTEGER;
    case STEP_KILL:
        return type == REDLOCK_REPLY_INTEGER || type == REDLOCK_REPLY_STATUS;
    case STEP_PING:
    case STEP_AUTH:
    case STEP_SELECT:
    case STEP_NAME:
        break;
    }
    return type == REDLOCK_REPLY_STATUS;
}

/* The second part. */
static enum redlock_handshake_state on_later_step(struct redlock_handshake *handshake, enum step step,
                                                  const struct redlock_reply *reply, const char *error) {
    const bool failed = reply->value.type == REDLOCK_REPLY_ERROR;
    switch (step) {
    case STEP_NAME:
        if (failed) {
            redlock_handshake_warn(handshake, "CLIENT SETNAME refused (%s)", error);
        }
        break;
    case STEP_LOAD:
        if (redlock_wire_cause(&reply->value) == REDLOCK_CAUSE_NO_LUA) {
            return redlock_handshake_no_lua(handshake, reply);
        }
        if (failed && !handshake->scripts_refused) {
            redlock_handshake_warn(handshake, "SCRIPT LOAD refused (%s): releases send the script's source", error);
        }
        handshake->scripts_refused = handshake->scripts_refused || failed;
        break;
    case STEP_HELLO:
        redlock_proof_hello(&handshake->info, reply);
        return judge_role(handshake);
    case STEP_ROLE:
        redlock_proof_role(&handshake->info, reply);
        return judge_role(handshake);
    case STEP_PROBE:
    case STEP_SOURCE:
        return redlock_proof_reply(handshake, reply, step == STEP_SOURCE);
    case STEP_RENEWAL:
        return redlock_proof_renewal(handshake, reply);
    default:
        assert(step == STEP_KILL);
        break; /* the connection is gone or we lack permission; nothing else to do */
    }
    return REDLOCK_HANDSHAKE_WAITING;
}

static enum redlock_handshake_state on_step(struct redlock_handshake *handshake, enum step step,
                                            const struct redlock_reply *reply) {
    char error[REDLOCK_WIRE_ERROR_SIZE];
    const bool failed = reply->value.type == REDLOCK_REPLY_ERROR;
    const enum redlock_cause cause = redlock_wire_cause(&reply->value);
    if (!possible(step, reply)) {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_NOT_A_NODE,
                                        "the node answers the handshake out of protocol; is it a Redis server?");
    }
    redlock_handshake_error(handshake, reply, error);
    handshake->answered = handshake->answered || (!failed && step > STEP_SELECT);
    /* These pass without action on our side. */
    if ((cause == REDLOCK_CAUSE_LOADING || cause == REDLOCK_CAUSE_BUSY) &&
        (step == STEP_PING || step == STEP_AUTH || step == STEP_SELECT || step == STEP_INFO)) {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_RETRY, cause, "the node is not ready: %s", error);
    }
    switch (step) {
    case STEP_PING:
        if (is_error(reply, "DENIED")) {
            return refuses_us(handshake, cause, error);
        }
        break;
    case STEP_AUTH:
        if (failed) {
            return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_AUTH,
                                            "AUTH failed: %s", error);
        }
        break;
    case STEP_SELECT:
        if (failed) {
            return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_UNUSABLE,
                                            cause == REDLOCK_CAUSE_SERVER ? REDLOCK_CAUSE_DATABASE : cause,
                                            "SELECT %u failed: %s", (unsigned)handshake->told.address->db, error);
        }
        break;
    case STEP_INFO:
        return on_info(handshake, reply, error);
    case STEP_TIME:
        on_time(handshake, reply, error);
        break;
    case STEP_ID:
        if (!failed && reply->value.integer > 0) {
            handshake->client_id = reply->value.integer;
        }
        break;
    default:
        return on_later_step(handshake, step, reply, error);
    }
    return REDLOCK_HANDSHAKE_WAITING;
}

static enum redlock_handshake_state finish(struct redlock_handshake *handshake) {
    if (handshake->info_error[0] != '\0' && !handshake->answered) {
        return redlock_handshake_refuse(handshake, REDLOCK_HANDSHAKE_RETRY, handshake->info_cause,
                                        "INFO failed, and all else: %s", handshake->info_error);
    }
    if (redlock_info_evicts(&handshake->info)) {
        redlock_handshake_warn(handshake, "maxmemory-policy %s may evict locks: set noeviction",
                               handshake->info.policy);
    }
    if (strcmp(handshake->info.mode, "cluster") == 0) {
        redlock_handshake_warn(handshake, "runs in cluster mode: keys of other slots are refused");
    }
    redlock_proof_warn(handshake);
    return REDLOCK_HANDSHAKE_DONE;
}

enum redlock_handshake_state redlock_handshake_reply(struct redlock_handshake *handshake,
                                                     const struct redlock_reply *reply, struct redlock_outbox *outbox) {
    assert(handshake->step < handshake->step_count);
    enum step step = (enum step)handshake->steps[handshake->step++];
    enum redlock_handshake_state state = on_step(handshake, step, reply);
    if (state != REDLOCK_HANDSHAKE_WAITING || handshake->step < handshake->step_count) {
        return state;
    }
    const bool probes = handshake->probe_again || handshake->probe_renewal;
    if (!probes && step != STEP_ID) {
        return finish(handshake);
    }
    const enum step next = handshake->probe_again ? STEP_SOURCE : STEP_RENEWAL;
    handshake->step = handshake->step_count = 0;
    handshake->probe_again = handshake->probe_renewal = false;
    return (probes ? say_probe(handshake, outbox, next) : introduce(handshake, outbox)) ? REDLOCK_HANDSHAKE_WAITING
                                                                                        : REDLOCK_HANDSHAKE_NO_MEMORY;
}

bool redlock_handshake_awaits_info(const struct redlock_handshake *handshake) {
    return handshake->step > 0 && handshake->step < handshake->step_count &&
           handshake->steps[handshake->step] == STEP_INFO;
}
