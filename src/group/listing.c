/* The request that finds all locks of the nodes, page after page from each. */
#include "group/query.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/time.h"
#include "group/requests.h"
#include "wire/page.h"

#define PAGE_KEYS  250
#define PAGE_TRIES 3

/*
 * A node of a listing; the last state is DECIDED:
 *
 * | state | event                                | what happens                    | next  |
 * | ----- | ------------------------------------ | ------------------------------- | ----- |
 * | ASKED | a page with locks                    | keep it until the callbacks run | FULL  |
 * | ASKED | a page without locks, not the last   | ask for the next                | ASKED |
 * | ASKED | the last page, without locks         | GRANTED                         |       |
 * | ASKED | no answer in time, try 1 or 2        | ask again, for fewer keys       | ASKED |
 * | ASKED | no answer in time, try 3             | UNKNOWN                         |       |
 * | ASKED | an error; the connection ends        | that vote                       |       |
 * | FULL  | the callbacks have run, not the last | ask for the next                | ASKED |
 * | FULL  | the callbacks have run, the last     | GRANTED                         |       |
 *
 * So no node is asked faster than its locks are taken, and at most one page of each is in memory.
 */
struct listed_node {
    char *page; /* NULL unless FULL */
    size_t page_size;
    uint64_t cursor; /* where the next page begins */
    uint64_t unread; /* keys that could not be read, on all pages */
    unsigned late;   /* tries of this page that had no answer in time */
};

struct listing {
    struct redlock_query query; /* first member */
    redlock_list_callback each;
    bool others;
    char *pattern;
    struct listed_node nodes[]; /* one for each node; then the votes, then the pattern */
};

void redlock_list_options_default(redlock_list_options *options) {
    *options = (redlock_list_options){.size = sizeof *options};
}

/* The key prefix stands for itself. */
static void make_pattern(char *at, const char *prefix, const char *match) {
    for (; *prefix != '\0'; prefix++) {
        if (strchr("*?[]^-\\", *prefix) != NULL) {
            *at++ = '\\';
        }
        *at++ = *prefix;
    }
    strcpy(at, match);
}

static struct listing *listing_new(struct redlock_group *group, const char *match, redlock_callback done, void *data) {
    const unsigned count = group->node_count;
    const size_t size =
        sizeof(struct listing) + count * (sizeof(struct listed_node) + sizeof(struct redlock_result_vote));
    struct listing *listing = redlock_requester_new(group, REDLOCK_REQUESTER_LISTING,
                                                    size + 2 * group->key_prefix_size + strlen(match) + 1, size);
    if (!listing) {
        return NULL;
    }
    struct redlock_result_vote *votes = (struct redlock_result_vote *)(void *)(listing->nodes + count);
    redlock_query_start(&listing->query, group, REDLOCK_RESULT_LIST, votes, done, data);
    listing->pattern = (char *)(votes + count);
    make_pattern(listing->pattern, group->key_prefix, match);
    return listing;
}

static void listing_free(struct redlock_group *group, struct redlock_requester *requester) {
    struct listing *listing = (struct listing *)requester;
    for (unsigned i = 0; i < group->node_count; i++) {
        free(listing->nodes[i].page);
    }
    redlock_query_free(&listing->query);
}

static void free_if_over(struct listing *listing) {
    if (redlock_query_is_over(&listing->query)) {
        listing_free(listing->query.group, &listing->query.oneshot.requester);
    }
}

/* Asks the node for the page at its cursor. */
static void ask(struct listing *listing, unsigned node) {
    struct redlock_group *group = listing->query.group;
    const struct listed_node *listed = &listing->nodes[node];
    assert((redlock_round_pending(&listing->query.round) & REDLOCK_NODE(node)) && listed->late < PAGE_TRIES);
    const struct redlock_page page = {.cursor = listed->cursor,
                                      .pattern = listing->pattern,
                                      .count = PAGE_KEYS >> (2 * listed->late),
                                      .others = listing->others};
    struct redlock_message message = {.operation = REDLOCK_OP_LIST,
                                      .by_source = true,
                                      .fence_keys = &group->fence_keys,
                                      .wait_suffix = group->wait_suffix,
                                      .page = &page,
                                      .now_ns = redlock_group_now_ns(group)};
    if (redlock_requester_send(group, &listing->query.oneshot.requester, REDLOCK_NODE(node), &message) == 0) {
        redlock_query_refused(&listing->query, REDLOCK_NODE(node));
    }
}

/* After a page: asks for the next, or the node is done. */
static void go_on(struct listing *listing, unsigned node) {
    const struct listed_node *listed = &listing->nodes[node];
    struct redlock_text *remark = NULL;
    assert(!listed->page);
    if (listed->cursor != 0) {
        ask(listing, node);
        return;
    }
    if (listed->unread > 0) {
        remark = redlock_text_new(REDLOCK_CAUSE_NOPERM, "it has %" PRIu64 " key%s that this user may not read",
                                  listed->unread, listed->unread == 1 ? "" : "s");
    }
    redlock_query_vote(&listing->query, node, REDLOCK_VOTE_GRANTED, remark);
    redlock_text_drop(remark);
}

static void take_page(struct listing *listing, unsigned node, const struct redlock_answer *answer) {
    static const struct redlock_text no_memory = {.string = "no memory for its answer", .cause = REDLOCK_CAUSE_OURS};
    struct listed_node *listed = &listing->nodes[node];
    assert(!listed->page && answer->vote == REDLOCK_VOTE_GRANTED);
    listed->late = 0;
    listed->cursor = answer->cursor;
    listed->unread += answer->unread;
    if (answer->holder_size == 0) {
        go_on(listing, node);
        return;
    }
    listed->page = malloc(answer->holder_size);
    if (!listed->page) {
        redlock_query_vote(&listing->query, node, REDLOCK_VOTE_FAILED, redlock_text_constant(&no_memory));
        return;
    }
    memcpy(listed->page, answer->holder, answer->holder_size);
    listed->page_size = answer->holder_size;
    redlock_query_queue(&listing->query);
}

/* A page changes nothing, so it may be asked for again. SCAN takes its cursor with any count. A
 * late reply is dropped, so no lock is told twice. */
static void take_timeout(struct listing *listing, unsigned node, struct redlock_text *error) {
    if (++listing->nodes[node].late < PAGE_TRIES) {
        ask(listing, node);
        return;
    }
    struct redlock_text *why =
        redlock_text_new(REDLOCK_CAUSE_TIMEOUT, "%s, %d times in a row", redlock_text_string(error), PAGE_TRIES);
    redlock_query_vote(&listing->query, node, REDLOCK_VOTE_UNKNOWN, why);
    redlock_text_drop(why);
}

static void listing_answer(struct redlock_group *group, struct redlock_requester *requester, unsigned node,
                           const struct redlock_answer *answer) {
    (void)group;
    struct listing *listing = (struct listing *)requester;
    const bool timed_out =
        answer->vote == REDLOCK_VOTE_UNKNOWN && redlock_text_cause(answer->text) == REDLOCK_CAUSE_TIMEOUT;
    if (!listing->query.decided) {
        redlock_query_answered(&listing->query, node);
        if (answer->vote == REDLOCK_VOTE_GRANTED) {
            take_page(listing, node, answer);
        } else if (timed_out) {
            take_timeout(listing, node, answer->text);
        } else {
            redlock_query_vote(&listing->query, node, answer->vote, answer->text);
        }
    }
    free_if_over(listing);
}

/* Returns whether the entry can be told: a C string, with the key prefix before it. */
static bool copy_entry(const struct redlock_group *group, const struct redlock_page_entry *entry, char *resource,
                       char *token) {
    const size_t prefix_size = group->key_prefix_size;
    assert(entry->key_size <= REDLOCK_RESOURCE_SIZE_MAX && entry->token_size <= REDLOCK_TOKEN_SIZE_MAX);
    if (entry->key_size <= prefix_size || memcmp(entry->key, group->key_prefix, prefix_size) != 0 ||
        memchr(entry->key, '\0', entry->key_size) || memchr(entry->token, '\0', entry->token_size) ||
        entry->ttl_ms < -1) {
        return false;
    }
    memcpy(resource, entry->key + prefix_size, entry->key_size - prefix_size);
    resource[entry->key_size - prefix_size] = '\0';
    memcpy(token, entry->token, entry->token_size);
    token[entry->token_size] = '\0';
    return true;
}

/* Runs `each` for the page of the node. A callback may end the listing. */
static void tell_page(struct listing *listing, unsigned node) {
    struct listed_node *listed = &listing->nodes[node];
    assert(listed->page);
    const char *at = listed->page, *end = at + listed->page_size;
    char resource[REDLOCK_RESOURCE_SIZE_MAX + 1], token[REDLOCK_TOKEN_SIZE_MAX + 1];
    struct redlock_page_entry entry;
    while (!listing->query.decided && redlock_page_next(&at, end, &entry)) {
        const redlock_listed lock = {.size = sizeof lock,
                                     .node = node,
                                     .resource = resource,
                                     .token = token,
                                     .ttl_ms = entry.ttl_ms,
                                     .waiters = entry.waiters,
                                     .readers = entry.readers};
        if (copy_entry(listing->query.group, &entry, resource, token) && !listing->each(&lock, listing->query.data)) {
            redlock_query_decide(&listing->query, REDLOCK_ERR_CANCELLED);
        }
    }
    free(listed->page);
    listed->page = NULL;
    if (!listing->query.decided) {
        go_on(listing, node);
    }
}

static void listing_callback(struct redlock_group *group, struct redlock_requester *requester) {
    struct listing *listing = (struct listing *)requester;
    struct redlock_query *query = &listing->query;
    query->in_callbacks = true;
    for (unsigned i = 0; i < group->node_count && !query->decided; i++) {
        if (listing->nodes[i].page) {
            tell_page(listing, i);
        }
    }
    if (query->decided) {
        const struct redlock_result result = redlock_query_result(query);
        redlock_query_tell(query, &result);
    }
    query->in_callbacks = false;
    free_if_over(listing);
}

static int check(struct redlock_group *group, const redlock_list_options *given, redlock_list_callback each,
                 redlock_callback done, redlock_list_options *known) {
    struct redlock_error_text *failure = &group->failure;
    redlock_list_options_default(known);
    int code = redlock_check_given(failure, "each", each != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_given(failure, "done", done != NULL);
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_options(failure, "redlock_list_options", known, sizeof *known, given);
    }
    if (code == REDLOCK_OK && known->match) {
        code = redlock_check_size(failure, "match", strnlen(known->match, REDLOCK_RESOURCE_SIZE_MAX + 1), 0,
                                  REDLOCK_RESOURCE_SIZE_MAX, "");
    }
    if (code == REDLOCK_OK && known->cancel) {
        code = redlock_fail(failure, REDLOCK_ERR_INVALID, "cancel is only for redlock_client_list()");
    }
    return redlock_group_admit(group, code);
}

int redlock_group_list(struct redlock_group *group, const redlock_list_options *options, redlock_list_callback each,
                       redlock_callback done, void *data) {
    redlock_list_options known;
    const int code = check(group, options, each, done, &known);
    if (code != REDLOCK_OK) {
        return code;
    }
    struct listing *listing = listing_new(group, known.match ? known.match : "*", done, data);
    if (!listing) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    listing->each = each;
    listing->others = known.others;
    for (unsigned i = 0; i < group->node_count; i++) {
        ask(listing, i);
    }
    redlock_group_rearm(group);
    return REDLOCK_OK;
}

void redlock_group_list_cancel(struct redlock_group *group, const void *data) {
    REDLOCK_REQUESTERS(requester, group, REDLOCK_REQUESTER_LISTING) {
        struct listing *listing = (struct listing *)requester;
        if (listing->query.data == data) {
            redlock_query_decide(&listing->query, REDLOCK_ERR_CANCELLED);
        }
    }
    redlock_group_rearm(group);
}

const struct redlock_requester_ops redlock_listing_ops = {
    .answer = listing_answer, .callback = listing_callback, .close = redlock_query_close, .free = listing_free};
