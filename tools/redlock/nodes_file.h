/* The list of nodes in a file: one URI a line. */
#ifndef TOOL_NODES_FILE_H
#define TOOL_NODES_FILE_H

#include "options.h"

struct tool_nodes_file {
    char *text; /* the URIs are in it */
    size_t size;
    const char *uris[REDLOCK_NODES_MAX];
    unsigned lines[REDLOCK_NODES_MAX]; /* where each of them stands */
    size_t count;
    bool has_secrets;
    struct tool_stamp stamp;
    /* Sentences that never show what a line holds; "": none. */
    char why[1024];    /* why it cannot be used */
    char warning[512]; /* what to mend in a file that can be used */
};

/*
 * Reads it. Empty lines, and lines that begin with '#', mean nothing. A file that others may write
 * is refused: they could name other nodes. Returns 0, or an exit status with `why`. Free what is in
 * it in both cases. Any thread.
 */
int tool_nodes_file_read(const char *path, struct tool_nodes_file *file);

/* Overwrites the text, and frees it. */
void tool_nodes_file_clear(struct tool_nodes_file *file);

/* The stamp of the file that the path leads to now. */
struct tool_stamp tool_nodes_file_stamp(const char *path);

bool tool_stamps_are_same(const struct tool_stamp *one, const struct tool_stamp *other);

/* Removes white space at both ends. */
char *tool_nodes_trim(char *text);

/* Checks the next node of a list that has `count`. label says where it stands, separator what
 * stands between two. Returns false after writing what is wrong. Any thread. */
bool tool_nodes_check(size_t count, const char *uri, const char *label, const char *separator, char *why,
                      size_t why_size);

#endif
