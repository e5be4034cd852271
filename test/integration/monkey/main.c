/* A run of the monkey: its arguments, its world, its end, and whether it did enough. */
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drive.h"
#include "monkey.h"
#include "pki.h"
#include "support.h"

#define FLOOR_MS    120000 /* how much longer a run may take until it has done enough */
#define CALM_MS     30000  /* how long requests that are under way may take to end */
#define FLOOR_CALLS 20     /* of each kind, completed */

struct plan {
    const char *mode;
    uint64_t seed;
    bool seed_given, tracing, tls;
    double seconds;
    uint64_t operations; /* 0: as many as the time allows */
};

static const char usage[] =
    "usage: monkey [--mode hostile|honest] [--seed N] [--seconds S] [--operations N] [--trace] [--tls]\n";

static struct plan read_arguments(int argc, char **argv) {
    static const struct option options[] = {{"mode", required_argument, NULL, 'm'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"seconds", required_argument, NULL, 't'},
                                            {"operations", required_argument, NULL, 'n'},
                                            {"trace", no_argument, NULL, 'v'},
                                            {"tls", no_argument, NULL, 'l'},
                                            {NULL, 0, NULL, 0}};
    struct plan plan = {.mode = "hostile", .seconds = 10};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'm':
            plan.mode = optarg;
            break;
        case 's':
            plan.seed = strtoull(optarg, NULL, 10);
            plan.seed_given = true;
            break;
        case 't':
            plan.seconds = strtod(optarg, NULL);
            break;
        case 'n':
            plan.operations = strtoull(optarg, NULL, 10);
            break;
        case 'v':
            plan.tracing = true;
            break;
        case 'l':
            plan.tls = true;
            break;
        default:
            fputs(usage, stderr);
            exit(64);
        }
    }
    if (optind != argc || (strcmp(plan.mode, "hostile") != 0 && strcmp(plan.mode, "honest") != 0) ||
        (plan.tls && strcmp(plan.mode, "honest") != 0)) { /* TLS lets no lie pass */
        fputs(usage, stderr);
        exit(64);
    }
    if (!plan.seed_given) {
        plan.seed = (uint64_t)support_now_ns() ^ (uint64_t)time(NULL) << 20;
        plan.seed %= 1000000000;
    }
    return plan;
}

static size_t open_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    if (!directory) {
        support_fatal("cannot read /proc/self/fd");
    }
    size_t count = 0;
    while (readdir(directory)) {
        count++;
    }
    closedir(directory);
    return count;
}

/* --- The world --- */

static void name_node(const struct monkey *monkey, char uri[MONKEY_URI_SIZE], const char *host,
                      const struct proxy *proxy) {
    snprintf(uri, MONKEY_URI_SIZE, "%s://%s%s", monkey->tls ? "rediss" : "redis", host, strchr(proxy_name(proxy), ':'));
}

static void begin(struct monkey *monkey) {
    monkey->loop = ev_loop_new(EVFLAG_AUTO);
    if (!monkey->loop) {
        support_fatal("ev_loop_new failed");
    }
    for (unsigned i = 0; i < monkey->node_count; i++) {
        struct node *node = &monkey->nodes[i];
        node->server = &monkey->servers.at[i];
        node->proxy = proxy_start(node->server->port);
        name_node(monkey, monkey->uris[i], "127.0.0.1", node->proxy);
        name_node(monkey, monkey->names[i], "localhost", node->proxy);
    }
    monkey->twin = proxy_start(monkey->servers.at[0].port);
    name_node(monkey, monkey->twin_uri, "127.0.0.1", monkey->twin);
    for (size_t i = 0; i < MONKEY_SLOTS; i++) {
        monkey->slots[i].monkey = monkey;
        if (i < 2) {
            monkey_open(&monkey->slots[i]);
        }
    }
}

static struct monkey *make(const struct plan *plan) {
    struct monkey *monkey = calloc(1, sizeof *monkey);
    if (!monkey || !(monkey->calls = calloc(MONKEY_CALLS, sizeof monkey->calls[0])) ||
        !(monkey->holdings = calloc(MONKEY_HOLDINGS, sizeof monkey->holdings[0]))) {
        support_fatal("out of memory");
    }
    monkey->seed = plan->seed;
    monkey->hostile = strcmp(plan->mode, "hostile") == 0;
    monkey->tracing = plan->tracing;
    monkey->options.state = plan->seed;
    monkey->acts.state = sim_random_next(&monkey->options);
    monkey->faults.state = sim_random_next(&monkey->options);
    monkey->node_count = 3 + sim_random_below(&monkey->options, MONKEY_NODES_MAX - 2);
    monkey->fault_gap_ms = sim_random_between(&monkey->options, 5, 80);
    monkey->fence_expiry_ms = sim_random_percent(&monkey->options, 30) ? 10800000 : 0;
    return monkey;
}

/* An honest node forgets nothing, even if it is killed. That needs no fsync. */
static void start_servers(struct monkey *monkey, bool secured) {
    static struct server_tls server_tls;
    static redlock_tls_options tls;
    const struct server_options options = {.append_only = !monkey->hostile,
                                           .tls = secured ? &server_tls : NULL,
                                           .config = monkey->hostile ? NULL : "appendfsync no\n"};
    if (secured) {
        server_tls = (struct server_tls){.cert_file = pki_file("node.pem"), .key_file = pki_file("node.key")};
        redlock_tls_options_default(&tls);
        tls.ca_file = pki_file("ca.pem");
        monkey->tls = &tls;
    }
    servers_start(&monkey->servers, monkey->node_count, &options);
}

/* --- The run --- */

static void on_tick(struct ev_loop *loop, ev_timer *tick, int events) {
    (void)loop, (void)tick, (void)events;
}

static uint64_t completed(const struct monkey *monkey) {
    uint64_t count = 0;
    for (size_t i = 0; i < CALL_KINDS; i++) {
        count += monkey->completed[i];
    }
    return count;
}

/* What a run lacks to prove anything; NULL if it lacks nothing. */
static const char *lacking(const struct monkey *monkey) {
    static const char *const kinds[CALL_KINDS] = {"acquires", "extends", "releases", "inspects", "connects"};
    for (size_t i = 0; i < CALL_KINDS; i++) {
        if (monkey->completed[i] < FLOOR_CALLS) {
            return kinds[i];
        }
    }
    for (size_t i = 0; i < (monkey->hostile ? FAULT_KINDS : FAULT_HONEST_KINDS); i++) {
        if (fault_happened(monkey, (enum fault)i) == 0) {
            return fault_name((enum fault)i);
        }
    }
    return monkey->succeeded[CALL_ACQUIRE] < FLOOR_CALLS  ? "leases"
           : monkey->succeeded[CALL_EXTEND] < FLOOR_CALLS ? "extensions that worked"
           : monkey->nested < FLOOR_CALLS                 ? "calls inside callbacks"
           : monkey->closes_inside == 0                   ? "closes inside callbacks"
           : monkey->losses == 0                          ? "losses"
           : monkey->cancels == 0                         ? "cancellations"
           : monkey->adopts == 0 || monkey->forgets == 0  ? "adoptions"
           : monkey->managers < 4                         ? "managers"
                                                          : NULL;
}

static void run(struct monkey *monkey, const struct plan *plan) {
    const int64_t start_ms = support_now_ms(), end_ms = start_ms + (int64_t)(plan->seconds * 1000);
    ev_timer tick;
    ev_timer_init(&tick, on_tick, 0.001, 0.001);
    ev_timer_start(monkey->loop, &tick);
    while (!monkey->failed) {
        const int64_t now_ms = support_now_ms();
        const bool done = now_ms >= end_ms || (plan->operations != 0 && completed(monkey) >= plan->operations);
        const char *lacks = done ? lacking(monkey) : NULL;
        if (done && !lacks) {
            break;
        }
        if (now_ms >= end_ms + FLOOR_MS) {
            monkey_complain(monkey, "the run has too few %s to mean anything", lacks);
        }
        faults_step(monkey);
        for (uint32_t acts = sim_random_below(&monkey->acts, 8); acts > 0; acts--) {
            monkey_act(monkey, NULL);
        }
        ev_run(monkey->loop, EVRUN_ONCE);
    }
    ev_timer_stop(monkey->loop, &tick);
}

/* --- The end --- */

/* An unusable node is not asked, so its owed releases stay. */
static bool has_unusable(const redlock_manager *manager) {
    for (size_t i = 0; i < redlock_manager_node_count(manager); i++) {
        redlock_node_info info = {.size = sizeof info};
        if (redlock_manager_node(manager, i, &info) == REDLOCK_OK && info.state == REDLOCK_NODE_UNUSABLE) {
            return true;
        }
    }
    return false;
}

static bool is_slot_done(const struct slot *slot) {
    redlock_statistics now = {.size = sizeof now};
    if (slot->state != SLOT_OPEN) {
        return slot->state != SLOT_CLOSING;
    }
    return redlock_manager_statistics(slot->manager, &now) == REDLOCK_OK && now.requests_pending == 0 &&
           now.leases_held == 0 && (now.releases_owed == 0 || has_unusable(slot->manager));
}

static bool is_done(void *data) {
    const struct monkey *monkey = data;
    for (size_t i = 0; i < MONKEY_SLOTS; i++) {
        if (!is_slot_done(&monkey->slots[i])) {
            return false;
        }
    }
    return monkey->pending == 0;
}

/* A loss needs no answer of a node (R3). */
static bool has_told_losses(void *data) {
    struct monkey *monkey = data;
    for (size_t i = 0; i < monkey->live_count; i++) {
        if (holding_will_be_lost(monkey->live[i])) {
            return false;
        }
    }
    return true;
}

static void print_unfinished(struct monkey *monkey) {
    for (size_t i = 0; i < MONKEY_SLOTS; i++) {
        const struct slot *slot = &monkey->slots[i];
        redlock_statistics now = {.size = sizeof now};
        if (slot->state != SLOT_OPEN || redlock_manager_statistics(slot->manager, &now) != REDLOCK_OK) {
            continue;
        }
        printf("manager %zu: %llu pending, %llu held, %llu owed\n", i, (unsigned long long)now.requests_pending,
               (unsigned long long)now.leases_held, (unsigned long long)now.releases_owed);
        for (size_t at = 0; at < redlock_manager_node_count(slot->manager); at++) {
            redlock_node_info info = {.size = sizeof info};
            if (redlock_manager_node(slot->manager, at, &info) == REDLOCK_OK) {
                printf("  %s: %s %s\n", info.name, redlock_node_state_name(info.state), info.error);
            }
        }
    }
    monkey_complain(monkey, "%u requests, or what managers owe, do not end within %d ms", monkey->pending, CALM_MS);
}

/* Counters of fencing tokens stay; locks do not. */
static bool has_no_lock(void *data) {
    struct monkey *monkey = data;
    for (unsigned i = 0; i < monkey->node_count; i++) {
        for (unsigned resource = 0; resource < MONKEY_RESOURCES; resource++) {
            if (server_has_key(monkey->nodes[i].server, monkey_resource(resource))) {
                return false;
            }
        }
    }
    return true;
}

static bool is_closed(void *data) {
    const struct monkey *monkey = data;
    for (size_t i = 0; i < MONKEY_SLOTS; i++) {
        if (monkey->slots[i].state == SLOT_CLOSING) {
            return false;
        }
    }
    return true;
}

static void on_overdue(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)events;
    *(bool *)timer->data = true;
    ev_break(loop, EVBREAK_ALL);
}

/* A loop without managers has nothing to wait for, so it ends. */
static void run_dry(struct monkey *monkey) {
    bool overdue = false;
    ev_timer guard;
    ev_timer_init(&guard, on_overdue, CALM_MS / 1000.0, 0);
    guard.data = &overdue;
    ev_timer_start(monkey->loop, &guard);
    ev_unref(monkey->loop);
    ev_run(monkey->loop, 0);
    ev_ref(monkey->loop);
    ev_timer_stop(monkey->loop, &guard);
    if (overdue) {
        monkey_complain(monkey, "the loop still has watchers after the last manager");
    }
}

static void calm_down(struct monkey *monkey) {
    monkey->quiet = true;
    if (!drive_until(monkey->loop, has_told_losses, monkey, CALM_MS)) {
        monkey_complain(monkey, "on_lost of a lease has not run");
    }
    monkey->calm = true;
    faults_end(monkey);
    monkey_cancel_all(monkey);
    monkey_let_go(monkey);
    if (!drive_until(monkey->loop, is_done, monkey, CALM_MS)) {
        print_unfinished(monkey);
    }
    if (!monkey->hostile && !drive_until(monkey->loop, has_no_lock, monkey, CALM_MS)) {
        monkey_complain(monkey, "a key is left");
    }
    for (size_t i = 0; i < MONKEY_SLOTS; i++) {
        if (monkey->slots[i].state == SLOT_OPEN) {
            monkey_close(&monkey->slots[i], false);
        }
    }
    if (!drive_until(monkey->loop, is_closed, monkey, CALM_MS)) {
        monkey_complain(monkey, "a manager does not close within %d ms", CALM_MS);
    }
    run_dry(monkey);
}

static void end(struct monkey *monkey) {
    for (size_t i = 0; i < MONKEY_KEPT; i++) {
        redlock_result_free(monkey->kept[i]);
    }
    for (unsigned i = 0; i < monkey->node_count; i++) {
        proxy_stop(monkey->nodes[i].proxy);
    }
    proxy_stop(monkey->twin);
    ev_loop_destroy(monkey->loop);
}

static void tell(const struct monkey *monkey, double seconds) {
    printf("%s, seed %llu: %u nodes, %.1f s, %llu requests completed, %llu calls inside callbacks\n",
           monkey->hostile ? "hostile" : "honest", (unsigned long long)monkey->seed, monkey->node_count, seconds,
           (unsigned long long)completed(monkey), (unsigned long long)monkey->nested);
    printf("acquires %llu (%llu leases), extends %llu (%llu), releases %llu (%llu), inspects %llu, connects %llu\n",
           (unsigned long long)monkey->completed[CALL_ACQUIRE], (unsigned long long)monkey->succeeded[CALL_ACQUIRE],
           (unsigned long long)monkey->completed[CALL_EXTEND], (unsigned long long)monkey->succeeded[CALL_EXTEND],
           (unsigned long long)monkey->completed[CALL_RELEASE], (unsigned long long)monkey->succeeded[CALL_RELEASE],
           (unsigned long long)monkey->completed[CALL_INSPECT], (unsigned long long)monkey->completed[CALL_CONNECT]);
    printf("managers %llu (%llu closed in callbacks), losses %llu, cancels %llu, adopts %llu, forgets %llu\nfaults:",
           (unsigned long long)monkey->managers, (unsigned long long)monkey->closes_inside,
           (unsigned long long)monkey->losses, (unsigned long long)monkey->cancels, (unsigned long long)monkey->adopts,
           (unsigned long long)monkey->forgets);
    for (size_t i = 0; i < (monkey->hostile ? FAULT_KINDS : FAULT_HONEST_KINDS); i++) {
        printf(" %s %llu", fault_name((enum fault)i), (unsigned long long)fault_happened(monkey, (enum fault)i));
    }
    putchar('\n');
}

int main(int argc, char **argv) {
    const struct plan plan = read_arguments(argc, argv);
    if (plan.tls && !pki_is_possible()) {
        printf("skipped: openssl is not installed\n");
        return 77;
    }
    printf("monkey --mode %s --seed %llu%s\n", plan.mode, (unsigned long long)plan.seed, plan.tls ? " --tls" : "");
    fflush(stdout);
    struct monkey *monkey = make(&plan);
    start_servers(monkey, plan.tls);
    const size_t descriptors = open_descriptors();
    const int64_t start_ms = support_now_ms();
    begin(monkey);
    run(monkey, &plan);
    if (!monkey->failed) {
        calm_down(monkey);
    }
    tell(monkey, (double)(support_now_ms() - start_ms) / 1000);
    if (monkey->failed) {
        servers_stop(&monkey->servers);
        _Exit(EXIT_FAILURE); /* managers are left: no check for leaks */
    }
    end(monkey);
    /* A lookup that was given up ends by itself. */
    for (int left = CALM_MS / 10; left > 0 && open_descriptors() != descriptors; left--) {
        support_pause_ms(10);
    }
    if (open_descriptors() != descriptors) {
        monkey_complain(monkey, "%zu descriptors are open, and were %zu", open_descriptors(), descriptors);
    }
    servers_stop(&monkey->servers);
    const bool failed = monkey->failed;
    free(monkey->calls);
    free(monkey->holdings);
    free(monkey);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
