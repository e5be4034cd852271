/* How failures and votes are told, to people and as JSON. */
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

int tool_report_exit_status(const struct tool_options *options, int code) {
    switch (code) {
    case REDLOCK_OK:
        return TOOL_EXIT_OK;
    case REDLOCK_ERR_CONTENDED:
        return options->contended_status;
    case REDLOCK_ERR_NO_QUORUM:
    case REDLOCK_ERR_TOO_SLOW:
        return TOOL_EXIT_NO_QUORUM;
    case REDLOCK_ERR_LOST:
        return TOOL_EXIT_LOST;
    case REDLOCK_ERR_INVALID:
        return TOOL_EXIT_USAGE;
    default:
        return TOOL_EXIT_SYSTEM;
    }
}

void tool_report_say(const struct tool_options *options, const char *format, ...) {
    if (options->quiet) {
        return;
    }
    char *sentence = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&sentence, format, arguments);
    va_end(arguments);
    if (length < 0) {
        fputs("redlock: out of memory for a message\n", stderr);
        return;
    }
    fputs("redlock: ", stderr);
    tool_print_safe(stderr, sentence);
    fputc('\n', stderr);
    free(sentence);
}

void tool_report_votes(struct tool_json *json, const redlock_result *result, bool holders) {
    size_t count = result == NULL ? 0 : redlock_result_vote_count(result);
    tool_json_open(json, "votes", '[');
    for (size_t i = 0; i < count; i++) {
        redlock_vote vote = {.size = sizeof vote};
        if (redlock_result_vote(result, i, &vote) != REDLOCK_OK) {
            break;
        }
        tool_json_open(json, NULL, '{');
        tool_json_string(json, "node", vote.node);
        tool_json_string(json, "vote", redlock_vote_name(vote.kind));
        if (vote.latency_us >= 0) {
            tool_json_number(json, "latency_us", vote.latency_us);
        } else {
            tool_json_null(json, "latency_us");
        }
        tool_json_string(json, "error", vote.error);
        if (holders && vote.kind == REDLOCK_VOTE_GRANTED) {
            tool_json_string(json, "holder", vote.holder);
            if (vote.holder_ttl_ms >= 0) {
                tool_json_number(json, "holder_ttl_ms", vote.holder_ttl_ms);
            } else {
                tool_json_null(json, "holder_ttl_ms");
            }
        }
        tool_json_close(json, '}');
    }
    tool_json_close(json, ']');
}

void tool_report_error(const struct tool_options *options, const char *name, const char *message,
                       const redlock_result *result) {
    if (!options->json) {
        tool_report_say(options, "%s", message);
        return;
    }
    /* run's standard output belongs to the command that it runs. */
    struct tool_json json = {.out = options->command == TOOL_RUN ? stderr : stdout};
    tool_json_open(&json, NULL, '{');
    tool_json_string(&json, "error", name);
    tool_json_string(&json, "message", message);
    if (options->resource != NULL) {
        tool_json_string(&json, "resource", options->resource);
    }
    tool_report_votes(&json, result, false);
    tool_json_close(&json, '}');
    fputc('\n', json.out);
    fflush(json.out);
}

int tool_report_failure(struct tool_session *session) {
    const struct tool_options *options = session->options;
    int code = session->code;
    char *message = NULL;
    if (session->result != NULL) {
        size_t size = redlock_result_message(session->result, NULL, 0) + 1;
        message = malloc(size);
        if (message != NULL) {
            redlock_result_message(session->result, message, size);
        }
    }
    tool_report_error(options, redlock_error_name(code), message != NULL ? message : redlock_strerror(code),
                      session->result);
    free(message);
    return tool_report_exit_status(options, code);
}

int tool_report_flush(const struct tool_options *options) {
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return 0;
    }
    const char *reason = errno != 0 ? strerror(errno) : "the write failed";
    tool_report_say(options, "cannot write to standard output: %s", reason);
    return TOOL_EXIT_OUTPUT;
}
