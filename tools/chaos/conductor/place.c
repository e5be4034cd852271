/* The run's directory, and what is in it. */
#include "conductor/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/resource.h"
#include "faults/lists.h"
#include "history/lines.h"

#ifndef CHAOS_SHIM_INSTALLED
#define CHAOS_SHIM_INSTALLED "libredlock_chaos_clock.so"
#endif

/* A server asks for its directory's name in 1024 bytes, which the names of a node's files are part
 * of. */
enum { DIRECTORY_MAX = 900, TEXT_MAX = 8 << 20 };

/* Without memory the program ends: nothing runs yet. */
__attribute__((format(printf, 1, 2))) static char *format(const char *pattern, ...) {
    char *text;
    va_list arguments;
    va_start(arguments, pattern);
    if (vasprintf(&text, pattern, arguments) < 0) {
        chaos_no_memory(strlen(pattern));
    }
    va_end(arguments);
    return text;
}

/* Beside the program in a build, where it is installed elsewhere; NULL if it is nowhere. Where
 * REDLOCK_CHAOS_SHIM tells, it is that or none. */
static char *find_shim(void) {
    const char *told = getenv("REDLOCK_CHAOS_SHIM");
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    bool is_told = told != NULL && told[0] != '\0';
    char *place = is_told ? format("%s", told) : format("%s/libredlock_chaos_clock.so", program);
    if (!is_told && access(place, R_OK) != 0) {
        free(place);
        place = format("%s/../" CHAOS_SHIM_INSTALLED, program);
    }
    char *found = access(place, R_OK) == 0 ? realpath(place, NULL) : NULL;
    free(place);
    return found;
}

/* Whether it holds nothing; a directory that cannot be read is not empty. */
static bool is_empty(const char *directory) {
    DIR *entries = opendir(directory);
    size_t count = 0;
    while (entries != NULL && readdir(entries) != NULL) {
        count++;
    }
    if (entries != NULL) {
        closedir(entries);
    }
    return count == 2;
}

bool chaos_place_make_directory(struct chaos_place *place, const struct chaos_options *options,
                                struct chaos_error *error) {
    const char *name = options->experiment == NULL ? "run" : options->experiment->name;
    char *wanted = options->output != NULL ? format("%s", options->output)
                                           : format("redlock-chaos-%s-%" PRId64 "%s", name, options->seed,
                                                    options->compare ? "-compared" : "");
    place->made = mkdir(wanted, 0777) == 0;
    if (!place->made && !(errno == EEXIST && is_empty(wanted))) {
        chaos_fail(error, "cannot make the directory %s: %s; name a new or an empty one with --output", wanted,
                   errno == EEXIST ? "it is there, and not empty" : strerror(errno));
        free(wanted);
        return false;
    }
    place->directory = realpath(wanted, NULL);
    if (place->directory == NULL) {
        chaos_fail(error, "cannot find the directory %s: %s", wanted, strerror(errno));
    } else if (strlen(place->directory) > DIRECTORY_MAX) {
        chaos_fail(error,
                   "the directory's whole name has %zu bytes, and a server bears %d: name a shorter one with --output",
                   strlen(place->directory), DIRECTORY_MAX);
        if (place->made) {
            (void)rmdir(place->directory);
        }
        free(place->directory);
        place->directory = NULL;
    }
    free(wanted);
    return place->directory != NULL;
}

/* A client that is killed right after its start has written nothing; its file is there all the
 * same. */
static bool make_files(const struct chaos_place *place, struct chaos_error *error) {
    for (size_t i = CHAOS_FILE_COUNTERS; i < place->path_count; i++) {
        int fd = open(place->paths[i], O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (fd < 0 || (i == CHAOS_FILE_COUNTERS && ftruncate(fd, CHAOS_RESOURCE_FILE_SIZE) != 0)) {
            chaos_fail(error, "cannot make %s: %s", place->paths[i], strerror(errno));
            close(fd);
            return false;
        }
        close(fd);
    }
    return true;
}

bool chaos_place_make(struct chaos_place *place, const struct chaos_options *options, struct chaos_error *error) {
    *place = (struct chaos_place){0};
    if (!chaos_place_make_directory(place, options, error)) {
        return false;
    }
    static const char *const names[CHAOS_FILE_CLIENTS] = {"history.jsonl", "schedule.txt", "counters",
                                                          "conductor.jsonl", "auditor.jsonl"};
    place->path_count = CHAOS_FILE_CLIENTS + (size_t)options->settings.clients;
    for (size_t i = 0; i < place->path_count; i++) {
        place->paths[i] = i < CHAOS_FILE_CLIENTS
                              ? format("%s/%s", place->directory, names[i])
                              : format("%s/client-%zu.jsonl", place->directory, i - CHAOS_FILE_CLIENTS + 1);
    }
    place->resource_count = (size_t)options->settings.resources;
    for (size_t i = 0; i < place->resource_count; i++) {
        snprintf(place->names[i], sizeof place->names[i], "r%zu", i + 1);
        place->resources[i] = place->names[i];
    }
    place->shim = find_shim();
    return make_files(place, error);
}

char *chaos_place_read(const char *path, struct chaos_error *error) {
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *text = in == NULL ? NULL : malloc(TEXT_MAX + 1);
    size_t length = text == NULL ? 0 : fread(text, 1, TEXT_MAX + 1, in);
    const char *why = text == NULL || ferror(in) ? strerror(errno)
                      : length > TEXT_MAX        ? "it has more than 8 MiB"
                                                 : NULL;
    if (why == NULL) {
        text[length] = '\0';
        why = strlen(text) < length ? "it is no text: it holds a zero byte" : NULL;
    }
    if (why != NULL) {
        chaos_fail(error, "cannot read it: %s", why);
        free(text);
        text = NULL;
    }
    if (in != NULL && in != stdin) {
        fclose(in);
    }
    return text;
}

bool chaos_place_counters(const struct chaos_place *place, int64_t *counters, struct chaos_error *error) {
    FILE *in = fopen(place->paths[CHAOS_FILE_COUNTERS], "re");
    size_t got = in == NULL ? 0 : fread(counters, sizeof counters[0], place->resource_count, in);
    if (got != place->resource_count) {
        chaos_fail(error, "cannot read %s: %s", place->paths[CHAOS_FILE_COUNTERS], strerror(errno));
    }
    if (in != NULL) {
        fclose(in);
    }
    return got == place->resource_count;
}

bool chaos_place_merge(struct chaos_place *place, struct chaos_error *error) {
    char **paths = &place->paths[CHAOS_FILE_CONDUCTOR];
    size_t count = place->path_count - CHAOS_FILE_CONDUCTOR;
    bool merged = chaos_merge((const char *const *)paths, count, place->paths[CHAOS_FILE_HISTORY], error);
    for (size_t i = 0; merged && i < count; i++) {
        (void)unlink(paths[i]); /* they are a second copy from here on */
    }
    return merged;
}

void chaos_place_discard(struct chaos_place *place) {
    for (size_t i = CHAOS_FILE_SCHEDULE; i < place->path_count && place->paths[i] != NULL; i++) {
        (void)unlink(place->paths[i]);
    }
    if (place->directory != NULL && place->made && rmdir(place->directory) == 0) {
        free(place->directory);
        place->directory = NULL;
    }
}

void chaos_place_clear(struct chaos_place *place) {
    for (size_t i = 0; i < place->path_count; i++) {
        free(place->paths[i]);
    }
    free(place->directory);
    free(place->shim);
    *place = (struct chaos_place){0};
}
