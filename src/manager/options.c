/* What the caller wants of a manager. */
#include "manager/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/holder.h"
#include "base/options.h"
#include "group/group.h"

#define TIMEOUT_MS_MAX  60000
#define NODE_TIMEOUT_MS 50
#define CONNECT_MS      1000
#define NAME_SIZE_MAX   64

/* an expired counter is then lower than what any node takes */
#define FENCE_EXPIRY_MS_MIN INT64_C(10800000)
#define FENCE_EXPIRY_MS_MAX INT64_C(3153600000000) /* a hundred years; nodes take little more */

int redlock_manager_fail(struct redlock_failure *failure, int code, const char *format, ...) {
    if (failure->size > 0) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(failure->text, failure->size, format, arguments);
        va_end(arguments);
    }
    return code;
}

static int check_size(const char *option, const char *text, size_t size_min, size_t size_max,
                      struct redlock_failure *failure) {
    const size_t size = strlen(text);
    if (size < size_min || size > size_max) {
        return redlock_manager_fail(failure, REDLOCK_ERR_INVALID, "%s has %zu bytes; %zu to %zu are allowed", option,
                                    size, size_min, size_max);
    }
    return REDLOCK_OK;
}

static int check_word(const char *option, const char *word, size_t size_min, size_t size_max,
                      struct redlock_failure *failure) {
    for (size_t i = 0; word[i] != '\0' && i < size_max; i++) {
        if (!redlock_holder_allows(word[i])) {
            return redlock_manager_fail(failure, REDLOCK_ERR_INVALID,
                                        "%s has a space or a byte that is not printable ASCII at position %zu", option,
                                        i + 1);
        }
    }
    return check_size(option, word, size_min, size_max, failure);
}

bool redlock_manager_is_guarded(const redlock_manager_options *options) {
    return options->restart_guard != REDLOCK_RESTART_GUARD_OFF || options->clock_guard;
}

static int check_guards(const redlock_manager_options *options, struct redlock_failure *failure) {
    if ((int)options->restart_guard < REDLOCK_RESTART_GUARD_OFF ||
        options->restart_guard > REDLOCK_RESTART_GUARD_STRICT) {
        return redlock_manager_fail(failure, REDLOCK_ERR_INVALID,
                                    "restart_guard is %d, which is not a redlock_restart_guard",
                                    (int)options->restart_guard);
    }
    if (options->ttl_max_ms < 0 || options->ttl_max_ms > REDLOCK_TTL_MS_MAX) {
        return redlock_manager_fail(failure, REDLOCK_ERR_INVALID,
                                    "ttl_max_ms is %lld; 1 to %lld are allowed, or 0 for none",
                                    (long long)options->ttl_max_ms, (long long)REDLOCK_TTL_MS_MAX);
    }
    if (options->ttl_max_ms == 0 && redlock_manager_is_guarded(options)) {
        return redlock_manager_fail(
            failure, REDLOCK_ERR_INVALID,
            "restart_guard and clock_guard need ttl_max_ms: the longest ttl that any client of these nodes uses");
    }
    return REDLOCK_OK;
}

static int check_fence(const redlock_manager_options *options, struct redlock_failure *failure) {
    if (options->fence_expiry_ms != 0 &&
        (options->fence_expiry_ms < FENCE_EXPIRY_MS_MIN || options->fence_expiry_ms > FENCE_EXPIRY_MS_MAX)) {
        return redlock_manager_fail(
            failure, REDLOCK_ERR_INVALID, "fence_expiry_ms is %lld; %lld (3 h) to %lld are allowed, or 0 for never",
            (long long)options->fence_expiry_ms, (long long)FENCE_EXPIRY_MS_MIN, (long long)FENCE_EXPIRY_MS_MAX);
    }
    return check_size("fence_suffix", options->fence_suffix == NULL ? REDLOCK_FENCE_SUFFIX : options->fence_suffix, 1,
                      REDLOCK_FENCE_SUFFIX_SIZE_MAX, failure);
}

static int check_texts(const redlock_manager_options *options, struct redlock_failure *failure) {
    int code = check_size("wait_suffix", options->wait_suffix == NULL ? REDLOCK_WAIT_SUFFIX : options->wait_suffix, 1,
                          REDLOCK_WAIT_SUFFIX_SIZE_MAX, failure);
    if (code == REDLOCK_OK) {
        code = check_word("client_name", options->client_name == NULL ? REDLOCK_CLIENT_NAME : options->client_name, 1,
                          NAME_SIZE_MAX, failure);
    }
    return code == REDLOCK_OK && options->holder != NULL
               ? check_word("holder", options->holder, 0, REDLOCK_HOLDER_SIZE_MAX, failure)
               : code;
}

static int check(const redlock_manager_options *options, struct redlock_failure *failure) {
    if (options->nodes == NULL || options->node_count < 1 || options->node_count > REDLOCK_NODES_MAX) {
        return redlock_manager_fail(failure, REDLOCK_ERR_INVALID, "node_count is %zu; 1 to %d nodes are allowed",
                                    options->nodes == NULL ? 0 : options->node_count, REDLOCK_NODES_MAX);
    }
    for (size_t i = 0; i < options->node_count; i++) {
        if (options->nodes[i] == NULL) {
            return redlock_manager_fail(failure, REDLOCK_ERR_INVALID, "node %zu is NULL", i + 1);
        }
    }
    if (options->node_timeout_ms < 1 || options->node_timeout_ms > TIMEOUT_MS_MAX) {
        return redlock_manager_fail(failure, REDLOCK_ERR_INVALID, "node_timeout_ms is %lld; 1 to %d are allowed",
                                    (long long)options->node_timeout_ms, TIMEOUT_MS_MAX);
    }
    if (options->connect_timeout_ms < 1 || options->connect_timeout_ms > TIMEOUT_MS_MAX) {
        return redlock_manager_fail(failure, REDLOCK_ERR_INVALID, "connect_timeout_ms is %lld; 1 to %d are allowed",
                                    (long long)options->connect_timeout_ms, TIMEOUT_MS_MAX);
    }
    if (options->key_prefix != NULL && strlen(options->key_prefix) >= REDLOCK_RESOURCE_SIZE_MAX) {
        return redlock_manager_fail(failure, REDLOCK_ERR_INVALID,
                                    "key_prefix has %zu bytes; at most %d leave room for a resource",
                                    strlen(options->key_prefix), REDLOCK_RESOURCE_SIZE_MAX - 1);
    }
    if (options->log_level < REDLOCK_LOG_ERROR || options->log_level > REDLOCK_LOG_DEBUG) {
        return redlock_manager_fail(failure, REDLOCK_ERR_INVALID, "log_level is %d, which is not a redlock_log_level",
                                    (int)options->log_level);
    }
    int code = check_guards(options, failure);
    if (code == REDLOCK_OK) {
        code = check_fence(options, failure);
    }
    return code == REDLOCK_OK ? check_texts(options, failure) : code;
}

void redlock_manager_options_default(redlock_manager_options *options) {
    *options = (redlock_manager_options){.size = sizeof *options,
                                         .node_timeout_ms = NODE_TIMEOUT_MS,
                                         .connect_timeout_ms = CONNECT_MS,
                                         .client_name = REDLOCK_CLIENT_NAME,
                                         .log_level = REDLOCK_LOG_WARNING,
                                         .fence_suffix = REDLOCK_FENCE_SUFFIX,
                                         .wait_suffix = REDLOCK_WAIT_SUFFIX};
}

int redlock_manager_options_read(redlock_manager_options *known, const redlock_manager_options *given,
                                 struct redlock_failure *failure) {
    redlock_manager_options_default(known);
    if (!redlock_options_read(known, sizeof *known, given, given->size)) {
        return redlock_manager_fail(
            failure, REDLOCK_ERR_INVALID,
            "options.size is %zu, not 1 to %zu: call redlock_manager_options_default() first, and build "
            "against the header of this library or an older one",
            given->size, sizeof *known);
    }
    return check(known, failure);
}
