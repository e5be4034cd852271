/* redlock acquire: takes the lock, prints its tokens, leaves it to its ttl. */
#include "commands.h"

#include <inttypes.h>

#include "nodes.h"
#include "report.h"
#include "values/values.h"

static void print_json(const struct tool_session *session) {
    struct tool_json json = tool_json_begin(stdout);
    tool_report_items(&json, session->options, session->lease);
    if (session->slot_count > 0) {
        tool_json_open(&json, "slots", '[');
        for (size_t i = 0; i < session->slot_count; i++) {
            tool_json_number(&json, NULL, session->slots[i]);
        }
        tool_json_close(&json, ']');
        tool_json_number(&json, "limit", session->options->lock.limit);
    }
    tool_json_number(&json, "validity_ms", redlock_lease_validity_ms(session->lease));
    tool_report_wait(&json, session);
    tool_report_votes(&json, session->result, false);
    tool_json_end(&json);
}

/* One for each RESOURCE, in the order in which they were given. */
static void print_lines(const struct tool_session *session) {
    const redlock_lease *lease = session->lease;
    char slots[TOOL_SLOTS_SIZE];
    for (size_t i = 0; i < session->options->item_count; i++) {
        fputs(redlock_lease_item_token(lease, i), stdout);
        if (session->slot_count > 0) {
            printf(" %s", tool_report_slots(session, slots, sizeof slots));
        }
        if (session->options->lock.fencing) {
            printf(" %" PRIu64, redlock_lease_item_fence(lease, i));
        }
        putchar('\n');
    }
}

int tool_acquire(struct tool_session *session) {
    int status = 0;
    if (!tool_session_acquire(session, false, NULL, NULL, &status)) {
        return status;
    }
    redlock_lease *lease = session->lease;
    if (session->options->json) {
        print_json(session);
    } else {
        print_lines(session);
    }
    status = tool_report_flush(session->options);
    if (status != 0) {
        /* Nobody got the token, so nobody could release the lock. */
        const int code = tool_session_release(session, lease);
        tool_report_output(session->options, "nobody has the token of '%s': %s", session->options->name,
                           code == REDLOCK_OK ? "the lock is released" : "the keys that are left end with their ttl");
        return status;
    }
    redlock_lease_forget(lease);
    tool_nodes_warn(session, true);
    return 0;
}
