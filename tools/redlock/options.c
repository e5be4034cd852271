/* The command line, parsed and checked. */
#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encryption.h"
#include "fleet.h"
#include "operands.h"
#include "usage.h"
#include "values/values.h"

enum {
    FOR_RUN = 1 << TOOL_RUN,
    FOR_ELECT = 1 << TOOL_ELECT,
    FOR_ACQUIRE = 1 << TOOL_ACQUIRE,
    FOR_EXTEND = 1 << TOOL_EXTEND,
    FOR_CLEAR = 1 << TOOL_CLEAR,
    FOR_STATUS = 1 << TOOL_STATUS,
    FOR_ALL = 1 << TOOL_NO_COMMAND /* may also stand before the command's name */
};

struct option_spec {
    const char *name;
    char letter;          /* the short form; 0: none */
    const char *argument; /* NULL: none; in brackets: only after '=', or none */
    unsigned commands;
    /* Returns 0, or TOOL_EXIT_USAGE after printing what is wrong. text is NULL if there is no
     * argument. */
    int (*apply)(struct tool_options *options, const struct option_spec *spec, const char *text);
    size_t offset; /* of the member that set_…() sets */
    int64_t ms_min, ms_max;
};

#define COMMANDS "run, elect, acquire, extend, release, clear, status and help"

static const char *const command_names[] = {"", "run", "elect", "acquire", "extend", "release", "clear", "status"};

const char *tool_command_name(enum tool_command command) {
    return command_names[command];
}

static void *field(struct tool_options *options, const struct option_spec *spec) {
    return (char *)options + spec->offset;
}

static int set_flag(struct tool_options *options, const struct option_spec *spec, const char *text) {
    (void)text;
    *(bool *)field(options, spec) = true;
    return 0;
}

static int set_text(struct tool_options *options, const struct option_spec *spec, const char *text) {
    *(const char **)field(options, spec) = text;
    return 0;
}

/* Locks on different nodes do not exclude each other, so the last list does not silently win. */
static int set_nodes(struct tool_options *options, const struct option_spec *spec, const char *text) {
    if (*(const char **)field(options, spec) != NULL) {
        return tool_usage(options, "--%s is given twice; one must name all nodes: --%s %s", spec->name, spec->name,
                          spec->argument);
    }
    return set_text(options, spec, text);
}

static int set_time(struct tool_options *options, const struct option_spec *spec, const char *text) {
    char label[32];
    snprintf(label, sizeof label, "--%s", spec->name);
    return tool_usage_time(options, label, text, spec->ms_min, spec->ms_max, (int64_t *)field(options, spec));
}

/* A plain number has this unit; a time with a unit is allowed, too. */
static int set_number(struct tool_options *options, const struct option_spec *spec, const char *text,
                      const char *unit) {
    char with_unit[16];
    size_t length = strlen(text);
    if (length > 0 && length <= 8 && strspn(text, "0123456789") == length) {
        snprintf(with_unit, sizeof with_unit, "%.8s%s", text, unit);
        text = with_unit;
    }
    return set_time(options, spec, text);
}

static int set_node_timeout(struct tool_options *options, const struct option_spec *spec, const char *text) {
    return set_number(options, spec, text, "ms");
}

static int set_watch(struct tool_options *options, const struct option_spec *spec, const char *text) {
    return set_number(options, spec, text != NULL ? text : "2", "s");
}

static int set_contended_status(struct tool_options *options, const struct option_spec *spec, const char *text) {
    int64_t value;
    if (!tool_number_read(text, 255, &value, NULL)) {
        return tool_usage(options, "--%s '%s': an exit status is a number from 0 to 255", spec->name, text);
    }
    options->contended_status = (int)value;
    options->contended_expected = true;
    return 0;
}

static int set_quorum(struct tool_options *options, const struct option_spec *spec, const char *text) {
    (void)spec;
    return tool_fleet_quorum(options, "--quorum", text);
}

static int set_wait(struct tool_options *options, const struct option_spec *spec, const char *text) {
    if (strcmp(text, "forever") == 0) {
        options->wait_ms = REDLOCK_WAIT_FOREVER;
        return 0;
    }
    return set_time(options, spec, text);
}

static int set_clock_guard(struct tool_options *options, const struct option_spec *spec, const char *text) {
    (void)text;
    options->clock_guard_name = strcmp(spec->name, "clock-guard") == 0 ? "on" : "off";
    return 0;
}

#define FLAG(member)           set_flag, offsetof(struct tool_options, member), 0, 0
#define TEXT(member)           set_text, offsetof(struct tool_options, member), 0, 0
#define TIME(member, min, max) set_time, offsetof(struct tool_options, member), min, max

static const struct option_spec specs[] = {
    {"nodes", 'n', "URI,URI,…", FOR_ALL, set_nodes, offsetof(struct tool_options, node_list), 0, 0},
    {"nodes-file", 0, "FILE", FOR_ALL, set_nodes, offsetof(struct tool_options, nodes_file), 0, 0},
    {"quorum", 0, "N", FOR_ALL, set_quorum, 0, 0, 0},
    {"node-timeout", 0, "MS", FOR_ALL, set_node_timeout, offsetof(struct tool_options, node_timeout_ms), 1,
     TOOL_TIMEOUT_MS_MAX},
    {"connect-timeout", 0, "TIME", FOR_ALL, TIME(connect_timeout_ms, 1, TOOL_TIMEOUT_MS_MAX)},
    {"restart-guard", 0, "off|observed|strict", FOR_ALL, TEXT(restart_guard_name)},
    {"clock-guard", 0, NULL, FOR_ALL, set_clock_guard, 0, 0, 0},
    {"no-clock-guard", 0, NULL, FOR_ALL, set_clock_guard, 0, 0, 0},
    {"ttl-max", 0, "TIME", FOR_ALL, TIME(ttl_max_ms, 1, REDLOCK_TTL_MS_MAX)},
    {"first-boot", 0, NULL, FOR_ALL, FLAG(first_boot)},
    {"wait-suffix", 0, "SUFFIX", FOR_ALL, TEXT(wait_suffix)},
    {"tls", 0, NULL, FOR_ALL, FLAG(tls)},
    {"cacert", 0, "FILE", FOR_ALL, TEXT(cacert)},
    {"cacertdir", 0, "DIR", FOR_ALL, TEXT(cacertdir)},
    {"cert", 0, "FILE", FOR_ALL, TEXT(cert)},
    {"key", 0, "FILE", FOR_ALL, TEXT(key)},
    {"sni", 0, "NAME", FOR_ALL, TEXT(sni)},
    {"insecure", 0, NULL, FOR_ALL, FLAG(insecure)},
    {"json", 0, NULL, FOR_ALL, FLAG(json)},
    {"quiet", 'q', NULL, FOR_ALL, FLAG(quiet)},
    {"no-warn", 0, "settings|all|none", FOR_ALL, TEXT(no_warn_name)},
    {"verbose", 'v', NULL, FOR_ALL, FLAG(verbose)},
    {"help", 'h', NULL, FOR_ALL, FLAG(help)},
    {"version", 'V', NULL, FOR_ALL, FLAG(version)},
    {"ttl", 't', "TTL", FOR_RUN | FOR_ELECT | FOR_ACQUIRE | FOR_EXTEND, TIME(ttl_ms, 1, REDLOCK_TTL_MS_MAX)},
    {"wait", 'w', "WAIT", FOR_RUN | FOR_ACQUIRE, set_wait, offsetof(struct tool_options, wait_ms), 0, TOOL_WAIT_MS_MAX},
    {"order", 0, "fair|none", FOR_RUN | FOR_ACQUIRE, TEXT(order_name)},
    {"contended-status", 'E', "N", FOR_RUN | FOR_ACQUIRE, set_contended_status, 0, 0, 0},
    {"fence", 0, NULL, FOR_RUN | FOR_ELECT | FOR_ACQUIRE, FLAG(fence)},
    {"fence-suffix", 0, "SUFFIX", FOR_RUN | FOR_ELECT | FOR_ACQUIRE, TEXT(fence_suffix)},
    {"fence-expiry", 0, "TIME", FOR_RUN | FOR_ELECT | FOR_ACQUIRE,
     TIME(fence_expiry_ms, TOOL_FENCE_EXPIRY_MS_MIN, TOOL_FENCE_EXPIRY_MS_MAX)},
    {"holder", 0, "TEXT", FOR_RUN | FOR_ELECT | FOR_ACQUIRE, TEXT(holder)},
    {"lock-delay", 0, "TIME", FOR_RUN | FOR_ELECT | FOR_ACQUIRE | FOR_EXTEND,
     TIME(lock_delay_ms, 0, REDLOCK_TTL_MS_MAX)},
    {"no-heal", 0, NULL, FOR_RUN | FOR_ELECT, FLAG(no_heal)},
    {"grace", 0, "TIME", FOR_RUN | FOR_ELECT, TIME(grace_ms, 0, TOOL_WAIT_MS_MAX)},
    {"observe", 0, NULL, FOR_ELECT, FLAG(observe)},
    {"max-time", 0, "TIME", FOR_RUN, TIME(max_time_ms, 1, TOOL_WAIT_MS_MAX)},
    {"at-least", 0, "TIME", FOR_RUN, TIME(at_least_ms, 1, REDLOCK_TTL_MS_MAX)},
    {"yes", 'y', NULL, FOR_CLEAR, FLAG(yes)},
    {"all", 'a', NULL, FOR_STATUS, FLAG(all)},
    {"match", 0, "PATTERN", FOR_STATUS, TEXT(match)},
    {"all-ready", 0, NULL, FOR_STATUS, FLAG(all_ready)},
    {"metrics", 0, NULL, FOR_STATUS, FLAG(metrics)},
    {"output", 0, "FILE", FOR_STATUS, TEXT(output)},
    {"watch", 0, "[TIME]", FOR_STATUS, set_watch, offsetof(struct tool_options, watch_ms), 100, 86400000},
};

/* Returns 0 if the option may stand here, else TOOL_EXIT_USAGE after printing why not. */
static int check_place(const struct tool_options *options, const struct option_spec *spec) {
    if ((spec->commands & FOR_ALL) != 0 || (spec->commands & (1U << options->command)) != 0) {
        return 0;
    }
    if (options->command == TOOL_NO_COMMAND) {
        return tool_usage(options, "--%s must stand after the command's name", spec->name);
    }
    return tool_usage(options, "%s has no option --%s", tool_command_name(options->command), spec->name);
}

/* Names the option that was meant, if the name of one that may stand here is close. */
static int refuse_long(const struct tool_options *options, const char *name, size_t length) {
    const struct option_spec *meant = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        bool fits =
            options->command == TOOL_NO_COMMAND || (specs[i].commands & (FOR_ALL | 1U << options->command)) != 0;
        size_t distance = fits ? tool_usage_distance(name, length, specs[i].name) : SIZE_MAX;
        /* Of two that are as close, the command's own. */
        bool is_own = (specs[i].commands & FOR_ALL) == 0;
        if (distance < least || (distance != SIZE_MAX && distance == least && is_own)) {
            least = distance;
            meant = &specs[i];
        }
    }
    return tool_usage(options, "unknown option '--%.*s'%s%s%s", (int)(length < 64 ? length : 64), name,
                      meant != NULL ? " (did you mean --" : "", meant != NULL ? meant->name : "",
                      meant != NULL ? "?)" : "");
}

/* After an option whose time is optional: "--watch 5s" would watch a lock named "5s". */
static bool looks_like_time(const char *word) {
    int64_t ms;
    return word != NULL && tool_duration_parse(word, &ms) != TOOL_DURATION_MALFORMED;
}

/* The value of an option that needs one, from the next word. NULL: there is none. '--' and what
 * looks like an option are never meant. */
static const char *next_value(struct tool_options *options, const struct option_spec *spec, char **argv, int *index) {
    const char *word = argv[*index + 1];
    if (word == NULL || strncmp(word, "--", 2) == 0) {
        return NULL;
    }
    ++*index;
    if (options->command != TOOL_NO_COMMAND) {
        options->last_taker = spec->name;
    }
    return word;
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
            return argument == NULL ? spec->apply(options, spec, NULL)
                                    : tool_usage(options, "--%s takes no value", spec->name);
        }
        if (argument == NULL && spec->argument[0] == '[') {
            return looks_like_time(argv[*index + 1])
                       ? tool_usage(options,
                                    "--%s takes its time after '=', as in --%s=%s; a RESOURCE of that name "
                                    "goes before --%s",
                                    spec->name, spec->name, argv[*index + 1], spec->name)
                       : spec->apply(options, spec, NULL);
        }
        if (argument == NULL) {
            argument = next_value(options, spec, argv, index);
        }
        return argument != NULL
                   ? spec->apply(options, spec, argument)
                   : tool_usage(options, "--%s needs a value: --%s %s", spec->name, spec->name, spec->argument);
    }
    return refuse_long(options, name, length);
}

static int parse_short(struct tool_options *options, char **argv, int *index) {
    for (const char *letter = argv[*index] + 1; *letter != '\0'; letter++) {
        const struct option_spec *spec = NULL;
        for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
            if (specs[i].letter == *letter) {
                spec = &specs[i];
            }
        }
        if (spec == NULL) {
            return tool_usage(options, "unknown option '-%c'", *letter);
        }
        int status = check_place(options, spec);
        if (status != 0) {
            return status;
        }
        if (spec->argument != NULL) {
            const char *argument = letter[1] != '\0' ? letter + 1 : next_value(options, spec, argv, index);
            return argument != NULL
                       ? spec->apply(options, spec, argument)
                       : tool_usage(options, "-%c needs a value: -%c %s", *letter, *letter, spec->argument);
        }
        status = spec->apply(options, spec, NULL);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

/* "help COMMAND" is "COMMAND --help". */
static int take_command(struct tool_options *options, const char *name) {
    const size_t from_help = tool_usage_distance(name, strlen(name), "help");
    const char *meant = from_help != SIZE_MAX ? "help" : "";
    size_t least = from_help;
    if (from_help == 0) {
        options->help = true;
        return 0;
    }
    for (int command = TOOL_RUN; command <= TOOL_STATUS; command++) {
        size_t distance = tool_usage_distance(name, strlen(name), command_names[command]);
        if (distance == 0) {
            options->command = (enum tool_command)command;
            return 0;
        }
        if (distance < least) {
            least = distance;
            meant = command_names[command];
        }
    }
    return *meant != '\0' ? tool_usage(options, "unknown command '%s' (did you mean %s?)", name, meant)
                          : tool_usage(options, "unknown command '%s'; the commands are " COMMANDS, name);
}

/* The options behind a command that is to run would be taken for ours. Only its first word is
 * repeated: the others may hold a password. */
static int refuse_second_word(const struct tool_options *options, const char *resource, char **words) {
    const char *name = tool_command_name(options->command);
    for (char **word = words + 1; *word != NULL; word++) {
        if (strcmp(*word, "--") == 0) {
            return tool_usage(options, "%s takes one RESOURCE before '--', but there are '%s' and '%s'", name, resource,
                              *words);
        }
    }
    const int length = (int)strcspn(*words, " \t\n");
    return tool_usage(options, "%s takes '--' before the command: redlock %s %s -- %.*s%s", name, name, resource,
                      length, *words, (*words)[length] != '\0' || words[1] != NULL ? " …" : "");
}

/* Applies options in their order; moves operands to the front of argv. dashes: how many operands
 * stood before '--', or -1. */
static int parse_words(int argc, char **argv, struct tool_options *options, int *dashes) {
    int kept = 0;
    int status = 0;
    *dashes = -1;
    for (int i = 1; i < argc && status == 0; i++) {
        if (*dashes >= 0 || argv[i][0] != '-' || argv[i][1] == '\0') {
            const bool has_command = options->command == TOOL_RUN || options->command == TOOL_ELECT;
            if (options->command == TOOL_NO_COMMAND) {
                status = take_command(options, argv[i]);
            } else if (has_command && *dashes < 0 && kept == 1 && !options->observe) {
                status = refuse_second_word(options, argv[0], argv + i);
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
    argv[kept] = NULL; /* kept < argc, because the program's name is not kept */
    options->operands = argv;
    options->operand_count = (size_t)kept;
    return status;
}

/* Options of status that do not go together. */
static int check_status(struct tool_options *options) {
    options->all = options->all || options->match != NULL;
    if (options->all && options->command == TOOL_STATUS && options->operand_count > 0) {
        return tool_usage(options, "--all lists all locks: leave out the RESOURCE, or give --match PATTERN");
    }
    if (options->match != NULL && strlen(options->match) > REDLOCK_RESOURCE_SIZE_MAX) {
        return tool_usage(options, "--match has more than %d bytes", REDLOCK_RESOURCE_SIZE_MAX);
    }
    if (options->match != NULL && *options->match == '\0') {
        return tool_usage(options, "--match is empty: no lock has that name; --all lists all locks");
    }
    if (options->metrics && options->json) {
        return tool_usage(options, "--metrics and --json are two formats: give one of them");
    }
    if (options->output != NULL && !options->metrics) {
        return tool_usage(options, "--output is for --metrics; for anything else use the shell's '>'");
    }
    if (options->output != NULL && *options->output == '\0') {
        return tool_usage(options, "--output is empty: give the name of the file");
    }
    return 0;
}

/* Wrong options before it are told as JSON, too. */
static bool wants_json(char **argv) {
    char **word = argv + 1;
    while (*word != NULL && strcmp(*word, "--json") != 0 && strcmp(*word, "--") != 0) {
        word++;
    }
    return *word != NULL && strcmp(*word, "--json") == 0;
}

int tool_options_parse(int argc, char **argv, struct tool_words *words, struct tool_options *options) {
    *options = (struct tool_options){.words = words,
                                     .json = argc > 0 && wants_json(argv),
                                     .node_timeout_ms = TOOL_NOT_GIVEN,
                                     .connect_timeout_ms = 1000,
                                     .ttl_ms = TOOL_NOT_GIVEN,
                                     .grace_ms = TOOL_NOT_GIVEN,
                                     .ttl_max_ms = TOOL_NOT_GIVEN,
                                     .fence_expiry_ms = TOOL_NOT_GIVEN,
                                     .quorum = TOOL_NOT_GIVEN,
                                     .contended_status = TOOL_EXIT_CONTENDED};
    int dashes;
    int status = parse_words(argc, argv, options, &dashes);
    if (status != 0 || options->help || options->version) {
        return status;
    }
    if (options->command == TOOL_NO_COMMAND) {
        return tool_usage(options, "no command; the commands are " COMMANDS);
    }
    if (options->command == TOOL_EXTEND && options->ttl_ms == TOOL_NOT_GIVEN) {
        return tool_usage(options, "extend needs the new time to live: -t TTL");
    }
    /* Before the operands: one of them may have become the value of an option. */
    status = tool_fleet_complete(options);
    if (status == 0) {
        status = tool_operands_take(options, dashes);
    }
    if (status == 0 && options->command == TOOL_ACQUIRE && options->contended_status == 0) {
        return tool_usage(options,
                          "--contended-status 0: an acquire that exits with 0 holds the lock; use another number");
    }
    if (status == 0) {
        status = check_status(options);
    }
    if (status == 0) {
        status = tool_tls_complete(options);
    }
    if (status == 0) {
        status = tool_operands_nodes(options);
    }
    return status == 0 ? tool_tls_nodes(options) : status;
}

void tool_options_free(struct tool_options *options) {
    free(options->node_copy);
    options->node_copy = NULL;
    for (size_t i = 0; i < REDLOCK_NODES_MAX; i++) {
        free(options->node_uris[i]);
        options->node_uris[i] = NULL;
    }
}
