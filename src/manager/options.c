/* What the caller wants of a manager and of TLS. */
#include "manager/options.h"

#include <assert.h>
#include <string.h>

#include "group/entry.h"

#define NODE_TIMEOUT_MS      50
#define CONNECT_MS           1000
#define NAME_SIZE_MAX        64
#define SERVER_NAME_SIZE_MAX 255

/* an expired counter is then lower than what any node takes */
#define FENCE_EXPIRY_MS_MIN INT64_C(10800000)
#define FENCE_EXPIRY_MS_MAX INT64_C(3153600000000) /* a hundred years; nodes take little more */

bool redlock_manager_is_guarded(const redlock_manager_options *options) {
    return options->restart_guard != REDLOCK_RESTART_GUARD_OFF || options->clock_guard;
}

static int check_guards(struct redlock_error_text *failure, const redlock_manager_options *options) {
    int code = redlock_check_enum(failure, "restart_guard", (int)options->restart_guard, REDLOCK_RESTART_GUARD_STRICT,
                                  "redlock_restart_guard");
    if (code == REDLOCK_OK && options->ttl_max_ms != 0) {
        code =
            redlock_check_range(failure, "ttl_max_ms", options->ttl_max_ms, 1, REDLOCK_TTL_MS_MAX, ", or 0 for none");
    }
    if (code == REDLOCK_OK && options->ttl_max_ms == 0 && redlock_manager_is_guarded(options)) {
        code = redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "%s needs ttl_max_ms: the longest ttl that any client of these nodes uses",
                            options->clock_guard ? "clock_guard" : "restart_guard");
    }
    return code;
}

static size_t size_of(const char *text, const char *otherwise) {
    return strlen(text != NULL ? text : otherwise);
}

static int check_texts(struct redlock_error_text *failure, const redlock_manager_options *options) {
    int code = redlock_check_size(failure, "key_prefix", size_of(options->key_prefix, ""), 0,
                                  REDLOCK_RESOURCE_SIZE_MAX - 1, ", to leave room for a resource");
    if (code == REDLOCK_OK) {
        code = redlock_check_size(failure, "fence_suffix", size_of(options->fence_suffix, REDLOCK_FENCE_SUFFIX), 1,
                                  REDLOCK_FENCE_SUFFIX_SIZE_MAX, "");
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_size(failure, "wait_suffix", size_of(options->wait_suffix, REDLOCK_WAIT_SUFFIX), 1,
                                  REDLOCK_WAIT_SUFFIX_SIZE_MAX, "");
    }
    if (code == REDLOCK_OK && options->client_name != NULL) {
        code = redlock_check_word(failure, "client_name", options->client_name, 1, NAME_SIZE_MAX);
    }
    if (code == REDLOCK_OK && options->holder != NULL) {
        code = redlock_check_word(failure, "holder", options->holder, 0, REDLOCK_HOLDER_SIZE_MAX);
    }
    return code;
}

static int check_nodes(struct redlock_error_text *failure, const redlock_manager_options *options) {
    const int64_t count = redlock_check_count(options->node_count);
    int code = redlock_check_range(failure, "node_count", count, 1, REDLOCK_NODES_MAX, "");
    if (code == REDLOCK_OK) {
        code = redlock_check_given(failure, "nodes", options->nodes != NULL);
    }
    for (size_t i = 0; code == REDLOCK_OK && i < options->node_count; i++) {
        if (options->nodes[i] == NULL) {
            code = redlock_fail(failure, REDLOCK_ERR_INVALID, "node %zu is NULL", i + 1);
        }
    }
    return code;
}

/* Two quorums of one manager's nodes must share a node. */
static int check_quorum(struct redlock_error_text *failure, const redlock_manager_options *options) {
    const int64_t count = (int64_t)options->node_count;
    assert(count >= 1 && count <= REDLOCK_NODES_MAX);
    const int64_t quorum = redlock_check_count(options->quorum);
    return quorum == 0 ? REDLOCK_OK
                       : redlock_check_range(failure, "quorum", quorum, count / 2 + 1, count,
                                             " (more than half of the nodes), or 0 for the least");
}

static int check(struct redlock_error_text *failure, const redlock_manager_options *options) {
    int code = check_nodes(failure, options);
    if (code == REDLOCK_OK) {
        code = check_quorum(failure, options);
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_range(failure, "node_timeout_ms", options->node_timeout_ms, 1, REDLOCK_TIMEOUT_MS_MAX, "");
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_range(failure, "connect_timeout_ms", options->connect_timeout_ms, 1,
                                   REDLOCK_TIMEOUT_MS_MAX, "");
    }
    if (code == REDLOCK_OK) {
        code =
            redlock_check_enum(failure, "log_level", (int)options->log_level, REDLOCK_LOG_DEBUG, "redlock_log_level");
    }
    if (code == REDLOCK_OK) {
        const int64_t loops = redlock_check_count(options->loops);
        code = redlock_check_range(failure, "loops", loops, 1, REDLOCK_LOOPS_MAX, "");
    }
    if (code == REDLOCK_OK) {
        code = check_guards(failure, options);
    }
    if (code == REDLOCK_OK && options->fence_expiry_ms != 0) {
        code = redlock_check_range(failure, "fence_expiry_ms", options->fence_expiry_ms, FENCE_EXPIRY_MS_MIN,
                                   FENCE_EXPIRY_MS_MAX, " (3 h or more), or 0 for never");
    }
    return code == REDLOCK_OK ? check_texts(failure, options) : code;
}

void redlock_manager_options_default(redlock_manager_options *options) {
    *options = (redlock_manager_options){.size = sizeof *options,
                                         .node_timeout_ms = NODE_TIMEOUT_MS,
                                         .connect_timeout_ms = CONNECT_MS,
                                         .client_name = REDLOCK_CLIENT_NAME,
                                         .log_level = REDLOCK_LOG_WARNING,
                                         .fence_suffix = REDLOCK_FENCE_SUFFIX,
                                         .wait_suffix = REDLOCK_WAIT_SUFFIX,
                                         .loops = 1};
}

int redlock_manager_options_read(redlock_manager_options *known, const redlock_manager_options *given,
                                 struct redlock_error_text *failure) {
    redlock_manager_options_default(known);
    const int code = redlock_check_options(failure, "redlock_manager_options", known, sizeof *known, given);
    return code == REDLOCK_OK ? check(failure, known) : code;
}

void redlock_tls_options_default(redlock_tls_options *options) {
    *options = (redlock_tls_options){.size = sizeof *options, .min_version = REDLOCK_TLS_1_2, .verify = true};
}

static int check_tls(const redlock_tls_options *options, struct redlock_error_text *failure) {
    const struct {
        const char *name, *path;
    } files[] = {{"ca_file", options->ca_file},
                 {"ca_dir", options->ca_dir},
                 {"cert_file", options->cert_file},
                 {"key_file", options->key_file}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i].path != NULL && files[i].path[0] == '\0') {
            return redlock_fail(failure, REDLOCK_ERR_INVALID, "tls.%s is empty; NULL means none", files[i].name);
        }
    }
    if ((options->cert_file == NULL) != (options->key_file == NULL)) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "tls.%s needs tls.%s, too",
                            options->cert_file != NULL ? "cert_file" : "key_file",
                            options->cert_file != NULL ? "key_file" : "cert_file");
    }
    if (options->min_version != REDLOCK_TLS_1_2 && options->min_version != REDLOCK_TLS_1_3) {
        return redlock_fail_enum(failure, "tls.min_version", (int)options->min_version, "redlock_tls_version");
    }
    return options->server_name == NULL
               ? REDLOCK_OK
               : redlock_check_word(failure, "tls.server_name", options->server_name, 1, SERVER_NAME_SIZE_MAX);
}

int redlock_manager_tls_read(redlock_tls_options *known, const redlock_tls_options *given,
                             struct redlock_error_text *failure) {
    redlock_tls_options_default(known);
    const int code = redlock_check_options(failure, "redlock_tls_options", known, sizeof *known, given);
    return code == REDLOCK_OK ? check_tls(known, failure) : code;
}
