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

void tool_screen_paint(const char *title, const char *text) {
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 3 || size.ws_col < 10) {
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    }
    const size_t lines = count_lines(text);
    const size_t room = (size_t)size.ws_row - 2; /* title, and the cursor below */
    const size_t shown = lines <= room ? lines : room - 1;
    fputs("\033[H", stdout); /* to the upper left corner */
    (void)paint_line(title, size.ws_col);
    fputc('\n', stdout);
    for (size_t i = 0; i < shown; i++) {
        text = paint_line(text, size.ws_col);
        fputc('\n', stdout);
    }
    if (shown < lines) {
        printf("%zu more lines: make the terminal larger\033[K\n", lines - shown);
    }
    fputs("\033[J", stdout); /* clears what is below */
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
