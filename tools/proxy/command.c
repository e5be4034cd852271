/* The proxy's commands, one a line. README.md lists them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proxy.h"
#include "values/clock.h"
#include "values/values.h"

#define DAY_US     (INT64_C(86400) * 1000000)
#define NUMBER_MAX INT64_C(1000000000000)
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { NO_SUCH = -1, BOTH_WAYS = 2 };

struct request {
    char *rest;       /* the words not read yet */
    char answer[400]; /* the text after "ok", or the error */
};

static const struct key {
    const char *name;
    size_t offset;
    int64_t largest;
} keys[] = {{"hold", offsetof(struct proxy_rule, hold), 1},
            {"delay_us", offsetof(struct proxy_rule, delay_us), DAY_US},
            {"jitter_us", offsetof(struct proxy_rule, jitter_us), DAY_US},
            {"bytes_per_s", offsetof(struct proxy_rule, bytes_per_s), NUMBER_MAX},
            {"trickle", offsetof(struct proxy_rule, trickle), 1},
            {"refuse", offsetof(struct proxy_rule, refuse), 1},
            {"cut", offsetof(struct proxy_rule, cut), 2},
            {"cut_after", offsetof(struct proxy_rule, cut_after), NUMBER_MAX}};

/* Answers with a sentence. False. */
#define wrong(request, ...) (tool_text((request)->answer, sizeof(request)->answer, __VA_ARGS__), false)

static bool is_read(const struct request *request) {
    return request->rest == NULL || *request->rest == '\0';
}

static const char *next_word(struct request *request) {
    return is_read(request) ? NULL : strsep(&request->rest, " ");
}

static bool read_number(const char *text, int64_t largest, int64_t *value) {
    return text != NULL && tool_number_read(text, largest, value, NULL);
}

/* Returns the index among the words, or NO_SUCH. */
static int place_of(const char *word, const char *const *words) {
    for (int i = 0; word != NULL && words[i] != NULL; i++) {
        if (strcmp(word, words[i]) == 0) {
            return i;
        }
    }
    return NO_SUCH;
}

static int read_way(const char *word) {
    return place_of(word, WORDS("requests", "replies", "both"));
}

static void pump(struct proxy_link *link) {
    for (struct proxy_connection *connection = link->connections, *next; connection != NULL; connection = next) {
        next = connection->next; /* pump may close a connection and so remove it from the list */
        proxy_stream_pump(&connection->streams[PROXY_REQUESTS]);
        proxy_stream_pump(&connection->streams[PROXY_REPLIES]);
    }
}

static const struct key *find_key(const char *word) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(word, keys[i].name) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

static bool set(struct proxy_link *link, struct request *request) {
    struct proxy_rule rules[2] = {link->lanes[0].rule, link->lanes[1].rule};
    int way = BOTH_WAYS;
    for (const char *word; (word = next_word(request)) != NULL;) {
        const struct key *key = find_key(word);
        int64_t value;
        if (read_way(word) != NO_SUCH) {
            way = read_way(word);
            continue;
        }
        if (key == NULL) {
            return wrong(request, "a link has no such setting");
        }
        if (!read_number(next_word(request), key->largest, &value)) {
            return wrong(request, "%s must be a number from 0 to %" PRId64, key->name, key->largest);
        }
        for (int w = 0; w < 2; w++) {
            if (way == w || way == BOTH_WAYS) {
                memcpy((char *)&rules[w] + key->offset, &value, sizeof value);
            }
        }
    }
    for (int w = 0; w < 2; w++) {
        proxy_lane_set(&link->lanes[w], &rules[w], tool_now_us());
    }
    pump(link);
    return true;
}

static bool cut(struct proxy_link *link, struct request *request) {
    const char *const *hows = WORDS("fin", "rst");
    int client = place_of(next_word(request), hows), node = place_of(next_word(request), hows);
    if (client == NO_SUCH || node == NO_SUCH || !is_read(request)) {
        return wrong(request, "a cut needs fin or rst for the client, and again for the node");
    }
    proxy_cut(link, client == 1, node == 1);
    return true;
}

/* Changes the open connections, not later ones. */
static bool treat(struct proxy_link *link, struct request *request) {
    enum { FREEZE, THAW, DEAFEN, DISMISS };
    int how = place_of(next_word(request), WORDS("freeze", "thaw", "deafen", "dismiss"));
    if (how == NO_SUCH || !is_read(request)) {
        return wrong(request, "the treatments are freeze, thaw, deafen and dismiss");
    }
    for (struct proxy_connection *connection = link->connections, *next; connection != NULL; connection = next) {
        struct proxy_stream *streams = connection->streams;
        next = connection->next;
        if (how == FREEZE || how == THAW) {
            streams[PROXY_REQUESTS].pipe.frozen = streams[PROXY_REPLIES].pipe.frozen = how == FREEZE;
        }
        if (how == DEAFEN || how == THAW) {
            streams[PROXY_REQUESTS].deaf = how == DEAFEN;
        }
        if (how == DISMISS) {
            proxy_connection_dismiss(connection);
        }
    }
    pump(link);
    return true;
}

/* Reads two hexadecimal digits a byte. */
static bool read_bytes(const char *digits, struct mishap *mishap) {
    if (digits == NULL || mishap->size > MISHAP_BYTES_MAX || strlen(digits) != 2 * mishap->size) {
        return false;
    }
    for (size_t i = 0; i < mishap->size; i++) {
        unsigned byte;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1) {
            return false;
        }
        mishap->bytes[i] = (char)byte;
    }
    return true;
}

static bool plan(struct proxy_link *link, struct request *request) {
    int way = read_way(next_word(request));
    int kind = place_of(next_word(request), WORDS("none", "inject", "swallow", "mute", "corrupt", "alter", "cut"));
    int64_t numbers[4];
    for (int i = 0; i < 4; i++) {
        if (!read_number(next_word(request), NUMBER_MAX, &numbers[i])) {
            return wrong(request, "a mishap needs AFTER SIZE MASK RESET");
        }
    }
    if (way == NO_SUCH || way == BOTH_WAYS || kind == NO_SUCH) {
        return wrong(request, "a mishap needs requests or replies, and its kind");
    }
    struct mishap mishap = {.kind = (enum mishap_kind)kind,
                            .after = (size_t)numbers[0],
                            .size = (size_t)numbers[1],
                            .mask = (unsigned char)numbers[2],
                            .reset = numbers[3] != 0};
    if ((kind == MISHAP_INJECT || kind == MISHAP_ALTER) && !read_bytes(next_word(request), &mishap)) {
        return wrong(request, "a mishap of this kind needs SIZE bytes, at most %d", MISHAP_BYTES_MAX);
    }
    if (!is_read(request)) {
        return wrong(request, "a mishap has no more words than these");
    }
    link->planned[way] = mishap;
    return true;
}

static bool count(struct proxy_link *link, struct request *request) {
    if (!is_read(request)) {
        return wrong(request, "count has no more words");
    }
    (void)snprintf(request->answer, sizeof request->answer, " %" PRId64 " %" PRId64 " %" PRId64 " %zu", link->bytes[0],
                   link->bytes[1], link->accepted, link->connection_count);
    for (int kind = MISHAP_NONE + 1; kind < MISHAP_KINDS; kind++) {
        tool_append(request->answer, sizeof request->answer, " %" PRId64, link->mishaps[kind]);
    }
    return true;
}

static bool obey(struct proxy_server *proxy, struct request *request) {
    static bool (*const commands[])(struct proxy_link *, struct request *) = {set, cut, treat, plan, count};
    int command = place_of(next_word(request), WORDS("set", "cut", "treat", "plan", "count"));
    int64_t link = 0, last = (int64_t)proxy->link_count - 1;
    if (command == NO_SUCH) {
        return wrong(request, "the commands are set, cut, treat, plan and count");
    }
    const char *which = next_word(request);
    bool all = which != NULL && strcmp(which, "all") == 0;
    if (!all && !read_number(which, last, &link)) {
        return wrong(request, "there is no such link: they count from 0");
    }
    last = all ? last : link;
    for (char *words = request->rest; link <= last; link++) {
        char copy[sizeof proxy->line]; /* next_word() changes the line, so each link reads a copy */
        (void)snprintf(copy, sizeof copy, "%s", words != NULL ? words : "");
        request->rest = copy;
        if (!commands[command](&proxy->links[link], request)) {
            return false;
        }
    }
    return true;
}

void proxy_command(struct proxy_server *proxy, char *line, char *answer, size_t size) {
    struct request request = {.rest = line};
    bool done = obey(proxy, &request);
    (void)snprintf(answer, size, "%s%s", done ? "ok" : "error: ", request.answer);
}
