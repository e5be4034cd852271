/* The tests' side of the fault proxy: each function sends a command. */
#include "proxy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "proxy/child.h"
#include "support.h"

struct proxy {
    struct proxy_child child;
    long long forgotten[2]; /* bytes */
    char name[32], uri[48];
};

/* The answer to `count`. */
struct counts {
    long long bytes[2], accepted, open, mishaps[MISHAP_KINDS];
};

static const char *const ways[] = {"requests", "replies"};
static const char *const cuts[] = {"fin", "rst"};

struct proxy *proxy_start(int target_port) {
    struct proxy *proxy = calloc(1, sizeof *proxy);
    const uint16_t target = (uint16_t)target_port;
    uint16_t port;
    char error[512];
    if (!proxy) {
        support_fatal("out of memory");
    }
    if (!proxy_child_start(&proxy->child, &target, 1, &port, error, sizeof error)) {
        support_fatal("%s", error);
    }
    snprintf(proxy->name, sizeof proxy->name, "127.0.0.1:%u", port);
    snprintf(proxy->uri, sizeof proxy->uri, "redis://%s", proxy->name);
    return proxy;
}

void proxy_stop(struct proxy *proxy) {
    if (proxy) {
        proxy_child_stop(&proxy->child);
        free(proxy);
    }
}

const char *proxy_uri(const struct proxy *proxy) {
    return proxy->uri;
}

const char *proxy_name(const struct proxy *proxy) {
    return proxy->name;
}

#define ask(proxy, ...)                                                                                                \
    do {                                                                                                               \
        char answer_[512];                                                                                             \
        if (!proxy_child_ask(&(proxy)->child, answer_, sizeof answer_, __VA_ARGS__)) {                                 \
            support_fatal("the proxy at %s: %s", (proxy)->name, answer_);                                              \
        }                                                                                                              \
    } while (0)

void proxy_delay(struct proxy *proxy, enum proxy_way way, int delay_ms) {
    ask(proxy, "set 0 %s delay_us %lld", ways[way], delay_ms * 1000LL);
}

void proxy_hold(struct proxy *proxy, enum proxy_way way, bool on) {
    ask(proxy, "set 0 %s hold %d", ways[way], on);
}

void proxy_trickle(struct proxy *proxy, enum proxy_way way, bool on) {
    ask(proxy, "set 0 %s trickle %d", ways[way], on);
}

void proxy_refuse(struct proxy *proxy, bool on) {
    ask(proxy, "set 0 refuse %d", on);
}

void proxy_cut_after(struct proxy *proxy, enum proxy_way way, long long bytes, enum proxy_cut how) {
    const int cut = how == PROXY_RST ? 2 : 1;
    ask(proxy, "set 0 %s cut %d cut_after %lld", ways[way], bytes < 0 ? 0 : cut, bytes < 0 ? 0 : bytes);
}

void proxy_cut_now(struct proxy *proxy, enum proxy_cut how) {
    ask(proxy, "cut 0 %s fin", cuts[how]);
}

void proxy_freeze_now(struct proxy *proxy) {
    ask(proxy, "treat 0 freeze");
}

void proxy_deafen_now(struct proxy *proxy) {
    ask(proxy, "treat 0 deafen");
}

void proxy_dismiss_now(struct proxy *proxy) {
    ask(proxy, "treat 0 dismiss");
}

void proxy_thaw(struct proxy *proxy) {
    ask(proxy, "treat 0 thaw");
}

void proxy_plan(struct proxy *proxy, enum proxy_way way, const struct mishap *mishap) {
    static const char *const kinds[] = {"none", "inject", "swallow", "mute", "corrupt", "alter", "cut"};
    const bool has_bytes = mishap->kind == MISHAP_INJECT || mishap->kind == MISHAP_ALTER;
    char digits[2 * MISHAP_BYTES_MAX + 1] = "";
    for (size_t i = 0; has_bytes && i < mishap->size; i++) {
        snprintf(digits + 2 * i, 3, "%02x", (unsigned char)mishap->bytes[i]);
    }
    ask(proxy, "plan 0 %s %s %zu %zu %u %d %s", ways[way], kinds[mishap->kind], mishap->after, mishap->size,
        mishap->mask, mishap->reset, digits);
}

static struct counts count(struct proxy *proxy) {
    struct counts counts = {0};
    char answer[512], *place = answer;
    if (!proxy_child_ask(&proxy->child, answer, sizeof answer, "count 0")) {
        support_fatal("the proxy at %s: %s", proxy->name, answer);
    }
    for (size_t i = 0; i < 2; i++) {
        counts.bytes[i] = strtoll(place, &place, 10);
    }
    counts.accepted = strtoll(place, &place, 10);
    counts.open = strtoll(place, &place, 10);
    for (size_t kind = MISHAP_NONE + 1; kind < MISHAP_KINDS; kind++) {
        counts.mishaps[kind] = strtoll(place, &place, 10);
    }
    return counts;
}

long long proxy_mishaps(struct proxy *proxy, enum mishap_kind kind) {
    return count(proxy).mishaps[kind];
}

long long proxy_bytes(struct proxy *proxy, enum proxy_way way) {
    return count(proxy).bytes[way] - proxy->forgotten[way];
}

void proxy_forget_bytes(struct proxy *proxy) {
    const struct counts counts = count(proxy);
    proxy->forgotten[0] = counts.bytes[0];
    proxy->forgotten[1] = counts.bytes[1];
}

int proxy_connections(struct proxy *proxy) {
    return (int)count(proxy).accepted;
}

int proxy_open_links(struct proxy *proxy) {
    return (int)count(proxy).open;
}
