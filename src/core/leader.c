/* Who leads, as an observer knows it. */
#include "core/leader.h"

#include <assert.h>
#include <string.h>

#include "core/time.h"

#define HEARD_MS   10000 /* a node that hints at changes is asked at least so often */
#define UNHEARD_MS 2500  /* one that does not, or whose holder does not, or where it is free */
#define RETRY_MS   1000  /* one that could not answer */
/* Anybody may hint at a change. So many questions a second cannot be too many; and so many at once,
 * for changes that follow each other fast. */
#define HINT_EVERY_MS 20
#define HINTS_AT_ONCE 16
/* After the end of a key; then a random time, so that not all ask at once. */
#define ENDED_MS  2
#define SPREAD_MS 10

#define TICKET_DIGITS 16
#define TOKEN_DIGITS  48

static uint32_t draw(struct redlock_leadership *leadership, uint32_t below) {
    assert(below > 0);
    leadership->random = leadership->random * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)leadership->random * below) >> 32);
}

/* A tenth earlier at most: many observers begin together. */
static int64_t about_ms(struct redlock_leadership *leadership, int64_t delay_ms) {
    return delay_ms - (int64_t)draw(leadership, (uint32_t)(delay_ms / 10));
}

static bool is_same(const struct redlock_leader_token *a, const struct redlock_leader_token *b) {
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static void set_token(struct redlock_leader_token *token, const struct redlock_leader_word *word) {
    assert(word);
    const size_t size = word->token ? word->token_size : 0;
    token->size = (uint8_t)(size < REDLOCK_TOKEN_SIZE_MAX ? size : REDLOCK_TOKEN_SIZE_MAX);
    if (token->size > 0) {
        memcpy(token->bytes, word->token, token->size);
    }
    token->bytes[token->size] = '\0';
}

/* An election's token begins with a ticket, which is not 0. Whoever holds the lock under any other
 * one gives no hint. */
static bool is_elected(const struct redlock_leader_token *token) {
    static const char digits[] = "0123456789abcdef";
    return token->size >= TOKEN_DIGITS && strspn(token->bytes, digits) >= TOKEN_DIGITS &&
           strspn(token->bytes, "0") < TICKET_DIGITS;
}

void redlock_leadership_init(struct redlock_leadership *leadership, uint32_t seed, int64_t now_ns) {
    assert(leadership->node_count >= leadership->quorum && leadership->quorum >= 1);
    leadership->random = seed;
    for (unsigned i = 0; i < leadership->node_count; i++) {
        leadership->nodes[i].ask_ns = now_ns;
    }
}

/* When to ask it. */
static int64_t due_ns(const struct redlock_leader_node *node) {
    const int64_t hinted_ns = node->spent_ns - (HINTS_AT_ONCE - 1) * HINT_EVERY_MS * REDLOCK_NS_PER_MS;
    return node->hinted && hinted_ns < node->ask_ns ? hinted_ns : node->ask_ns;
}

static void ask(struct redlock_leader_node *node, int64_t now_ns) {
    assert(!node->asked);
    if (node->hinted) {
        node->spent_ns = redlock_after_ms(node->spent_ns > now_ns ? node->spent_ns : now_ns, HINT_EVERY_MS);
    }
    node->asked = true;
    node->outdated = node->again = node->late = node->hinted = false;
}

redlock_nodes redlock_leadership_ask(struct redlock_leadership *leadership, int64_t now_ns) {
    redlock_nodes nodes = 0;
    for (unsigned i = 0; i < leadership->node_count; i++) {
        struct redlock_leader_node *node = &leadership->nodes[i];
        if (!node->asked && due_ns(node) <= now_ns) {
            ask(node, now_ns);
            nodes |= REDLOCK_NODE(i);
        }
    }
    return nodes;
}

int64_t redlock_leadership_next_ns(const struct redlock_leadership *leadership) {
    int64_t next_ns = REDLOCK_NEVER_NS;
    for (unsigned i = 0; i < leadership->node_count; i++) {
        const struct redlock_leader_node *node = &leadership->nodes[i];
        if (!node->asked && due_ns(node) < next_ns) {
            next_ns = due_ns(node);
        }
    }
    return next_ns;
}

static bool says(const struct redlock_leader_node *node, const struct redlock_leader_token *token) {
    return node->knows && is_same(&node->token, token);
}

static void set_leader(struct redlock_leadership *leadership, const struct redlock_leader_token *token) {
    for (unsigned i = 0; i < leadership->node_count; i++) {
        struct redlock_leader_node *node = &leadership->nodes[i];
        node->old = !says(node, token);
        node->late = node->asked;
        node->left = false;
    }
    leadership->leader = *token;
    leadership->known = true;
    leadership->checked = false;
}

/* The leader may have taken these nodes since they said that they are free. */
static void doubt(struct redlock_leadership *leadership) {
    for (unsigned i = 0; i < leadership->node_count; i++) {
        struct redlock_leader_node *node = &leadership->nodes[i];
        if (!node->left && !says(node, &leadership->leader)) {
            node->old = true;
            node->late = node->asked;
        }
    }
    leadership->checked = true;
}

static void ask_old(struct redlock_leadership *leadership, const struct redlock_leader_token *token, int64_t now_ns) {
    assert(leadership->known); /* else no word is old */
    for (unsigned i = 0; i < leadership->node_count; i++) {
        struct redlock_leader_node *node = &leadership->nodes[i];
        if (node->old && says(node, token)) {
            node->ask_ns = now_ns;
        }
    }
}

/* This word has changed, so only whom it names can have a quorum now. */
static void decide(struct redlock_leadership *leadership, const struct redlock_leader_token *token, int64_t now_ns) {
    assert(leadership->quorum > 0);
    unsigned all = 0, old = 0, left = 0;
    for (unsigned i = 0; i < leadership->node_count; i++) {
        const struct redlock_leader_node *node = &leadership->nodes[i];
        if (says(node, token)) {
            all++;
            old += node->old;
            left += node->left;
        }
    }
    if (all < leadership->quorum || (leadership->known && is_same(token, &leadership->leader))) {
        return;
    }
    const bool is_fresh = all - old >= leadership->quorum;
    const bool is_sure = token->size > 0 || !leadership->known || leadership->checked || left >= leadership->quorum;
    if (is_fresh && is_sure) {
        set_leader(leadership, token);
        return;
    }
    if (is_fresh) {
        doubt(leadership);
    }
    ask_old(leadership, token, now_ns);
}

static void take(struct redlock_leadership *leadership, struct redlock_leader_node *node,
                 const struct redlock_leader_word *word, int64_t now_ns) {
    assert(!node->outdated);
    const bool named = node->knows && (node->left || is_same(&node->token, &leadership->leader));
    node->knows = true;
    set_token(&node->token, word);
    node->left = named && node->token.size == 0;
    const bool hints = node->heard && is_elected(&node->token);
    int64_t delay_ms = about_ms(leadership, hints ? HEARD_MS : UNHEARD_MS);
    if (node->token.size > 0 && word->ttl_ms >= 0 && word->ttl_ms + ENDED_MS + SPREAD_MS < delay_ms) {
        delay_ms = word->ttl_ms + ENDED_MS + draw(leadership, SPREAD_MS);
    }
    node->ask_ns = redlock_after_ms(now_ns, delay_ms);
    decide(leadership, &node->token, now_ns);
}

void redlock_leadership_answer(struct redlock_leadership *leadership, unsigned index,
                               const struct redlock_leader_word *word, int64_t now_ns) {
    assert(index < leadership->node_count);
    struct redlock_leader_node *node = &leadership->nodes[index];
    node->asked = false;
    if (node->outdated) {
        /* it was another server, and is to be asked now */
    } else if (word) {
        node->old = node->late;
        take(leadership, node, word, now_ns);
    } else {
        node->knows = false;
        node->ask_ns = redlock_after_ms(now_ns, about_ms(leadership, RETRY_MS));
    }
    node->ask_ns = node->again ? now_ns : node->ask_ns;
}

void redlock_leadership_hint(struct redlock_leadership *leadership, unsigned index) {
    assert(index < leadership->node_count);
    leadership->nodes[index].hinted = true;
}

/* What it announced before it was heard is missed. So it is asked then, also if an answer to an
 * earlier question is to come. */
void redlock_leadership_hear(struct redlock_leadership *leadership, unsigned index, bool heard, int64_t now_ns) {
    assert(index < leadership->node_count);
    struct redlock_leader_node *node = &leadership->nodes[index];
    const int64_t latest_ns = redlock_after_ms(now_ns, heard ? 0 : about_ms(leadership, UNHEARD_MS));
    node->again = node->again || heard;
    node->heard = heard;
    node->ask_ns = latest_ns < node->ask_ns ? latest_ns : node->ask_ns;
}

void redlock_leadership_forget(struct redlock_leadership *leadership, unsigned index, int64_t now_ns) {
    assert(index < leadership->node_count);
    struct redlock_leader_node *node = &leadership->nodes[index];
    node->knows = false;
    node->outdated = node->asked;
    node->ask_ns = now_ns;
}

void redlock_leadership_lead(struct redlock_leadership *leadership, const char *token, size_t size) {
    assert(token && size > 0);
    struct redlock_leader_token own;
    set_token(&own, &(struct redlock_leader_word){.token = token, .token_size = size});
    set_leader(leadership, &own);
}

bool redlock_leadership_has_event(const struct redlock_leadership *leadership) {
    return leadership->known && !(leadership->was_told && is_same(&leadership->leader, &leadership->told));
}

const struct redlock_leader_token *redlock_leadership_tell(struct redlock_leadership *leadership) {
    assert(redlock_leadership_has_event(leadership));
    leadership->was_told = true;
    leadership->told = leadership->leader;
    return &leadership->told;
}
