/* redlock status: shows the nodes, and who holds each resource, where, and for how long; once, or
 * again and again, on a terminal that is repainted or into a file that is replaced. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "reload.h"
#include "report.h"
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
            tool_status_print_metrics(out, findings);
        } else if (options->json) {
            tool_status_print_json(out, session, findings);
        } else if (!options->quiet) {
            tool_status_print(out, session, findings);
        }
    }
    if (out == NULL || fclose(out) != 0) {
        return tool_report_code(session, REDLOCK_ERR_NO_MEMORY);
    }
    return 0;
}

/* Whether standard output is a terminal that can be repainted. */
static bool has_screen(void) {
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && (kind == NULL || strcmp(kind, "dumb") != 0);
}

/* Prints so many columns of one line, if each character fills one. Returns where the next begins,
 * NULL after the last. */
static const char *paint_line(const char *line, size_t columns) {
    const char *end = strchrnul(line, '\n');
    const char *at = line;
    for (size_t column = 0; at < end && column < columns; column++) {
        uint32_t code;
        const size_t length = tool_utf8_read(at, &code);
        at += length == 0 ? 1 : length;
    }
    fwrite(line, 1, (size_t)(at - line), stdout);
    fputs("\033[K", stdout); /* clears the rest of the line */
    return *end == '\0' || end[1] == '\0' ? NULL : end + 1;
}

static size_t count_lines(const char *text) {
    size_t count = 0;
    while (text != NULL && *text != '\0') {
        const char *end = strchr(text, '\n');
        text = end == NULL ? NULL : end + 1;
        count++;
    }
    return count;
}

/* A terminal that does not know its size says 0. */
static struct winsize size_of_screen(void) {
    struct winsize size = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); /* stays 0 if it fails */
    size.ws_row = size.ws_row == 0 ? 24 : size.ws_row;
    size.ws_col = size.ws_col == 0 ? 80 : size.ws_col;
    return size;
}

/* Repaints the terminal. Leaves out lines and columns for which it has no room. */
static void paint(const char *title, const char *text) {
    const struct winsize size = size_of_screen();
    const size_t lines = count_lines(text);
    /* One row is for the cursor below, if there is more than one; one is for the title. */
    const size_t room = size.ws_row > 2 ? (size_t)size.ws_row - 2 : 0;
    const size_t shown = lines <= room ? lines : room > 0 ? room - 1 : 0;
    /* To the upper left corner. Meanwhile nothing wraps: some characters fill two columns. */
    fputs("\033[?7l\033[H", stdout);
    (void)paint_line(title, size.ws_col);
    for (size_t i = 0; i < shown; i++) {
        fputc('\n', stdout);
        text = paint_line(text, size.ws_col);
    }
    if (shown < lines && room > 0) {
        fputc('\n', stdout);
        (void)paint_line(TOOL_TEXT(64, "%zu more lines: make the terminal larger", lines - shown), size.ws_col);
    }
    fputs(size.ws_row > 1 ? "\n\033[J\033[?7h" : "\033[?7h", stdout); /* clears what is below */
}

static int write_all(int fd, const char *text, size_t size) {
    while (size > 0) {
        const ssize_t written = write(fd, text, size);
        if (written < 0 && errno != EINTR) {
            return errno;
        }
        if (written > 0) {
            text += written;
            size -= (size_t)written;
        }
    }
    return 0;
}

static int end_file(int fd, int error) {
    return close(fd) != 0 && error == 0 ? errno : error;
}

/* A device or a pipe has no place for a file of ours. A pipe that nobody reads is ENXIO. */
static int write_to(const char *path, const char *text, size_t size) {
    const int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    return end_file(fd, fcntl(fd, F_SETFL, 0) != 0 ? errno : write_all(fd, text, size));
}

static int replace(const char *path, const char *text, size_t size) {
    char *temporary = NULL;
    /* In the same folder, so that it can be renamed; without the ending that collectors read. */
    if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        return ENOMEM;
    }
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    int error = fd < 0 ? errno : end_file(fd, write_all(fd, text, size));
    if (error == 0 && rename(temporary, path) != 0) {
        error = errno;
    }
    if (error != 0 && fd >= 0) {
        (void)unlink(temporary);
    }
    free(temporary);
    return error;
}

/* Replaces the file in one step: who reads it sees all of the old text or all of the new. A device
 * or a pipe is written to. Returns 0 or an errno. */
static int replace_file(const char *path, const char *text, size_t size) {
    struct stat found;
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode)) {
        return write_to(path, text, size);
    }
    char *target = realpath(path, NULL); /* a link stays a link */
    const int error = replace(target != NULL ? target : path, text, size);
    free(target);
    return error;
}

static void write_title(const struct tool_options *options, char *title, size_t size) {
    const time_t now = time(NULL);
    struct tm utc;
    char clock[32] = "";
    if (gmtime_r(&now, &utc) != NULL) {
        strftime(clock, sizeof clock, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    snprintf(title, size, "redlock status, every %s: %s", TOOL_DURATION_EXACT(options->watch_ms), clock);
}

/* Returns 0, or TOOL_EXIT_OUTPUT after printing why. */
static int show(const struct tool_options *options, const struct page *page) {
    const bool repeats = options->watch_ms != 0;
    char title[128];
    if (options->output != NULL) {
        const int error = replace_file(options->output, page->text, page->size);
        if (error == 0) {
            return 0;
        }
        tool_report_output(options, "cannot write %s: %s", options->output, strerror(error));
        return TOOL_EXIT_OUTPUT;
    }
    if (repeats && !options->json && !options->metrics && !options->quiet) {
        write_title(options, title, sizeof title);
        if (has_screen()) {
            paint(title, page->text);
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

int tool_status(struct tool_session *session) {
    const bool repeats = session->options->watch_ms != 0;
    bool failed = false;
    int status;
    if (repeats) {
        tool_reload_begin(session);
    }
    tool_session_connect(session, true);
    if (repeats && session->stop_signal == 0 && has_screen() && !session->options->json) {
        (void)setvbuf(stdout, NULL, _IOFBF, 65536); /* a picture at once, not line by line */
        fputs("\033[2J", stdout);                   /* clears the terminal */
    }
    do {
        status = look(session, &failed);
        if (repeats && !failed && session->stop_signal == 0) {
            tool_session_rest(session, session->options->watch_ms, tool_session_is_stopped, session);
        }
    } while (repeats && !failed && session->stop_signal == 0);
    if (failed || session->stop_signal == 0) {
        return status;
    }
    /* A signal is how a watch ends; otherwise it cut short what was asked. */
    return repeats ? TOOL_EXIT_SIGNAL_BASE + session->stop_signal : tool_session_stopped(session);
}
