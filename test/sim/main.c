/* The program of the simulator: runs a number of schedules from a seed onwards, in several
 * processes; or one schedule with its trace. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/planted.h"
#include "parts.h"

struct options {
    uint64_t seed, schedules;
    unsigned jobs;
    int64_t seconds;
    bool trace, hash, expect, count, elections, spec;
    enum sim_control control;
    const char *control_name, *bug_name, *checker;
};

/* What the processes have in common: the lowest failing seed so far, and sums. */
struct shared {
    _Atomic uint64_t failed_seed;
    _Atomic uint64_t events, holds, schedules, violations;
    _Atomic uint64_t fenced_fast, fenced_slow, healed, quarantines, clock_jumps, lost, expiring;
    _Atomic uint64_t terms, successions, news;
};

static const char *const bug_names[REDLOCK_BUG_COUNT] = {
    [REDLOCK_BUG_NONE] = "none",
    [REDLOCK_BUG_QUORUM_HALF] = "quorum-half",
    [REDLOCK_BUG_NO_DRIFT] = "no-drift",
    [REDLOCK_BUG_START_AFTER_SEND] = "start-after-send",
    [REDLOCK_BUG_RELEASE_ANY_TOKEN] = "release-any-token",
    [REDLOCK_BUG_TOKEN_REUSED] = "token-reused",
    [REDLOCK_BUG_UNKNOWN_GRANTS] = "unknown-grants",
    [REDLOCK_BUG_NO_RELEASE_TIMED_OUT] = "no-release-timed-out",
    [REDLOCK_BUG_EXTEND_AFTER_END] = "extend-after-end",
    [REDLOCK_BUG_LOSS_ON_REPLY_ONLY] = "loss-on-reply-only",
    [REDLOCK_BUG_EXTEND_SHORTENS] = "extend-shortens",
    [REDLOCK_BUG_FENCE_INCR] = "fence-incr",
    [REDLOCK_BUG_FENCE_NO_WRITE_BACK] = "fence-no-write-back",
    [REDLOCK_BUG_FENCE_ACCEPTS_EQUAL] = "fence-accepts-equal",
    [REDLOCK_BUG_FENCE_ACKS_ANY] = "fence-acks-any",
    [REDLOCK_BUG_FENCE_COLLIDES] = "fence-collides",
    [REDLOCK_BUG_HEAL_COUNTS] = "heal-counts",
    [REDLOCK_BUG_QUARANTINE_BY_UPTIME] = "quarantine-by-uptime",
    [REDLOCK_BUG_QUARANTINE_SHORT] = "quarantine-short",
    [REDLOCK_BUG_JUMP_IGNORED] = "jump-ignored",
    [REDLOCK_BUG_CLOCK_MEDIAN] = "clock-median",
    [REDLOCK_BUG_DEBT_ENDS_BY_CLOCK] = "debt-ends-by-clock",
    [REDLOCK_BUG_PLAIN_CLOSE] = "plain-close",
    [REDLOCK_BUG_QUEUE_NO_SERIALS] = "queue-no-serials",
    [REDLOCK_BUG_QUEUE_BOUND_AT_PUSH] = "queue-bound-at-push",
    [REDLOCK_BUG_QUEUE_LATE_BACKING] = "queue-late-backing",
    [REDLOCK_BUG_QUEUE_YIELD_KEEPS] = "queue-yield-keeps",
    [REDLOCK_BUG_QUEUE_OWN_CLOCK] = "queue-own-clock",
    [REDLOCK_BUG_QUEUE_EARLY_TICKET] = "queue-early-ticket",
    [REDLOCK_BUG_QUEUE_POLLS_ON] = "queue-polls-on",
    [REDLOCK_BUG_QUEUE_DEAF] = "queue-deaf",
    [REDLOCK_BUG_QUEUE_ANY_SERVER] = "queue-any-server",
    [REDLOCK_BUG_QUEUE_PUSH_CLOCK] = "queue-push-clock",
    [REDLOCK_BUG_WAIT_UNGREETED] = "wait-ungreeted",
    [REDLOCK_BUG_RELEASE_UNGUARDED] = "release-unguarded",
    [REDLOCK_BUG_LEFT_UNTOLD] = "left-untold",
    [REDLOCK_BUG_QUEUE_RELEASE_STAYS] = "queue-release-stays",
    [REDLOCK_BUG_QUEUE_SERVES_STALE] = "queue-serves-stale",
    [REDLOCK_BUG_QUEUE_SERVES_FEW] = "queue-serves-few",
    [REDLOCK_BUG_QUEUE_FEW_LOOK] = "queue-few-look",
    [REDLOCK_BUG_QUEUE_COUNTS_PATTERNS] = "queue-counts-patterns",
    [REDLOCK_BUG_QUEUE_UNHEARD_RESTS] = "queue-unheard-rests",
    [REDLOCK_BUG_QUEUE_NO_EXPIRY] = "queue-no-expiry",
    [REDLOCK_BUG_MARK_NEVER] = "mark-never",
    [REDLOCK_BUG_MARK_ANY] = "mark-any",
    [REDLOCK_BUG_MARK_ENDLESS] = "mark-endless",
    [REDLOCK_BUG_MARK_UNKNOWN] = "mark-unknown",
    [REDLOCK_BUG_MARK_DELETED] = "mark-deleted",
    [REDLOCK_BUG_SHARED_WRITER_JOINS] = "shared-writer-joins",
    [REDLOCK_BUG_SHARED_RELEASE_ALL] = "shared-release-all",
    [REDLOCK_BUG_SHARED_LEAVES_QUIETLY] = "shared-leaves-quietly",
    [REDLOCK_BUG_SHARED_KEEP_JOINS] = "shared-keep-joins",
    [REDLOCK_BUG_SHARED_ONE_LIFE] = "shared-one-life",
    [REDLOCK_BUG_SHARED_LINE_IGNORED] = "shared-line-ignored",
    [REDLOCK_BUG_BUNDLE_UNSORTED] = "bundle-unsorted",
    [REDLOCK_BUG_BUNDLE_KEEPS_ALL] = "bundle-keeps-all",
    [REDLOCK_BUG_BUNDLE_LEAVES_PREFIX] = "bundle-leaves-prefix",
    [REDLOCK_BUG_BUNDLE_LOSES_ONE] = "bundle-loses-one",
    [REDLOCK_BUG_BUNDLE_FIRST_DEADLINE] = "bundle-first-deadline",
    [REDLOCK_BUG_PERMITS_ANY_SLOTS] = "permits-any-slots",
    [REDLOCK_BUG_PERMITS_OTHERS_STAY] = "permits-others-stay",
    [REDLOCK_BUG_PERMITS_GATE_STAYS] = "permits-gate-stays",
    [REDLOCK_BUG_PERMITS_GATE_RESTS] = "permits-gate-rests",
    [REDLOCK_BUG_PERMITS_ONE_SLOT] = "permits-one-slot",
    [REDLOCK_BUG_DELETE_FINAL] = "delete-final",
    [REDLOCK_BUG_HEAL_OUTLIVES] = "heal-outlives",
    [REDLOCK_BUG_LOSS_ENDS_NOTHING] = "loss-ends-nothing",
    [REDLOCK_BUG_REASON_SILENT] = "reason-silent",
    [REDLOCK_BUG_REASON_EARLY] = "reason-early",
    [REDLOCK_BUG_JUMP_VOTES] = "jump-votes",
    [REDLOCK_BUG_EXPIRING_ONCE] = "expiring-once",
    [REDLOCK_BUG_ELECT_LOSS_LATE] = "elect-loss-late",
    [REDLOCK_BUG_ELECT_LOSS_RESTS] = "elect-loss-rests",
    [REDLOCK_BUG_ELECT_RESIGN_KEEPS] = "elect-resign-keeps",
    [REDLOCK_BUG_ELECT_RESIGN_SKIPS] = "elect-resign-skips",
    [REDLOCK_BUG_PUSH_COUNTS_ANY] = "push-counts-any",
    [REDLOCK_BUG_PUSH_GIVES_ANY] = "push-gives-any",
    [REDLOCK_BUG_PUSH_GIVES_FORGOTTEN] = "push-gives-forgotten",
    [REDLOCK_BUG_OBSERVER_BELIEVES] = "observer-believes",
    [REDLOCK_BUG_OBSERVER_DEAF] = "observer-deaf",
    [REDLOCK_BUG_OBSERVER_ASKS_ONCE] = "observer-asks-once",
    [REDLOCK_BUG_OBSERVER_ANY_NODE] = "observer-any-node",
    [REDLOCK_BUG_OBSERVER_OLD_WORDS] = "observer-old-words",
    [REDLOCK_BUG_OBSERVER_UNCHECKED] = "observer-unchecked",
    [REDLOCK_BUG_SILENT_WAITS] = "silent-waits",
};

static const char *const control_names[] = {
    [SIM_CONTROL_NONE] = "none",
    [SIM_CONTROL_SKEW] = "skew",
    [SIM_CONTROL_MEMORYLESS] = "memoryless",
    [SIM_CONTROL_GUARDED] = "guarded",
    [SIM_CONTROL_NO_RESTART_GUARD] = "no-restart-guard",
    [SIM_CONTROL_NO_CLOCK_GUARD] = "no-clock-guard",
    [SIM_CONTROL_RIGHTED] = "righted",
    [SIM_CONTROL_WRONG_AND_LOST] = "wrong-and-lost",
    [SIM_CONTROL_STARVED] = "starved",
    [SIM_CONTROL_STEPPING] = "stepping",
    [SIM_CONTROL_RESTARTING] = "restarting",
    [SIM_CONTROL_REPLACING] = "replacing",
    [SIM_CONTROL_LATE] = "late",
    [SIM_CONTROL_DEAD] = "dead",
    [SIM_CONTROL_SILENT] = "silent",
    [SIM_CONTROL_LOADED] = "loaded",
    [SIM_CONTROL_MIXED] = "mixed",
    [SIM_CONTROL_PARTED] = "parted",
    [SIM_CONTROL_MISQUOTED] = "misquoted",
    [SIM_CONTROL_SHARED] = "shared",
    [SIM_CONTROL_SHARED_LOADED] = "shared-loaded",
    [SIM_CONTROL_BUNDLES] = "bundles",
    [SIM_CONTROL_BUNDLES_LOADED] = "bundles-loaded",
    [SIM_CONTROL_PERMITS] = "permits",
    [SIM_CONTROL_SPEC] = "spec",
};

enum redlock_planted_bug redlock_planted_bug = REDLOCK_BUG_NONE;

static void usage(FILE *out) {
    fputs("redlock_sim [--schedules N] [--seed S] [--jobs J] [--seconds T] [--trace] [--hash] [--expect-violation] "
          "[--count]\n"
          "            [--bug NAME] [--control NAME] [--checker NAME] [--elections] [--spec]\n"
          "Runs schedules S, S+1, … and checks each. --seconds goes on for so long (nightly). --trace prints what\n"
          "happens in schedule S, --hash a number for each trace. --expect-violation succeeds if a checker complains; "
          "--checker silences all others; --count goes on after a violation, and counts the schedules with one.\n"
          "--elections: users do not lock, but stand in elections and observe. --spec prints the steps of schedules\n"
          "for spec/trace.sh.\nBugs:",
          out);
    for (unsigned i = 1; i < REDLOCK_BUG_COUNT; i++) {
        fprintf(out, " %s", bug_names[i]);
    }
    fputs("\nControls:", out);
    for (unsigned i = 1; i < sizeof control_names / sizeof *control_names; i++) {
        fprintf(out, " %s", control_names[i]);
    }
    fputc('\n', out);
}

static bool read_bug(const char *name) {
    for (unsigned i = 0; i < REDLOCK_BUG_COUNT; i++) {
        if (strcmp(name, bug_names[i]) == 0) {
            redlock_planted_bug = (enum redlock_planted_bug)i;
            return true;
        }
    }
    return false;
}

static bool read_control(struct options *options, const char *name) {
    for (unsigned i = 0; i < sizeof control_names / sizeof *control_names; i++) {
        if (strcmp(name, control_names[i]) == 0) {
            options->control = (enum sim_control)i;
            options->control_name = name;
            return true;
        }
    }
    return false;
}

static bool read_number(const char *text, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0';
}

/* Reads an option with a value. Returns false if it is not one or its value is wrong. */
static bool read_valued(struct options *options, const char *name, const char *value) {
    uint64_t number = 0;
    if (strcmp(name, "--bug") == 0) {
        options->bug_name = value;
        return read_bug(value);
    }
    if (strcmp(name, "--control") == 0) {
        return read_control(options, value);
    }
    if (strcmp(name, "--checker") == 0) {
        options->checker = value;
        return true;
    }
    if (!read_number(value, &number)) {
        return false;
    }
    if (strcmp(name, "--schedules") == 0) {
        options->schedules = number;
    } else if (strcmp(name, "--seed") == 0) {
        options->seed = number;
    } else if (strcmp(name, "--jobs") == 0 && number >= 1 && number <= 64) {
        options->jobs = (unsigned)number;
    } else if (strcmp(name, "--seconds") == 0 && number <= 1000000) {
        options->seconds = (int64_t)number;
    } else {
        return false;
    }
    return true;
}

static bool read_options(int argc, char **argv, struct options *options) {
    *options = (struct options){.seed = 1, .schedules = 1000, .jobs = 1, .bug_name = "none"};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            options->trace = true;
        } else if (strcmp(argv[i], "--hash") == 0) {
            options->hash = true;
        } else if (strcmp(argv[i], "--expect-violation") == 0) {
            options->expect = true;
        } else if (strcmp(argv[i], "--elections") == 0) {
            options->elections = true;
        } else if (strcmp(argv[i], "--count") == 0) {
            options->count = true;
        } else if (strcmp(argv[i], "--spec") == 0) {
            options->spec = true;
            options->control = SIM_CONTROL_SPEC;
        } else if (i + 1 < argc && read_valued(options, argv[i], argv[i + 1])) {
            i++;
        } else {
            return false;
        }
    }
    return true;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void lower(_Atomic uint64_t *value, uint64_t seed) {
    uint64_t old = *value;
    while (seed < old &&
           !__atomic_compare_exchange_n((uint64_t *)value, &old, seed, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

static struct sim_world *new_world(const struct options *options) {
    struct sim_world *world = sim_world_new();
    if (world == NULL) {
        fputs("redlock_sim: out of memory\n", stderr);
        exit(2);
    }
    world->control = options->control;
    world->only_checker = options->checker;
    world->has_elections = options->elections;
    return world;
}

/* Every jobs-th schedule, up to the lowest that failed in any process. */
static void work(const struct options *options, unsigned job, struct shared *shared) {
    struct sim_world *world = new_world(options);
    double end = options->seconds > 0 ? seconds_now() + (double)options->seconds : 0;
    for (uint64_t i = job; end > 0 || i < options->schedules; i += options->jobs) {
        uint64_t seed = options->seed + i;
        if ((seed > shared->failed_seed && !options->count) ||
            (end > 0 && (i & 255) < options->jobs && seconds_now() > end)) {
            break;
        }
        bool good = sim_world_run(world, seed);
        if (!good) {
            lower(&shared->failed_seed, seed);
            shared->violations++;
        }
        shared->events += world->events;
        shared->schedules++;
    }
    shared->holds += world->holds;
    shared->fenced_fast += world->totals.fenced_fast;
    shared->fenced_slow += world->totals.fenced_slow;
    shared->healed += world->totals.healed;
    shared->quarantines += world->totals.quarantines;
    shared->clock_jumps += world->totals.clock_jumps;
    shared->lost += world->totals.lost;
    shared->expiring += world->totals.expiring;
    shared->terms += world->totals.terms;
    shared->successions += world->totals.successions;
    shared->news += world->totals.news;
    sim_world_delete(world);
}

static bool run_jobs(const struct options *options, struct shared *shared) {
    bool good = true;
    if (options->jobs == 1) {
        work(options, 0, shared);
        return true;
    }
    for (unsigned job = 0; job < options->jobs; job++) {
        pid_t pid = fork();
        if (pid < 0) {
            perror("redlock_sim: fork");
            good = false;
        }
        if (pid == 0) {
            work(options, job, shared);
            exit(0); /* with the leak check of a sanitizer build */
        }
    }
    int status;
    while (wait(&status) > 0) {
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
}

/* One schedule, with its trace. */
static int replay(const struct options *options, uint64_t seed, bool printing) {
    struct sim_world *world = new_world(options);
    world->tracing = true;
    world->printing = printing;
    bool good = sim_world_run(world, seed);
    printf("seed %llu: %s%s%s\n", (unsigned long long)seed, good ? "no violation" : world->checker, good ? "" : ": ",
           good ? "" : world->violation);
    sim_world_delete(world);
    return good ? 0 : 1;
}

/* One number for the trace of each of these schedules. */
static int print_hashes(const struct options *options) {
    struct sim_world *world = new_world(options);
    bool good = true;
    world->tracing = true;
    for (uint64_t seed = options->seed; seed < options->seed + options->schedules; seed++) {
        good = sim_world_run(world, seed) && good;
        printf("seed %llu trace %016llx events %llu\n", (unsigned long long)seed, (unsigned long long)world->trace_hash,
               (unsigned long long)world->events);
    }
    sim_world_delete(world);
    return good ? 0 : 1;
}

/* These schedules, for spec/trace.sh to judge: our own checkers are silent. */
static int print_spec(const struct options *options) {
    struct sim_world *world = new_world(options);
    world->only_checker = "none";
    world->spec.is_on = true;
    for (uint64_t seed = options->seed; seed < options->seed + options->schedules; seed++) {
        (void)sim_world_run(world, seed);
        sim_spec_write(world);
    }
    sim_world_delete(world);
    return 0;
}

static void print_replay(const struct options *options, uint64_t seed) {
    printf("replay: redlock_sim%s --seed %llu --trace", options->elections ? " --elections" : "",
           (unsigned long long)seed);
    if (redlock_planted_bug != REDLOCK_BUG_NONE) {
        printf(" --bug %s", options->bug_name);
    }
    if (options->control != SIM_CONTROL_NONE) {
        printf(" --control %s", options->control_name);
    }
    if (options->checker != NULL) {
        printf(" --checker %s", options->checker);
    }
    putchar('\n');
}

/* Whether the bug made the violation: without it, the schedule has none. */
static bool shows_bug(const struct options *options, uint64_t seed) {
    if (redlock_planted_bug == REDLOCK_BUG_NONE) {
        return true;
    }
    redlock_planted_bug = REDLOCK_BUG_NONE;
    printf("without the bug: ");
    return replay(options, seed, false) == 0;
}

static int run_all(const struct options *options) {
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("redlock_sim: mmap");
        return 2;
    }
    shared->failed_seed = UINT64_MAX;
    double began = seconds_now();
    bool good = run_jobs(options, shared);
    uint64_t seed = shared->failed_seed;
    printf("bug %s: %llu schedules, %llu events, %llu leases in %.1f s\n", options->bug_name,
           (unsigned long long)shared->schedules, (unsigned long long)shared->events, (unsigned long long)shared->holds,
           seconds_now() - began);
    printf("%llu deadlines told of, %llu leases lost, %llu keys healed, %llu fencing tokens at once and %llu written "
           "back, %llu quarantines, "
           "%llu clocks seen to jump\n",
           (unsigned long long)shared->expiring, (unsigned long long)shared->lost, (unsigned long long)shared->healed,
           (unsigned long long)shared->fenced_fast, (unsigned long long)shared->fenced_slow,
           (unsigned long long)shared->quarantines, (unsigned long long)shared->clock_jumps);
    if (options->elections) {
        printf("%llu terms, %llu of them had to begin one message after the last, %llu news of leaders\n",
               (unsigned long long)shared->terms, (unsigned long long)shared->successions,
               (unsigned long long)shared->news);
    }
    if (options->count) {
        printf("schedules with a violation: %llu\n", (unsigned long long)shared->violations);
    }
    munmap(shared, sizeof *shared);
    if (!good) {
        printf("a process of the simulator died\n");
        return 2;
    }
    if (seed == UINT64_MAX) {
        printf("no violation%s\n", options->expect ? ": the checkers are blind to this" : "");
        return options->expect ? 1 : 0;
    }
    printf("found at schedule %llu: ", (unsigned long long)(seed - options->seed + 1));
    (void)replay(options, seed, false);
    print_replay(options, seed);
    return options->expect && shows_bug(options, seed) ? 0 : 1;
}

int main(int argc, char **argv) {
    struct options options;
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (!read_options(argc, argv, &options)) {
        usage(stderr);
        return 64;
    }
    if (options.hash) {
        return print_hashes(&options);
    }
    if (options.spec) {
        return print_spec(&options);
    }
    if (options.trace) {
        return replay(&options, options.seed, true);
    }
    return run_all(&options);
}
