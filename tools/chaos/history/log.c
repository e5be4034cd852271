/* JSON lines, written: one file a process, one write a line. */
#include "history/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Noreturn void chaos_break_off(const char *who, const char *what, const char *why) {
    fprintf(stderr, "redlock-chaos: %s: %s: %s\n", who, what, why);
    fflush(stderr);
    _exit(CHAOS_STATUS_BROKEN);
}

/*
 * A process that is killed within a write can leave half a line (a write ends early at a page's end
 * when a SIGKILL waits). The next process of the same client must not go on in that line: what
 * follows the last newline is cut off.
 */
static bool cut_half_line(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode);
    }
    off_t end = status.st_size;
    while (end > 0) {
        char byte;
        if (pread(fd, &byte, 1, end - 1) != 1) {
            return false;
        }
        if (byte == '\n') {
            break;
        }
        end--;
    }
    return end == status.st_size || ftruncate(fd, end) == 0;
}

bool chaos_log_open(struct chaos_log *log, const char *path) {
    *log = (struct chaos_log){.fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644)};
    if (log->fd < 0) {
        return false;
    }
    if (!cut_half_line(log->fd)) {
        int why = errno;
        chaos_log_close(log);
        errno = why;
        return false;
    }
    return true;
}

void chaos_log_close(struct chaos_log *log) {
    if (log->fd >= 0) {
        close(log->fd);
    }
    log->fd = -1;
}

static void give_up(struct chaos_log *log, const char *event, const char *why) {
    snprintf(log->error, sizeof log->error, "cannot write down the event '%s': %s; a history with holes proves nothing",
             event, why);
    if (!log->goes_on) {
        fprintf(stderr, "redlock-chaos: %s, so this process ends\n", log->error);
        _exit(CHAOS_STATUS_BROKEN);
    }
}

static void write_all(struct chaos_log *log, const char *bytes, size_t length, const char *event) {
    while (length > 0) {
        ssize_t written = write(log->fd, bytes, length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            give_up(log, event, written < 0 ? strerror(errno) : "nothing was written");
            return;
        }
        bytes += written;
        length -= (size_t)written;
    }
}

/* The time comes first: the files are joined by it without reading the rest. NULL without
 * memory. */
static char *line_of(int64_t t_us, const char *event, json_t *members) {
    json_t *line = json_pack("{s:I,s:s}", "t", (json_int_t)t_us, "event", event);
    char *text = line != NULL && json_object_update(line, members) == 0 ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    return text;
}

json_t *chaos_log_numbers(uint64_t bits) {
    json_t *list = json_array();
    for (int i = 0; i < 64; i++) {
        if ((bits >> i & 1) != 0) {
            json_array_append_new(list, json_integer(i + 1));
        }
    }
    return list;
}

void chaos_log_event(struct chaos_log *log, int64_t t_us, const char *event, const char *format, ...) {
    char braced[512];
    json_error_t error = {.text = "no memory"};
    bool fits = snprintf(braced, sizeof braced, "{%s}", format) < (int)sizeof braced;
    va_list arguments;
    va_start(arguments, format);
    /* Values that are to be taken over are, whether they can be written or not. */
    json_t *members = fits ? json_vpack_ex(&error, 0, braced, arguments) : NULL;
    va_end(arguments);
    char *text = members == NULL ? NULL : line_of(t_us, event, members);
    json_decref(members);
    if (log->error[0] != '\0') {
        free(text);
        return;
    }
    if (text == NULL) {
        give_up(log, event, !fits ? "its format is too long" : members == NULL ? error.text : "no memory");
        return;
    }
    size_t length = strlen(text);
    /* In place of the terminator: one write, without a copy. */
    text[length] = '\n';
    write_all(log, text, length + 1, event);
    free(text);
}
