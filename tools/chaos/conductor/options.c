/* The command line: what is asked for, and the help. */
#include "conductor/options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "values/values.h"

/* How a value is read: A_CHOICE is one of two words, and true for the second. What ANY_OTHER does,
 * take_other() says. */
enum kind { A_NUMBER, A_TIME, A_NAME, A_FLAG, A_CHOICE, ANY_OTHER };
enum { OF_RUN = 1, OF_FAULT = 2, OF_JUDGE = 4, HELP_COLUMN = 30 };

/* Each option: which commands have it, how it is read and where to, and what the help says of
 * it. */
static const struct about {
    const char *name, *value, *help;
    int commands;
    enum kind kind;
    int64_t least, most; /* numbers, and times in ms */
    size_t offset;
} abouts[] = {
#define IN(member) offsetof(struct chaos_options, member)
#define NUMBER(name, value, least, most, member, help)                                                                 \
    { name, value, help, OF_RUN, A_NUMBER, least, most, IN(member) }
#define TIME(name, least, most, member, help)                                                                          \
    { name, "TIME", help, OF_RUN, A_TIME, least, most, IN(member) }
#define NAME(name, value, member, help)                                                                                \
    { name, value, help, OF_RUN, A_NAME, 0, 0, IN(member) }
#define FLAG(name, member, help)                                                                                       \
    { name, NULL, help, OF_RUN, A_FLAG, 0, 0, IN(member) }
#define CHOICE(name, value, member, help)                                                                              \
    { name, value, help, OF_RUN, A_CHOICE, 0, 0, IN(member) }
#define OTHER(name, value, help)                                                                                       \
    { name, value, help, OF_RUN, ANY_OTHER, 0, 0, 0 }
    CHOICE("backend", "process|compose", composed, "redis-servers on loopback (the default), or docker-compose"),
    NUMBER("nodes", "N", 1, CHAOS_NODES_MAX, settings.nodes, "5;  1 to 31"),
    NUMBER("clients", "N", 1, CHAOS_CLIENTS_MAX, settings.clients, "20; processes of their own; 1 to 64"),
    NUMBER("resources", "N", 1, CHAOS_RESOURCES_MAX, settings.resources, "3"),
    NUMBER("seconds", "N", 1, 86400, settings.seconds, "60"),
    NUMBER("seed", "N", 0, INT64_MAX, seed, "repeats the faults and the clients' choices; default: random, and told"),
    OTHER("faults", "LIST",
          "kinds for a random schedule: names with commas, safe (the default: all under\n"
          "which no violation may happen), all, none; drop only by its name"),
    NAME("schedule", "FILE", schedule,
         "faults from a file (- is standard input), one a line:\nat=2s for=3s fault=pause nodes=1,2"),
    TIME("ttl", 10, 600000, settings.ttl_ms, "2s; of the locks"),
    TIME("node-timeout", 1, 60000, settings.node_timeout_ms, "50ms"),
    TIME("wait", 0, 600000, settings.wait_ms, "10s; how long an acquire tries"),
    TIME("hold", 0, 60000, settings.hold_ms,
         "20ms; how long a client holds a lock, at most; one in ten holds ten times as long"),
    TIME("think", 0, 60000, settings.think_ms, "200ms; how long a client pauses between locks, at most"),
    NUMBER("readers", "N", 0, 100, settings.readers,
           "0; of 100 clients so many read: they have the lock together; the others write"),
    CHOICE("order", "fair|none", settings.polls,
           "fair: clients wait for a lock in its queue; none: they try again and again"),
    FLAG("tls", settings.tls, "clients speak TLS with the nodes, through the same faulty links; needs openssl"),
    CHOICE("persistence", "none|aof", settings.append_only, "aof: a node that is killed comes back with its keys"),
    NAME("output", "DIR", output,
         "default: redlock-chaos-EXPERIMENT-SEED; gets history.jsonl, report.html,\nschedule.txt, and the nodes' logs"),
    NAME("server", "PROGRAM", server, "redis-server or valkey-server; default: from the PATH"),
    NAME("compose-file", "FILE", compose_file, "docker-compose.yml"),
    {"slack", "TIME", "1s; what this machine may add to an operation's deadline", OF_RUN | OF_JUDGE, A_TIME, 0, 600000,
     IN(slack_ms)},
    {"porcupine", NULL, NULL, OF_JUDGE, A_FLAG, 0, 0, IN(porcupine)},
    {"run", "DIR", NULL, OF_FAULT, A_NAME, 0, 0, IN(run_directory)},
    OTHER("protect", NULL, "all of the following but the lock delay, with --restart-guard strict"),
    FLAG("fencing", settings.protection.fencing,
         "leases have fencing tokens, and the shared counter refuses accesses with old ones"),
    OTHER("restart-guard", "GUARD", "off, observed or strict: whether a node that restarted may vote"),
    FLAG("first-boot", settings.protection.first_boot,
         "the clients that begin with the run trust the nodes that they meet"),
    FLAG("clock-guard", settings.protection.clock_guard, "a node whose clock jumps forward loses its votes"),
    TIME("ttl-max", 10, 1200000, settings.protection.ttl_max_ms,
         "of the guards: how long such a node does not vote; default: ttl and lock delay"),
    TIME("lock-delay", 0, 600000, settings.protection.lock_delay_ms,
         "keys outlive a lease that is lost or abandoned by this"),
    FLAG("no-heal", settings.protection.no_heal, "keys that nodes lost are not set again"),
    FLAG("compare", compare,
         "runs the same schedule without protection, with fencing tokens, and with all;\none page shows the three side "
         "by side; 0 only if violations come without, and\nnone with all"),
};

enum { ABOUTS = sizeof abouts / sizeof *abouts };

/* Says what is wrong. False. */
#define complain(...)                                                                                                  \
    (fprintf(stderr, "redlock-chaos: %s; see redlock-chaos --help\n", TOOL_TEXT(2048, __VA_ARGS__)), false)

static bool take_quantity(const struct about *about, const char *text, int64_t *quantity) {
    bool time = about->kind == A_TIME;
    int64_t value;
    bool understood = time ? chaos_time_parse(text, &value) : tool_number_read(text, about->most, &value, NULL);
    if (!understood || value < about->least || value > about->most) {
        return complain("--%s takes a %s from %" PRId64 " to %" PRId64 "%s, not '%s'", about->name,
                        time ? "time" : "number", about->least, about->most, time ? " ms, such as 500ms or 10s" : "",
                        text);
    }
    *quantity = value;
    return true;
}

/* What the options of protection beside it have said stays. */
static bool protect(struct chaos_protection *protection) {
    struct chaos_protection full = chaos_protection_full();
    full.ttl_max_ms = protection->ttl_max_ms;
    full.lock_delay_ms = protection->lock_delay_ms;
    full.no_heal = protection->no_heal;
    *protection = full;
    return true;
}

static bool take_other(struct chaos_options *options, const char *name, const char *value) {
    struct chaos_protection *protection = &options->settings.protection;
    if (strcmp(name, "protect") == 0) {
        return protect(protection);
    }
    if (strcmp(name, "restart-guard") == 0) {
        return chaos_restart_guard_find(value, &protection->restart_guard) ||
               complain("--restart-guard takes off, observed or strict, not '%s'", value);
    }
    struct chaos_error error;
    options->kinds_given = true;
    return chaos_fault_kinds_parse(value, &options->kinds, &error) || complain("--faults: %s", error.text);
}

static bool take_choice(const struct about *about, const char *value, bool *member) {
    const char *second = strchr(about->value, '|') + 1;
    int length = (int)(second - about->value - 1);
    *member = strcmp(value, second) == 0;
    return *member || (strncmp(value, about->value, (size_t)length) == 0 && value[length] == '\0') ||
           complain("--%s takes %.*s or %s, not '%s'", about->name, length, about->value, second, value);
}

static bool take(struct chaos_options *options, const struct about *about, const char *value) {
    void *member = (char *)options + about->offset;
    switch (about->kind) {
    case A_NUMBER:
    case A_TIME:
        return take_quantity(about, value, member);
    case A_NAME:
        *(const char **)member = value;
        return value[0] != '\0' || complain("--%s takes a name, not ''", about->name);
    case A_FLAG:
        return *(bool *)member = true;
    case A_CHOICE:
        return take_choice(about, value, member);
    default:
        return take_other(options, about->name, value);
    }
}

/* Reads the options of a command, and moves the rest behind them. Returns where the rest begins in
 * argv; 0: --help; -1: said why. */
static int take_all(int argc, char **argv, int command, struct chaos_options *options) {
    struct option known[ABOUTS + 2] = {{"help", no_argument, NULL, 'h'}};
    for (int i = 0, count = 1; i < ABOUTS; i++) {
        if ((abouts[i].commands & command) != 0) {
            int takes = abouts[i].value == NULL ? no_argument : required_argument;
            known[count++] = (struct option){abouts[i].name, takes, NULL, 256 + i};
        }
    }
    optind = 1;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
        if (option == 'h') {
            return 0;
        }
        bool taken = option == ':'   ? complain("%s needs a value", argv[optind - 1])
                     : option != '?' ? take(options, &abouts[option - 256], optarg)
                     : optopt != 0   ? complain("-%c is no option of `%s`", optopt, argv[0])
                                     : complain("%s is no option of `%s`, or the begin of more than one",
                                                argv[optind - 1], argv[0]);
        if (!taken) {
            return -1;
        }
    }
    return optind;
}

/* Refuses what contradicts itself, and what the library would refuse. */
static bool is_sensible(const struct chaos_options *options) {
    const struct chaos_protection *protection = &options->settings.protection;
    bool from_file = options->schedule != NULL, guarded = chaos_has_guard(protection);
    bool configures = options->kinds_given && (options->kinds >> CHAOS_FAULT_CONFIGURE & 1) != 0;
    bool drops = options->kinds_given && (options->kinds >> CHAOS_FAULT_DROP & 1) != 0;
    int64_t used_ms = options->settings.ttl_ms + protection->lock_delay_ms;
    const struct {
        bool wrong;
        const char *why;
    } rules[] = {
        {from_file && (options->experiment != NULL || options->kinds_given),
         "--schedule says what happens: no experiment and no --faults beside it"},
        {options->experiment != NULL && options->kinds_given,
         "an experiment has its own faults: no --faults beside it"},
        {drops && !options->composed,
         "--faults: drop needs --backend compose, where each node has a network of its own"},
        {options->settings.tls && options->composed, "--tls needs --backend process, whose nodes get a certificate"},
        {configures, "--faults: configure is no fault, and never comes at random: write a --schedule"},
        {options->compare && (protection->fencing || guarded || protection->first_boot),
         "--compare runs without protection, with fencing tokens, and with all: say none beside it"},
        {options->compare && from_file && strcmp(options->schedule, "-") == 0,
         "--compare reads its schedule three times: name a file, not the standard input"},
        {protection->first_boot && protection->restart_guard == CHAOS_RESTART_GUARD_OFF,
         "--first-boot is of --restart-guard: say how nodes are guarded"},
        {protection->ttl_max_ms != 0 && !guarded && !options->compare,
         "--ttl-max is of the guards: add --restart-guard or --clock-guard"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].wrong) {
            return complain("%s", rules[i].why);
        }
    }
    return protection->ttl_max_ms == 0 || protection->ttl_max_ms >= used_ms ||
           complain("--ttl-max is less than ttl and lock delay, %" PRId64 " ms", used_ms);
}

static bool parse_run(int argc, char **argv, int rest, struct chaos_options *options) {
    struct chaos_protection *protection = &options->settings.protection;
    if (rest < argc) {
        options->experiment = chaos_experiment_find(argv[rest]);
        if (options->experiment == NULL) {
            return complain("there is no experiment '%s'; `redlock-chaos list` names those that there are", argv[rest]);
        }
        if (rest + 1 < argc) {
            return complain("one experiment at a time, not '%s' too", argv[rest + 1]);
        }
        /* The command line overrides the experiment's settings. */
        chaos_experiment_settings(options->experiment, &options->settings);
        (void)take_all(argc, argv, OF_RUN, options);
    }
    if (options->seed < 0) {
        uint32_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
            return complain("the kernel gives no random number for a seed; name one with --seed");
        }
        options->seed = random % 1000000;
        tool_append(options->command_line, sizeof options->command_line, " --seed %" PRId64, options->seed);
    }
    options->backend = options->composed ? "compose" : "process";
    if (!is_sensible(options)) {
        return false;
    }
    if (protection->ttl_max_ms == 0 && chaos_has_guard(protection)) {
        protection->ttl_max_ms = options->settings.ttl_ms + protection->lock_delay_ms; /* enough */
    }
    return true;
}

static bool parse_fault(int argc, char **argv, int rest, struct chaos_options *options) {
    struct chaos_fault fault;
    struct chaos_error error;
    if (options->run_directory == NULL) {
        return complain("fault: --run names the directory of the experiment that runs");
    }
    if (rest == argc) {
        return complain("fault: name one, such as: fault --run DIR pause nodes=1,2 for=3s");
    }
    size_t length = (size_t)snprintf(options->line, sizeof options->line, "fault=%s", argv[rest++]);
    for (; rest < argc && length < sizeof options->line; rest++) {
        length = tool_append(options->line, sizeof options->line, " %s", argv[rest]);
    }
    if (length >= sizeof options->line || strpbrk(options->line, "\r\n") != NULL) {
        return complain("fault: it takes one line of up to %d bytes", CHAOS_FAULT_LINE_MAX - 1);
    }
    if (strstr(options->line, " at=") != NULL) {
        return complain("fault: one by hand begins at once: it takes no at=");
    }
    /* Refuses what no run would understand. This one knows its nodes and clients itself. */
    return chaos_fault_parse(options->line, CHAOS_NODES_MAX, CHAOS_CLIENTS_MAX, &fault, &error) ||
           complain("fault: %s", error.text);
}

static bool parse_judge(int argc, char **argv, int rest, struct chaos_options *options) {
    options->run_directory = argv[rest];
    return (rest + 1 == argc && argv[rest][0] != '\0') || complain("%s takes the directory of one run", argv[0]);
}

static bool parse_nothing(int argc, char **argv, int rest, struct chaos_options *options) {
    (void)options;
    return argc == rest || complain("%s takes nothing, not '%s'", argv[0], argv[rest]);
}

/* Quotes it for a shell; what does not fit becomes "...". */
static void keep_command_line(int argc, char **argv, struct chaos_options *options) {
    char *line = options->command_line;
    size_t size = sizeof options->command_line;
    tool_append(line, size, "redlock-chaos");
    for (int i = 1; i < argc; i++) {
        bool plain = argv[i][0] != '\0' &&
                     strspn(argv[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,=:@%+") ==
                         strlen(argv[i]);
        if (strlen(line) + 4 * strlen(argv[i]) + sizeof " '' ..." > size) {
            tool_append(line, size, " ...");
            return;
        }
        tool_append(line, size, plain ? " " : " '");
        for (const char *c = argv[i]; *c != '\0'; c++) {
            tool_append(line, size, "%s", *c == '\'' ? "'\\''" : (char[]){*c, '\0'});
        }
        tool_append(line, size, "%s", plain ? "" : "'");
    }
}

bool chaos_options_parse(int argc, char **argv, struct chaos_options *options) {
    static const struct {
        const char *name;
        enum chaos_command command;
        int options;
        bool (*parse)(int argc, char **argv, int rest, struct chaos_options *options);
    } commands[] = {{"run", CHAOS_RUN, OF_RUN, parse_run},         {"fault", CHAOS_FAULT, OF_FAULT, parse_fault},
                    {"check", CHAOS_CHECK, OF_JUDGE, parse_judge}, {"report", CHAOS_REPORT, OF_JUDGE, parse_judge},
                    {"list", CHAOS_LIST, 0, parse_nothing},        {"help", CHAOS_HELP, 0, parse_nothing},
                    {"--help", CHAOS_HELP, 0, parse_nothing},      {"-h", CHAOS_HELP, 0, parse_nothing},
                    {"--version", CHAOS_VERSION, 0, parse_nothing}};
    *options = (struct chaos_options){
        .command = CHAOS_HELP, .compose_file = "docker-compose.yml", .seed = -1, .slack_ms = 1000};
    chaos_settings_default(&options->settings);
    (void)chaos_fault_kinds_parse("safe", &options->kinds, NULL);
    keep_command_line(argc, argv, options);
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            int rest = take_all(argc - 1, argv + 1, commands[i].options, options);
            options->command = rest == 0 ? CHAOS_HELP : commands[i].command;
            return rest == 0 || (rest > 0 && commands[i].parse(argc - 1, argv + 1, rest, options));
        }
    }
    return argc > 1 ? complain("there is no command '%s'", argv[1])
                    : complain("say what to do: run, fault, check, report, list");
}

/* "  --name VALUE   what it does": what is in the next lines stands below it. */
static void put_about(const struct about *about) {
    int width =
        printf("  --%s%s%s", about->name, about->value == NULL ? "" : " ", about->value == NULL ? "" : about->value);
    for (const char *line = about->help; line != NULL;) {
        size_t length = strcspn(line, "\n");
        printf("%*s%.*s\n", width < HELP_COLUMN ? HELP_COLUMN - width : 1, "", (int)length, line);
        line = line[length] == '\0' ? NULL : line + length + 1;
        width = 0;
    }
}

void chaos_options_help(void) {
    puts("usage: redlock-chaos run [EXPERIMENT] [OPTION]...\n"
         "       redlock-chaos fault --run DIR FAULT [nodes=1,2] [clients=3-5] [for=3s] [amount=20ms]\n"
         "       redlock-chaos check [--porcupine] DIR\n"
         "       redlock-chaos report [--porcupine] DIR\n"
         "       redlock-chaos list\n"
         "\n"
         "run     starts nodes and clients that lock shared resources; breaks things; judges what happened\n"
         "fault   begins a fault by hand, in an experiment that runs\n"
         "check   judges the history of a run again;  report  does so and writes the page again;\n"
         "        --porcupine: redlock-porcupine judges it, too, and draws what is illegal\n"
         "list    names the experiments and the kinds of faults\n"
         "\n"
         "Options of run. What is given here counts, not what an experiment brings:");
    for (int i = 0; i < ABOUTS; i++) {
        if (strcmp(abouts[i].name, "protect") == 0) {
            puts("\nProtection of the clients; none by default:");
        }
        if (abouts[i].help != NULL) {
            put_about(&abouts[i]);
        }
    }
    puts("\n"
         "The last line is violations=V lost_updates=U operations=O availability=A. Exit status: 0 no\n"
         "violation, 1 violations, 2 bad usage, 3 the experiment could not run. docs/experiments.md has more.");
}

void chaos_options_list(void) {
    puts("* breaks what Redlock assumes: violations are expected.\n\nExperiments (redlock-chaos run NAME):");
    const struct chaos_experiment *experiment;
    for (size_t i = 0; (experiment = chaos_experiment_at(i)) != NULL; i++) {
        printf("  %-20s%c %s\n", experiment->name, experiment->breaks ? '*' : ' ', experiment->title);
    }
    puts("\nFaults (redlock-chaos fault, and --faults):");
    for (int kind = 0; kind < CHAOS_FAULT_KINDS; kind++) {
        const struct chaos_fault_about *about = chaos_fault_about((enum chaos_fault_kind)kind);
        printf("  %-14s%c %s\n", about->name, about->breaks ? '*' : ' ', about->help);
    }
}
