/* The list of nodes in a file: one URI a line. */
#include "nodes_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "values/values.h"

/* Some editors begin a file with it. */
static const char byte_order_mark[] = "\xef\xbb\xbf";

/* 31 of the longest URIs fit. */
#define SIZE_MAX_KIB 256

static const char white_space[] = " \t\n\v\f\r";

char *tool_nodes_trim(char *text) {
    text += strspn(text, white_space);
    size_t length = strlen(text);
    while (length > 0 && strchr(white_space, text[length - 1]) != NULL) {
        length--;
    }
    text[length] = '\0';
    return text;
}

/* If two clients split the same list differently, both could hold the lock. So text that might be
 * two nodes is an error. The message does not repeat the URI, which may hold a password. */
bool tool_nodes_check(size_t count, const char *uri, const char *label, const char *separator, char *why,
                      size_t why_size) {
    if (strpbrk(uri, white_space) != NULL) {
        (void)snprintf(why, why_size, "%s has white space inside: separate nodes with %s%s", label, separator,
                       strchr(uri, '#') != NULL ? "; a comment needs a line of its own" : "");
    } else if (strchr(uri, ';') != NULL) {
        (void)snprintf(why, why_size, "%s has a ';' inside: separate nodes with %s (in a password it is %%3B)", label,
                       separator);
    } else if (count == REDLOCK_NODES_MAX) {
        (void)snprintf(why, why_size, "the list has more than %d nodes, the maximum", REDLOCK_NODES_MAX);
    } else {
        return true;
    }
    return false;
}

#define refuse(file, ...) (tool_text((file)->why, sizeof(file)->why, __VA_ARGS__), TOOL_EXIT_USAGE)

static int refuse_to_read(struct tool_nodes_file *file, const char *path) {
    return refuse(file, "cannot read the nodes from %.400s: %s", path, strerror(errno));
}

static struct tool_stamp stamp_of(const struct stat *stat) {
    return (struct tool_stamp){.is_regular = S_ISREG(stat->st_mode),
                               .device = stat->st_dev,
                               .inode = stat->st_ino,
                               .size = stat->st_size,
                               .modified = stat->st_mtim,
                               .changed = stat->st_ctim};
}

struct tool_stamp tool_nodes_file_stamp(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 ? stamp_of(&found) : (struct tool_stamp){.error = errno};
}

static bool same_time(const struct timespec *one, const struct timespec *other) {
    return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

bool tool_stamps_are_same(const struct tool_stamp *one, const struct tool_stamp *other) {
    return one->error == other->error && one->device == other->device && one->inode == other->inode &&
           one->size == other->size && same_time(&one->modified, &other->modified) &&
           same_time(&one->changed, &other->changed);
}

static int read_all(struct tool_nodes_file *file, const char *path, int fd, size_t room) {
    for (;;) {
        const ssize_t got = read(fd, file->text + file->size, room - file->size);
        if (got < 0 && errno != EINTR) {
            return refuse_to_read(file, path);
        }
        if (got == 0) {
            return 0;
        }
        file->size += got > 0 ? (size_t)got : 0;
        if (file->size == room) {
            return refuse(file, "%.400s is longer than %d KiB: it must be a list of nodes, one URI a line", path,
                          SIZE_MAX_KIB);
        }
    }
}

/* is_readable: by every user of this machine. A pipe has no mode that matters. */
static int check_mode(struct tool_nodes_file *file, const char *path, int fd, bool *is_readable) {
    struct stat stat;
    if (fstat(fd, &stat) != 0) {
        return refuse_to_read(file, path);
    }
    if (S_ISDIR(stat.st_mode)) {
        return refuse(file, "cannot read the nodes from %.400s: it is a directory", path);
    }
    file->stamp = stamp_of(&stat);
    if (S_ISREG(stat.st_mode) && (stat.st_mode & S_IWOTH) != 0) {
        return refuse(file, "anybody may write %.400s, and so name other nodes: remove that permission (chmod o-w)",
                      path);
    }
    *is_readable = S_ISREG(stat.st_mode) && (stat.st_mode & S_IROTH) != 0;
    return 0;
}

static int take_lines(struct tool_nodes_file *file, const char *path) {
    unsigned line = 0;
    char *rest = file->text + (strncmp(file->text, byte_order_mark, 3) == 0 ? 3 : 0);
    if (strlen(file->text) != file->size) {
        return refuse(file, "%.400s is no text: it has a zero byte", path);
    }
    while (rest != NULL) {
        char *uri = tool_nodes_trim(strsep(&rest, "\n"));
        line++;
        if (*uri == '\0' || *uri == '#') {
            continue;
        }
        const char *label = TOOL_TEXT(512, "line %u of %.400s", line, path);
        if (strchr(uri, ',') != NULL) {
            return refuse(file, "%s has a ',' inside: write one node a line (in a password it is %%2C)", label);
        }
        if (!tool_nodes_check(file->count, uri, label, "new lines", file->why, sizeof file->why)) {
            return TOOL_EXIT_USAGE;
        }
        file->has_secrets = file->has_secrets || strchr(uri, '@') != NULL;
        file->lines[file->count] = line;
        file->uris[file->count++] = uri;
    }
    return file->count > 0 ? 0 : refuse(file, "%.400s has no nodes: write one URI a line", path);
}

static int read_from(struct tool_nodes_file *file, const char *path, int fd) {
    const size_t room = (size_t)SIZE_MAX_KIB * 1024;
    bool is_readable = false;
    int status = check_mode(file, path, fd, &is_readable);
    if (status != 0) {
        return status;
    }
    file->text = calloc(1, room + 1);
    if (file->text == NULL) {
        (void)refuse(file, "out of memory");
        return TOOL_EXIT_SYSTEM;
    }
    status = read_all(file, path, fd, room);
    if (status == 0) {
        status = take_lines(file, path);
    }
    if (is_readable && file->has_secrets) {
        (void)snprintf(file->warning, sizeof file->warning,
                       "every user of this machine may read %.400s, and it has passwords: chmod o-r", path);
    }
    return status;
}

int tool_nodes_file_read(const char *path, struct tool_nodes_file *file) {
    *file = (struct tool_nodes_file){0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return refuse_to_read(file, path);
    }
    const int status = read_from(file, path, fd);
    close(fd);
    return status;
}

void tool_nodes_file_clear(struct tool_nodes_file *file) {
    if (file->text != NULL) {
        explicit_bzero(file->text, file->size);
    }
    free(file->text);
    *file = (struct tool_nodes_file){0};
}
