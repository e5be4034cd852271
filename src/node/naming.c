/* Whether acquires ask a node to name the holder. */
#include "node/naming.h"

#include <assert.h>
#include <string.h>

#define NO_FIRST REDLOCK_NAMING_REPLY_COUNT

static_assert(REDLOCK_TOKEN_SIZE_MAX <= UINT8_MAX, "the size of a token fits");

void redlock_naming_begin(struct redlock_node *node) {
    node->naming_first = NO_FIRST;
    node->form.naming =
        !node->naming_barred && redlock_info_names(&node->info) ? REDLOCK_NAMING_TWICE : REDLOCK_NAMING_NOT;
}

static void stop(struct redlock_node *node, const struct redlock_text *why) {
    if (node->form.naming != REDLOCK_NAMING_NOT) {
        node->form.naming = REDLOCK_NAMING_NOT;
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO,
                          "node %s does not tell an acquire who holds the lock, so it is not asked any more: %s",
                          node->address.name, why == NULL ? "it ignores the GET of a SET" : redlock_text_string(why));
    }
}

bool redlock_naming_first(struct redlock_node *node, const struct redlock_inflight_entry *entry, bool in_time,
                          const struct redlock_reply *reply) {
    const struct redlock_reply_value *value = &reply->value;
    if (node->naming_first != NO_FIRST) {
        return false;
    }
    node->naming_first = redlock_naming_reply_of(reply);
    node->naming_value_size = 0;
    if (value->type == REDLOCK_REPLY_STRING && value->size <= sizeof node->naming_value) {
        node->naming_value_size = (uint8_t)value->size;
        memcpy(node->naming_value, value->bytes, value->size);
    }
    const bool is_back = redlock_inflight_put_back(&node->connection.inflight, entry, in_time);
    assert(is_back); /* its room is free: it has just left */
    return true;
}

bool redlock_naming_second(struct redlock_node *node, const struct redlock_reply *reply,
                           struct redlock_answer *answer) {
    const enum redlock_naming_reply first = node->naming_first;
    node->naming_first = NO_FIRST;
    answer->named = REDLOCK_NAMED_NOT;
    switch (redlock_naming_judge(first, redlock_naming_reply_of(reply), answer)) {
    case REDLOCK_NAMING_OPEN:
        answer->named = first == REDLOCK_NAMING_NIL ? REDLOCK_NAMED_AFTER_NIL : REDLOCK_NAMED_TWICE;
        answer->first = node->naming_value;
        answer->first_size = node->naming_value_size;
        answer->holder = reply->value.bytes;
        answer->holder_size = reply->value.type == REDLOCK_REPLY_STRING ? reply->value.size : 0;
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

void redlock_node_names_holders(struct redlock_node *node) {
    if (node->form.naming == REDLOCK_NAMING_TWICE) {
        node->form.naming = REDLOCK_NAMING_ONCE;
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
