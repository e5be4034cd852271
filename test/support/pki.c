/* Runs pki.sh, and knows where its files are. */
#include "pki.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define FILES_MAX 64
#define PATH_SIZE 96

static char folder[48];
static char paths[FILES_MAX][PATH_SIZE];
static size_t path_count;

bool pki_is_possible(void) {
    return system("command -v openssl >/dev/null 2>&1") == 0;
}

static void make(void) {
    char made[sizeof folder] = "/tmp/redlock-pki-XXXXXX";
    int status;
    if (!mkdtemp(made)) {
        support_fatal("mkdtemp: %s", strerror(errno));
    }
    support_remove_tree_at_death(made);
    pid_t pid = fork();
    if (pid == 0) {
        execl(PKI_SCRIPT, PKI_SCRIPT, made, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        support_fatal("%s %s failed", PKI_SCRIPT, made);
    }
    strcpy(folder, made);
}

const char *pki_own_file(const char *name) {
    char path[PATH_SIZE];
    if (!folder[0]) {
        make();
    }
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        support_fatal("too long a name: %s", name);
    }
    for (size_t i = 0; i < path_count; i++) {
        if (strcmp(paths[i], path) == 0) {
            return paths[i];
        }
    }
    if (path_count == FILES_MAX) {
        support_fatal("a test wants more than %d files of the PKI", FILES_MAX);
    }
    return strcpy(paths[path_count++], path);
}

const char *pki_file(const char *name) {
    const char *path = pki_own_file(name);
    if (access(path, R_OK) != 0) {
        support_fatal("pki.sh makes no %s", name);
    }
    return path;
}

void pki_copy(const char *name, const char *path) {
    char temporary[PATH_SIZE + 8];
    char *text = support_read_file(pki_file(name));
    if (!text) {
        support_fatal("cannot read %s", name);
    }
    snprintf(temporary, sizeof temporary, "%s.new", path);
    support_write_file(temporary, text);
    free(text);
    if (rename(temporary, path) != 0) {
        support_fatal("cannot rename %s: %s", temporary, strerror(errno));
    }
}
