/* Planted bugs of the group that stand at a call between its files: the linker's --wrap puts
 * them there. */
#include <string.h>

#include "core/planted.h"
#include "core/time.h"
#include "group/guards.h"
#include "group/sending.h"
#include "group/waiting.h"

int __real_redlock_sending_draw_token(struct redlock_lease *lease, int64_t now_ns, bool for_place);
int __wrap_redlock_sending_draw_token(struct redlock_lease *lease, int64_t now_ns, bool for_place);
redlock_nodes __real_redlock_requester_send(struct redlock_group *group, struct redlock_requester *owner,
                                            redlock_nodes nodes, struct redlock_message *message);
redlock_nodes __wrap_redlock_requester_send(struct redlock_group *group, struct redlock_requester *owner,
                                            redlock_nodes nodes, struct redlock_message *message);

redlock_nodes __real_redlock_guards_release(struct redlock_group *group, struct redlock_requester *owner,
                                            redlock_nodes nodes, struct redlock_message *message);
redlock_nodes __wrap_redlock_guards_release(struct redlock_group *group, struct redlock_requester *owner,
                                            redlock_nodes nodes, struct redlock_message *message);

void __real_redlock_votes_pushed(struct redlock_group *group, unsigned node, const struct redlock_push *push);
void __wrap_redlock_votes_pushed(struct redlock_group *group, unsigned node, const struct redlock_push *push);
bool __real_redlock_line_seal_fits(const uint64_t secret[2], unsigned node, const struct redlock_push *push,
                                   int64_t now_ns);
bool __wrap_redlock_line_seal_fits(const uint64_t secret[2], unsigned node, const struct redlock_push *push,
                                   int64_t now_ns);

void __real_redlock_tell_released(struct redlock_lease *lease);
void __wrap_redlock_tell_released(struct redlock_lease *lease);

int __wrap_redlock_sending_draw_token(struct redlock_lease *lease, int64_t now_ns, bool for_place) {
    return REDLOCK_PLANTED(TOKEN_REUSED) && lease->token_size != 0 && !lease->waiting
               ? REDLOCK_OK
               : __real_redlock_sending_draw_token(lease, now_ns, for_place);
}

/* What the release of an election says instead. `token` has room for one. */
static void change_release(struct redlock_message *message, char *token) {
    if (message->operation != REDLOCK_OP_RELEASE || !message->target->announced) {
        return;
    }
    if (REDLOCK_PLANTED(ELECT_RESIGN_SKIPS)) {
        message->handing = REDLOCK_HAND_NOBODY;
    } else if (REDLOCK_PLANTED(ELECT_RESIGN_KEEPS)) {
        memcpy(token, message->token, message->token_size);
        token[message->token_size - 1] = '-';
        message->token = token;
    }
}

redlock_nodes __wrap_redlock_requester_send(struct redlock_group *group, struct redlock_requester *owner,
                                            redlock_nodes nodes, struct redlock_message *message) {
    const char *own_token = message->token;
    char token[REDLOCK_TOKEN_SIZE_MAX];
    change_release(message, token);
    if (REDLOCK_PLANTED(HEAL_OUTLIVES) && message->operation == REDLOCK_OP_HEAL) {
        message->ttl_ms *= 2;
    }
    const redlock_nodes taken = __real_redlock_requester_send(group, owner, nodes, message);
    message->token = own_token;
    if (REDLOCK_PLANTED(START_AFTER_SEND) && message->operation == REDLOCK_OP_ACQUIRE) {
        struct redlock_lease_core *core = &((struct redlock_lease *)owner)->core;
        core->start_ns = redlock_group_now_ns(group);
        core->deadline_ns = redlock_deadline_ns(core->start_ns, core->round_ttl_ms);
    }
    return taken;
}

redlock_nodes __wrap_redlock_guards_release(struct redlock_group *group, struct redlock_requester *owner,
                                            redlock_nodes nodes, struct redlock_message *message) {
    return REDLOCK_PLANTED(RELEASE_UNGUARDED) ? redlock_requester_send(group, owner, nodes, message)
                                              : __real_redlock_guards_release(group, owner, nodes, message);
}

/* Of the push that is read now. */
static bool needs_no_seal;

void __wrap_redlock_votes_pushed(struct redlock_group *group, unsigned node, const struct redlock_push *push) {
    const struct redlock_lease *lease = redlock_line_get(&group->line, push->id);
    const bool known = lease && lease->token_size == push->token_size &&
                       memcmp(redlock_handle_own_token(lease), push->token, push->token_size) == 0;
    needs_no_seal = known ? REDLOCK_PLANTED(PUSH_COUNTS_ANY) : REDLOCK_PLANTED(PUSH_GIVES_ANY);
    __real_redlock_votes_pushed(group, node, push);
}

bool __wrap_redlock_line_seal_fits(const uint64_t secret[2], unsigned node, const struct redlock_push *push,
                                   int64_t now_ns) {
    return needs_no_seal || __real_redlock_line_seal_fits(secret, node, push, now_ns);
}

void __wrap_redlock_tell_released(struct redlock_lease *lease) {
    if (!REDLOCK_PLANTED(LOSS_ENDS_NOTHING) || lease->loss == REDLOCK_LOSS_NONE) {
        __real_redlock_tell_released(lease);
    }
}
