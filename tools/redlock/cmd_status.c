/* redlock status: shows the nodes, and who holds each resource, where, and for how long; once, or
 * again and again. */
#include "commands.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reload.h"
#include "report.h"
#include "screen.h"
#include "status.h"
#include "values/values.h"

struct page {
    char *text;
    size_t size;
};

/* Returns 0, or an exit status after printing why. Free the text. */
static int render(const struct tool_session *session, const struct tool_findings *findings, struct page *page) {
    const struct tool_options *options = session->options;
    *page = (struct page){0};
    FILE *out = open_memstream(&page->text, &page->size);
    if (out != NULL) {
        if (options->metrics) {
            tool_status_print_metrics(out, session, findings);
        } else if (options->json) {
            tool_status_print_json(out, session, findings);
        } else if (!options->quiet) {
            tool_status_print(out, session, findings);
        }
    }
    if (out == NULL || fclose(out) != 0) {
        tool_report_error(options, redlock_error_name(REDLOCK_ERR_NO_MEMORY), redlock_strerror(REDLOCK_ERR_NO_MEMORY),
                          NULL);
        return TOOL_EXIT_SYSTEM;
    }
    return 0;
}

static void write_title(const struct tool_options *options, char *title, size_t size) {
    const time_t now = time(NULL);
    char every[32];
    struct tm utc;
    char clock[32] = "";
    if (gmtime_r(&now, &utc) != NULL) {
        strftime(clock, sizeof clock, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    snprintf(title, size, "redlock status, every %s: %s", tool_duration_exact(options->watch_ms, every, sizeof every),
             clock);
}

/* Returns 0, or TOOL_EXIT_OUTPUT after printing why. */
static int show(const struct tool_options *options, const struct page *page) {
    const bool repeats = options->watch_ms != 0;
    char title[128];
    if (options->output != NULL) {
        const int error = tool_screen_replace_file(options->output, page->text, page->size);
        if (error == 0) {
            return 0;
        }
        tool_report_output(options, "cannot write %s: %s", options->output, strerror(error));
        return TOOL_EXIT_OUTPUT;
    }
    if (repeats && !options->json && !options->metrics && !options->quiet) {
        write_title(options, title, sizeof title);
        if (tool_screen_is_there()) {
            tool_screen_paint(title, page->text);
            return tool_report_flush(options);
        }
        printf("%s\n", title);
    }
    fwrite(page->text, 1, page->size, stdout);
    if (repeats && !options->json && page->size > 0) {
        putchar('\n');
    }
    return tool_report_flush(options);
}

static int exit_status(const struct tool_options *options, const struct tool_findings *findings) {
    if (tool_status_lacks_quorum(findings)) {
        return TOOL_EXIT_NO_QUORUM;
    }
    const bool all_work = findings->ready == findings->nodes && findings->far == 0 && findings->refusing == 0;
    return options->all_ready && !all_work ? TOOL_EXIT_NODE_AWAY : 0;
}

/* Asks and prints once. A failure to do so is reported and ends a watch, too. */
static int look(struct tool_session *session, bool *failed) {
    struct tool_findings findings;
    struct page page = {0};
    int status = tool_status_find(session, &findings);
    if (status == 0 && session->stop_signal == 0) {
        status = render(session, &findings, &page);
        if (status == 0) {
            status = show(session->options, &page);
        }
        *failed = status != 0;
        status = *failed ? status : exit_status(session->options, &findings);
    } else {
        *failed = status != 0;
    }
    free(page.text);
    tool_status_free(&findings);
    return status;
}

static void time_is_up(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)timer, (void)events;
}

static void rest(struct tool_session *session) {
    ev_timer timer;
    ev_now_update(session->loop);
    ev_timer_init(&timer, time_is_up, (double)session->options->watch_ms / 1000, 0.);
    ev_timer_start(session->loop, &timer);
    while (session->stop_signal == 0 && ev_is_active(&timer)) {
        ev_run(session->loop, EVRUN_ONCE);
    }
    ev_timer_stop(session->loop, &timer);
}

int tool_status(struct tool_session *session) {
    const bool repeats = session->options->watch_ms != 0;
    bool failed = false;
    int status;
    if (repeats) {
        tool_reload_begin(session);
    }
    tool_session_connect(session, true);
    if (repeats && session->stop_signal == 0 && tool_screen_is_there() && !session->options->json) {
        (void)setvbuf(stdout, NULL, _IOFBF, 65536); /* a picture at once, not line by line */
        fputs("\033[2J", stdout);                   /* clears the terminal */
    }
    do {
        status = look(session, &failed);
        if (repeats && !failed && session->stop_signal == 0) {
            rest(session);
        }
    } while (repeats && !failed && session->stop_signal == 0);
    if (failed || session->stop_signal == 0) {
        return status;
    }
    /* A signal is how a watch ends; otherwise it cut short what was asked. */
    return repeats ? TOOL_EXIT_SIGNAL_BASE + session->stop_signal : tool_session_stopped(session);
}
