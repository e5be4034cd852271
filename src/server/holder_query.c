/* Whether acquires ask a server to name the holder. */
#include "server/holder_query.h"

#include <assert.h>
#include <string.h>

#define NO_FIRST REDLOCK_HOLDER_QUERY_REPLY_COUNT

static_assert(REDLOCK_TOKEN_SIZE_MAX <= UINT8_MAX, "the size of a token fits");

void redlock_holder_query_begin(struct redlock_server *server) {
    server->holder_query_first = NO_FIRST;
    server->form.holder_query = !server->holder_query_barred && redlock_info_names(&server->info)
                                    ? REDLOCK_HOLDER_QUERY_TWICE
                                    : REDLOCK_HOLDER_QUERY_NOT;
}

static void stop(struct redlock_server *server, const struct redlock_text *why) {
    if (server->form.holder_query != REDLOCK_HOLDER_QUERY_NOT) {
        server->form.holder_query = REDLOCK_HOLDER_QUERY_NOT;
        server->reactor.log(server->reactor.ctx, REDLOCK_LOG_INFO,
                            "node %s does not tell an acquire who holds the lock, so it is not asked any more: %s",
                            server->address.name,
                            why == NULL ? "it ignores the GET of a SET" : redlock_text_string(why));
    }
}

bool redlock_holder_query_first(struct redlock_server *server, const struct redlock_inflight_entry *entry, bool in_time,
                                const struct redlock_reply *reply) {
    const struct redlock_reply_value *value = &reply->value;
    if (server->holder_query_first != NO_FIRST) {
        return false;
    }
    server->holder_query_first = redlock_holder_query_reply_of(reply);
    server->holder_query_value_size = 0;
    if (value->type == REDLOCK_REPLY_STRING && value->size <= sizeof server->holder_query_value) {
        server->holder_query_value_size = (uint8_t)value->size;
        memcpy(server->holder_query_value, value->bytes, value->size);
    }
    const bool is_back = redlock_inflight_put_back(&server->connection.inflight, entry, in_time);
    assert(is_back); /* its room is free: it has just left */
    return true;
}

bool redlock_holder_query_second(struct redlock_server *server, const struct redlock_reply *reply,
                                 struct redlock_answer *answer) {
    const enum redlock_holder_query_reply first = server->holder_query_first;
    assert(answer->vote != REDLOCK_VOTE_GRANTED); /* by itself, one reply of two grants nothing */
    server->holder_query_first = NO_FIRST;
    answer->named = REDLOCK_NAMED_NOT;
    switch (redlock_holder_query_judge(first, redlock_holder_query_reply_of(reply), answer)) {
    case REDLOCK_HOLDER_QUERY_OPEN:
        answer->named = first == REDLOCK_HOLDER_QUERY_NIL ? REDLOCK_NAMED_AFTER_NIL : REDLOCK_NAMED_TWICE;
        answer->first = server->holder_query_value;
        answer->first_size = server->holder_query_value_size;
        answer->holder = reply->value.bytes;
        answer->holder_size = reply->value.type == REDLOCK_REPLY_STRING ? reply->value.size : 0;
        break;
    case REDLOCK_HOLDER_QUERY_REFUTED:
        stop(server, answer->text);
        break;
    case REDLOCK_HOLDER_QUERY_BROKEN:
        server->holder_query_barred = true;
        return false;
    }
    return true;
}

void redlock_holder_query_proven(struct redlock_server *server) {
    if (server->form.holder_query == REDLOCK_HOLDER_QUERY_TWICE) {
        server->form.holder_query = REDLOCK_HOLDER_QUERY_ONCE;
    }
}

void redlock_holder_query_refused(struct redlock_server *server, const struct redlock_answer *answer) {
    if (answer->again) {
        stop(server, answer->text);
    } else {
        server->holder_query_barred = true;
    }
}

void redlock_holder_query_protocol(struct redlock_server *server) {
    if (redlock_connection_owes_reply(&server->connection)) {
        server->holder_query_barred |=
            (redlock_inflight_at(&server->connection.inflight, 0)->reply_kind & REDLOCK_KIND_HOLDER_QUERY) != 0;
    }
}
