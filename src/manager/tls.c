/* What the caller wants of TLS. */
#include "manager/tls.h"

#include <string.h>

#include "base/check.h"

#define SERVER_NAME_SIZE_MAX 255

void redlock_tls_options_default(redlock_tls_options *options) {
    *options = (redlock_tls_options){.size = sizeof *options, .min_version = REDLOCK_TLS_1_2, .verify = true};
}

static int check(const redlock_tls_options *options, struct redlock_error_text *failure) {
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

int redlock_manager_tls(const redlock_tls_options *given, struct redlock_tls_context **context,
                        struct redlock_error_text *failure) {
    redlock_tls_options known;
    redlock_tls_options_default(&known);
    int code = redlock_check_options(failure, "redlock_tls_options", &known, sizeof known, given);
    if (code == REDLOCK_OK) {
        code = check(&known, failure);
    }
    return code == REDLOCK_OK ? redlock_tls_context_new(&known, context, failure) : code;
}
