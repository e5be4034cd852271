/* The only writer to standard error: writes whole lines. */
#include "words.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "thread.h"

/* The largest report, of 31 nodes, fits into the half that the log leaves free. */
#define QUEUE_SIZE      ((size_t)131072)
#define LOG_SIZE        ((size_t)65536)
#define NOTE_SIZE       ((size_t)128)
#define MARK_SIZE       ((size_t)3) /* "<4>" */
#define GIVE_UP_AFTER_S 5

struct tool_words {
    FILE *line_file; /* what is printed here goes into line, behind the room for its mark */
    size_t line_size;
    enum tool_words_level level; /* of that line */
    bool marks;                  /* standard error is the journal */
    bool json;
    bool threaded;
    struct tool_thread thread; /* its mutex protects the members below, except line */
    unsigned long writes;      /* counts writes, to see whether the thread makes progress */
    unsigned long left_out;    /* lines left out and not reported yet */
    size_t queue_size;
    char *queue; /* lines that wait */
    char *taken; /* lines that the thread is writing */
    char line[MARK_SIZE + QUEUE_SIZE];
    char buffers[2][QUEUE_SIZE + NOTE_SIZE];
};

/* Cuts a line that is longer than the buffer. */
static ssize_t keep(void *cookie, const char *bytes, size_t size) {
    struct tool_words *words = cookie;
    size_t room = QUEUE_SIZE - 1 - words->line_size;
    size_t kept = size < room ? size : room;
    memcpy(words->line + MARK_SIZE + words->line_size, bytes, kept);
    words->line_size += kept;
    return (ssize_t)size;
}

/* systemd names the device and the inode of the stream that leads to its journal. Who has
 * redirected standard error since then has another. */
static bool is_journal(void) {
    const char *stream = getenv("JOURNAL_STREAM");
    uintmax_t device, inode;
    struct stat stat;
    int length = 0;
    return stream != NULL && sscanf(stream, "%ju:%ju%n", &device, &inode, &length) == 2 && stream[length] == '\0' &&
           fstat(STDERR_FILENO, &stat) == 0 && stat.st_dev == device && stat.st_ino == inode;
}

struct tool_words *tool_words_new(void) {
    struct tool_words *words = calloc(1, sizeof *words);
    if (words == NULL) {
        return NULL;
    }
    words->line_file = fopencookie(words, "w", (cookie_io_functions_t){.write = keep});
    if (words->line_file == NULL) {
        free(words);
        return NULL;
    }
    words->level = TOOL_WORDS_ERROR;
    words->marks = is_journal();
    words->queue = words->buffers[0];
    words->taken = words->buffers[1];
    return words;
}

FILE *tool_words_line(struct tool_words *words) {
    return words->line_file;
}

void tool_words_level(struct tool_words *words, enum tool_words_level level) {
    words->level = level;
}

/* Writes part of a line and returns its size; a part that cannot be written counts as written. */
static size_t write_some(const char *text, size_t size) {
    for (;;) {
        ssize_t written = write(STDERR_FILENO, text, size);
        if (written > 0) {
            return (size_t)written;
        }
        if (written < 0 && errno == EAGAIN) {
            /* Another process has set O_NONBLOCK. */
            struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (written == 0 || errno != EINTR) {
            return size;
        }
    }
}

/* One write for each line, because the command writes to the same file. */
static size_t write_line(const char *text, size_t size) {
    const char *end = memchr(text, '\n', size);
    return write_some(text, end == NULL ? size : (size_t)(end - text) + 1);
}

/* Call with the mutex held; it is unlocked during the writes. */
static void write_taken(struct tool_words *words, size_t size) {
    const char *text = words->taken;
    while (size > 0) {
        pthread_mutex_unlock(&words->thread.mutex);
        size_t written = write_line(text, size);
        pthread_mutex_lock(&words->thread.mutex);
        text += written;
        size -= written;
        words->writes++;
        pthread_cond_signal(&words->thread.changed);
    }
}

/* Takes all waiting lines; returns their size. */
static size_t take(struct tool_words *words) {
    static const char *const notes[] = {
        "%sredlock: warning: nobody read standard error; lines left out here: %lu\n",
        "%s{\"warning\":\"OUTPUT\",\"message\":\"nobody read standard error; lines left out here: %lu\"}\n"};
    char *taken = words->queue;
    size_t size = words->queue_size;
    words->queue = words->taken;
    words->queue_size = 0;
    words->taken = taken;
    if (words->left_out > 0) {
        size +=
            (size_t)snprintf(taken + size, NOTE_SIZE, notes[words->json], words->marks ? "<4>" : "", words->left_out);
        words->left_out = 0;
    }
    return size;
}

static void *run(void *data) {
    struct tool_words *words = data;
    pthread_mutex_lock(&words->thread.mutex);
    for (;;) {
        size_t size = take(words);
        if (size > 0) {
            write_taken(words, size);
        } else if (words->thread.ending) {
            break;
        } else {
            pthread_cond_wait(&words->thread.changed, &words->thread.mutex);
        }
    }
    tool_thread_is_over(&words->thread);
    return NULL;
}

int tool_words_start(struct tool_words *words, bool json) {
    words->json = json;
    const int error = tool_thread_start(&words->thread, run, words);
    words->threaded = error == 0;
    return error;
}

static void enqueue(struct tool_words *words, const char *line, size_t size, size_t limit) {
    pthread_mutex_lock(&words->thread.mutex);
    if (words->queue_size + size > limit) {
        words->left_out++;
    } else {
        memcpy(words->queue + words->queue_size, line, size);
        words->queue_size += size;
    }
    pthread_cond_signal(&words->thread.changed);
    pthread_mutex_unlock(&words->thread.mutex);
}

static void send_line(struct tool_words *words, const char *line, size_t size, enum tool_words_kind kind) {
    if (words->threaded) {
        enqueue(words, line, size, kind == TOOL_WORDS_LOG ? LOG_SIZE : QUEUE_SIZE);
        return;
    }
    for (size_t at = 0; at < size;) {
        at += write_line(line + at, size - at);
    }
}

void tool_words_send(struct tool_words *words, enum tool_words_kind kind) {
    (void)fflush(words->line_file); /* keep() does not fail */
    char *line = words->line + MARK_SIZE;
    char *const end = line + words->line_size;
    if (words->line_size == QUEUE_SIZE - 1) {
        end[-1] = '\n';
    }
    /* A mark takes the place of what stood before its line, which is sent already. */
    for (char *next; words->marks && line < end; line = next) {
        char *const newline = memchr(line, '\n', (size_t)(end - line));
        next = newline == NULL ? end : newline + 1;
        memcpy(line - MARK_SIZE, (const char[MARK_SIZE]){'<', (char)('0' + words->level), '>'}, MARK_SIZE);
        send_line(words, line - MARK_SIZE, (size_t)(next - line) + MARK_SIZE, kind);
    }
    if (line < end) {
        send_line(words, line, words->line_size, kind);
    }
    words->line_size = 0;
    words->level = TOOL_WORDS_ERROR;
}

void tool_words_end(struct tool_words *words) {
    if (words == NULL || (words->threaded && !tool_thread_end(&words->thread, GIVE_UP_AFTER_S, &words->writes))) {
        return; /* the thread still uses the words */
    }
    (void)fclose(words->line_file);
    free(words);
}
