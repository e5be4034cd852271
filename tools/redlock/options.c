/* The command line, parsed and checked. */
#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "text.h"

enum {
    FOR_RUN = 1 << TOOL_RUN,
    FOR_ACQUIRE = 1 << TOOL_ACQUIRE,
    FOR_EXTEND = 1 << TOOL_EXTEND,
    FOR_ALL = 1 << TOOL_NO_COMMAND /* before the command's name, too */
};

/* The longest node and connect timeout, as redlock.h says. */
#define TIMEOUT_MS_MAX INT64_C(60000)
/* Timers count in seconds as doubles and the library in ns as 64 bits: a year is enough, and far from either's end. */
#define WAIT_MS_MAX INT64_C(31536000000)

static const struct option_spec {
    char letter; /* which one it is; users may write those of has_short_form() */
    const char *name;
    const char *argument; /* NULL: it takes none */
    unsigned commands;
} specs[] = {
    {'n', "nodes", "URI,URI,…", FOR_ALL},
    {'N', "node-timeout", "MS", FOR_ALL},
    {'C', "connect-timeout", "TIME", FOR_ALL},
    {'j', "json", NULL, FOR_ALL},
    {'q', "quiet", NULL, FOR_ALL},
    {'v', "verbose", NULL, FOR_ALL},
    {'h', "help", NULL, FOR_ALL},
    {'V', "version", NULL, FOR_ALL},
    {'t', "ttl", "TTL", FOR_RUN | FOR_ACQUIRE | FOR_EXTEND},
    {'w', "wait", "WAIT", FOR_RUN | FOR_ACQUIRE},
    {'E', "contended-status", "N", FOR_RUN | FOR_ACQUIRE},
    {'g', "grace", "TIME", FOR_RUN},
    {'m', "max-time", "TIME", FOR_RUN},
};

static const char white_space[] = " \t\n\v\f\r";

static const char *const command_names[] = {"", "run", "acquire", "extend", "release", "status"};

const char *tool_command_name(enum tool_command command) {
    return command_names[command];
}

/* One sentence, with what came from the command line made safe for a terminal. */
__attribute__((format(printf, 2, 3))) static int usage(const struct tool_options *options, const char *format, ...) {
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fputs("redlock: ", stderr);
    tool_print_safe(stderr, sentence);
    const char *space = options->command == TOOL_NO_COMMAND ? "" : " ";
    fprintf(stderr, "; see redlock%s%s --help\n", space, tool_command_name(options->command));
    return TOOL_EXIT_USAGE;
}

static int parse_time(const struct tool_options *options, const char *name, const char *text, int64_t ms_min,
                      int64_t ms_max, int64_t *ms) {
    char shortest[32];
    char longest[32];
    int64_t value = 0;
    switch (tool_duration_parse(text, &value)) {
    case TOOL_DURATION_NO_UNIT:
        return usage(options, "--%s %s: a time needs a unit, as in %sms, %ss, %sm or %sh", name, text, text, text, text,
                     text);
    case TOOL_DURATION_MALFORMED:
        return usage(options, "--%s '%s': a time is a whole number with a unit, as in 500ms, 10s, 2m, 1h or 1d", name,
                     text);
    case TOOL_DURATION_TOO_LONG:
        value = INT64_MAX;
        break;
    case TOOL_DURATION_OK:
        break;
    }
    if (value < ms_min || value > ms_max) {
        return usage(options, "--%s %s: it must be between %s and %s", name, text,
                     tool_duration_format(ms_min, shortest, sizeof shortest),
                     tool_duration_format(ms_max, longest, sizeof longest));
    }
    *ms = value;
    return 0;
}

/* A plain number is in ms here, as the option's usage says; a time with a unit is as good. */
static int parse_node_timeout(struct tool_options *options, const char *text) {
    char with_unit[16];
    size_t length = strlen(text);
    if (length > 0 && length <= 8 && strspn(text, "0123456789") == length) {
        snprintf(with_unit, sizeof with_unit, "%.8sms", text);
        text = with_unit;
    }
    return parse_time(options, "node-timeout", text, 1, TIMEOUT_MS_MAX, &options->node_timeout_ms);
}

static int parse_contended_status(struct tool_options *options, const char *text) {
    size_t length = strlen(text);
    long value = length >= 1 && length <= 3 && strspn(text, "0123456789") == length ? strtol(text, NULL, 10) : 256;
    if (value > 255) {
        return usage(options, "--contended-status '%s': an exit status is a number from 0 to 255", text);
    }
    options->contended_status = (int)value;
    options->contended_expected = true;
    return 0;
}

static int parse_wait(struct tool_options *options, const char *text) {
    if (strcmp(text, "forever") == 0) {
        options->wait_ms = REDLOCK_WAIT_FOREVER;
        return 0;
    }
    return parse_time(options, "wait", text, 0, WAIT_MS_MAX, &options->wait_ms);
}

static int apply(struct tool_options *options, const struct option_spec *spec, const char *argument) {
    switch (spec->letter) {
    case 'n':
        options->node_list = argument;
        return 0;
    case 'N':
        return parse_node_timeout(options, argument);
    case 'C':
        return parse_time(options, spec->name, argument, 1, TIMEOUT_MS_MAX, &options->connect_timeout_ms);
    case 'j':
        options->json = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case 'v':
        options->verbose = true;
        return 0;
    case 'h':
        options->help = true;
        return 0;
    case 'V':
        options->version = true;
        return 0;
    case 't':
        return parse_time(options, spec->name, argument, 1, REDLOCK_TTL_MS_MAX, &options->ttl_ms);
    case 'w':
        return parse_wait(options, argument);
    case 'E':
        return parse_contended_status(options, argument);
    case 'g':
        return parse_time(options, spec->name, argument, 0, WAIT_MS_MAX, &options->grace_ms);
    default:
        return parse_time(options, spec->name, argument, 1, WAIT_MS_MAX, &options->max_time_ms);
    }
}

/* Whether the option may stand here; says so if not. */
static int check_place(const struct tool_options *options, const struct option_spec *spec) {
    if ((spec->commands & FOR_ALL) != 0 || (spec->commands & (1U << options->command)) != 0) {
        return 0;
    }
    if (options->command == TOOL_NO_COMMAND) {
        return usage(options, "--%s belongs behind the command's name", spec->name);
    }
    return usage(options, "%s has no option --%s", tool_command_name(options->command), spec->name);
}

static int parse_long(struct tool_options *options, char **argv, int *index) {
    const char *name = argv[*index] + 2;
    size_t length = strcspn(name, "=");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const struct option_spec *spec = &specs[i];
        if (strlen(spec->name) != length || strncmp(spec->name, name, length) != 0) {
            continue;
        }
        int status = check_place(options, spec);
        if (status != 0) {
            return status;
        }
        const char *argument = name[length] == '=' ? name + length + 1 : NULL;
        if (spec->argument == NULL) {
            return argument == NULL ? apply(options, spec, NULL) : usage(options, "--%s takes no value", spec->name);
        }
        if (argument == NULL) {
            argument = argv[++*index];
        }
        return argument != NULL ? apply(options, spec, argument)
                                : usage(options, "--%s needs a value: --%s %s", spec->name, spec->name, spec->argument);
    }
    return usage(options, "unknown option '--%.*s'", (int)(length < 64 ? length : 64), name);
}

/* Only these have a letter that users may write; the others' letters are for apply() alone. */
static bool has_short_form(char letter) {
    return letter != '\0' && strchr("nqvhVtwE", letter) != NULL;
}

static int parse_short(struct tool_options *options, char **argv, int *index) {
    for (const char *letter = argv[*index] + 1; *letter != '\0'; letter++) {
        const struct option_spec *spec = NULL;
        for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
            if (specs[i].letter == *letter && has_short_form(*letter)) {
                spec = &specs[i];
            }
        }
        if (spec == NULL) {
            return usage(options, "unknown option '-%c'", *letter);
        }
        int status = check_place(options, spec);
        if (status != 0) {
            return status;
        }
        if (spec->argument != NULL) {
            const char *argument = letter[1] != '\0' ? letter + 1 : argv[++*index];
            return argument != NULL ? apply(options, spec, argument)
                                    : usage(options, "-%c needs a value: -%c %s", *letter, *letter, spec->argument);
        }
        status = apply(options, spec, NULL);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

static int take_command(struct tool_options *options, const char *name) {
    for (int command = TOOL_RUN; command <= TOOL_STATUS; command++) {
        if (strcmp(name, command_names[command]) == 0) {
            options->command = (enum tool_command)command;
            return 0;
        }
    }
    return usage(options, "unknown command '%s'; the commands are run, acquire, extend, release and status", name);
}

/* Options are applied as they come; operands move to the front of argv. dashes: how many operands stood before '--',
 * or -1. */
static int parse_words(int argc, char **argv, struct tool_options *options, int *dashes) {
    int kept = 0;
    int status = 0;
    *dashes = -1;
    for (int i = 1; i < argc && status == 0; i++) {
        if (*dashes >= 0 || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (options->command == TOOL_NO_COMMAND) {
                status = take_command(options, argv[i]);
            } else {
                argv[kept++] = argv[i];
            }
        } else if (strcmp(argv[i], "--") == 0) {
            *dashes = kept;
        } else if (argv[i][1] == '-') {
            status = parse_long(options, argv, &i);
        } else {
            status = parse_short(options, argv, &i);
        }
    }
    argv[kept] = NULL; /* kept < argc: the program's name is not kept */
    options->operands = argv;
    options->operand_count = (size_t)kept;
    return status;
}

/* Cuts white space off both ends. */
static char *trim(char *text) {
    text += strspn(text, white_space);
    size_t length = strlen(text);
    while (length > 0 && strchr(white_space, text[length - 1]) != NULL) {
        length--;
    }
    text[length] = '\0';
    return text;
}

/* Two clients whose lists are cut differently would both hold the lock: what might be two nodes is never taken for one.
 * The URI is not repeated, for it may hold a password. */
static int check_node(const struct tool_options *options, const char *uri) {
    size_t number = options->node_count + 1;
    if (*uri == '\0') {
        return usage(options, "node %zu of the list is empty: look for a comma too many", number);
    }
    if (strpbrk(uri, white_space) != NULL) {
        return usage(options, "node %zu of the list has white space inside: separate nodes with commas", number);
    }
    if (strchr(uri, ';') != NULL) {
        return usage(options,
                     "node %zu of the list has a ';' inside: separate nodes with commas (in a password it is %%3B)",
                     number);
    }
    if (options->node_count == REDLOCK_NODES_MAX) {
        return usage(options, "more than %d nodes", REDLOCK_NODES_MAX);
    }
    return 0;
}

static int split_nodes(struct tool_options *options) {
    if (options->node_list == NULL) {
        options->node_list = getenv("REDLOCK_NODES");
    }
    if (options->node_list == NULL || options->node_list[0] == '\0') {
        return usage(options, "no nodes: give them with -n URI,URI,… or in the environment as REDLOCK_NODES");
    }
    options->node_copy = strdup(options->node_list);
    if (options->node_copy == NULL) {
        fputs("redlock: out of memory\n", stderr);
        return TOOL_EXIT_SYSTEM;
    }
    char *rest = options->node_copy;
    while (rest != NULL) {
        char *uri = trim(strsep(&rest, ","));
        int status = check_node(options, uri);
        if (status != 0) {
            return status;
        }
        options->nodes[options->node_count++] = uri;
    }
    return 0;
}

static int check_resource(const struct tool_options *options, const char *resource) {
    if (resource[0] == '\0') {
        return usage(options, "the RESOURCE is empty");
    }
    if (strlen(resource) > REDLOCK_RESOURCE_SIZE_MAX) {
        return usage(options, "the RESOURCE is longer than %d bytes", REDLOCK_RESOURCE_SIZE_MAX);
    }
    return 0;
}

/* run [RESOURCE] -- [RESOURCE --] CMD …: the second form is for names that begin with a dash. */
static int split_run(struct tool_options *options, int dashes) {
    char **words = options->operands;
    size_t count = options->operand_count;
    if (count == 0) {
        return usage(options, "run needs a RESOURCE and a command: redlock run RESOURCE -- CMD …");
    }
    size_t command = 1;
    if (dashes == 0 && count > 1 && strcmp(words[1], "--") == 0) {
        command = 2;
    } else if (dashes != 1) {
        return usage(options, "run needs one RESOURCE, then '--', then the command: redlock run RESOURCE -- CMD …");
    }
    if (count == command) {
        return usage(options, "run needs a command behind '--': redlock run RESOURCE -- CMD …");
    }
    options->resource = words[0];
    options->operands = words + command;
    options->operand_count = count - command;
    return 0;
}

static int take_operands(struct tool_options *options, int dashes) {
    char **words = options->operands;
    size_t count = options->operand_count;
    int status = 0;
    switch (options->command) {
    case TOOL_RUN:
        status = split_run(options, dashes);
        break;
    case TOOL_ACQUIRE:
        if (count != 1) {
            return usage(options, "acquire needs one RESOURCE and was given %zu", count);
        }
        options->resource = words[0];
        break;
    case TOOL_EXTEND:
    case TOOL_RELEASE:
        if (count != 2) {
            return usage(options, "%s needs a RESOURCE and a TOKEN", tool_command_name(options->command));
        }
        options->resource = words[0];
        options->token = words[1];
        break;
    case TOOL_STATUS:
        for (size_t i = 0; i < count && status == 0; i++) {
            status = check_resource(options, words[i]);
        }
        break;
    case TOOL_NO_COMMAND:
        break;
    }
    if (status == 0 && options->resource != NULL) {
        status = check_resource(options, options->resource);
    }
    if (status == 0 && options->token != NULL) {
        size_t size = strlen(options->token);
        if (size == 0 || size > REDLOCK_TOKEN_SIZE_MAX) {
            return usage(options, "the TOKEN must have 1 to %d bytes", REDLOCK_TOKEN_SIZE_MAX);
        }
    }
    return status;
}

int tool_options_parse(int argc, char **argv, struct tool_options *options) {
    *options = (struct tool_options){.node_timeout_ms = TOOL_NOT_GIVEN,
                                     .connect_timeout_ms = 1000,
                                     .ttl_ms = TOOL_NOT_GIVEN,
                                     .grace_ms = 5000,
                                     .contended_status = TOOL_EXIT_CONTENDED};
    int dashes;
    int status = parse_words(argc, argv, options, &dashes);
    if (status != 0 || options->help || options->version) {
        return status;
    }
    if (options->command == TOOL_NO_COMMAND) {
        return usage(options, "no command; the commands are run, acquire, extend, release and status");
    }
    status = take_operands(options, dashes);
    if (status != 0) {
        return status;
    }
    if (options->ttl_ms == TOOL_NOT_GIVEN) {
        if (options->command == TOOL_EXTEND) {
            return usage(options, "extend needs the new time to live: -t TTL");
        }
        options->ttl_ms = options->command == TOOL_RUN ? 30000 : 10000;
    }
    if (options->command == TOOL_ACQUIRE && options->contended_status == 0) {
        return usage(options, "--contended-status 0: acquire that ends with 0 holds the lock; take another number");
    }
    return split_nodes(options);
}

void tool_options_free(struct tool_options *options) {
    free(options->node_copy);
    options->node_copy = NULL;
}
