/* redlock_model: searches all states of a model, correct or with a bug, and reports their number
 * and what is wrong. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fence.h"
#include "lock.h"

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

struct arguments {
    const struct model *model;
    struct fence_config fence;
    struct lock_config lock;
    unsigned states_max;
    bool expect_violation;
};

/* An option of one model (NULL: of both), and the number or flag that it sets, if any. */
struct option {
    const struct model *model;
    const char *name;
    unsigned *number;
    unsigned least, most;
    bool *flag;
};

static void usage(FILE *out) {
    fputs("redlock_model fence [--nodes N] [--attempts AAB] [--proposals N] [--rounds N] [--losses N] [--collide]\n"
          "                    [--right-clocks] [--bug NAME]\n"
          "redlock_model lock [--nodes N] [--ttl TICKS] [--ttl-max TICKS] [--restarts N] [--patience TICKS] [--bug "
          "NAME]\n"
          "both: [--states N] [--expect-violation]\n"
          "Searches every state that the model can reach. --attempts has a letter for each attempt of a client. "
          "Succeeds\n"
          "when nothing is wrong in any; with --expect-violation when something is. At most N states are looked at.\n"
          "Bugs of fence:",
          out);
    for (const struct named_bug *bug = fence_bugs; bug->name; bug++) {
        fprintf(out, " %s", bug->name);
    }
    fputs("\nBugs of lock:", out);
    for (const struct named_bug *bug = lock_bugs; bug->name; bug++) {
        fprintf(out, " %s", bug->name);
    }
    fputc('\n', out);
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

static bool read_bug(const char *name, struct arguments *arguments) {
    const bool fence = arguments->model == &fence_model;
    for (const struct named_bug *bug = fence ? fence_bugs : lock_bugs; bug->name; bug++) {
        if (strcmp(bug->name, name) == 0) {
            if (fence) {
                arguments->fence.bug = (enum fence_bug)bug->bug;
            } else {
                arguments->lock.bug = (enum lock_bug)bug->bug;
            }
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

/* Reads the option at argv[0] and its value, if it has one. Returns how many words it read; 0 for
 * an error. */
static int read_option(const struct option *options, char **argv, struct arguments *arguments) {
    if (arguments->model == &fence_model && strcmp(argv[0], "--attempts") == 0) {
        return argv[1] && read_attempts(argv[1], &arguments->fence) ? 2 : 0;
    }
    if (strcmp(argv[0], "--bug") == 0) {
        return argv[1] && read_bug(argv[1], arguments) ? 2 : 0;
    }
    for (const struct option *option = options; option->name; option++) {
        if (strcmp(argv[0], option->name) != 0 || (option->model && option->model != arguments->model)) {
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
    const struct option options[] = {
        {&fence_model, "--nodes", &fence->nodes, 1, FENCE_NODES_MAX, NULL},
        {&fence_model, "--proposals", &fence->proposals, 1, FENCE_PROPOSALS_MAX, NULL},
        {&fence_model, "--rounds", &fence->rounds, 1, FENCE_ROUNDS_MAX, NULL},
        {&fence_model, "--losses", &fence->losses, 0, FENCE_LOSSES_MAX, NULL},
        {&fence_model, "--collide", NULL, 0, 0, &fence->collide},
        {&fence_model, "--right-clocks", NULL, 0, 0, &fence->right_clocks},
        {&lock_model, "--nodes", &lock->nodes, 1, LOCK_NODES_MAX, NULL},
        {&lock_model, "--ttl", &lock->ttl, 1, LOCK_TICKS_MAX, NULL},
        {&lock_model, "--ttl-max", &lock->ttl_max, 1, LOCK_TICKS_MAX, NULL},
        {&lock_model, "--restarts", &lock->restarts, 0, LOCK_RESTARTS_MAX, NULL},
        {&lock_model, "--patience", &lock->patience, 1, LOCK_TICKS_MAX, NULL},
        {NULL, "--states", &arguments->states_max, 1, UINT32_MAX - 1, NULL},
        {NULL, "--expect-violation", NULL, 0, 0, &arguments->expect_violation},
        {NULL, NULL, NULL, 0, 0, NULL},
    };
    if (!argv[1] || (strcmp(argv[1], "fence") != 0 && strcmp(argv[1], "lock") != 0)) {
        return false;
    }
    arguments->model = strcmp(argv[1], "fence") == 0 ? &fence_model : &lock_model;
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
    const void *config = arguments.model == &fence_model ? (const void *)&arguments.fence : &arguments.lock;
    struct search_result result;
    char states[NUMBER_CHARS], transitions[NUMBER_CHARS];
    search_run(arguments.model, config, arguments.states_max, &result);
    printf("%s: %s states, %s transitions, %s %u, %.1f s, %zu MB\n",
           result.violation   ? "VIOLATION"
           : result.exhausted ? "no violation in any state"
                              : "GIVEN UP, no violation so far",
           in_groups(result.states, states), in_groups(result.transitions, transitions),
           result.violation ? "steps" : "depth", result.depth, result.seconds, result.bytes >> 20);
    if (arguments.expect_violation) {
        return result.violation ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    const bool complete = tell_goals(arguments.model, config, &result);
    return !result.violation && result.exhausted && complete ? EXIT_SUCCESS : EXIT_FAILURE;
}
