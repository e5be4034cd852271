/* Whether acquires ask a node to name the holder. */
#include "node/naming.h"

#include <assert.h>

#define NO_FIRST REDLOCK_NAMING_REPLY_COUNT

static void become(struct redlock_node *node, enum redlock_naming naming) {
    node->naming = naming;
    node->listener.naming_changed(node->listener.ctx, node->index, naming);
}

void redlock_naming_begin(struct redlock_node *node) {
    node->naming_first = NO_FIRST;
    become(node, !node->naming_barred && redlock_info_names(&node->info) ? REDLOCK_NAMING_TWICE : REDLOCK_NAMING_NOT);
}

static void stop(struct redlock_node *node, const struct redlock_text *why) {
    if (node->naming != REDLOCK_NAMING_NOT) {
        become(node, REDLOCK_NAMING_NOT);
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO,
                          "node %s does not tell an acquire who holds the lock, so it is not asked any more: %s",
                          node->address.name, why == NULL ? "it ignores the GET of a SET" : redlock_text_string(why));
    }
}

/* Nobody knows the token of a request that has timed out. */
static bool is_ours(struct redlock_node *node, const struct redlock_inflight_entry *entry, bool in_time,
                    const struct redlock_reply_value *value) {
    return in_time && value->type == REDLOCK_REPLY_STRING &&
           node->listener.is_token(node->listener.ctx, entry->owner, value->bytes, value->size);
}

bool redlock_naming_first(struct redlock_node *node, const struct redlock_inflight_entry *entry, bool in_time,
                          const struct redlock_reply *reply) {
    if (node->naming_first != NO_FIRST) {
        return false;
    }
    node->naming_first =
        is_ours(node, entry, in_time, &reply->value) ? REDLOCK_NAMING_OURS : redlock_naming_reply_of(reply);
    const bool is_back = redlock_inflight_put_back(&node->connection.inflight, entry, in_time);
    assert(is_back); /* its room is free: it has just left */
    return true;
}

bool redlock_naming_second(struct redlock_node *node, const struct redlock_inflight_entry *entry, bool in_time,
                           const struct redlock_reply *reply, struct redlock_answer *answer) {
    const enum redlock_naming_reply first = node->naming_first;
    const bool ours = is_ours(node, entry, in_time, &reply->value);
    node->naming_first = NO_FIRST;
    switch (redlock_naming_judge(first, ours ? REDLOCK_NAMING_OURS : redlock_naming_reply_of(reply), answer)) {
    case REDLOCK_NAMING_PROVEN:
        if (node->naming == REDLOCK_NAMING_TWICE) {
            become(node, REDLOCK_NAMING_ONCE);
        }
        break;
    case REDLOCK_NAMING_OPEN:
        break;
    case REDLOCK_NAMING_REFUTED:
        stop(node, answer->text);
        break;
    case REDLOCK_NAMING_BROKEN:
        node->naming_barred = true;
        return false;
    }
    return true;
}

void redlock_naming_denied(struct redlock_node *node, const struct redlock_inflight_entry *entry, bool in_time,
                           const struct redlock_reply *reply, struct redlock_answer *answer) {
    if (is_ours(node, entry, in_time, &reply->value)) {
        redlock_naming_read_own(answer);
    }
}

void redlock_naming_refused(struct redlock_node *node, const struct redlock_answer *answer) {
    if (answer->no_script) {
        stop(node, answer->text);
    } else {
        node->naming_barred = true;
    }
}

void redlock_naming_protocol(struct redlock_node *node) {
    if (redlock_connection_owes_reply(&node->connection)) {
        node->naming_barred |=
            (redlock_inflight_at(&node->connection.inflight, 0)->reply_kind & REDLOCK_KIND_NAMING) != 0;
    }
}
