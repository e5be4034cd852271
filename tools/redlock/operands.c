/* The operands of the command line: command, nodes, resource, token, and what to run. */
#include "operands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes_file.h"
#include "report.h"
#include "usage.h"
#include "values/values.h"

static const char *const command_names[] = {"",          "run",     "elect", "acquire", "extend",
                                            "downgrade", "release", "clear", "status"};

const char *tool_command_name(enum tool_command command) {
    return command_names[command];
}

int tool_operands_command(struct tool_options *options, const char *name) {
    const size_t from_help = tool_usage_distance(name, strlen(name), "help");
    const char *meant = from_help != SIZE_MAX ? "help" : "";
    size_t least = from_help;
    if (from_help == 0) {
        options->help = true;
        return 0;
    }
    if (strcmp(name, "upgrade") == 0) {
        return tool_usage(options, "there is no upgrade: two who read, and wait to write, would wait for each other; "
                                   "release the lock, and acquire it again");
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
                          : tool_usage(options, "unknown command '%s'; the commands are " TOOL_COMMANDS, name);
}

bool tool_operands_goes_on(const struct tool_options *options, char **words) {
    while (options->command == TOOL_RUN && *words != NULL && strcmp(*words, "--") != 0) {
        words++;
    }
    return options->command == TOOL_RUN && *words != NULL;
}

/* Only the first word of the command is repeated: the others may hold a password. */
int tool_operands_refuse(const struct tool_options *options, const char *resource, char **words) {
    const char *name = tool_command_name(options->command);
    for (char **word = words + 1; *word != NULL; word++) {
        if (strcmp(*word, "--") == 0) {
            return tool_usage(options, "an election has one RESOURCE, but there are '%s' and '%s'", resource, *words);
        }
    }
    const int length = (int)strcspn(*words, " \t\n");
    return tool_usage(options, "%s takes '--' before the command: redlock %s %s -- %.*s%s", name, name, resource,
                      length, *words, (*words)[length] != '\0' || words[1] != NULL ? " …" : "");
}

static int take_list(struct tool_options *options) {
    options->node_copy = strdup(options->node_list);
    if (options->node_copy == NULL) {
        return tool_report_system(options, "out of memory");
    }
    char *rest = options->node_copy;
    while (rest != NULL) {
        char *uri = tool_nodes_trim(strsep(&rest, ","));
        char why[256];
        const char *label = TOOL_TEXT(64, "node %zu of the list", options->node_count + 1);
        if (*uri == '\0') {
            return tool_usage(options, "%s is empty: remove the extra comma", label);
        }
        if (!tool_nodes_check(options->node_count, uri, label, "commas", why, sizeof why)) {
            return tool_usage(options, "%s", why);
        }
        options->nodes[options->node_count++] = uri;
    }
    return 0;
}

static int take_file(struct tool_options *options) {
    struct tool_nodes_file file;
    const int status = tool_nodes_file_read(options->nodes_file, &file);
    options->node_copy = file.text;
    options->node_count = file.count;
    options->nodes_stamp = file.stamp;
    memcpy(options->nodes, file.uris, sizeof file.uris);
    memcpy(options->node_lines, file.lines, sizeof file.lines);
    if (status != 0) {
        (void)tool_usage(options, "%s", file.why);
    } else if (file.warning[0] != '\0') {
        tool_report_warning(options, "NODES_FILE", file.warning);
    }
    return status;
}

/* NULL if it is not set or empty. */
static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Of two lists, one is old: who takes the wrong one does not exclude the others. */
int tool_operands_nodes(struct tool_options *options) {
    const bool given = options->node_list != NULL || options->nodes_file != NULL;
    const char *list = given ? options->node_list : environment("REDLOCK_NODES");
    options->nodes_file = given ? options->nodes_file : environment("REDLOCK_NODES_FILE");
    if (list != NULL && options->nodes_file != NULL) {
        return tool_usage(options, "two lists of nodes, %s: give one of them",
                          given ? "-n and --nodes-file" : "REDLOCK_NODES and REDLOCK_NODES_FILE");
    }
    if (options->nodes_file != NULL) {
        return take_file(options);
    }
    if (list == NULL || list[0] == '\0') {
        return tool_usage(options,
                          "no nodes: give them with -n URI,URI,… or --nodes-file FILE, or in the environment as "
                          "REDLOCK_NODES or REDLOCK_NODES_FILE");
    }
    options->node_list = list;
    return take_list(options);
}

static int check_resource(const struct tool_options *options, const char *resource) {
    const size_t size = strlen(resource);
    if (size == 0 || size > REDLOCK_RESOURCE_SIZE_MAX) {
        return tool_usage(options, "RESOURCE has %zu bytes; it must have 1 to %d", size, REDLOCK_RESOURCE_SIZE_MAX);
    }
    return 0;
}

/* For the end of a sentence about a RESOURCE that is missing. Does not repeat the word, which may
 * be a password. */
#define WHO_TOOK_IT(options)                                                                                           \
    ((options)->last_taker == NULL                                                                                     \
         ? ""                                                                                                          \
         : TOOL_TEXT(96, "; the word behind --%s is the value of that option", (options)->last_taker))

static int check_resources(const struct tool_options *options) {
    int status = 0;
    for (size_t i = 0; i < options->item_count && status == 0; i++) {
        const char *resource = options->items[i].resource;
        status = check_resource(options, resource);
        for (size_t j = 0; j < i && status == 0; j++) {
            if (strcmp(options->items[j].resource, resource) == 0) {
                status = tool_usage(options, "RESOURCE '%s' is given twice; it would wait for itself", resource);
            }
        }
    }
    return status;
}

static void write_name(struct tool_options *options) {
    const size_t size = sizeof options->name;
    size_t length = 0;
    for (size_t i = 0; i < options->item_count; i++) {
        const char *between = i == 0 ? "" : i + 1 < options->item_count ? "', '" : "' and '";
        const size_t more = strlen(between) + strlen(options->items[i].resource);
        if (i > 0 && length + more + sizeof "', …" > size) {
            (void)snprintf(options->name + length, size - length, "', …");
            return;
        }
        (void)snprintf(options->name + length, size - length, "%s%s", between, options->items[i].resource);
        length += more;
    }
}

/* The first operands are resources, and as many behind them their tokens, if `tokens`. */
static int take_resources(struct tool_options *options, size_t count, bool tokens) {
    if (count > REDLOCK_ITEMS_MAX) {
        return tool_usage(options, "%zu RESOURCEs are more than a lease can have: %d", count, REDLOCK_ITEMS_MAX);
    }
    if (count > 1 && options->shared && options->shared_from >= count) {
        return tool_usage(options, "--shared is for the RESOURCEs behind it: put it before those that are only read");
    }
    for (size_t i = 0; i < count; i++) {
        const bool reads = options->shared && (count == 1 || i >= options->shared_from);
        options->items[i] = (redlock_item){.size = sizeof options->items[i],
                                           .resource = options->operands[i],
                                           .mode = reads ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE,
                                           .token = tokens ? options->operands[count + i] : NULL};
    }
    options->item_count = count;
    options->resource = options->items[0].resource;
    options->token = options->items[0].token;
    return check_resources(options);
}

/* run RESOURCE … -- CMD …, or -- RESOURCE -- CMD …, and the same for elect, with one: the second
 * form is for a name that begins with a dash. */
static int split_run(struct tool_options *options) {
    char **words = options->operands;
    size_t count = options->operand_count;
    const char *name = tool_command_name(options->command);
    if (count == 0) {
        return tool_usage(options, "%s needs a RESOURCE and a command: redlock %s RESOURCE -- CMD …%s", name, name,
                          WHO_TOOK_IT(options));
    }
    size_t resources = 1, command = 1;
    if (options->dashes == 0 && count > 1 && strcmp(words[1], "--") == 0) {
        command = 2;
    } else if (options->dashes < 1) {
        return tool_usage(options, "%s needs a RESOURCE, then '--', then the command: redlock %s RESOURCE -- CMD …%s",
                          name, name, options->dashes == 0 ? WHO_TOOK_IT(options) : "");
    } else {
        resources = command = (size_t)options->dashes;
    }
    if (count == command) {
        return tool_usage(options, "%s needs a command after '--': redlock %s RESOURCE -- CMD …", name, name);
    }
    const int status = take_resources(options, resources, false);
    options->operands = words + command;
    options->operand_count = count - command;
    return status;
}

/* "TOKEN FENCE", as acquire --fence prints them. */
static bool has_fence(const char *token) {
    const char *space = strrchr(token, ' ');
    const size_t digits = space != NULL ? strspn(space + 1, "0123456789") : 0;
    return digits >= 19 && space[1 + digits] == '\0';
}

static int check_token(const struct tool_options *options, const char *token) {
    const size_t size = strlen(token);
    if (size == 0 || size > REDLOCK_TOKEN_SIZE_MAX) {
        return tool_usage(options, "TOKEN has %zu bytes; it must have 1 to %d", size, REDLOCK_TOKEN_SIZE_MAX);
    }
    if (has_fence(token)) {
        return tool_usage(options, "TOKEN has a fencing token behind it: give the first word alone, as in ${lock%% *}");
    }
    return 0;
}

static int take_one_resource(struct tool_options *options, const char *who) {
    if (options->operand_count != 1) {
        return tool_usage(options, "%s needs one RESOURCE, but got %zu%s", who, options->operand_count,
                          options->operand_count == 0 ? WHO_TOOK_IT(options) : "");
    }
    return take_resources(options, 1, false);
}

/* A RESOURCE and its TOKEN, or several, and then the TOKENs in the same order. */
static int take_tokens(struct tool_options *options) {
    const size_t count = options->operand_count;
    int status = 0;
    if (count < 2) {
        return tool_usage(options, "%s needs a RESOURCE and a TOKEN%s", tool_command_name(options->command),
                          WHO_TOOK_IT(options));
    }
    if (count % 2 != 0) {
        return tool_usage(options, "%s needs as many TOKENs as RESOURCEs, behind them, but got %zu words",
                          tool_command_name(options->command), count);
    }
    status = take_resources(options, count / 2, true);
    for (size_t i = 0; i < options->item_count && status == 0; i++) {
        status = check_token(options, options->items[i].token);
    }
    return status;
}

int tool_operands_take(struct tool_options *options) {
    char **words = options->operands;
    size_t count = options->operand_count;
    int status = 0;
    switch (options->command) {
    case TOOL_RUN:
        status = split_run(options);
        break;
    case TOOL_ELECT:
        status = options->observe ? take_one_resource(options, "elect --observe") : split_run(options);
        break;
    case TOOL_ACQUIRE:
        status = count > 0 ? take_resources(options, count, false) : take_one_resource(options, "acquire");
        break;
    case TOOL_CLEAR:
        status = take_one_resource(options, "clear");
        break;
    case TOOL_EXTEND:
    case TOOL_DOWNGRADE:
    case TOOL_RELEASE:
        status = take_tokens(options);
        break;
    case TOOL_STATUS:
        for (size_t i = 0; i < count && status == 0; i++) {
            status = check_resource(options, words[i]);
        }
        break;
    case TOOL_NO_COMMAND:
        break;
    }
    write_name(options);
    return status;
}
