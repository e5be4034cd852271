/* redlock_model: searches all states of a model, correct or with a bug, and reports their number
 * and what is wrong. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fence.h"
#include "lock.h"
#include "queue.h"
#include "queue_order.h"

enum { EXIT_USAGE = 64, NUMBER_CHARS = 32 };

struct named_bug {
    const char *name;
    unsigned bug;
};

static const struct named_bug fence_bugs[] = {
    {"incr", FENCE_INCR},
    {"no-write-back", FENCE_NO_WRITE_BACK},
    {"accepts-equal", FENCE_ACCEPTS_EQUAL},
    {"acks-equal", FENCE_ACKS_EQUAL},
    {"acks-unlocked", FENCE_ACKS_UNLOCKED},
    {"acks-any", FENCE_ACKS_ANY},
    {NULL, FENCE_RIGHT},
};

static const struct named_bug lock_bugs[] = {
    {"unguarded", LOCK_UNGUARDED},
    {"quarantine-short", LOCK_SHORT},
    {"quarantine-by-uptime", LOCK_UPTIME},
    {"heal-counts", LOCK_HEAL_COUNTS},
    {"heal-quarantined", LOCK_HEAL_QUARANTINED},
    {"set-queued", LOCK_SET_QUEUED},
    {"heal-unproven", LOCK_HEAL_UNPROVEN},
    {"heal-late", LOCK_HEAL_LATE},
    {"marker", LOCK_MARKER},
    {"marker-old-copy", LOCK_MARKER_OLD_COPY},
    {NULL, LOCK_RIGHT},
};

static const struct named_bug queue_bugs[] = {
    {"same-token", QUEUE_SAME_TOKEN},
    {"bound-at-arrival", QUEUE_BOUND_ARRIVAL},
    {"no-serials", QUEUE_NO_SERIALS},
    {"newest-bound", QUEUE_NEWEST_BOUND},
    {"late-backing", QUEUE_LATE_BACKING},
    {"stale-served", QUEUE_STALE_SERVED},
    {NULL, QUEUE_RIGHT},
};

static const struct named_bug order_bugs[] = {
    {"own-clock", ORDER_OWN_CLOCK},       {"stays-queued", ORDER_STAYS_QUEUED},
    {"try-keeps", ORDER_TRY_KEEPS},       {"enters", ORDER_ENTERS},
    {"never-yields", ORDER_NEVER_YIELDS}, {"push-unanswered", ORDER_UNANSWERED},
    {"over-yields", ORDER_OVER_YIELDS},   {NULL, ORDER_RIGHT},
};

struct arguments {
    const struct named_model *model;
    struct fence_config fence;
    struct lock_config lock;
    struct queue_config queue;
    struct order_config order;
    unsigned states_max;
    bool expect_violation;
};

struct named_model {
    const char *name;
    const struct model *model;
    const struct named_bug *bugs;
    size_t config; /* its place in struct arguments */
};

static const struct named_model models[] = {
    {"fence", &fence_model, fence_bugs, offsetof(struct arguments, fence)},
    {"lock", &lock_model, lock_bugs, offsetof(struct arguments, lock)},
    {"queue", &queue_model, queue_bugs, offsetof(struct arguments, queue)},
    {"order", &order_model, order_bugs, offsetof(struct arguments, order)},
    {NULL, NULL, NULL, 0},
};

/* An option of one model (NULL: of all), and the number or flag that it sets, if any. */
struct option {
    const struct model *model;
    const char *name;
    unsigned *number;
    unsigned least, most;
    bool *flag;
};

static void usage(FILE *out) {
    fputs("redlock_model fence [--nodes N] [--attempts AAB] [--proposals N] [--rounds N] [--losses N] [--collide]\n"
          "                    [--right-clocks] [--in-turn] [--clients LIST] [--bug NAME]\n"
          "redlock_model lock [--nodes N] [--ttl TICKS] [--ttl-max TICKS] [--restarts N] [--patience TICKS]\n"
          "                    [--clients LIST] [--bug NAME]\n"
          "redlock_model queue [--nodes N] [--lost N] [--clients N] [--ttl TICKS] [--stale TICKS] [--in-order] [--bug "
          "NAME]\n"
          "redlock_model order [--nodes N] [--lost N] [--waiters N] [--breaks N] [--tries N] [--bug NAME]\n"
          "all: [--states N] [--expect-violation]\n"
          "Searches every state that the model can reach. --attempts has a letter for each attempt of a client.\n"
          "--clients 123/2,12345/4: client A asks nodes 1 to 3, and two of them are its quorum; B all five, and four. "
          "Succeeds\n"
          "when nothing is wrong in any; with --expect-violation when something is. At most N states are looked at.\n",
          out);
    for (const struct named_model *model = models; model->name; model++) {
        fprintf(out, "Bugs of %s:", model->name);
        for (const struct named_bug *bug = model->bugs; bug->name; bug++) {
            fprintf(out, " %s", bug->name);
        }
        fputc('\n', out);
    }
}

static bool read_number(const char *text, unsigned least, unsigned most, unsigned *number) {
    char *end = NULL;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < least || value > most) {
        return false;
    }
    *number = (unsigned)value;
    return true;
}

static void set_bug(struct arguments *arguments, unsigned bug) {
    const struct model *model = arguments->model->model;
    if (model == &fence_model) {
        arguments->fence.bug = (enum fence_bug)bug;
    } else if (model == &lock_model) {
        arguments->lock.bug = (enum lock_bug)bug;
    } else if (model == &queue_model) {
        arguments->queue.bug = (enum queue_bug)bug;
    } else {
        arguments->order.bug = (enum order_bug)bug;
    }
}

static bool read_bug(const char *name, struct arguments *arguments) {
    for (const struct named_bug *bug = arguments->model->bugs; bug->name; bug++) {
        if (strcmp(bug->name, name) == 0) {
            set_bug(arguments, bug->bug);
            return true;
        }
    }
    return false;
}

static bool read_attempts(const char *letters, struct fence_config *fence) {
    const size_t count = strlen(letters);
    fence->attempts = letters;
    return count > 0 && count <= FENCE_ATTEMPTS_MAX && strspn(letters, "ABCD") == count;
}

/* "123/2": the nodes and the quorum. Returns where it ends; NULL for an error. */
static const char *read_setup(const char *text, unsigned nodes_max, struct setup *setup) {
    unsigned count = 0;
    for (; *text >= '1' && *text <= (char)('0' + nodes_max); text++, count++) {
        setup->nodes |= 1U << (*text - '1');
    }
    if (*text++ != '/' || (unsigned)__builtin_popcount(setup->nodes) != count) {
        return NULL;
    }
    setup->quorum = (unsigned)(*text - '0');
    return setup->quorum >= 1 && setup->quorum <= count ? text + 1 : NULL;
}

/* Node numbers must leave no gap. */
static bool read_setups(const char *text, unsigned nodes_max, struct setups *setups, unsigned *nodes) {
    unsigned all = 0;
    for (setups->count = 0; setups->count < SETUPS_MAX; text++) {
        struct setup *setup = &setups->of[setups->count++];
        *setup = (struct setup){0};
        text = read_setup(text, nodes_max, setup);
        all |= setup->nodes;
        if (!text || *text != ',') {
            break;
        }
    }
    *nodes = (unsigned)__builtin_popcount(all);
    return text && !*text && (all & (all + 1)) == 0;
}

static bool read_clients(const char *text, struct arguments *arguments) {
    struct fence_config *fence = &arguments->fence;
    struct lock_config *lock = &arguments->lock;
    return arguments->model->model == &fence_model ? read_setups(text, FENCE_NODES_MAX, &fence->setups, &fence->nodes)
           : arguments->model->model == &lock_model
               ? read_setups(text, LOCK_NODES_MAX, &lock->setups, &lock->nodes) && lock->setups.count == 2
               : false;
}

/* Each client needs one. */
static bool are_setups_enough(const struct fence_config *fence) {
    unsigned clients = 0;
    for (const char *client = fence->attempts; *client; client++) {
        clients = (unsigned)(*client - 'A') + 1 > clients ? (unsigned)(*client - 'A') + 1 : clients;
    }
    return fence->setups.count == 0 || fence->setups.count >= clients;
}

/* Reads the option at argv[0] and its value, if it has one. Returns how many words it read; 0 for
 * an error. */
static int read_option(const struct option *options, char **argv, struct arguments *arguments) {
    if (arguments->model->model == &fence_model && strcmp(argv[0], "--attempts") == 0) {
        return argv[1] && read_attempts(argv[1], &arguments->fence) ? 2 : 0;
    }
    if (arguments->model->model != &queue_model && strcmp(argv[0], "--clients") == 0) {
        return argv[1] && read_clients(argv[1], arguments) ? 2 : 0;
    }
    if (strcmp(argv[0], "--bug") == 0) {
        return argv[1] && read_bug(argv[1], arguments) ? 2 : 0;
    }
    for (const struct option *option = options; option->name; option++) {
        if (strcmp(argv[0], option->name) != 0 || (option->model && option->model != arguments->model->model)) {
            continue;
        }
        if (option->flag) {
            *option->flag = true;
            return 1;
        }
        return argv[1] && read_number(argv[1], option->least, option->most, option->number) ? 2 : 0;
    }
    return 0;
}

static bool read_arguments(char **argv, struct arguments *arguments) {
    struct fence_config *fence = &arguments->fence;
    struct lock_config *lock = &arguments->lock;
    struct queue_config *queue = &arguments->queue;
    struct order_config *order = &arguments->order;
    const struct option options[] = {
        {&fence_model, "--nodes", &fence->nodes, 1, FENCE_NODES_MAX, NULL},
        {&fence_model, "--proposals", &fence->proposals, 1, FENCE_PROPOSALS_MAX, NULL},
        {&fence_model, "--rounds", &fence->rounds, 1, FENCE_ROUNDS_MAX, NULL},
        {&fence_model, "--losses", &fence->losses, 0, FENCE_LOSSES_MAX, NULL},
        {&fence_model, "--collide", NULL, 0, 0, &fence->collide},
        {&fence_model, "--right-clocks", NULL, 0, 0, &fence->right_clocks},
        {&fence_model, "--in-turn", NULL, 0, 0, &fence->in_turn},
        {&lock_model, "--nodes", &lock->nodes, 1, LOCK_NODES_MAX, NULL},
        {&lock_model, "--ttl", &lock->ttl, 1, LOCK_TICKS_MAX, NULL},
        {&lock_model, "--ttl-max", &lock->ttl_max, 1, LOCK_TICKS_MAX, NULL},
        {&lock_model, "--restarts", &lock->restarts, 0, LOCK_RESTARTS_MAX, NULL},
        {&lock_model, "--patience", &lock->patience, 1, LOCK_TICKS_MAX, NULL},
        {&queue_model, "--nodes", &queue->nodes, 1, QUEUE_NODES_MAX, NULL},
        {&queue_model, "--lost", &queue->lost, 0, QUEUE_LOST_MAX, NULL},
        {&queue_model, "--clients", &queue->clients, 1, QUEUE_CLIENTS_MAX, NULL},
        {&queue_model, "--ttl", &queue->ttl, 1, QUEUE_TICKS_MAX, NULL},
        {&queue_model, "--stale", &queue->stale, 0, QUEUE_STALE_MAX, NULL},
        {&queue_model, "--in-order", NULL, 0, 0, &queue->in_order},
        {&order_model, "--nodes", &order->nodes, 1, ORDER_NODES_MAX, NULL},
        {&order_model, "--lost", &order->lost, 0, ORDER_LOST_MAX, NULL},
        {&order_model, "--waiters", &order->waiters, 1, ORDER_WAITERS_MAX, NULL},
        {&order_model, "--breaks", &order->breaks, 0, ORDER_BREAKS_MAX, NULL},
        {&order_model, "--tries", &order->tries, 0, ORDER_WAITERS_MAX, NULL},
        {NULL, "--states", &arguments->states_max, 1, UINT32_MAX - 1, NULL},
        {NULL, "--expect-violation", NULL, 0, 0, &arguments->expect_violation},
        {NULL, NULL, NULL, 0, 0, NULL},
    };
    const struct named_model *model = models;
    while (argv[1] && model->name && strcmp(argv[1], model->name) != 0) {
        model++;
    }
    if (!argv[1] || !model->name) {
        return false;
    }
    arguments->model = model;
    for (argv += 2; *argv;) {
        const int words = read_option(options, argv, arguments);
        if (words == 0) {
            fprintf(stderr, "redlock_model: %s cannot be used like this\n", *argv);
            return false;
        }
        argv += words;
    }
    if (lock->ttl_max < lock->ttl) {
        fputs("redlock_model: no ttl is longer than ttl_max\n", stderr);
        return false;
    }
    if (!are_setups_enough(fence)) {
        fputs("redlock_model: each client needs its nodes and quorum in --clients\n", stderr);
        return false;
    }
    return true;
}

/* 1234567 as 1,234,567. */
static const char *in_groups(uint64_t number, char text[NUMBER_CHARS]) {
    char *at = text + NUMBER_CHARS - 1;
    *at = '\0';
    unsigned digits = 0;
    do {
        if (digits > 0 && digits % 3 == 0) {
            *--at = ',';
        }
        *--at = (char)('0' + number % 10);
        digits++;
        number /= 10;
    } while (number);
    return at;
}

/* Prints which goals the search has reached. Returns false if one that it should reach is
 * missing. */
static bool tell_goals(const struct model *model, const void *config, const struct search_result *result) {
    char text[NUMBER_CHARS];
    bool complete = true;
    for (unsigned i = 0; model->goals[i]; i++) {
        const bool missing = result->goals[i] == 0 && model->expected(config) >> i & 1U;
        printf("  %12s  %s%s\n", in_groups(result->goals[i], text), model->goals[i], missing ? ": MISSING" : "");
        complete = complete && !missing;
    }
    return complete;
}

int main(int argc, char **argv) {
    struct arguments arguments = {
        .fence = {.nodes = 3, .attempts = "AB", .proposals = 3, .rounds = 1},
        .lock = {.nodes = 3, .ttl = 2, .ttl_max = 2, .restarts = 1},
        .queue = {.nodes = 3, .clients = 2, .ttl = 2},
        .order = {.nodes = 3, .waiters = 2},
        .states_max = UINT32_MAX - 1,
    };
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return EXIT_SUCCESS;
    }
    if (!read_arguments(argv, &arguments)) {
        usage(stderr);
        return EXIT_USAGE;
    }
    const void *config = (const char *)&arguments + arguments.model->config;
    struct search_result result;
    char states[NUMBER_CHARS], transitions[NUMBER_CHARS];
    search_run(arguments.model->model, config, arguments.states_max, &result);
    printf("%s: %s states, %s transitions, %s %u, %.1f s, %zu MB\n",
           result.violation   ? "VIOLATION"
           : result.exhausted ? "no violation in any state"
                              : "GIVEN UP, no violation so far",
           in_groups(result.states, states), in_groups(result.transitions, transitions),
           result.violation ? "steps" : "depth", result.depth, result.seconds, result.bytes >> 20);
    if (arguments.expect_violation) {
        return result.violation ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    const bool complete = tell_goals(arguments.model->model, config, &result);
    return !result.violation && result.exhausted && complete ? EXIT_SUCCESS : EXIT_FAILURE;
}
