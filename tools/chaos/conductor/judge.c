/* Judges a run's history: the verdict in words, the page, the exit status. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "checks/check.h"
#include "conductor/run.h"
#include "report/report.h"

int chaos_complain(const char *what, const char *path, const char *why) {
    fprintf(stderr, "redlock-chaos: cannot %s %s: %s\n", what, path, why);
    return CHAOS_EXIT_BROKEN;
}

/* Opens the history. NULL: said why. A pipe is refused: we would wait for its writer. */
static FILE *open_history(const char *directory, const char *path) {
    char conductor[4200];
    struct stat status;
    FILE *in = NULL;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        (void)chaos_complain("read", path, "it is no file");
    } else if ((in = fopen(path, "re")) == NULL) {
        int why = errno;
        snprintf(conductor, sizeof conductor, "%s/conductor.jsonl", directory);
        (void)chaos_complain("read", path,
                             why == ENOENT && stat(conductor, &status) == 0
                                 ? "the run in this directory goes on, or it was broken off: it has no history"
                             : why == ENOENT || why == ENOTDIR
                                 ? "the directory of a run has this file; no run was there"
                                 : strerror(why));
    }
    return in;
}

int chaos_write_page(const char *directory, bool (*write)(FILE *page, const void *what), const void *what) {
    char path[4096];
    snprintf(path, sizeof path, "%s/report.html", directory);
    FILE *page = fopen(path, "we");
    if (page == NULL) {
        return chaos_complain("write", path, strerror(errno));
    }
    bool worked = write(page, what);
    int why = errno;
    if (fclose(page) != 0 || !worked) {
        return chaos_complain("write", path, strerror(worked ? errno : why));
    }
    printf("The page is %s\n", path);
    return CHAOS_EXIT_CLEAN;
}

struct judged {
    const struct chaos_history *history;
    const struct chaos_verdict *verdict;
};

static bool write_run(FILE *page, const void *what) {
    const struct judged *judged = what;
    return chaos_report_write(page, judged->history, judged->verdict,
                              chaos_experiment_find(judged->history->experiment));
}

static int judge(const char *directory, const struct chaos_history *history, int64_t slack_ms, bool with_page) {
    struct chaos_verdict verdict;
    int status = CHAOS_EXIT_CLEAN;
    char line[256];
    chaos_check(history, slack_ms * 1000, &verdict);
    chaos_verdict_say(stdout, history, &verdict);
    if (with_page) {
        status = chaos_write_page(directory, write_run, &(struct judged){history, &verdict});
    }
    puts(chaos_verdict_line(&verdict, line, sizeof line));
    if (status == CHAOS_EXIT_CLEAN && verdict.violation_count > 0) {
        status = CHAOS_EXIT_VIOLATION;
    }
    chaos_verdict_clear(&verdict);
    return status;
}

bool chaos_load(const char *directory, struct chaos_history *history) {
    char path[4096], error[700];
    snprintf(path, sizeof path, "%s/history.jsonl", directory);
    FILE *in = open_history(directory, path);
    bool worked = in != NULL && chaos_history_read(in, path, history, error, sizeof error);
    if (in != NULL && !worked) {
        fprintf(stderr, "redlock-chaos: %s\n", error);
    }
    if (in != NULL) {
        fclose(in);
    }
    return worked;
}

int chaos_judge(const char *directory, int64_t slack_ms, bool with_page) {
    struct chaos_history history = {0};
    int status = CHAOS_EXIT_BROKEN;
    if (chaos_load(directory, &history)) {
        status = judge(directory, &history, slack_ms, with_page);
    }
    chaos_history_clear(&history);
    return status;
}
