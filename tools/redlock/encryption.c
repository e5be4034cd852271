/* How the tool speaks TLS: command line first, then environment. */
#include "encryption.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "usage.h"

/* An empty variable is as not set. */
static int complete_texts(struct tool_options *options) {
    const struct {
        const char **text;
        const char *option, *variable;
    } texts[] = {{&options->cacert, "--cacert", "REDLOCK_CACERT"},
                 {&options->cacertdir, "--cacertdir", "REDLOCK_CACERTDIR"},
                 {&options->cert, "--cert", "REDLOCK_CERT"},
                 {&options->key, "--key", "REDLOCK_KEY"},
                 {&options->sni, "--sni", "REDLOCK_SNI"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *value = *texts[i].text == NULL ? getenv(texts[i].variable) : NULL;
        if (value != NULL && value[0] != '\0') {
            *texts[i].text = value;
        } else if (*texts[i].text != NULL && (*texts[i].text)[0] == '\0') {
            return tool_usage(options, "%s is empty; leave it out for none", texts[i].option);
        }
    }
    return 0;
}

static int complete_flag(const struct tool_options *options, bool *flag, const char *variable) {
    static const char *const yes[] = {"1", "yes", "on"};
    static const char *const no[] = {"", "0", "no", "off"};
    const char *text = getenv(variable);
    if (*flag || text == NULL) {
        return 0;
    }
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        *flag = *flag || strcmp(text, yes[i]) == 0;
    }
    for (size_t i = 0; i < sizeof no / sizeof *no && !*flag; i++) {
        if (strcmp(text, no[i]) == 0) {
            return 0;
        }
    }
    return *flag ? 0 : tool_usage(options, "%s '%s': it must be 1 or 0", variable, text);
}

int tool_tls_complete(struct tool_options *options) {
    options->tls_asked = options->insecure || options->cacert != NULL || options->cacertdir != NULL ||
                         options->cert != NULL || options->key != NULL || options->sni != NULL;
    int status = complete_flag(options, &options->tls, "REDLOCK_TLS");
    if (status == 0) {
        status = complete_flag(options, &options->insecure, "REDLOCK_INSECURE");
    }
    if (status == 0) {
        status = complete_texts(options);
    }
    if (status == 0 && (options->cert == NULL) != (options->key == NULL)) {
        status = options->cert != NULL
                     ? tool_usage(options, "--cert needs --key FILE, too: the private key of the certificate")
                     : tool_usage(options, "--key needs --cert FILE, too: the certificate of the private key");
    }
    redlock_tls_options_default(&options->tls_options);
    options->tls_options.ca_file = options->cacert;
    options->tls_options.ca_dir = options->cacertdir;
    options->tls_options.cert_file = options->cert;
    options->tls_options.key_file = options->key;
    options->tls_options.server_name = options->sni;
    options->tls_options.verify = !options->insecure;
    options->tls_given = options->tls || options->insecure || options->cacert != NULL || options->cacertdir != NULL ||
                         options->cert != NULL || options->sni != NULL;
    return status;
}

const char *tool_tls_option(const char *sentence) {
    static const struct {
        const char *begin, *option;
    } options[] = {{"ca_file '", "--cacert (or REDLOCK_CACERT)"},
                   {"ca_dir '", "--cacertdir (or REDLOCK_CACERTDIR)"},
                   {"cert_file '", "--cert (or REDLOCK_CERT)"},
                   {"key_file '", "--key (or REDLOCK_KEY)"},
                   {"tls.server_name ", "--sni (or REDLOCK_SNI)"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strncmp(sentence, options[i].begin, strlen(options[i].begin)) == 0) {
            return options[i].option;
        }
    }
    return NULL;
}

static const char *first_asked(const struct tool_options *options) {
    if (options->insecure) {
        return "--insecure";
    }
    if (options->cert != NULL) {
        return "--cert";
    }
    return options->cacert != NULL ? "--cacert" : options->cacertdir != NULL ? "--cacertdir" : "--sni";
}

/* Who asks for TLS must not get a connection that anybody can read. */
static int check_nodes(const struct tool_options *options) {
    for (size_t i = 0; i < options->node_count; i++) {
        if (strncmp(options->nodes[i], "rediss://", 9) == 0) {
            return 0;
        }
    }
    return tool_usage(options, "%s is given, but no node uses TLS: give --tls, too, or write rediss://",
                      first_asked(options));
}

int tool_tls_nodes(struct tool_options *options) {
    if (options->tls_asked && !options->tls) {
        return check_nodes(options);
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
            tool_report_error(options, "SYSTEM", "out of memory", NULL);
            return TOOL_EXIT_SYSTEM;
        }
        snprintf(options->node_uris[i], size, "rediss://%s", options->nodes[i]);
        options->nodes[i] = options->node_uris[i];
    }
    return 0;
}
