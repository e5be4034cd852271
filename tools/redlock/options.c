/* The command line, parsed and checked. */
#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operands.h"
#include "settings.h"
#include "usage.h"
#include "values/values.h"

enum {
    FOR_RUN = 1 << TOOL_RUN,
    FOR_ELECT = 1 << TOOL_ELECT,
    FOR_ACQUIRE = 1 << TOOL_ACQUIRE,
    FOR_EXTEND = 1 << TOOL_EXTEND,
    FOR_DOWNGRADE = 1 << TOOL_DOWNGRADE,
    FOR_RELEASE = 1 << TOOL_RELEASE,
    FOR_CLEAR = 1 << TOOL_CLEAR,
    FOR_STATUS = 1 << TOOL_STATUS,
    FOR_ALL = 1 << TOOL_NO_COMMAND /* may also stand before the command's name */
};

/* A year. Timers count seconds in doubles, the library counts ns in 64 bits: both have room for
 * it. */
#define WAIT_MS_MAX INT64_C(31536000000)
/* The expiry of a fencing counter: the minimum of redlock.h, and ten years, which a node can still
 * add to its clock. */
#define FENCE_EXPIRY_MS_MIN INT64_C(10800000)
#define FENCE_EXPIRY_MS_MAX INT64_C(315360000000)

/* The values of an enum, by its numbers; of a flag, "no" and "yes" in turn. */
struct names {
    const char *allowed; /* for people */
    const char *names[7];
};

static const struct names restart_guards = {"off, observed or strict",
                                            {[REDLOCK_RESTART_GUARD_OFF] = "off",
                                             [REDLOCK_RESTART_GUARD_OBSERVED] = "observed",
                                             [REDLOCK_RESTART_GUARD_STRICT] = "strict"}};
static const struct names orders = {"fair or none", {[REDLOCK_ORDER_FAIR] = "fair", [REDLOCK_ORDER_NONE] = "none"}};
static const struct names no_warns = {
    "settings, all or none",
    {[TOOL_NO_WARN_NONE] = "none", [TOOL_NO_WARN_SETTINGS] = "settings", [TOOL_NO_WARN_ALL] = "all"}};
static const struct names off_on = {"on or off", {"off", "on"}};
static const struct names zero_one = {"1 or 0", {"0", "1", "no", "yes", "off", "on"}};

struct option_spec {
    const char *name;
    char letter;          /* the short form; 0: none */
    const char *argument; /* NULL: none; in brackets: only after '=', or none */
    unsigned commands;
    /* Returns 0, or TOOL_EXIT_USAGE after printing what is wrong with the text that label has. text
     * is NULL if there is no argument. */
    int (*apply)(struct tool_options *options, const struct option_spec *spec, const char *label, const char *text);
    size_t offset; /* of the member that set_…() sets */
    int64_t min, max;
    const char *rule; /* of a count: the sentence about what it must be */
    const struct names *names;
    const char *variable; /* of the environment; empty is as not set */
    const char *member;   /* what the library calls it where it refuses it; NULL: it never does */
};

static void *field(struct tool_options *options, const struct option_spec *spec) {
    return (char *)options + spec->offset;
}

/* Returns the index of the name, or -1 after printing what it must be. */
static int read_name(struct tool_options *options, const struct option_spec *spec, const char *label,
                     const char *text) {
    const char *const *names = spec->names->names;
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
    }
    (void)tool_usage(options, "%s '%s': it must be %s", label, text, spec->names->allowed);
    return -1;
}

static int set_flag(struct tool_options *options, const struct option_spec *spec, const char *label, const char *text) {
    const int index = text == NULL ? 1 : read_name(options, spec, label, text);
    *(bool *)field(options, spec) = index % 2 != 0;
    return index < 0 ? TOOL_EXIT_USAGE : 0;
}

/* It counts for the operands behind it. */
static int set_shared(struct tool_options *options, const struct option_spec *spec, const char *label,
                      const char *text) {
    (void)spec, (void)label, (void)text;
    options->shared_from = options->shared ? options->shared_from : options->operand_count;
    options->shared = true;
    return 0;
}

static int set_permits(struct tool_options *options, const struct option_spec *spec, const char *label,
                       const char *text) {
    (void)spec;
    return tool_settings_permits(options, label, text);
}

static int set_slots(struct tool_options *options, const struct option_spec *spec, const char *label,
                     const char *text) {
    (void)spec;
    return tool_settings_slots(options, label, text);
}

static int clear_flag(struct tool_options *options, const struct option_spec *spec, const char *label,
                      const char *text) {
    (void)label, (void)text;
    *(bool *)field(options, spec) = false;
    return 0;
}

static int set_name(struct tool_options *options, const struct option_spec *spec, const char *label, const char *text) {
    const int index = read_name(options, spec, label, text);
    memcpy(field(options, spec), &index, sizeof index); /* an enum */
    return index < 0 ? TOOL_EXIT_USAGE : 0;
}

static int set_text(struct tool_options *options, const struct option_spec *spec, const char *label, const char *text) {
    (void)label;
    *(const char **)field(options, spec) = text;
    return 0;
}

static int set_tls(struct tool_options *options, const struct option_spec *spec, const char *label, const char *text) {
    return *text != '\0' ? set_text(options, spec, label, text)
                         : tool_usage(options, "%s is empty; leave it out for none", label);
}

/* Locks on different nodes do not exclude each other, so the last list does not silently win. */
static int set_nodes(struct tool_options *options, const struct option_spec *spec, const char *label,
                     const char *text) {
    if (*(const char **)field(options, spec) != NULL) {
        return tool_usage(options, "%s is given twice; one must name all nodes: %s %s", label, label, spec->argument);
    }
    return set_text(options, spec, label, text);
}

static int set_time(struct tool_options *options, const struct option_spec *spec, const char *label, const char *text) {
    return tool_usage_time(options, label, text, spec->min, spec->max, (int64_t *)field(options, spec));
}

/* A plain number has the unit of the option; a time with a unit is allowed, too. */
static int set_number(struct tool_options *options, const struct option_spec *spec, const char *label,
                      const char *text) {
    const bool is_ms = strcmp(spec->argument, "MS") == 0;
    text = text != NULL ? text : "2"; /* of a watch */
    size_t length = strlen(text);
    if (length > 0 && length <= 8 && strspn(text, "0123456789") == length) {
        return set_time(options, spec, label, TOOL_TEXT(16, "%.8s%s", text, is_ms ? "ms" : "s"));
    }
    return set_time(options, spec, label, text);
}

static int set_count(struct tool_options *options, const struct option_spec *spec, const char *label,
                     const char *text) {
    int64_t value;
    if (!tool_number_read(text, spec->max, &value, NULL)) {
        return tool_usage(options, "%s '%s': %s", label, text, spec->rule);
    }
    *(size_t *)field(options, spec) = (size_t)value;
    return 0;
}

static int set_wait(struct tool_options *options, const struct option_spec *spec, const char *label, const char *text) {
    if (strcmp(text, "forever") == 0) {
        options->lock.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
        return 0;
    }
    return set_time(options, spec, label, text);
}

#define MEMBER(member)                .offset = offsetof(struct tool_options, member)
#define FLAG(member)                  .apply = set_flag, MEMBER(member)
#define TEXT(member)                  .apply = set_text, MEMBER(member)
#define RANGE(member, least, most)    MEMBER(member), .min = least, .max = most
#define TIME(member, least, most)     .apply = set_time, RANGE(member, least, most)
#define NUMBER(member, least, most)   .apply = set_number, RANGE(member, least, most)
#define COUNT(member, most, sentence) .apply = set_count, RANGE(member, 0, most), .rule = sentence
#define NAME(member, values)          .apply = set_name, MEMBER(member), .names = &values
#define TLS(option, called)           .apply = set_tls, MEMBER(option), .member = called
#define ENV(name)                     .variable = "REDLOCK_" name

static const struct option_spec specs[] = {
    {"nodes", 'n', "URI,URI,…", FOR_ALL, .apply = set_nodes, MEMBER(node_list)},
    {"nodes-file", 0, "FILE", FOR_ALL, .apply = set_nodes, MEMBER(nodes_file)},
    {"quorum", 0, "N", FOR_ALL,
     COUNT(manager.quorum, REDLOCK_NODES_MAX,
           "a quorum is a number of nodes, more than half of them, or 0 for the least"),
     ENV("QUORUM")},
    {"node-timeout", 0, "MS", FOR_ALL, NUMBER(manager.node_timeout_ms, 1, TOOL_TIMEOUT_MS_MAX)},
    {"connect-timeout", 0, "TIME", FOR_ALL, TIME(manager.connect_timeout_ms, 1, TOOL_TIMEOUT_MS_MAX)},
    {"restart-guard", 0, "off|observed|strict", FOR_ALL, NAME(manager.restart_guard, restart_guards),
     ENV("RESTART_GUARD")},
    {"clock-guard", 0, NULL, FOR_ALL, FLAG(manager.clock_guard), .names = &off_on, ENV("CLOCK_GUARD")},
    {"no-clock-guard", 0, NULL, FOR_ALL, .apply = clear_flag, MEMBER(manager.clock_guard)},
    {"ttl-max", 0, "TIME", FOR_ALL, TIME(manager.ttl_max_ms, 1, REDLOCK_TTL_MS_MAX), ENV("TTL_MAX")},
    {"first-boot", 0, NULL, FOR_ALL, FLAG(manager.first_boot)},
    {"wait-suffix", 0, "SUFFIX", FOR_ALL, TEXT(manager.wait_suffix), ENV("WAIT_SUFFIX"), .member = "wait_suffix"},
    {"tls", 0, NULL, FOR_ALL, FLAG(tls), .names = &zero_one, ENV("TLS")},
    {"cacert", 0, "FILE", FOR_ALL, TLS(tls_options.ca_file, "ca_file"), ENV("CACERT")},
    {"cacertdir", 0, "DIR", FOR_ALL, TLS(tls_options.ca_dir, "ca_dir"), ENV("CACERTDIR")},
    {"cert", 0, "FILE", FOR_ALL, TLS(tls_options.cert_file, "cert_file"), ENV("CERT")},
    {"key", 0, "FILE", FOR_ALL, TLS(tls_options.key_file, "key_file"), ENV("KEY")},
    {"sni", 0, "NAME", FOR_ALL, TLS(tls_options.server_name, "tls.server_name"), ENV("SNI")},
    {"insecure", 0, NULL, FOR_ALL, FLAG(insecure), .names = &zero_one, ENV("INSECURE")},
    {"json", 0, NULL, FOR_ALL, FLAG(json)},
    {"quiet", 'q', NULL, FOR_ALL, FLAG(quiet)},
    {"no-warn", 0, "settings|all|none", FOR_ALL, NAME(no_warn, no_warns), ENV("NO_WARN")},
    {"verbose", 'v', NULL, FOR_ALL, FLAG(verbose)},
    {"help", 'h', NULL, FOR_ALL, FLAG(help)},
    {"version", 'V', NULL, FOR_ALL, FLAG(version)},
    {"ttl", 't', "TTL", FOR_RUN | FOR_ELECT | FOR_ACQUIRE | FOR_EXTEND | FOR_DOWNGRADE,
     TIME(lock.ttl_ms, 1, REDLOCK_TTL_MS_MAX)},
    {"shared", 's', NULL, FOR_RUN | FOR_ACQUIRE | FOR_EXTEND, .apply = set_shared, MEMBER(shared)},
    {"wait", 'w', "WAIT", FOR_RUN | FOR_ACQUIRE, .apply = set_wait, RANGE(lock.wait_timeout_ms, 0, WAIT_MS_MAX)},
    {"permits", 0, "K/L", FOR_RUN | FOR_ACQUIRE, .apply = set_permits, MEMBER(lock.permits)},
    {"slots", 0, "SLOT,…", FOR_EXTEND | FOR_RELEASE, .apply = set_slots, MEMBER(slots)},
    {"order", 0, "fair|none", FOR_RUN | FOR_ACQUIRE, NAME(lock.order, orders), ENV("ORDER")},
    {"contended-status", 'E', "N", FOR_RUN | FOR_ACQUIRE,
     COUNT(contended_status, 255, "an exit status is a number from 0 to 255")},
    {"fence", 0, NULL, FOR_RUN | FOR_ELECT | FOR_ACQUIRE, FLAG(lock.fencing)},
    {"fence-suffix", 0, "SUFFIX", FOR_RUN | FOR_ELECT | FOR_ACQUIRE, TEXT(manager.fence_suffix), ENV("FENCE_SUFFIX"),
     .member = "fence_suffix"},
    {"fence-expiry", 0, "TIME", FOR_RUN | FOR_ELECT | FOR_ACQUIRE,
     TIME(manager.fence_expiry_ms, FENCE_EXPIRY_MS_MIN, FENCE_EXPIRY_MS_MAX), ENV("FENCE_EXPIRY")},
    {"holder", 0, "TEXT", FOR_RUN | FOR_ELECT | FOR_ACQUIRE, TEXT(manager.holder)},
    {"lock-delay", 0, "TIME", FOR_RUN | FOR_ELECT | FOR_ACQUIRE | FOR_EXTEND | FOR_DOWNGRADE,
     TIME(lock.lock_delay_ms, 0, REDLOCK_TTL_MS_MAX)},
    {"no-heal", 0, NULL, FOR_RUN | FOR_ELECT, .apply = clear_flag, MEMBER(lock.heal)},
    {"grace", 0, "TIME", FOR_RUN | FOR_ELECT, TIME(grace_ms, 0, WAIT_MS_MAX)},
    {"observe", 0, NULL, FOR_ELECT, FLAG(observe)},
    {"max-time", 0, "TIME", FOR_RUN, TIME(lock.auto_extend_max_ms, 1, WAIT_MS_MAX)},
    {"at-least", 0, "TIME", FOR_RUN, TIME(at_least_ms, 1, REDLOCK_TTL_MS_MAX)},
    {"yes", 'y', NULL, FOR_CLEAR, FLAG(yes)},
    {"all", 'a', NULL, FOR_STATUS, FLAG(all)},
    {"match", 0, "PATTERN", FOR_STATUS, TEXT(match)},
    {"limit", 0, "L", FOR_STATUS,
     COUNT(limit, REDLOCK_LIMIT_MAX, "a number of permits is from 1 to 4096, as --permits K/L has it")},
    {"all-ready", 0, NULL, FOR_STATUS, FLAG(all_ready)},
    {"metrics", 0, NULL, FOR_STATUS, FLAG(metrics)},
    {"output", 0, "FILE", FOR_STATUS, TEXT(output)},
    {"watch", 0, "[TIME]", FOR_STATUS, NUMBER(watch_ms, 100, 86400000)},
};

enum { SPECS = sizeof specs / sizeof *specs };
_Static_assert(SPECS <= 64, "`given` has a bit for each, and `late` a place");

bool tool_options_has(const struct tool_options *options, const void *member) {
    const size_t offset = (size_t)((const char *)member - (const char *)options);
    bool has = false;
    for (size_t i = 0; i < SPECS; i++) {
        has = has || (specs[i].offset == offset && (options->given >> i & 1) != 0);
    }
    return has;
}

static int apply(struct tool_options *options, const struct option_spec *spec, const char *text) {
    return spec->apply(options, spec, TOOL_TEXT(32, "--%s", spec->name), text);
}

int tool_options_complete(struct tool_options *options) {
    int status = 0;
    for (size_t i = 0; i < SPECS && status == 0; i++) {
        const char *text = specs[i].variable != NULL ? getenv(specs[i].variable) : NULL;
        if (options->late[i] != NULL) {
            status = apply(options, &specs[i], options->late[i]);
        } else if (text != NULL && *text != '\0' && !tool_options_has(options, field(options, &specs[i]))) {
            status = specs[i].apply(options, &specs[i], specs[i].variable, text);
        }
    }
    return status;
}

int tool_options_refused(const struct tool_options *options, const char *sentence) {
    for (const struct option_spec *spec = specs; spec < specs + SPECS; spec++) {
        const size_t length = spec->member != NULL ? strlen(spec->member) : 0;
        if (length == 0 || strncmp(sentence, spec->member, length) != 0 || sentence[length] != ' ') {
            continue;
        }
        if (spec->apply == set_tls) {
            return tool_usage(options, "--%s (or %s): %s", spec->name, spec->variable, sentence);
        }
        const bool has = (options->given >> (spec - specs) & 1) != 0;
        return tool_usage(options, "%s%s%s", has ? "--" : spec->variable, has ? spec->name : "", sentence + length);
    }
    return 0;
}

/* A name that is wrong does not keep --help behind it from its work. */
static int give(struct tool_options *options, const struct option_spec *spec, const char *text) {
    const bool is_late = spec->apply == set_name || spec->apply == set_tls;
    options->given |= UINT64_C(1) << (spec - specs);
    options->late[spec - specs] = is_late ? text : NULL;
    return is_late ? 0 : apply(options, spec, text);
}

/* Returns 0 if the option may stand here, else TOOL_EXIT_USAGE after printing why not. */
static int check_place(const struct tool_options *options, const struct option_spec *spec) {
    if ((spec->commands & FOR_ALL) != 0 || (spec->commands & (1U << options->command)) != 0) {
        return 0;
    }
    if (options->command == TOOL_NO_COMMAND) {
        return tool_usage(options, "--%s must stand after the command's name", spec->name);
    }
    if (options->command == TOOL_ELECT && spec->offset == offsetof(struct tool_options, shared)) {
        return tool_usage(options, "an election is never shared, because one leads; to read while others do, give "
                                   "--shared to run or acquire");
    }
    if (options->command == TOOL_ELECT && spec->offset == offsetof(struct tool_options, lock.permits)) {
        return tool_usage(options, "an election has no permits, because one leads; give --permits to run or acquire");
    }
    return tool_usage(options, "%s has no option --%s", tool_command_name(options->command), spec->name);
}

/* Names the option that was meant, if the name of one that may stand here is close. */
static int refuse_long(const struct tool_options *options, const char *name, size_t length) {
    const struct option_spec *meant = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < SPECS; i++) {
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

/* Gives the option its value: what stands behind '=' or its letter, else the next word. dashes and
 * name: as it was written. '--' and what looks like an option are never meant as a value. */
static int give_value(struct tool_options *options, const struct option_spec *spec, const char *dashes,
                      const char *name, const char *value, char **argv, int *index) {
    const char *next = argv[*index + 1];
    if (value == NULL && next != NULL && strncmp(next, "--", 2) != 0) {
        value = next;
        ++*index;
        if (options->command != TOOL_NO_COMMAND) {
            options->last_taker = spec->name;
        }
    }
    return value != NULL
               ? give(options, spec, value)
               : tool_usage(options, "%s%s needs a value: %s%s %s", dashes, name, dashes, name, spec->argument);
}

static int parse_long(struct tool_options *options, char **argv, int *index) {
    const char *name = argv[*index] + 2;
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    const struct option_spec *spec = specs;
    while (spec < specs + SPECS && (strlen(spec->name) != length || strncmp(spec->name, name, length) != 0)) {
        spec++;
    }
    if (spec == specs + SPECS) {
        return refuse_long(options, name, length);
    }
    int status = check_place(options, spec);
    if (status != 0) {
        return status;
    }
    if (spec->argument == NULL) {
        return value == NULL ? give(options, spec, NULL) : tool_usage(options, "--%s takes no value", spec->name);
    }
    if (value != NULL || spec->argument[0] != '[') {
        return give_value(options, spec, "--", spec->name, value, argv, index);
    }
    return looks_like_time(argv[*index + 1])
               ? tool_usage(options,
                            "--%s takes its time after '=', as in --%s=%s; a RESOURCE of that name goes before --%s",
                            spec->name, spec->name, argv[*index + 1], spec->name)
               : give(options, spec, NULL);
}

static int parse_short(struct tool_options *options, char **argv, int *index) {
    int status = 0;
    for (const char *letter = argv[*index] + 1; *letter != '\0' && status == 0; letter++) {
        const struct option_spec *spec = specs;
        while (spec < specs + SPECS && spec->letter != *letter) {
            spec++;
        }
        if (spec == specs + SPECS) {
            return tool_usage(options, "unknown option '-%c'", *letter);
        }
        status = check_place(options, spec);
        if (status == 0 && spec->argument != NULL) {
            return give_value(options, spec, "-", (const char[]){*letter, '\0'}, letter[1] != '\0' ? letter + 1 : NULL,
                              argv, index);
        }
        status = status == 0 ? give(options, spec, NULL) : status;
    }
    return status;
}

/* Applies options in their order; moves operands to the front of argv. */
static int parse_words(int argc, char **argv, struct tool_options *options) {
    size_t kept = 0;
    int status = 0;
    for (int i = 1; i < argc && status == 0; i++) {
        options->operand_count = kept;
        if (options->dashes >= 0 || argv[i][0] != '-' || argv[i][1] == '\0') {
            const bool has_command = options->command == TOOL_RUN || options->command == TOOL_ELECT;
            if (options->command == TOOL_NO_COMMAND) {
                status = tool_operands_command(options, argv[i]);
            } else if (has_command && options->dashes < 0 && kept == 1 && !options->observe &&
                       !tool_operands_goes_on(options, argv + i)) {
                status = tool_operands_refuse(options, argv[0], argv + i);
            } else {
                argv[kept++] = argv[i];
            }
        } else if (strcmp(argv[i], "--") == 0) {
            options->dashes = (int)kept;
        } else if (argv[i][1] == '-') {
            status = parse_long(options, argv, &i);
        } else {
            status = parse_short(options, argv, &i);
        }
    }
    argv[kept] = NULL; /* kept < argc, because the program's name is not kept */
    options->operands = argv;
    options->operand_count = kept;
    return status;
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
                                     .grace_ms = TOOL_NOT_GIVEN,
                                     .contended_status = TOOL_EXIT_CONTENDED,
                                     .dashes = -1};
    redlock_manager_options_default(&options->manager);
    redlock_acquire_options_default(&options->lock);
    redlock_tls_options_default(&options->tls_options);
    options->manager.connect_timeout_ms = 1000;
    options->lock.ttl_ms = TOOL_NOT_GIVEN;
    int status = parse_words(argc, argv, options);
    if (status != 0 || options->help || options->version) {
        return status;
    }
    if (options->command == TOOL_NO_COMMAND) {
        return tool_usage(options, "no command; the commands are " TOOL_COMMANDS);
    }
    if (options->command == TOOL_EXTEND && options->lock.ttl_ms == TOOL_NOT_GIVEN) {
        return tool_usage(options, "extend needs the new time to live: -t TTL");
    }
    /* The settings before the operands: one of them may have become the value of an option. */
    static int (*const steps[])(struct tool_options *) = {
        tool_settings_complete, tool_operands_take, tool_settings_check, tool_operands_nodes, tool_settings_nodes};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == 0; i++) {
        status = steps[i](options);
    }
    return status;
}

void tool_options_free(struct tool_options *options) {
    free(options->node_copy);
    options->node_copy = NULL;
    for (size_t i = 0; i < REDLOCK_NODES_MAX; i++) {
        free(options->node_uris[i]);
        options->node_uris[i] = NULL;
    }
}
