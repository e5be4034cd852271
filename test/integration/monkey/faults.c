/* What the monkey breaks: connections by the proxy, nodes by hand. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "monkey.h"
#include "support.h"

static const char *const names[FAULT_KINDS] = {
    "cut",         "mute",  "stall",   "dam",    "trickle", "delay",   "refuse",  "freeze", "script-flush",
    "client-kill", "pause", "restart", "errors", "inject",  "swallow", "corrupt", "clock",  "flushall"};

const char *fault_name(enum fault fault) {
    return names[fault];
}

static const struct {
    enum fault fault;
    enum mishap_kind kind;
} mishap_of[] = {{FAULT_CUT, MISHAP_CUT},         {FAULT_MUTE, MISHAP_MUTE},       {FAULT_INJECT, MISHAP_INJECT},
                 {FAULT_SWALLOW, MISHAP_SWALLOW}, {FAULT_CORRUPT, MISHAP_CORRUPT}, {FAULT_CLOCK, MISHAP_ALTER}};

/* A mishap is planned first, and counts when it has hit a byte. */
uint64_t fault_happened(const struct monkey *monkey, enum fault fault) {
    uint64_t count = monkey->fault_count[fault];
    for (size_t i = 0; i < sizeof mishap_of / sizeof mishap_of[0]; i++) {
        for (unsigned node = 0; mishap_of[i].fault == fault && node < monkey->node_count; node++) {
            count += (uint64_t)proxy_mishaps(monkey->nodes[node].proxy, mishap_of[i].kind);
        }
    }
    return count;
}

/* --- Mishaps --- */

/* Replies that a node may send, replies that no node sends, and bytes that are no reply. */
static size_t draw_bytes(struct sim_random *random, char *bytes) {
    static const char *const lies[] = {"+OK\r\n",
                                       ":1\r\n",
                                       ":0\r\n",
                                       ":-1\r\n",
                                       "$-1\r\n",
                                       "+PONG\r\n",
                                       "-NOSCRIPT No matching script. Please use EVAL.\r\n",
                                       "-ERR something\r\n",
                                       "-READONLY You can't write against a read only replica.\r\n",
                                       "$3\r\nab",
                                       "$5\r\nhello\r\n",
                                       "$1073741824\r\n",
                                       "*2\r\n:1\r\n:1\r\n",
                                       "*3\r\n$1\r\n1\r\n$20\r\n09223372036854775807\r\n",
                                       "*1000000000\r\n",
                                       "*-1\r\n",
                                       "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
                                       ">2\r\n+message\r\n+x\r\n",
                                       "_\r\n",
                                       "%1\r\n+a\r\n:1\r\n",
                                       "\r\n",
                                       "HTTP/1.1 400 Bad Request\r\n\r\n"};
    const uint32_t count = sizeof lies / sizeof lies[0], drawn = sim_random_below(random, count + 4);
    if (drawn < count) {
        memcpy(bytes, lies[drawn], strlen(lies[drawn]));
        return strlen(lies[drawn]);
    }
    const size_t size = 1 + sim_random_below(random, 40);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)sim_random_below(random, 256);
    }
    return size;
}

static void plan_mishap(struct monkey *monkey, struct node *node, enum mishap_kind kind) {
    struct sim_random *random = &monkey->faults;
    struct mishap mishap = {.kind = kind,
                            .after = sim_random_percent(random, 70) ? sim_random_below(random, 64)
                                                                    : sim_random_below(random, 8192),
                            .size = 1 + sim_random_below(random, sim_random_percent(random, 50) ? 8 : 200),
                            .mask = (unsigned char)(1u << sim_random_below(random, 8)),
                            .reset = sim_random_percent(random, 50)};
    if (kind == MISHAP_INJECT) {
        mishap.size = draw_bytes(random, mishap.bytes);
    }
    if (kind == MISHAP_ALTER) { /* of the time in seconds: 100 s or 200 s, either way */
        mishap.after = 0;
        mishap.size = (size_t)snprintf(mishap.bytes, sizeof mishap.bytes, "%lld", (long long)time(NULL) / 1000);
        mishap.mask = (unsigned char)(1u << sim_random_below(random, 2));
    }
    const bool of_reply = kind == MISHAP_ALTER || sim_random_percent(random, 70);
    proxy_plan(node->proxy, of_reply ? PROXY_REPLIES : PROXY_REQUESTS, &mishap);
}

/* --- Faults that last --- */

/* Every write is an error; or, if the node is full, every command that needs memory. */
static void set_errors(struct monkey *monkey, struct server *server, bool on) {
    const bool full = sim_random_percent(&monkey->faults, 50);
    if (!on || full) {
        server_ask(server, "CONFIG", "SET", "maxmemory", on ? "1" : "0");
    }
    if (!on || !full) {
        server_ask(server, "CONFIG", "SET", "min-replicas-to-write", on ? "1" : "0");
    }
}

static void set_lasting(struct monkey *monkey, struct node *node, bool on) {
    struct proxy *proxy = node->proxy;
    switch (node->fault) {
    case FAULT_STALL:
        proxy_hold(proxy, PROXY_REPLIES, on);
        break;
    case FAULT_DAM:
        proxy_hold(proxy, PROXY_REQUESTS, on);
        break;
    case FAULT_TRICKLE:
        proxy_trickle(proxy, PROXY_REPLIES, on);
        proxy_trickle(proxy, PROXY_REQUESTS, on);
        break;
    case FAULT_DELAY:
        proxy_delay(proxy, PROXY_REPLIES, on ? 1 + (int)sim_random_below(&monkey->faults, 80) : 0);
        break;
    case FAULT_REFUSE:
        proxy_refuse(proxy, on);
        break;
    case FAULT_FREEZE:
        on ? proxy_freeze_now(proxy) : proxy_thaw(proxy);
        break;
    case FAULT_PAUSE:
        on ? server_pause(node->server) : server_resume(node->server);
        break;
    case FAULT_RESTART:
        on ? server_kill(node->server) : server_restart(node->server);
        break;
    case FAULT_ERRORS:
        set_errors(monkey, node->server, on);
        break;
    default: /* happens at once */
        break;
    }
}

static bool lasts(enum fault fault) {
    switch (fault) {
    case FAULT_STALL:
    case FAULT_DAM:
    case FAULT_TRICKLE:
    case FAULT_DELAY:
    case FAULT_REFUSE:
    case FAULT_FREEZE:
    case FAULT_PAUSE:
    case FAULT_RESTART:
    case FAULT_ERRORS:
        return true;
    default:
        return false;
    }
}

static void end_fault(struct monkey *monkey, struct node *node) {
    set_lasting(monkey, node, false);
    node->until_ms = 0;
    monkey_trace(monkey, "end of %s at node %d", names[node->fault], (int)(node - monkey->nodes));
}

/* --- What happens at once --- */

static void do_at_once(struct monkey *monkey, struct node *node, enum fault fault) {
    for (size_t i = 0; i < sizeof mishap_of / sizeof mishap_of[0]; i++) {
        if (mishap_of[i].fault == fault) {
            plan_mishap(monkey, node, mishap_of[i].kind);
            return;
        }
    }
    const char *answer = fault == FAULT_SCRIPT_FLUSH  ? server_ask(node->server, "SCRIPT", "FLUSH")
                         : fault == FAULT_CLIENT_KILL ? server_ask(node->server, "CLIENT", "KILL", "TYPE", "normal")
                                                      : server_ask(node->server, "FLUSHALL");
    monkey->fault_count[fault] += *answer != '-';
}

/* Mishaps at a byte are frequent. Some faults are rare, because they take long or do much harm. */
static enum fault draw_fault(struct monkey *monkey) {
    struct sim_random *random = &monkey->faults;
    enum fault fault;
    if (sim_random_percent(random, 50)) {
        const enum fault mishap = mishap_of[sim_random_below(random, sizeof mishap_of / sizeof mishap_of[0])].fault;
        /* A silent connection makes its node useless for seconds. */
        const bool is_meant = mishap == FAULT_MUTE ? sim_random_percent(random, 20) : monkey->hostile;
        return is_meant ? mishap : FAULT_CUT;
    }
    do {
        fault = (enum fault)sim_random_below(random, monkey->hostile ? FAULT_KINDS : FAULT_HONEST_KINDS);
    } while (fault == FAULT_RESTART && !sim_random_percent(random, 30));
    return fault;
}

static void begin_fault(struct monkey *monkey, int64_t now_ms) {
    struct node *node = &monkey->nodes[sim_random_below(&monkey->faults, monkey->node_count)];
    const enum fault fault = draw_fault(monkey);
    const int64_t lasts_ms =
        sim_random_between(&monkey->faults, 5, sim_random_percent(&monkey->faults, 70) ? 100 : 600);
    if (node->until_ms != 0 && (lasts(fault) || node->fault == FAULT_PAUSE || node->fault == FAULT_RESTART)) {
        return; /* only one lasting fault at a time; and none at a node that does not run */
    }
    monkey_trace(monkey, "%s at node %d", names[fault], (int)(node - monkey->nodes));
    if (!lasts(fault)) {
        do_at_once(monkey, node, fault);
        return;
    }
    node->fault = fault;
    node->until_ms = now_ms + lasts_ms;
    monkey->fault_count[fault]++;
    set_lasting(monkey, node, true);
}

void faults_step(struct monkey *monkey) {
    const int64_t now_ms = support_now_ms();
    for (unsigned i = 0; i < monkey->node_count; i++) {
        if (monkey->nodes[i].until_ms != 0 && monkey->nodes[i].until_ms <= now_ms) {
            end_fault(monkey, &monkey->nodes[i]);
        }
    }
    if (now_ms < monkey->next_fault_ms) {
        return;
    }
    begin_fault(monkey, now_ms);
    /* Sometimes there are no faults for a while, so that calls succeed. */
    monkey->next_fault_ms = now_ms + (sim_random_percent(&monkey->faults, 5)
                                          ? sim_random_between(&monkey->faults, 100, 500)
                                          : sim_random_between(&monkey->faults, 1, monkey->fault_gap_ms));
}

void faults_end(struct monkey *monkey) {
    for (unsigned i = 0; i < monkey->node_count; i++) {
        struct node *node = &monkey->nodes[i];
        if (node->until_ms != 0) {
            end_fault(monkey, node);
        }
        proxy_plan(node->proxy, PROXY_REPLIES, &(struct mishap){.kind = MISHAP_NONE});
        proxy_plan(node->proxy, PROXY_REQUESTS, &(struct mishap){.kind = MISHAP_NONE});
        proxy_cut_now(node->proxy, PROXY_RST);
        if (strcmp(server_ask(node->server, "PING"), "PONG") != 0 &&
            strcmp(server_ask(node->server, "PING"), "PONG") != 0) {
            support_fatal("node %u does not answer: %s", i, server_ask(node->server, "PING"));
        }
    }
}
