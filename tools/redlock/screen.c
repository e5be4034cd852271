/* Where status prints: a terminal that is repainted, or a file that is replaced. */
#include "screen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

bool tool_screen_is_there(void) {
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

void tool_screen_paint(const char *title, const char *text) {
    const struct winsize size = size_of_screen();
    const size_t lines = count_lines(text);
    /* One row is for the cursor below, if there is more than one; one is for the title. */
    const size_t room = size.ws_row > 2 ? (size_t)size.ws_row - 2 : 0;
    const size_t shown = lines <= room ? lines : room > 0 ? room - 1 : 0;
    char more[64];
    (void)snprintf(more, sizeof more, "%zu more lines: make the terminal larger", lines - shown);
    /* To the upper left corner. Meanwhile nothing wraps: some characters fill two columns. */
    fputs("\033[?7l\033[H", stdout);
    (void)paint_line(title, size.ws_col);
    for (size_t i = 0; i < shown; i++) {
        fputc('\n', stdout);
        text = paint_line(text, size.ws_col);
    }
    if (shown < lines && room > 0) {
        fputc('\n', stdout);
        (void)paint_line(more, size.ws_col);
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

int tool_screen_replace_file(const char *path, const char *text, size_t size) {
    struct stat found;
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode)) {
        return write_to(path, text, size);
    }
    char *target = realpath(path, NULL); /* a link stays a link */
    const int error = replace(target != NULL ? target : path, text, size);
    free(target);
    return error;
}
