/* Reports failures and votes, to people and as JSON. */
#include "report.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "holders.h"
#include "nodes.h"
#include "text.h"
#include "values/values.h"

int tool_report_exit_status(const struct tool_options *options, int code) {
    switch (code) {
    case REDLOCK_OK:
        return TOOL_EXIT_OK;
    case REDLOCK_ERR_CONTENDED:
        return (int)options->contended_status;
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

void tool_report_send(struct tool_json *json, const struct tool_options *options, enum tool_words_level level) {
    tool_json_end(json);
    tool_words_level(options->words, level);
    tool_words_send(options->words, TOOL_WORDS_REPORT);
}

void tool_report_line(const struct tool_options *options, enum tool_words_level level, enum tool_words_kind kind,
                      const char *key, const char *name, const char *mark, const char *text) {
    FILE *out = tool_words_line(options->words);
    if (options->json) {
        struct tool_json json = tool_json_begin(out);
        tool_json_string(&json, key, name);
        tool_json_string(&json, "message", text);
        tool_json_end(&json);
    } else {
        fprintf(out, "redlock: %s", mark);
        tool_print_safe(out, text);
        fputc('\n', out);
    }
    tool_words_level(options->words, level);
    tool_words_send(options->words, kind);
}

void tool_report_note(const struct tool_options *options, enum tool_words_level level, const char *text) {
    if (!options->quiet) {
        tool_report_line(options, level, TOOL_WORDS_REPORT, "", "", "", text);
    }
}

void tool_report_unwritten(const struct tool_options *options, const char *text) {
    if (options->json || !options->quiet) {
        tool_report_line(options, TOOL_WORDS_ERROR, TOOL_WORDS_REPORT, "error", "OUTPUT", "", text);
    }
}

static bool is_silenced(const struct tool_options *options, const char *name) {
    return options->quiet || options->no_warn == TOOL_NO_WARN_ALL ||
           (options->no_warn == TOOL_NO_WARN_SETTINGS && strcmp(name, TOOL_WARNING_SETTINGS) == 0);
}

void tool_report_warning(const struct tool_options *options, const char *name, const char *text) {
    if (!is_silenced(options, name)) {
        tool_report_line(options, TOOL_WORDS_WARNING, TOOL_WORDS_REPORT, "warning", name, "warning: ", text);
    }
}

void tool_report_votes(struct tool_json *json, const redlock_result *result, bool holders) {
    size_t count = result == NULL ? 0 : redlock_result_vote_count(result);
    tool_json_open(json, "votes", '[');
    for (size_t i = 0; i < count; i++) {
        const redlock_vote vote = tool_vote(result, i);
        tool_json_open(json, NULL, '{');
        tool_json_string(json, "node", vote.node);
        tool_json_string(json, "vote", redlock_vote_name(vote.kind));
        tool_json_known(json, "latency_us", vote.latency_us);
        tool_json_string(json, "error", vote.error);
        if (!holders && vote.holder_text[0] != '\0') {
            tool_json_string(json, "holder_text", vote.holder_text);
        }
        if (holders && vote.kind == REDLOCK_VOTE_GRANTED) {
            tool_json_string(json, "holder", vote.holder);
            tool_json_string(json, "holder_text", vote.holder_text);
            tool_json_known(json, "holder_ttl_ms", vote.holder_ttl_ms);
            tool_json_number(json, "readers", vote.readers);
        }
        tool_json_close(json, '}');
    }
    tool_json_close(json, ']');
}

void tool_report_name(struct tool_json *json, const char *key, const struct tool_options *options) {
    if (options->item_count == 1) {
        tool_json_string(json, key, options->resource);
        return;
    }
    tool_json_open(json, key, '[');
    for (size_t i = 0; i < options->item_count; i++) {
        tool_json_string(json, NULL, options->items[i].resource);
    }
    tool_json_close(json, ']');
}

const char *tool_report_slots(const struct tool_session *session, char *buffer, size_t size) {
    buffer[0] = '\0';
    for (size_t i = 0; i < session->slot_count; i++) {
        (void)tool_append(buffer, size, "%s%" PRIu32, i > 0 ? "," : "", session->slots[i]);
    }
    return buffer;
}

void tool_report_items(struct tool_json *json, const struct tool_options *options, const redlock_lease *acquired) {
    const bool several = options->item_count > 1;
    if (several) {
        tool_json_open(json, "resources", '[');
    }
    for (size_t i = 0; i < options->item_count; i++) {
        const redlock_item *item = &options->items[i];
        if (several) {
            tool_json_open(json, NULL, '{');
        }
        tool_json_string(json, "resource", item->resource);
        tool_json_string(json, "token", acquired != NULL ? redlock_lease_item_token(acquired, i) : item->token);
        if (acquired != NULL) {
            tool_json_string(json, "mode",
                             options->lock.permits > 0 ? "permits" : tool_mode_name(item->mode == REDLOCK_SHARED));
        }
        if (acquired != NULL && options->lock.fencing) {
            /* A string: jq and JavaScript read numbers as doubles, which have 53 bits. */
            tool_json_string(json, "fence", TOOL_TEXT(32, "%" PRIu64, redlock_lease_item_fence(acquired, i)));
        }
        if (several) {
            tool_json_close(json, '}');
        }
    }
    if (several) {
        tool_json_close(json, ']');
    }
}

void tool_report_wait(struct tool_json *json, const struct tool_session *session) {
    redlock_statistics statistics = {.size = sizeof statistics};
    int code = redlock_manager_statistics(session->manager, &statistics);
    assert(code == REDLOCK_OK); /* nothing in the call can fail */
    tool_json_number(json, "waited_ms", session->waited_ms);
    tool_json_bool(json, "handed_over", statistics.handed_over > 0);
    /* Without memory there is no result. */
    tool_json_known(json, "passed_over",
                    session->result != NULL ? (int64_t)redlock_result_passed_over(session->result) : -1);
}

void tool_report_acquired(const struct tool_session *session) {
    const struct tool_options *options = session->options;
    if (!options->json || options->lock.wait_timeout_ms == 0) {
        return;
    }
    struct tool_json json = tool_json_begin(tool_words_line(options->words));
    tool_report_name(&json, "acquired", options);
    tool_report_wait(&json, session);
    tool_report_send(&json, options, TOOL_WORDS_INFO);
}

/* With what the sentence leaves open; NULL: nothing. */
static void report_error(const struct tool_options *options, const char *name, const char *message,
                         const char *explanation, const redlock_result *result) {
    if (!options->json) {
        tool_report_note(options, TOOL_WORDS_ERROR, message);
        if (explanation != NULL) {
            tool_report_note(options, TOOL_WORDS_ERROR, explanation);
        }
        return;
    }
    /* The standard output of run and elect belongs to the command that they run. */
    bool is_run = options->command == TOOL_RUN || options->command == TOOL_ELECT;
    struct tool_json json = tool_json_begin(is_run ? tool_words_line(options->words) : stdout);
    tool_json_string(&json, "error", name);
    tool_json_string(&json, "message", message);
    if (explanation != NULL) {
        tool_json_string(&json, "explanation", explanation);
    }
    const char *decided = result != NULL ? redlock_result_resource(result) : "";
    if (options->resource != NULL) {
        tool_json_string(&json, "resource", decided[0] != '\0' ? decided : options->resource);
    }
    tool_report_votes(&json, result, false);
    if (is_run) {
        tool_report_send(&json, options, TOOL_WORDS_ERROR);
    } else {
        tool_json_end(&json);
        fflush(stdout);
    }
}

void tool_report_sentence(const struct tool_options *options, const char *name, const char *message) {
    report_error(options, name, message, NULL, NULL);
}

int tool_report_code(const struct tool_session *session, int code) {
    const char *why = code == REDLOCK_ERR_INVALID ? redlock_manager_invalid(session->manager) : "";
    tool_report_error(session->options, redlock_error_name(code), "%s%s%s", redlock_strerror(code),
                      why[0] != '\0' ? ": " : "", why);
    return tool_report_exit_status(session->options, code);
}

/* Reports session->code and session->result, with advice after the library's sentence. */
static int report_failure(const struct tool_session *session, const char *advice, const char *explanation) {
    const struct tool_options *options = session->options;
    int code = session->code;
    char *message = NULL;
    if (session->result != NULL) {
        size_t size = redlock_result_message(session->result, NULL, 0) + 1;
        message = malloc(size + strlen(advice));
        if (message != NULL) {
            redlock_result_message(session->result, message, size);
            strcat(message, advice);
        }
    }
    if (message == NULL) {
        return tool_report_code(session, code);
    }
    report_error(options, redlock_error_name(code), message, explanation, session->result);
    free(message);
    return tool_report_exit_status(options, code);
}

int tool_report_failure(const struct tool_session *session, const char *explanation) {
    return report_failure(session, "", explanation);
}

/* Writes what to do if enough nodes answer, but too many of them too late, or guards keep too many
 * of them from voting; else "". */
static void advise_on_nodes(const struct tool_session *session, char *advice, size_t size) {
    const struct tool_options *options = session->options;
    const bool no_quorum = session->code == REDLOCK_ERR_NO_QUORUM;
    int64_t ms = no_quorum ? tool_nodes_quorum_in_ms(session) : 0;
    int64_t timeout_ms = no_quorum ? tool_nodes_timeout_needed_ms(session) : 0;
    advice[0] = '\0';
    if (timeout_ms != 0) {
        snprintf(advice, size, " Give --node-timeout %" PRId64 ".", timeout_ms);
    } else if (ms != 0) {
        bool unknown = options->manager.restart_guard == REDLOCK_RESTART_GUARD_STRICT && !options->manager.first_boot;
        snprintf(advice, size, " A quorum may vote in %s: give %s to wait%s.", TOOL_DURATION(ms),
                 options->lock.wait_timeout_ms != 0 ? "a longer -w" : "-w TIME",
                 unknown ? "; or --first-boot, but only if none of the nodes has ever granted a lock" : "");
    }
}

/* For the end of a sentence. */
static const char *say_who_holds_it(const struct tool_session *session, char *buffer, size_t size) {
    if (session->options->lock.permits > 0) {
        snprintf(buffer, size, "'redlock status --limit %" PRIu32 " RESOURCE' shows who has its permits",
                 session->options->lock.limit);
        return buffer;
    }
    if (session->held_by[0] == '\0' && session->held_for_ms < 0) {
        return "its keys have no end, as no lock has: see 'redlock status RESOURCE'";
    }
    if (session->held_by[0] == '\0') {
        return "'redlock status RESOURCE' shows who holds it and for how long";
    }
    if (session->held_for_ms < 0) {
        snprintf(buffer, size, "%s holds it; its keys have no end", session->held_by);
    } else if (session->readers > 0) {
        char others[48] = "reads";
        if (session->readers > 1) {
            snprintf(others, sizeof others, "and %" PRId64 " more read", session->readers - 1);
        }
        snprintf(buffer, size, "%s %s it; its keys end in %s if they are not renewed", session->held_by, others,
                 TOOL_DURATION(session->held_for_ms));
    } else {
        snprintf(buffer, size, "%s holds it; its keys end in %s if they are not renewed", session->held_by,
                 TOOL_DURATION(session->held_for_ms));
    }
    return buffer;
}

int tool_report_not_acquired(const struct tool_session *session) {
    const struct tool_options *options = session->options;
    bool contended = session->code == REDLOCK_ERR_CONTENDED;
    uint64_t attempts = session->result != NULL ? redlock_result_attempts(session->result) : 0;
    char holder[192];
    char nodes[256];
    char advice[512] = "";
    if (contended && tool_options_expect_contended(options) && !options->json) {
        return (int)options->contended_status;
    }
    advise_on_nodes(session, nodes, sizeof nodes);
    if (options->lock.wait_timeout_ms != 0 && attempts > 0) {
        snprintf(advice, sizeof advice, " Gave up after %" PRIu64 " attempt%s in %s%s%s.%s", attempts,
                 attempts == 1 ? "" : "s", TOOL_DURATION(tool_session_age_ms(session)), contended ? "; " : "",
                 contended ? say_who_holds_it(session, holder, sizeof holder) : "", nodes);
    } else if (contended) {
        snprintf(advice, sizeof advice, " Give -w TIME to wait; %s.", say_who_holds_it(session, holder, sizeof holder));
    } else {
        snprintf(advice, sizeof advice, "%s", nodes);
    }
    return report_failure(session, options->json ? "" : advice, NULL);
}

int tool_report_flush(const struct tool_options *options) {
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return 0;
    }
    const char *reason = errno != 0 ? strerror(errno) : "the write failed";
    tool_report_output(options, "cannot write to standard output: %s", reason);
    return TOOL_EXIT_OUTPUT;
}
