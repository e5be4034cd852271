/* Settings that all clients of the nodes must share: command line first, then environment. */
#include "fleet.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "usage.h"
#include "values/values.h"

/* The longest suffixes that redlock.h allows. */
enum { FENCE_SUFFIX_SIZE_MAX = 64, WAIT_SUFFIX_SIZE_MAX = 62 };
/* Leaves room for a pid in the holder's text. */
enum { HOST_SHOWN_MAX = 48 };

/* NULL if it is not set or empty. */
static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Takes one of `count` names from the command line or the environment, and writes its index; leaves
 * it alone if neither has one. */
static int complete_name(struct tool_options *options, const char *text, const char *label, const char *variable,
                         const char *const *names, size_t count, const char *allowed, int *index) {
    if (text == NULL) {
        label = variable;
        text = environment(variable);
    }
    for (size_t i = 0; text != NULL && i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            *index = (int)i;
            return 0;
        }
    }
    return text == NULL ? 0 : tool_usage(options, "%s '%s': it must be %s", label, text, allowed);
}

static int complete_restart_guard(struct tool_options *options) {
    static const char *const names[] = {
        [REDLOCK_RESTART_GUARD_OFF] = "off",
        [REDLOCK_RESTART_GUARD_OBSERVED] = "observed",
        [REDLOCK_RESTART_GUARD_STRICT] = "strict",
    };
    int guard = REDLOCK_RESTART_GUARD_OFF;
    int status = complete_name(options, options->restart_guard_name, "--restart-guard", "REDLOCK_RESTART_GUARD", names,
                               sizeof names / sizeof *names, "off, observed or strict", &guard);
    options->restart_guard = (redlock_restart_guard)guard;
    return status;
}

static int complete_no_warn(struct tool_options *options) {
    static const char *const names[] = {
        [TOOL_NO_WARN_NONE] = "none", [TOOL_NO_WARN_SETTINGS] = "settings", [TOOL_NO_WARN_ALL] = "all"};
    int no_warn = TOOL_NO_WARN_NONE;
    int status = complete_name(options, options->no_warn_name, "--no-warn", "REDLOCK_NO_WARN", names,
                               sizeof names / sizeof *names, "settings, all or none", &no_warn);
    options->no_warn = (enum tool_no_warn)no_warn;
    return status;
}

static int complete_order(struct tool_options *options) {
    static const char *const names[] = {[REDLOCK_ORDER_FAIR] = "fair", [REDLOCK_ORDER_NONE] = "none"};
    int order = REDLOCK_ORDER_FAIR;
    int status = complete_name(options, options->order_name, "--order", "REDLOCK_ORDER", names,
                               sizeof names / sizeof *names, "fair or none", &order);
    options->order = (redlock_order)order;
    return status;
}

static int complete_clock_guard(struct tool_options *options) {
    const char *text =
        options->clock_guard_name != NULL ? options->clock_guard_name : environment("REDLOCK_CLOCK_GUARD");
    options->clock_guard = text != NULL && strcmp(text, "on") == 0;
    if (text != NULL && !options->clock_guard && strcmp(text, "off") != 0) {
        return tool_usage(options, "REDLOCK_CLOCK_GUARD '%s': it must be on or off", text);
    }
    return 0;
}

/* Takes a time from the environment if the command line has none; 0 if neither has one. */
static int complete_time(struct tool_options *options, const char *name, int64_t ms_min, int64_t ms_max, int64_t *ms) {
    const char *text = environment(name);
    if (*ms != TOOL_NOT_GIVEN) {
        return 0;
    }
    *ms = 0;
    return text == NULL ? 0 : tool_usage_time(options, name, text, ms_min, ms_max, ms);
}

int tool_fleet_quorum(struct tool_options *options, const char *label, const char *text) {
    return tool_number_read(text, REDLOCK_NODES_MAX, &options->quorum, NULL)
               ? 0
               : tool_usage(options,
                            "%s '%s': a quorum is a number of nodes, more than half of them, or 0 for the least", label,
                            text);
}

static int complete_quorum(struct tool_options *options) {
    const char *text = environment("REDLOCK_QUORUM");
    if (options->quorum != TOOL_NOT_GIVEN) {
        return 0;
    }
    options->quorum = 0;
    return text == NULL ? 0 : tool_fleet_quorum(options, "REDLOCK_QUORUM", text);
}

static int complete_ttl_max(struct tool_options *options) {
    options->ttl_max_from_environment = options->ttl_max_ms == TOOL_NOT_GIVEN;
    int status = complete_time(options, "REDLOCK_TTL_MAX", 1, REDLOCK_TTL_MS_MAX, &options->ttl_max_ms);
    if (status != 0 || options->ttl_max_ms != 0) {
        return status;
    }
    const char *guard = NULL;
    if (options->restart_guard != REDLOCK_RESTART_GUARD_OFF) {
        guard = options->restart_guard_name != NULL ? "--restart-guard" : "REDLOCK_RESTART_GUARD";
    } else if (options->clock_guard) {
        guard = options->clock_guard_name != NULL ? "--clock-guard" : "REDLOCK_CLOCK_GUARD";
    }
    if (guard != NULL) {
        return tool_usage(options,
                          "%s needs --ttl-max TIME, or REDLOCK_TTL_MAX in the environment: the longest ttl, lock delay "
                          "included, that any client of these nodes uses",
                          guard);
    }
    return 0;
}

/* Takes a suffix from the environment if the command line has none; NULL if neither has one. */
static int complete_suffix(struct tool_options *options, const char *label, const char *variable, int size_max,
                           const char **suffix) {
    if (*suffix == NULL) {
        label = variable;
        *suffix = environment(variable);
    }
    const size_t size = *suffix != NULL ? strlen(*suffix) : 1;
    return size > 0 && size <= (size_t)size_max
               ? 0
               : tool_usage(options, "%s has %zu bytes; it must have 1 to %d", label, size, size_max);
}

static int complete_fence(struct tool_options *options) {
    const int status = complete_suffix(options, "--fence-suffix", "REDLOCK_FENCE_SUFFIX", FENCE_SUFFIX_SIZE_MAX,
                                       &options->fence_suffix);
    if (status != 0) {
        return status;
    }
    return complete_time(options, "REDLOCK_FENCE_EXPIRY", TOOL_FENCE_EXPIRY_MS_MIN, TOOL_FENCE_EXPIRY_MS_MAX,
                         &options->fence_expiry_ms);
}

/* "host:pid". acquire ends at once, so it names its parent: usually the script that uses the
 * lock. */
static void write_holder(const struct tool_options *options, char *holder, size_t size) {
    char host[HOST_NAME_MAX + 1] = "";
    const pid_t pid = options->command == TOOL_ACQUIRE ? getppid() : getpid();
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') {
        strcpy(host, "?");
    }
    for (char *byte = host; *byte != '\0'; byte++) {
        *byte = *byte > ' ' && *byte <= '~' ? *byte : '?';
    }
    snprintf(holder, size, "%.*s:%ld", HOST_SHOWN_MAX, host, (long)pid);
}

/* Given and empty: no text. */
static int complete_holder(struct tool_options *options) {
    const char *label = options->holder != NULL ? "--holder" : "REDLOCK_HOLDER";
    if (options->command != TOOL_RUN && options->command != TOOL_ELECT && options->command != TOOL_ACQUIRE) {
        return 0;
    }
    if (options->holder == NULL) {
        options->holder = getenv(label);
    }
    if (options->holder == NULL) {
        write_holder(options, options->holder_room, sizeof options->holder_room);
        options->holder = options->holder_room;
    }
    size_t size = strlen(options->holder);
    for (size_t i = 0; i < size; i++) {
        if (options->holder[i] <= ' ' || options->holder[i] > '~') {
            return tool_usage(options, "%s '%s': it must be printable ASCII without spaces", label, options->holder);
        }
    }
    return size <= REDLOCK_HOLDER_SIZE_MAX
               ? 0
               : tool_usage(options, "%s has %zu bytes; it must have 0 to %d", label, size, REDLOCK_HOLDER_SIZE_MAX);
}

/* The keys live for the ttl plus the lock delay. This must not exceed the time for which a guard
 * keeps a restarted node from voting. */
static int check_ttl(const struct tool_options *options, bool is_default) {
    char ttl[32];
    char delay[32];
    char longest[32];
    bool delayed = options->lock_delay_ms != 0;
    int64_t ms_max = options->ttl_max_ms != 0 ? options->ttl_max_ms : REDLOCK_TTL_MS_MAX;
    if (options->ttl_ms <= ms_max - options->lock_delay_ms) {
        return 0;
    }
    tool_duration_exact(options->ttl_ms, ttl, sizeof ttl);
    tool_duration_exact(options->lock_delay_ms, delay, sizeof delay);
    if (options->ttl_max_ms == 0) {
        return tool_usage(options, "-t %s and --lock-delay %s are together more than %s", ttl, delay,
                          tool_duration_format(ms_max, longest, sizeof longest));
    }
    return tool_usage(options, "%s%s%s%s is above %s%s: %s", is_default ? "the default ttl of " : "-t ", ttl,
                      delayed ? " with --lock-delay " : "", delayed ? delay : "",
                      options->ttl_max_from_environment ? "REDLOCK_TTL_MAX=" : "--ttl-max ",
                      tool_duration_exact(options->ttl_max_ms, longest, sizeof longest),
                      is_default ? "give a shorter one with -t"
                                 : "no client of these nodes may lock for longer, because a node that forgot its "
                                   "locks votes again after that time");
}

/* The kept keys must not outlive that time either. */
static int check_at_least(const struct tool_options *options) {
    char given[32];
    char longest[32];
    if (options->ttl_max_ms == 0 || options->at_least_ms <= options->ttl_max_ms) {
        return 0;
    }
    return tool_usage(options, "--at-least %s is above %s%s: no key of a lock may live for longer",
                      tool_duration_exact(options->at_least_ms, given, sizeof given),
                      options->ttl_max_from_environment ? "REDLOCK_TTL_MAX=" : "--ttl-max ",
                      tool_duration_exact(options->ttl_max_ms, longest, sizeof longest));
}

static int complete_ttl(struct tool_options *options) {
    bool is_default = options->ttl_ms == TOOL_NOT_GIVEN;
    switch (options->command) {
    case TOOL_RUN:
    case TOOL_ELECT:
        options->ttl_ms = is_default ? 30000 : options->ttl_ms;
        return check_ttl(options, is_default);
    case TOOL_ACQUIRE:
    case TOOL_EXTEND:
        options->ttl_ms = is_default ? 10000 : options->ttl_ms;
        return check_ttl(options, is_default);
    case TOOL_CLEAR:
    case TOOL_RELEASE: /* needs no ttl, but the library asks for a valid one */
        options->ttl_ms = options->ttl_max_ms != 0 && options->ttl_max_ms < 10000 ? options->ttl_max_ms : 10000;
        return 0;
    case TOOL_STATUS:
    case TOOL_NO_COMMAND:
        break;
    }
    return 0;
}

int tool_fleet_complete(struct tool_options *options) {
    int status = complete_restart_guard(options);
    if (status == 0) {
        status = complete_clock_guard(options);
    }
    if (status == 0) {
        status = complete_ttl_max(options);
    }
    if (status == 0) {
        status = complete_fence(options);
    }
    if (status == 0) {
        status = complete_suffix(options, "--wait-suffix", "REDLOCK_WAIT_SUFFIX", WAIT_SUFFIX_SIZE_MAX,
                                 &options->wait_suffix);
    }
    if (status == 0) {
        status = complete_quorum(options);
    }
    if (status == 0) {
        status = complete_order(options);
    }
    if (status == 0) {
        status = complete_no_warn(options);
    }
    if (status == 0) {
        status = complete_holder(options);
    }
    if (status == 0 && options->first_boot && options->restart_guard == REDLOCK_RESTART_GUARD_OFF) {
        status = tool_usage(options, "--first-boot works only with a restart guard: give --restart-guard, too");
    }
    if (status == 0) {
        status = check_at_least(options);
    }
    return status != 0 ? status : complete_ttl(options);
}
