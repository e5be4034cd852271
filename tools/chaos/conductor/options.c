/* The command line: what is asked for. */
#include "conductor/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    OPTION_BACKEND = 256,
    OPTION_NODES,
    OPTION_CLIENTS,
    OPTION_RESOURCES,
    OPTION_SECONDS,
    OPTION_SEED,
    OPTION_FAULTS,
    OPTION_SCHEDULE,
    OPTION_TTL,
    OPTION_NODE_TIMEOUT,
    OPTION_WAIT,
    OPTION_HOLD,
    OPTION_THINK,
    OPTION_PERSISTENCE,
    OPTION_OUTPUT,
    OPTION_SERVER,
    OPTION_COMPOSE_FILE,
    OPTION_SLACK,
    OPTION_RUN,
    OPTION_PROTECT,
    OPTION_FENCING,
    OPTION_RESTART_GUARD,
    OPTION_CLOCK_GUARD,
    OPTION_FIRST_BOOT,
    OPTION_TTL_MAX,
    OPTION_LOCK_DELAY,
    OPTION_NO_HEAL,
    OPTION_COMPARE
};

static const struct option run_options[] = {{"backend", required_argument, NULL, OPTION_BACKEND},
                                            {"nodes", required_argument, NULL, OPTION_NODES},
                                            {"clients", required_argument, NULL, OPTION_CLIENTS},
                                            {"resources", required_argument, NULL, OPTION_RESOURCES},
                                            {"seconds", required_argument, NULL, OPTION_SECONDS},
                                            {"seed", required_argument, NULL, OPTION_SEED},
                                            {"faults", required_argument, NULL, OPTION_FAULTS},
                                            {"schedule", required_argument, NULL, OPTION_SCHEDULE},
                                            {"ttl", required_argument, NULL, OPTION_TTL},
                                            {"node-timeout", required_argument, NULL, OPTION_NODE_TIMEOUT},
                                            {"wait", required_argument, NULL, OPTION_WAIT},
                                            {"hold", required_argument, NULL, OPTION_HOLD},
                                            {"think", required_argument, NULL, OPTION_THINK},
                                            {"persistence", required_argument, NULL, OPTION_PERSISTENCE},
                                            {"output", required_argument, NULL, OPTION_OUTPUT},
                                            {"server", required_argument, NULL, OPTION_SERVER},
                                            {"compose-file", required_argument, NULL, OPTION_COMPOSE_FILE},
                                            {"slack", required_argument, NULL, OPTION_SLACK},
                                            {"protect", no_argument, NULL, OPTION_PROTECT},
                                            {"fencing", no_argument, NULL, OPTION_FENCING},
                                            {"restart-guard", required_argument, NULL, OPTION_RESTART_GUARD},
                                            {"clock-guard", no_argument, NULL, OPTION_CLOCK_GUARD},
                                            {"first-boot", no_argument, NULL, OPTION_FIRST_BOOT},
                                            {"ttl-max", required_argument, NULL, OPTION_TTL_MAX},
                                            {"lock-delay", required_argument, NULL, OPTION_LOCK_DELAY},
                                            {"no-heal", no_argument, NULL, OPTION_NO_HEAL},
                                            {"compare", no_argument, NULL, OPTION_COMPARE},
                                            {NULL, 0, NULL, 0}};
static const struct option fault_options[] = {{"run", required_argument, NULL, OPTION_RUN}, {NULL, 0, NULL, 0}};
static const struct option judge_options[] = {{"slack", required_argument, NULL, OPTION_SLACK}, {NULL, 0, NULL, 0}};

static bool complain(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

static bool complain(const char *pattern, ...) {
    va_list arguments;
    va_start(arguments, pattern);
    fputs("redlock-chaos: ", stderr);
    vfprintf(stderr, pattern, arguments);
    fputs("; see redlock-chaos --help\n", stderr);
    va_end(arguments);
    return false;
}

static bool read_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *number) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
        return complain("--%s takes a number from %" PRId64 " to %" PRId64 ", not '%s'", name, least, most, text);
    }
    *number = value;
    return true;
}

static bool read_time(const char *name, const char *text, int64_t least_ms, int64_t most_ms, int64_t *ms) {
    int64_t value;
    if (!chaos_time_parse(text, &value) || value < least_ms || value > most_ms) {
        return complain("--%s takes a time from %" PRId64 " to %" PRId64 " ms, such as 500ms or 10s, not '%s'", name,
                        least_ms, most_ms, text);
    }
    *ms = value;
    return true;
}

static bool read_persistence(const char *text, bool *append_only) {
    *append_only = strcmp(text, "aof") == 0;
    return *append_only || strcmp(text, "none") == 0 || complain("--persistence takes none or aof, not '%s'", text);
}

static bool read_seed(const char *text, uint64_t *seed) {
    int64_t number;
    if (!read_number("seed", text, 0, INT64_MAX, &number)) {
        return false;
    }
    *seed = (uint64_t)number;
    return true;
}

static bool read_faults(const char *text, struct chaos_options *options) {
    char error[1024];
    options->kinds_given = true;
    return chaos_fault_kinds_parse(text, &options->kinds, error, sizeof error) || complain("--faults: %s", error);
}

static bool take_setting(struct chaos_settings *settings, int option, const char *value) {
    switch (option) {
    case OPTION_NODES:
        return read_number("nodes", value, 1, CHAOS_NODES_MAX, &settings->nodes);
    case OPTION_CLIENTS:
        return read_number("clients", value, 1, CHAOS_CLIENTS_MAX, &settings->clients);
    case OPTION_RESOURCES:
        return read_number("resources", value, 1, CHAOS_RESOURCES_MAX, &settings->resources);
    case OPTION_SECONDS:
        return read_number("seconds", value, 1, 86400, &settings->seconds);
    case OPTION_TTL:
        return read_time("ttl", value, 10, 600000, &settings->ttl_ms);
    case OPTION_NODE_TIMEOUT:
        return read_time("node-timeout", value, 1, 60000, &settings->node_timeout_ms);
    case OPTION_WAIT:
        return read_time("wait", value, 0, 600000, &settings->wait_ms);
    case OPTION_HOLD:
        return read_time("hold", value, 0, 60000, &settings->hold_ms);
    case OPTION_THINK:
        return read_time("think", value, 0, 60000, &settings->think_ms);
    default:
        return read_persistence(value, &settings->append_only);
    }
}

static bool read_guard(const char *text, enum chaos_restart_guard *guard) {
    return chaos_restart_guard_find(text, guard) ||
           complain("--restart-guard takes off, observed or strict, not '%s'", text);
}

/* False: it is none of these, or a sentence has been said; *known tells which. */
static bool take_protection(struct chaos_options *options, int option, const char *value, bool *known) {
    struct chaos_protection *protection = &options->settings.protection;
    *known = true;
    switch (option) {
    case OPTION_PROTECT: {
        struct chaos_protection full = chaos_protection_full();
        full.ttl_max_ms = protection->ttl_max_ms;
        full.lock_delay_ms = protection->lock_delay_ms;
        full.no_heal = protection->no_heal;
        *protection = full;
        return true;
    }
    case OPTION_FENCING:
        return protection->fencing = true;
    case OPTION_RESTART_GUARD:
        return read_guard(value, &protection->restart_guard);
    case OPTION_CLOCK_GUARD:
        return protection->clock_guard = true;
    case OPTION_FIRST_BOOT:
        return protection->first_boot = true;
    case OPTION_TTL_MAX:
        return read_time("ttl-max", value, 10, 1200000, &protection->ttl_max_ms);
    case OPTION_LOCK_DELAY:
        return read_time("lock-delay", value, 0, 600000, &protection->lock_delay_ms);
    case OPTION_NO_HEAL:
        return protection->no_heal = true;
    case OPTION_COMPARE:
        return options->compare = true;
    default:
        return *known = false;
    }
}

static bool take_text(const char *name, const char *value, const char **text) {
    *text = value;
    return value[0] != '\0' || complain("--%s takes a name, not ''", name);
}

static bool take(struct chaos_options *options, int option, const char *value) {
    bool known, taken = take_protection(options, option, value, &known);
    if (known) {
        return taken;
    }
    switch (option) {
    case OPTION_BACKEND:
        options->backend = value;
        return strcmp(value, "process") == 0 || strcmp(value, "compose") == 0 ||
               complain("--backend takes process or compose, not '%s'", value);
    case OPTION_SEED:
        options->seed_given = true;
        return read_seed(value, &options->seed);
    case OPTION_FAULTS:
        return read_faults(value, options);
    case OPTION_SCHEDULE:
        return take_text("schedule", value, &options->schedule);
    case OPTION_OUTPUT:
        return take_text("output", value, &options->output);
    case OPTION_SERVER:
        return take_text("server", value, &options->server);
    case OPTION_COMPOSE_FILE:
        return take_text("compose-file", value, &options->compose_file);
    case OPTION_SLACK:
        return read_time("slack", value, 0, 600000, &options->slack_ms);
    case OPTION_RUN:
        return take_text("run", value, &options->run_directory);
    default:
        return take_setting(&options->settings, option, value);
    }
}

/* Reads the options of a command; what is no option is left in argv from *next on. */
static bool take_all(int argc, char **argv, const struct option *known, struct chaos_options *options, int *next) {
    optind = 1;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":", known, NULL)) != -1;) {
        if (option == ':') {
            return complain("%s needs a value", argv[optind - 1]);
        }
        if (option == '?' && optopt != 0) {
            return complain("-%c is no option of `%s`", optopt, argv[0]);
        }
        if (option == '?') {
            return complain("%s is no option of `%s`, or the begin of more than one", argv[optind - 1], argv[0]);
        }
        if (!take(options, option, optarg)) {
            return false;
        }
    }
    *next = optind;
    return true;
}

/* An experiment's own settings stand below what the command line says, so its name is looked for first. */
static bool find_experiment(int argc, char **argv, struct chaos_options *options) {
    struct chaos_options ignored = *options;
    int next;
    if (!take_all(argc, argv, run_options, &ignored, &next)) {
        return false;
    }
    if (next == argc) {
        return true;
    }
    options->experiment = chaos_experiment_find(argv[next]);
    if (options->experiment == NULL) {
        return complain("there is no experiment '%s'; `redlock-chaos list` names those that there are", argv[next]);
    }
    return next + 1 == argc || complain("one experiment at a time, not '%s' too", argv[next + 1]);
}

static void append(char *line, size_t size, const char *text) {
    size_t length = strlen(line);
    snprintf(line + length, size - length, "%s", text);
}

/* What the library would refuse is bad usage. Without --ttl-max, it is what this run uses. */
static bool settle_protection(struct chaos_options *options) {
    struct chaos_protection *protection = &options->settings.protection;
    int64_t used_ms = options->settings.ttl_ms + protection->lock_delay_ms;
    bool asked = protection->fencing || chaos_has_guard(protection) || protection->first_boot;
    if (options->compare && asked) {
        return complain("--compare runs without protection, with fencing tokens, and with all: say none beside it");
    }
    if (options->compare && options->schedule != NULL && strcmp(options->schedule, "-") == 0) {
        return complain("--compare reads its schedule three times: name a file, not the standard input");
    }
    if (protection->first_boot && protection->restart_guard == CHAOS_RESTART_GUARD_OFF) {
        return complain("--first-boot is of --restart-guard: say how nodes are guarded");
    }
    if (protection->ttl_max_ms != 0 && !chaos_has_guard(protection) && !options->compare) {
        return complain("--ttl-max is of the guards: add --restart-guard or --clock-guard");
    }
    if (protection->ttl_max_ms != 0 && protection->ttl_max_ms < used_ms) {
        return complain("--ttl-max is less than ttl and lock delay, %" PRId64 " ms", used_ms);
    }
    if (protection->ttl_max_ms == 0 && chaos_has_guard(protection)) {
        protection->ttl_max_ms = used_ms;
    }
    return true;
}

static bool parse_run(int argc, char **argv, struct chaos_options *options) {
    int next;
    if (!find_experiment(argc, argv, options)) {
        return false;
    }
    if (options->experiment != NULL) {
        chaos_experiment_settings(options->experiment, &options->settings);
    }
    if (getrandom(&options->seed, sizeof options->seed, 0) != (ssize_t)sizeof options->seed) {
        return complain("the kernel gives no random number for a seed; name one with --seed");
    }
    options->seed %= 1000000;
    if (!take_all(argc, argv, run_options, options, &next)) {
        return false;
    }
    if (options->schedule != NULL && (options->experiment != NULL || options->kinds_given)) {
        return complain("--schedule says what happens: no experiment and no --faults beside it");
    }
    if (options->experiment != NULL && options->kinds_given) {
        return complain("an experiment has its own faults: no --faults beside it");
    }
    if (options->kinds_given && (options->kinds >> CHAOS_FAULT_DROP & 1) != 0 &&
        strcmp(options->backend, "compose") != 0) {
        return complain("--faults: drop needs --backend compose, where each node has a network of its own");
    }
    if (!options->seed_given) {
        char seed[40];
        snprintf(seed, sizeof seed, " --seed %" PRIu64, options->seed);
        append(options->command_line, sizeof options->command_line, seed);
    }
    if (!options->kinds_given) {
        char error[256];
        (void)chaos_fault_kinds_parse("safe", &options->kinds, error, sizeof error);
    }
    return settle_protection(options);
}

/* What no run would understand is bad usage; whether there are such nodes and clients, the run says. */
static bool check_fault(const char *line) {
    struct chaos_fault fault;
    char error[1024];
    if (strstr(line, " at=") != NULL) {
        return complain("fault: one by hand begins at once: it takes no at=");
    }
    return chaos_fault_parse(line, CHAOS_NODES_MAX, CHAOS_CLIENTS_MAX, &fault, error, sizeof error) ||
           complain("fault: %s", error);
}

static bool parse_fault(int argc, char **argv, struct chaos_options *options) {
    int next;
    if (!take_all(argc, argv, fault_options, options, &next)) {
        return false;
    }
    if (options->run_directory == NULL) {
        return complain("fault: --run names the directory of the experiment that runs");
    }
    if (next == argc) {
        return complain("fault: name one, such as: fault --run DIR pause nodes=1,2 for=3s");
    }
    size_t length = (size_t)snprintf(options->line, sizeof options->line, "fault=%s", argv[next++]);
    for (; next < argc && length < sizeof options->line; next++) {
        length += (size_t)snprintf(options->line + length, sizeof options->line - length, " %s", argv[next]);
    }
    if (length >= sizeof options->line || strpbrk(options->line, "\r\n") != NULL) {
        return complain("fault: it takes one line of up to %d bytes", CHAOS_FAULT_LINE_MAX - 1);
    }
    return check_fault(options->line);
}

static bool parse_judge(int argc, char **argv, struct chaos_options *options) {
    int next;
    if (!take_all(argc, argv, judge_options, options, &next)) {
        return false;
    }
    if (next + 1 != argc || argv[next][0] == '\0') {
        return complain("%s takes the directory of one run", argv[0]);
    }
    options->run_directory = argv[next];
    return true;
}

/* A shell can read it back; what does not fit is told by an ellipsis. */
static void keep_command_line(int argc, char **argv, struct chaos_options *options) {
    char *line = options->command_line;
    size_t size = sizeof options->command_line;
    append(line, size, "redlock-chaos");
    for (int i = 1; i < argc; i++) {
        bool plain = argv[i][0] != '\0' &&
                     strspn(argv[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,=:@%+") ==
                         strlen(argv[i]);
        if (strlen(line) + 4 * strlen(argv[i]) + sizeof " '' ..." > size) {
            append(line, size, " ...");
            return;
        }
        append(line, size, plain ? " " : " '");
        for (const char *c = argv[i]; *c != '\0'; c++) {
            append(line, size, *c == '\'' ? "'\\''" : (char[]){*c, '\0'});
        }
        append(line, size, plain ? "" : "'");
    }
}

/* `run --help` and the like. */
static bool asks_for_help(int argc, char **argv) {
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

static bool takes_nothing(int argc, char **argv) {
    return argc == 2 || complain("%s takes nothing, not '%s'", argv[1], argv[2]);
}

bool chaos_options_parse(int argc, char **argv, struct chaos_options *options) {
    *options = (struct chaos_options){
        .command = CHAOS_HELP, .backend = "process", .compose_file = "docker-compose.yml", .slack_ms = 1000};
    chaos_settings_default(&options->settings);
    keep_command_line(argc, argv, options);
    const char *name = argc > 1 ? argv[1] : "";
    bool help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
    bool run = strcmp(name, "run") == 0, fault = strcmp(name, "fault") == 0, list = strcmp(name, "list") == 0;
    bool check = strcmp(name, "check") == 0, report = strcmp(name, "report") == 0;
    if ((run || fault || list || check || report || help) && asks_for_help(argc, argv)) {
        return true;
    }
    if (run) {
        options->command = CHAOS_RUN;
        return parse_run(argc - 1, argv + 1, options);
    }
    if (fault) {
        options->command = CHAOS_FAULT;
        return parse_fault(argc - 1, argv + 1, options);
    }
    if (check || report) {
        options->command = check ? CHAOS_CHECK : CHAOS_REPORT;
        return parse_judge(argc - 1, argv + 1, options);
    }
    if (list) {
        options->command = CHAOS_LIST;
        return takes_nothing(argc, argv);
    }
    if (strcmp(name, "--version") == 0) {
        options->command = CHAOS_VERSION;
        return takes_nothing(argc, argv);
    }
    if (help) {
        return takes_nothing(argc, argv);
    }
    return argc > 1 ? complain("there is no command '%s'", name)
                    : complain("say what to do: run, fault, check, report, list");
}
