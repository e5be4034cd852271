/* The list of nodes in a file: one URI a line. */
#include "nodes_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "operands.h"
#include "report.h"
#include "usage.h"

/* 31 of the longest URIs fit. */
#define SIZE_MAX_KIB 256

static int read_all(const struct tool_options *options, int fd, char *text, size_t room, size_t *size) {
    const char *path = options->nodes_file;
    *size = 0;
    for (;;) {
        const ssize_t got = read(fd, text + *size, room - *size);
        if (got < 0 && errno != EINTR) {
            return tool_usage(options, "cannot read the nodes from %s: %s", path, strerror(errno));
        }
        if (got == 0) {
            return 0;
        }
        *size += got > 0 ? (size_t)got : 0;
        if (*size == room) {
            return tool_usage(options, "%s is longer than %d KiB: it must be a list of nodes, one URI a line", path,
                              SIZE_MAX_KIB);
        }
    }
}

/* Who has the file open may be a pipe, too: that has no mode that matters. */
static int check_mode(const struct tool_options *options, int fd, bool *readable) {
    struct stat stat;
    if (fstat(fd, &stat) != 0) {
        return tool_usage(options, "cannot read the nodes from %s: %s", options->nodes_file, strerror(errno));
    }
    if (S_ISDIR(stat.st_mode)) {
        return tool_usage(options, "cannot read the nodes from %s: it is a folder", options->nodes_file);
    }
    if (S_ISREG(stat.st_mode) && (stat.st_mode & S_IWOTH) != 0) {
        return tool_usage(options, "anybody may write %s, and so name other nodes: remove that permission (chmod o-w)",
                          options->nodes_file);
    }
    *readable = S_ISREG(stat.st_mode) && (stat.st_mode & S_IROTH) != 0;
    return 0;
}

static int take_lines(struct tool_options *options, char *text, size_t size, bool *secret) {
    unsigned line = 0;
    char *rest = text;
    if (strlen(text) != size) {
        return tool_usage(options, "%s is no text: it has a zero byte", options->nodes_file);
    }
    while (rest != NULL) {
        char *uri = tool_operands_trim(strsep(&rest, "\n"));
        char label[512];
        line++;
        if (*uri == '\0' || *uri == '#') {
            continue;
        }
        snprintf(label, sizeof label, "line %u of %.400s", line, options->nodes_file);
        if (strchr(uri, ',') != NULL) {
            return tool_usage(options, "%s has a ',' inside: write one node a line (in a password it is %%2C)", label);
        }
        const int status = tool_operands_check_node(options, uri, label);
        if (status != 0) {
            return status;
        }
        *secret = *secret || strchr(uri, '@') != NULL;
        options->node_lines[options->node_count] = line;
        options->nodes[options->node_count++] = uri;
    }
    return options->node_count > 0 ? 0
                                   : tool_usage(options, "%s has no nodes: write one URI a line", options->nodes_file);
}

static int read_from(struct tool_options *options, int fd) {
    const size_t room = (size_t)SIZE_MAX_KIB * 1024;
    bool readable = false;
    bool secret = false;
    size_t size = 0;
    int status = check_mode(options, fd, &readable);
    if (status != 0) {
        return status;
    }
    options->node_copy = calloc(1, room + 1);
    if (options->node_copy == NULL) {
        tool_report_say(options, "out of memory");
        return TOOL_EXIT_SYSTEM;
    }
    status = read_all(options, fd, options->node_copy, room, &size);
    if (status == 0) {
        status = take_lines(options, options->node_copy, size, &secret);
    }
    if (status == 0 && readable && secret) {
        tool_report_warn(options, "NODES_FILE",
                         "every user of this machine may read %s, and it has passwords: chmod o-r",
                         options->nodes_file);
    }
    return status;
}

int tool_nodes_file_read(struct tool_options *options) {
    const int fd = open(options->nodes_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return tool_usage(options, "cannot read the nodes from %s: %s", options->nodes_file, strerror(errno));
    }
    const int status = read_from(options, fd);
    close(fd);
    return status;
}
