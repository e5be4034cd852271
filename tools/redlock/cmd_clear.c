/* redlock clear: frees a lock by force, under the tokens that were shown, after a question. */
#include "commands.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holders.h"
#include "nodes.h"
#include "report.h"
#include "text.h"
#include "usage.h"
#include "values/values.h"

/* More than the longest line of a terminal of Linux, 4096 bytes. */
#define LINE_SIZE 4100

/* The digits of our shortest token. */
enum { TOKEN_DIGITS_MIN = 32 };

struct token {
    const char *text;
    bool reads;
    redlock_result *released; /* what came of it; NULL without memory */
    int code;
};

/*
 * | step    | what happens                                                    | next     | exit   |
 * | ------- | --------------------------------------------------------------- | -------- | ------ |
 * | inspect | fewer than a quorum could tell                                  |          | 69     |
 * | inspect | no node has a token                                             |          | 0      |
 * | show    | --yes                                                           | release  |        |
 * | show    | no terminal to ask on                                           |          | 64     |
 * | ask     | the answer is not yes; the end of the input                     |          | 75     |
 * | release | each token that was shown, on all nodes, by comparing           | report   |        |
 * | report  | the token of the holder, or one of those who read, was on a     |          | 0      |
 * |         | quorum until now                                                |          |        |
 * | report  | it was gone or changed meanwhile: whoever has it now keeps it   |          | 76     |
 * | report  | too few nodes answered                                          |          | 69     |
 */
struct clear {
    struct tool_session *session;
    redlock_result *shown; /* it owns the tokens */
    struct tool_holders holders;
    struct token *tokens; /* each once; that of most nodes is the first */
    size_t count;
};

static void add_token(struct clear *clear, const char *token, bool reads) {
    for (size_t i = 0; i < clear->count; i++) {
        if (strcmp(clear->tokens[i].text, token) == 0) {
            clear->tokens[i].reads = clear->tokens[i].reads || reads;
            return;
        }
    }
    clear->tokens[clear->count++] = (struct token){.text = token, .reads = reads};
}

/* Those of the nodes, and of all who read. Returns false without memory. */
static bool gather_tokens(struct clear *clear) {
    size_t readers = 0;
    while (tool_reader(clear->shown, readers).token != NULL) {
        readers++;
    }
    clear->tokens = calloc(readers + 1 + clear->holders.nodes, sizeof *clear->tokens);
    if (clear->tokens == NULL) {
        return false;
    }
    if (clear->holders.token != NULL) {
        add_token(clear, clear->holders.token, false);
    }
    for (size_t i = 0; i < clear->holders.nodes; i++) {
        const redlock_vote vote = tool_vote(clear->shown, i);
        if (vote.kind == REDLOCK_VOTE_GRANTED && vote.readers == 0) {
            add_token(clear, vote.holder, false);
        }
    }
    for (size_t i = 0; i < readers; i++) {
        add_token(clear, tool_reader(clear->shown, i).token, true);
    }
    return true;
}

/* Returns 0, or an exit status after printing why. */
static int inspect(struct clear *clear) {
    struct tool_session *session = clear->session;
    const size_t nodes = redlock_manager_node_count(session->manager);
    tool_session_connect(session, true);
    int code = tool_session_finish(
        session, redlock_inspect(session->manager, session->options->resource, tool_session_completed, session));
    if (session->stop_signal != 0) {
        return tool_session_stopped(session);
    }
    if (code != REDLOCK_OK) {
        return tool_report_failure(session, NULL);
    }
    clear->shown = session->result;
    session->result = NULL;
    clear->holders = tool_holders_of(clear->shown, nodes, redlock_manager_quorum(session->manager));
    return gather_tokens(clear) ? 0 : tool_report_code(session, REDLOCK_ERR_NO_MEMORY);
}

static void print_time(FILE *out, int64_t ms) {
    if (ms < 0) {
        fputs("without a ttl", out);
    } else {
        fprintf(out, "for %s more", TOOL_DURATION(ms));
    }
}

/* "web-3:4711 (token 00…)", or the token alone. */
static void print_holder(FILE *out, const char *token) {
    const char *holder = redlock_token_holder(token);
    if (holder[0] != '\0') {
        tool_print_safe(out, holder);
        fputs(" (token ", out);
        tool_print_safe(out, token);
        fputc(')', out);
    } else {
        tool_print_safe(out, token);
    }
}

/* On standard error, where the question follows. */
static void show(const struct clear *clear) {
    const struct tool_options *options = clear->session->options;
    const int64_t waiters = clear->shown != NULL ? redlock_result_waiters(clear->shown) : -1;
    FILE *out = tool_words_line(options->words);
    tool_words_level(options->words, TOOL_WORDS_NOTICE);
    tool_print_safe(out, options->resource);
    if (clear->holders.readers > 0) {
        fprintf(out, ": read by %lld", (long long)clear->holders.readers);
    } else {
        fprintf(out, ": %s", tool_verdict_name(clear->holders.verdict));
    }
    if (waiters > 0) {
        fprintf(out, "; %lld %s for it, and the first in the queue gets it", (long long)waiters,
                waiters == 1 ? "waits" : "wait");
    }
    fputc('\n', out);
    for (size_t i = 0; i < clear->holders.nodes; i++) {
        const redlock_vote vote = tool_vote(clear->shown, i);
        fputs("  ", out);
        tool_print_safe(out, vote.node);
        if (vote.kind == REDLOCK_VOTE_GRANTED && vote.readers > 0) {
            fprintf(out, ": read by %lld, ", (long long)vote.readers);
            print_time(out, vote.holder_ttl_ms);
        } else if (vote.kind == REDLOCK_VOTE_GRANTED) {
            fputs(": held by ", out);
            print_holder(out, vote.holder);
            fputs(", ", out);
            print_time(out, vote.holder_ttl_ms);
        } else if (vote.kind == REDLOCK_VOTE_DENIED) {
            fputs(": free", out);
        } else {
            fputs(": cannot tell: ", out);
            tool_print_safe(out, vote.error);
        }
        fputc('\n', out);
    }
    redlock_lock_reader reader;
    for (size_t i = 0; (reader = tool_reader(clear->shown, i)).token != NULL; i++) {
        fputs("  reader ", out);
        print_holder(out, reader.token);
        fprintf(out, ": on %zu of %zu nodes, ", reader.nodes, clear->holders.nodes);
        print_time(out, reader.ttl_ms);
        fputc('\n', out);
    }
    tool_words_send(options->words, TOOL_WORDS_REPORT);
}

static void readable(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)events;
    ev_io_stop(loop, watcher);
}

/* Waits for a line in the loop, so that a signal ends the wait. True for "y" and "yes". */
static bool is_confirmed(struct tool_session *session, bool shared) {
    char line[LINE_SIZE] = "";
    ev_io watcher;
    FILE *out = tool_words_line(session->options->words);
    fprintf(out, "Work that this lock guards may still run, and will no longer be %s. Free it? [y/N] ",
            shared ? "safe from those who write" : "alone");
    tool_words_send(session->options->words, TOOL_WORDS_REPORT);
    ev_io_init(&watcher, readable, STDIN_FILENO, EV_READ);
    ev_io_start(session->loop, &watcher);
    while (session->stop_signal == 0 && ev_is_active(&watcher)) {
        ev_run(session->loop, EVRUN_ONCE);
    }
    ev_io_stop(session->loop, &watcher);
    /* The terminal gives a whole line at once. The shell would run what is left of it. */
    const ssize_t size = session->stop_signal == 0 ? read(STDIN_FILENO, line, sizeof line - 1) : 0;
    line[size > 0 ? size : 0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

/* Returns 0 to go on, or an exit status after printing why. */
static int ask(struct clear *clear) {
    struct tool_session *session = clear->session;
    const struct tool_options *options = session->options;
    if (options->yes) {
        if (!options->quiet && !options->json) {
            show(clear);
        }
        return 0;
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return tool_usage(options, "clear asks first, and needs a terminal for that; give --yes to free '%s' unasked",
                          options->resource);
    }
    show(clear);
    const bool confirmed = is_confirmed(session, clear->holders.readers > 0);
    if (session->stop_signal != 0) {
        return tool_session_stopped(session);
    }
    if (!confirmed) {
        tool_report_error(options, redlock_error_name(REDLOCK_ERR_CANCELLED), "not confirmed: nothing was done");
        return TOOL_EXIT_CONTENDED;
    }
    return 0;
}

/* redlock_inspect() writes "(a list)" for a key that holds no string. A set may hold anything. */
static bool is_token(const struct token *token) {
    const char *text = token->text;
    const size_t digits = strspn(text, "0123456789abcdefghijklmnopqrstuv");
    return text[0] != '\0' && text[0] != '(' && strlen(text) <= REDLOCK_TOKEN_SIZE_MAX &&
           (!token->reads || digits >= TOKEN_DIGITS_MIN);
}

/* Returns 0, or an exit status after printing why. */
static int check_tokens(const struct clear *clear) {
    const struct tool_options *options = clear->session->options;
    for (size_t i = 0; i < clear->count; i++) {
        if (!is_token(&clear->tokens[i])) {
            tool_report_error(options, redlock_error_name(REDLOCK_ERR_INVALID),
                              "the key of '%s' holds what no lock does; if nobody needs it, delete it with redis-cli",
                              options->resource);
            return TOOL_EXIT_USAGE;
        }
    }
    return 0;
}

/* Each token on all nodes. A node compares it with its own, so only what was shown is deleted. */
static void release_all(struct clear *clear) {
    struct tool_session *session = clear->session;
    for (size_t i = 0; i < clear->count && session->stop_signal == 0; i++) {
        struct token *token = &clear->tokens[i];
        redlock_lease *lease;
        token->code = tool_session_adopt(
            session, &(redlock_item){.resource = session->options->resource, .token = token->text}, 1, &lease);
        if (token->code == REDLOCK_OK) {
            token->code = tool_session_release(session, lease);
            token->released = session->result;
            session->result = NULL;
        }
    }
}

static size_t index_of(const struct clear *clear, const char *token) {
    size_t i = 0;
    while (i + 1 < clear->count && strcmp(clear->tokens[i].text, token) != 0) {
        i++;
    }
    return i;
}

/* What became of the key at the node. */
static const char *word_of(const struct clear *clear, size_t node, const char **error) {
    const redlock_vote shown = tool_vote(clear->shown, node);
    *error = "";
    if (clear->count == 0) {
        return "free";
    }
    const bool held = shown.kind == REDLOCK_VOTE_GRANTED;
    const redlock_result *released = clear->tokens[held ? index_of(clear, shown.holder) : 0].released;
    if (released == NULL) {
        return "not released";
    }
    const redlock_vote vote = tool_vote(released, node);
    switch (vote.kind) {
    case REDLOCK_VOTE_GRANTED:
        return "released";
    case REDLOCK_VOTE_DENIED:
        *error = held ? vote.error : "";
        return held ? "not released" : "free";
    case REDLOCK_VOTE_PENDING:
        return "release sent";
    case REDLOCK_VOTE_FAILED:
    case REDLOCK_VOTE_UNKNOWN:
    case REDLOCK_VOTE_ABSTAINED:
        break;
    }
    *error = vote.error;
    return "not released";
}

/* What became of one who reads. */
static const char *word_of_reader(const struct token *token) {
    return token->code == REDLOCK_OK ? "released" : token->code == REDLOCK_ERR_LOST ? "gone already" : "not released";
}

static void print_readers_json(const struct clear *clear, struct tool_json *json) {
    tool_json_open(json, "read_by", '[');
    for (size_t i = 0; i < clear->count; i++) {
        if (clear->tokens[i].reads) {
            tool_json_open(json, NULL, '{');
            tool_json_string(json, "token", clear->tokens[i].text);
            tool_json_string(json, "holder_text", redlock_token_holder(clear->tokens[i].text));
            tool_json_string(json, "outcome", word_of_reader(&clear->tokens[i]));
            tool_json_close(json, '}');
        }
    }
    tool_json_close(json, ']');
}

static void print_nodes_json(const struct clear *clear, struct tool_json *json) {
    tool_json_open(json, "nodes", '[');
    for (size_t i = 0; clear->shown != NULL && i < clear->holders.nodes; i++) {
        const redlock_vote vote = tool_vote(clear->shown, i);
        const char *error;
        const char *word = word_of(clear, i, &error);
        tool_json_open(json, NULL, '{');
        tool_json_string(json, "node", vote.node);
        tool_json_string(json, "holder", vote.holder);
        tool_json_string(json, "holder_text", vote.holder_text);
        tool_json_string(json, "outcome", word);
        tool_json_string(json, "error", error);
        tool_json_close(json, '}');
    }
    tool_json_close(json, ']');
}

static void print_outcome(const struct clear *clear, int code, const char *message) {
    const struct tool_options *options = clear->session->options;
    if (options->json) {
        struct tool_json json = tool_json_begin(stdout);
        if (code != REDLOCK_OK) {
            tool_json_string(&json, "error", redlock_error_name(code));
            tool_json_string(&json, "message", message);
        }
        tool_json_string(&json, "resource", options->resource);
        tool_json_bool(&json, "cleared", code == REDLOCK_OK && clear->count > 0);
        print_nodes_json(clear, &json);
        print_readers_json(clear, &json);
        tool_json_end(&json);
        return;
    }
    if (options->quiet) {
        return;
    }
    tool_print_safe(stdout, options->resource);
    printf(": %s\n", message);
    for (size_t i = 0; i < clear->count; i++) {
        if (clear->tokens[i].reads) {
            fputs("  reader ", stdout);
            print_holder(stdout, clear->tokens[i].text);
            printf(": %s\n", word_of_reader(&clear->tokens[i]));
        }
    }
    for (size_t i = 0; clear->count > 0 && clear->holders.readers == 0 && i < clear->holders.nodes; i++) {
        const char *error;
        const char *word = word_of(clear, i, &error);
        fputs("  ", stdout);
        tool_print_safe(stdout, tool_vote(clear->shown, i).node);
        printf(": %s%s", word, error[0] != '\0' ? ": " : "");
        tool_print_safe(stdout, error);
        putchar('\n');
    }
}

/* Without readers, the first token is the one that counts. One of several who read may leave at any
 * time. */
static int code_of(const struct clear *clear) {
    int code = clear->count > 0 ? clear->tokens[0].code : REDLOCK_OK;
    for (size_t i = 0; clear->holders.readers > 0 && i < clear->count; i++) {
        const int other = clear->tokens[i].code;
        const bool is_end = other == REDLOCK_OK || other == REDLOCK_ERR_LOST;
        if (!is_end || (code == REDLOCK_ERR_LOST && other == REDLOCK_OK)) {
            code = other;
        }
        if (!is_end) {
            break;
        }
    }
    return code;
}

static int report(const struct clear *clear) {
    const struct tool_options *options = clear->session->options;
    int code = code_of(clear); /* without a quorum, there was no holder */
    const char *message = "cleared";
    if (clear->count == 0) {
        message = "free already: nothing was done";
    } else if (code == REDLOCK_ERR_LOST && clear->holders.verdict != TOOL_HELD) {
        code = REDLOCK_OK; /* it was on a minority */
    } else if (code == REDLOCK_ERR_LOST) {
        message = "it changed meanwhile: the token that was shown is no longer on a quorum of nodes; whoever holds "
                  "it now still does";
    } else if (code != REDLOCK_OK) {
        message = "too few nodes answered: keys may be left until their ttl ends";
    }
    print_outcome(clear, code, message);
    const int status = tool_report_flush(options);
    return status != 0 ? status : tool_report_exit_status(options, code);
}

int tool_clear(struct tool_session *session) {
    struct clear clear = {.session = session};
    int status = inspect(&clear);
    if (status == 0 && clear.count > 0) {
        status = check_tokens(&clear);
        status = status != 0 ? status : ask(&clear);
    }
    if (status == 0) {
        release_all(&clear);
        status = session->stop_signal != 0 ? tool_session_stopped(session) : report(&clear);
        tool_nodes_warn(session, true);
    }
    for (size_t i = 0; i < clear.count; i++) {
        redlock_result_free(clear.tokens[i].released);
    }
    free(clear.tokens);
    redlock_result_free(clear.shown);
    return status;
}
