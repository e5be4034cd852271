/* Reads a client's events in order: each must follow from those before. */
#include "client_reading.h"

#include <sys/wait.h>

static bool is_shared(const json_t *event) {
    const json_t *mode = json_object_get(event, "mode");
    assert_true(mode == NULL || strcmp(json_string_value(mode), "shared") == 0);
    return mode != NULL;
}

static void read_invoke(struct reading *r, const json_t *event) {
    assert_int_equal(r->deadline_us, 0);
    assert_true(kit_number(event, "op") > r->op);
    r->op = kit_number(event, "op");
    r->resource = kit_number(event, "resource");
    r->deadline_us = kit_number(event, "deadline");
    assert_true(r->deadline_us > kit_number(event, "t"));
    snprintf(r->what, sizeof r->what, "%s", kit_string(event, "what"));
    bool release = strcmp(r->what, "release") == 0;
    r->shared = is_shared(event) || (release && r->shared);
    assert_true(release || strcmp(r->what, "acquire") == 0);
    /* A release begins after the last claim has ended. A client that holds a lease does not
     * acquire. */
    assert_true(r->ended);
    assert_int_equal(release, r->token[0] != '\0');
}

static void read_complete(struct reading *r, const json_t *event) {
    const char *token = kit_string(event, "token"), *votes = kit_string(event, "votes");
    bool ok = strcmp(kit_string(event, "result"), "OK") == 0;
    assert_int_equal(kit_number(event, "op"), r->op);
    assert_true(r->deadline_us != 0);
    assert_true(kit_number(event, "t") <= r->deadline_us);
    /* The end may come right before the first attempt: nobody was asked. */
    bool asked = kit_number(event, "attempts") >= 1;
    assert_true(asked || strcmp(kit_string(event, "result"), "CANCELLED") == 0);
    assert_int_equal(strlen(votes), KIT_NODES);
    assert_int_equal(strspn(votes, asked ? "GDFUAP" : "?"), KIT_NODES);
    assert_int_equal(strlen(kit_string(event, "message")) > 0, !ok);
    r->deadline_us = 0;
    if (strcmp(r->what, "release") == 0) {
        assert_string_equal(token, r->token);
        r->token[0] = '\0';
        return;
    }
    assert_true(ok || token[0] == '\0');
    snprintf(r->token, sizeof r->token, "%s", token);
    r->acquired_us = kit_number(event, "t");
    r->acquired += token[0] != '\0';
    r->claims = 0;
    r->until_us = 0;
    r->intended = -1;
}

/* Lease events are about the lease that was acquired last. */
static void check_lease(const struct reading *r, const json_t *event) {
    assert_int_equal(r->deadline_us, 0);
    assert_int_equal(strlen(r->token), 16);
    assert_int_equal(strspn(r->token, "0123456789abcdef"), r->shared ? 15 : 16);
    assert_true(!r->shared || r->token[15] == 's');
    assert_string_equal(kit_string(event, "token"), r->token);
    assert_int_equal(kit_number(event, "resource"), r->resource);
}

static void read_claim(struct reading *r, const json_t *event, int64_t ttl_ms) {
    int64_t now_us = kit_number(event, "t"), until_us = kit_number(event, "until");
    check_lease(r, event);
    assert_int_equal(is_shared(event), r->shared);
    assert_true(until_us > now_us && until_us > r->until_us);
    /* Never more than the library allows: the ttl minus its drift, from an earlier time. */
    assert_true(until_us <= now_us + (ttl_ms - ttl_ms / 100 - 2) * 1000);
    r->until_us = until_us;
    r->ended = false;
    r->claims++;
    r->most_claims = r->claims > r->most_claims ? r->claims : r->most_claims;
}

static void read_done(struct reading *r, const json_t *event) {
    check_lease(r, event);
    assert_false(r->ended);
    assert_int_equal(kit_number(event, "read"), r->intended);
    assert_int_equal(kit_number(event, "until"), r->until_us);
    assert_true(kit_number(event, "t") <= r->until_us);
    r->intended = -1;
    r->dones[r->resource - 1]++;
}

static void read_read(struct reading *r, const json_t *event) {
    check_lease(r, event);
    assert_true(r->shared && !r->ended);
    assert_int_equal(kit_number(event, "until"), r->until_us);
    (void)kit_number(event, "read");
    r->reads++;
}

static void read_end(struct reading *r, const json_t *event) {
    check_lease(r, event);
    assert_false(r->ended);
    bool lost = strcmp(kit_string(event, "how"), "lost") == 0;
    assert_true(lost || strcmp(kit_string(event, "how"), "release") == 0);
    assert_true(lost || r->intended == -1);
    r->lost += lost;
    r->ended = true;
}

struct reading read_client(const char *path, int64_t client, int64_t ttl_ms, bool killed) {
    struct reading r = {.client = client, .ended = true, .intended = -1};
    json_t *events = kit_events(path), *event;
    size_t index;
    int64_t last_us = 0;
    json_array_foreach(events, index, event) {
        assert_int_equal(kit_number(event, "client"), client);
        assert_true(kit_number(event, "t") >= last_us);
        last_us = kit_number(event, "t");
        if (kit_is(event, "invoke")) {
            read_invoke(&r, event);
        } else if (kit_is(event, "complete")) {
            read_complete(&r, event);
        } else if (kit_is(event, "claim")) {
            read_claim(&r, event, ttl_ms);
        } else if (kit_is(event, "read")) {
            read_read(&r, event);
        } else if (kit_is(event, "intent")) {
            check_lease(&r, event);
            assert_false(r.shared);
            r.intended = kit_number(event, "read");
        } else if (kit_is(event, "done")) {
            read_done(&r, event);
        } else if (kit_is(event, "refused")) {
            check_lease(&r, event);
            assert_true(kit_number(event, "fence") < kit_number(event, "highest"));
            r.refused++;
            r.intended = -1;
        } else if (kit_is(event, "tally")) {
            assert_true(kit_number(event, "fenced_fast") + kit_number(event, "fenced_slow") >= r.fenced);
            r.fenced = kit_number(event, "fenced_fast") + kit_number(event, "fenced_slow");
        } else if (kit_is(event, "end")) {
            read_end(&r, event);
        } else {
            fail_msg("an event \"%s\" of a client", kit_string(event, "event"));
        }
    }
    json_decref(events);
    if (!killed) {
        assert_true(r.ended);
        assert_int_equal(r.deadline_us, 0); /* every operation completed */
    }
    return r;
}

void expect_clean(int status) {
    assert_exited(status, 0);
}
