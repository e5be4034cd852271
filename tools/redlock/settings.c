/* Settings that must fit together: those that all clients of the nodes must share, TLS, status. */
#include "settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"
#include "usage.h"
#include "values/values.h"

/* Leaves room for a pid in the holder's text. */
enum { HOST_SHOWN_MAX = 48 };

static const char *ttl_max_label(const struct tool_options *options) {
    return tool_options_has(options, &options->manager.ttl_max_ms) ? "--ttl-max " : "REDLOCK_TTL_MAX=";
}

static int check_guards(struct tool_options *options) {
    const char *guard = NULL;
    if (options->manager.restart_guard != REDLOCK_RESTART_GUARD_OFF) {
        guard =
            tool_options_has(options, &options->manager.restart_guard) ? "--restart-guard" : "REDLOCK_RESTART_GUARD";
    } else if (options->manager.clock_guard) {
        guard = tool_options_has(options, &options->manager.clock_guard) ? "--clock-guard" : "REDLOCK_CLOCK_GUARD";
    }
    if (guard != NULL && options->manager.ttl_max_ms == 0) {
        return tool_usage(options,
                          "%s needs --ttl-max TIME, or REDLOCK_TTL_MAX in the environment: the longest ttl, lock delay "
                          "included, that any client of these nodes uses",
                          guard);
    }
    if (options->manager.first_boot && options->manager.restart_guard == REDLOCK_RESTART_GUARD_OFF) {
        return tool_usage(options, "--first-boot works only with a restart guard: give --restart-guard, too");
    }
    return 0;
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
    const char *label = options->manager.holder != NULL ? "--holder" : "REDLOCK_HOLDER";
    if (options->command != TOOL_RUN && options->command != TOOL_ELECT && options->command != TOOL_ACQUIRE) {
        return 0;
    }
    if (options->manager.holder == NULL) {
        options->manager.holder = getenv(label);
    }
    if (options->manager.holder == NULL) {
        write_holder(options, options->holder_room, sizeof options->holder_room);
        options->manager.holder = options->holder_room;
    }
    size_t size = strlen(options->manager.holder);
    for (size_t i = 0; i < size; i++) {
        if (options->manager.holder[i] <= ' ' || options->manager.holder[i] > '~') {
            return tool_usage(options, "%s '%s': it must be printable ASCII without spaces", label,
                              options->manager.holder);
        }
    }
    return size <= REDLOCK_HOLDER_SIZE_MAX
               ? 0
               : tool_usage(options, "%s has %zu bytes; it must have 0 to %d", label, size, REDLOCK_HOLDER_SIZE_MAX);
}

/* The keys live for the ttl plus the lock delay. This must not exceed the time for which a guard
 * keeps a restarted node from voting. */
static int check_ttl(const struct tool_options *options, bool is_default) {
    bool delayed = options->lock.lock_delay_ms != 0;
    int64_t ms_max = options->manager.ttl_max_ms != 0 ? options->manager.ttl_max_ms : REDLOCK_TTL_MS_MAX;
    if (options->lock.ttl_ms <= ms_max - options->lock.lock_delay_ms) {
        return 0;
    }
    const char *ttl = TOOL_DURATION_EXACT(options->lock.ttl_ms);
    const char *delay = TOOL_DURATION_EXACT(options->lock.lock_delay_ms);
    if (options->manager.ttl_max_ms == 0) {
        return tool_usage(options, "-t %s and --lock-delay %s are together more than %s", ttl, delay,
                          TOOL_DURATION(ms_max));
    }
    return tool_usage(options, "%s%s%s%s is above %s%s: %s", is_default ? "the default ttl of " : "-t ", ttl,
                      delayed ? " with --lock-delay " : "", delayed ? delay : "", ttl_max_label(options),
                      TOOL_DURATION_EXACT(options->manager.ttl_max_ms),
                      is_default ? "give a shorter one with -t"
                                 : "no client of these nodes may lock for longer, because a node that forgot its "
                                   "locks votes again after that time");
}

/* The kept keys must not outlive that time either. */
static int check_at_least(struct tool_options *options) {
    if (options->manager.ttl_max_ms == 0 || options->at_least_ms <= options->manager.ttl_max_ms) {
        return 0;
    }
    return tool_usage(options, "--at-least %s is above %s%s: no key of a lock may live for longer",
                      TOOL_DURATION_EXACT(options->at_least_ms), ttl_max_label(options),
                      TOOL_DURATION_EXACT(options->manager.ttl_max_ms));
}

static int complete_ttl(struct tool_options *options) {
    bool is_default = options->lock.ttl_ms == TOOL_NOT_GIVEN;
    switch (options->command) {
    case TOOL_RUN:
    case TOOL_ELECT:
        options->lock.ttl_ms = is_default ? 30000 : options->lock.ttl_ms;
        return check_ttl(options, is_default);
    case TOOL_ACQUIRE:
    case TOOL_EXTEND:
    case TOOL_DOWNGRADE:
        options->lock.ttl_ms = is_default ? 10000 : options->lock.ttl_ms;
        return check_ttl(options, is_default);
    case TOOL_CLEAR:
    case TOOL_RELEASE: /* needs no ttl, but the library asks for a valid one */
        options->lock.ttl_ms = options->manager.ttl_max_ms != 0 && options->manager.ttl_max_ms < 10000
                                   ? options->manager.ttl_max_ms
                                   : 10000;
        return 0;
    case TOOL_STATUS:
    case TOOL_NO_COMMAND:
        break;
    }
    return 0;
}

static int complete_tls(struct tool_options *options) {
    if ((options->tls_options.cert_file == NULL) != (options->tls_options.key_file == NULL)) {
        return options->tls_options.cert_file != NULL
                   ? tool_usage(options, "--cert needs --key FILE, too: the private key of the certificate")
                   : tool_usage(options, "--key needs --cert FILE, too: the certificate of the private key");
    }
    options->tls_options.verify = !options->insecure;
    options->tls_given = options->tls || options->insecure || options->tls_options.ca_file != NULL ||
                         options->tls_options.ca_dir != NULL || options->tls_options.cert_file != NULL ||
                         options->tls_options.server_name != NULL;
    return 0;
}

int tool_settings_complete(struct tool_options *options) {
    int (*const steps[])(struct tool_options *) = {tool_options_complete, check_guards, complete_holder,
                                                   check_at_least,        complete_ttl, complete_tls};
    int status = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == 0; i++) {
        status = steps[i](options);
    }
    return status;
}

/* "3/10": three of ten. */
int tool_settings_permits(struct tool_options *options, const char *label, const char *text) {
    const char *rest = "";
    int64_t permits, limit;
    if (!tool_number_read(text, REDLOCK_LIMIT_MAX, &permits, &rest) || *rest != '/' ||
        !tool_number_read(rest + 1, REDLOCK_LIMIT_MAX, &limit, NULL) || permits < 1 || limit < 1) {
        return tool_usage(options, "%s '%s': it must be how many of how many, as in 1/10; up to %d of up to %d", label,
                          text, REDLOCK_PERMITS_MAX, REDLOCK_LIMIT_MAX);
    }
    if (permits > limit || permits > REDLOCK_PERMITS_MAX) {
        return tool_usage(options, "%s %s: nobody could ever have so many; a lease has up to %d", label, text,
                          REDLOCK_PERMITS_MAX);
    }
    options->lock.permits = (uint32_t)permits;
    options->lock.limit = (uint32_t)limit;
    return 0;
}

/* "3,17" */
int tool_settings_slots(struct tool_options *options, const char *label, const char *text) {
    const char *rest = text;
    int64_t slot;
    options->slot_count = 0;
    do {
        rest += options->slot_count > 0;
        if (options->slot_count == REDLOCK_PERMITS_MAX ||
            !tool_number_read(rest, REDLOCK_LIMIT_MAX - 1, &slot, &rest) || (*rest != ',' && *rest != '\0')) {
            return tool_usage(options, "%s '%s': it must be the numbers that acquire --permits prints, as in 3,17",
                              label, text);
        }
        options->slots[options->slot_count++] = (uint32_t)slot;
    } while (*rest != '\0');
    return 0;
}

static int check_permits(const struct tool_options *options) {
    if (options->lock.permits > 0 && (options->item_count > 1 || options->shared)) {
        return tool_usage(options, options->shared ? "--permits and --shared: a RESOURCE is read, or it has permits"
                                                   : "--permits is for one RESOURCE");
    }
    if (options->slot_count > 0 && (options->item_count > 1 || options->shared)) {
        return tool_usage(options, "--slots is for the permits of one RESOURCE");
    }
    if (tool_options_has(options, &options->limit) && options->limit == 0) {
        return tool_usage(options, "--limit 0: how many permits does a RESOURCE have?");
    }
    if (options->limit > 0 && (options->all || options->match != NULL || options->operand_count == 0)) {
        return tool_usage(options, "--limit is for a RESOURCE that has so many permits: name it");
    }
    return 0;
}

int tool_settings_check(struct tool_options *options) {
    if (options->command == TOOL_ACQUIRE && options->contended_status == 0) {
        return tool_usage(options,
                          "--contended-status 0: an acquire that exits with 0 holds the lock; use another number");
    }
    const int status = check_permits(options);
    if (status != 0) {
        return status;
    }
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

/* The option that asks for TLS on the command line; NULL: none does. */
static const char *asks_for_tls(const struct tool_options *options) {
    const struct {
        const void *member;
        const char *option;
    } asking[] = {{&options->insecure, "--insecure"},           {&options->tls_options.cert_file, "--cert"},
                  {&options->tls_options.ca_file, "--cacert"},  {&options->tls_options.ca_dir, "--cacertdir"},
                  {&options->tls_options.server_name, "--sni"}, {&options->tls_options.key_file, "--key"}};
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        if (tool_options_has(options, asking[i].member)) {
            return asking[i].option;
        }
    }
    return NULL;
}

/* Who asks for TLS must not get a connection that anybody can read. */
static int check_nodes(const struct tool_options *options, const char *asking) {
    for (size_t i = 0; i < options->node_count; i++) {
        if (strncmp(options->nodes[i], "rediss://", 9) == 0) {
            return 0;
        }
    }
    return tool_usage(options, "%s is given, but no node uses TLS: give --tls, too, or write rediss://", asking);
}

int tool_settings_nodes(struct tool_options *options) {
    const char *asking = options->tls ? NULL : asks_for_tls(options);
    if (asking != NULL) {
        return check_nodes(options, asking);
    }
    for (size_t i = 0; options->tls && i < options->node_count; i++) {
        if (strncmp(options->nodes[i], "redis://", 8) == 0) {
            return tool_usage(
                options,
                "--tls (or REDLOCK_TLS): node %zu of the list is redis://, which is not encrypted; write rediss://",
                i + 1);
        }
        if (strstr(options->nodes[i], "://") != NULL) {
            continue;
        }
        const size_t size = strlen(options->nodes[i]) + sizeof "rediss://";
        options->node_uris[i] = malloc(size);
        if (options->node_uris[i] == NULL) {
            return tool_report_system(options, "out of memory");
        }
        snprintf(options->node_uris[i], size, "rediss://%s", options->nodes[i]);
        options->nodes[i] = options->node_uris[i];
    }
    return 0;
}
