/* Judges the history of a run, or the three of a comparison: the verdict in words, the page, the
 * exit status. And runs those three. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/program.h"
#include "checks/comparison.h"
#include "checks/porcupine.h"
#include "conductor/place.h"
#include "conductor/run.h"
#include "report/report.h"
#include "values/values.h"

#define PATH(...) TOOL_TEXT(4200, __VA_ARGS__)

static int complain(const char *what, const char *path, const char *why) {
    fprintf(stderr, "redlock-chaos: cannot %s %s: %s\n", what, path, why);
    return CHAOS_EXIT_BROKEN;
}

/* Opens the history. NULL: said why. A pipe is refused: we would wait for its writer. */
static FILE *open_history(const char *directory, const char *path) {
    struct stat status;
    FILE *in = NULL;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        (void)complain("read", path, "it is no file");
    } else if ((in = fopen(path, "re")) == NULL) {
        int why = errno;
        (void)complain("read", path,
                       why == ENOENT && stat(PATH("%s/conductor.jsonl", directory), &status) == 0
                           ? "the run in this directory goes on, or it was broken off: it has no history"
                       : why == ENOENT || why == ENOTDIR ? "the directory of a run has this file; no run was there"
                                                         : strerror(why));
    }
    return in;
}

static int judge_history(const char *directory, int64_t slack_ms, struct chaos_history *history,
                         struct chaos_verdict *verdict) {
    struct chaos_error error;
    const char *path = PATH("%s/history.jsonl", directory);
    FILE *in = open_history(directory, path);
    if (in == NULL) {
        return CHAOS_EXIT_BROKEN;
    }
    bool worked = chaos_history_read(in, path, history, &error);
    fclose(in);
    if (!worked) {
        fprintf(stderr, "redlock-chaos: %s\n", error.text);
        return CHAOS_EXIT_BROKEN;
    }
    chaos_check(history, slack_ms * 1000, verdict);
    return CHAOS_EXIT_CLEAN;
}

static int judge_side(const char *directory, enum chaos_side side, int64_t slack_ms,
                      struct chaos_comparison *comparison) {
    const char *path = PATH("%s/%s", directory, chaos_sides[side].name);
    int status = judge_history(path, slack_ms, &comparison->histories[side], &comparison->verdicts[side]);
    const struct chaos_protection *told = &comparison->histories[side].protection, own = chaos_side_protection(side);
    bool same = told->fencing == own.fencing && chaos_has_guard(told) == chaos_has_guard(&own);
    return status != CHAOS_EXIT_CLEAN || same ? status
                                              : complain("compare", path, "it was run with another protection");
}

static bool is_comparison(const char *directory) {
    for (int side = 0; side < CHAOS_SIDES; side++) {
        if (access(PATH("%s/%s/history.jsonl", directory, chaos_sides[side].name), F_OK) != 0) {
            return false;
        }
    }
    return true;
}

static int write_page(const char *directory, const struct chaos_comparison *judged, bool compared) {
    const struct chaos_experiment *experiment = chaos_experiment_find(judged->histories[0].experiment);
    const char *path = PATH("%s/report.html", directory);
    FILE *page = fopen(path, "we");
    if (page == NULL) {
        return complain("write", path, strerror(errno));
    }
    bool worked = compared ? chaos_report_compare(page, judged, experiment)
                           : chaos_report_write(page, &judged->histories[0], &judged->verdicts[0], experiment);
    int why = errno;
    if (fclose(page) != 0 || !worked) {
        return complain("write", path, strerror(worked ? errno : why));
    }
    printf("The page is %s\n", path);
    return CHAOS_EXIT_CLEAN;
}

/* It says in time that it does not know. */
enum { PORCUPINE_MS = 60000, PORCUPINE_LIMIT_MS = 120000 };

static int ask_porcupine(const char *directory, const struct chaos_history *history,
                         const struct chaos_verdict *verdict) {
    static const int statuses[] = {[CHAOS_PORCUPINE_AGREES] = CHAOS_EXIT_CLEAN,
                                   [CHAOS_PORCUPINE_DIFFERS] = CHAOS_EXIT_VIOLATION,
                                   [CHAOS_PORCUPINE_UNKNOWN] = CHAOS_EXIT_BROKEN};
    const char *told = getenv("REDLOCK_PORCUPINE");
    const char *program = told != NULL && told[0] != '\0' ? told : "redlock-porcupine";
    const char *argv[] = {program,   "-timeout", TOOL_TEXT(32, "%dms", PORCUPINE_MS), "-draw",
                          directory, "--",       PATH("%s/history.jsonl", directory), NULL};
    struct chaos_said said;
    chaos_program_run(argv, NULL, -1, PORCUPINE_LIMIT_MS, &said);
    if (said.status != 0) {
        return complain("judge by Porcupine", directory,
                        said.status == CHAOS_CANNOT_RUN
                            ? TOOL_TEXT(512,
                                        "%s cannot be run; test/porcupine/README.md says how it is built, and "
                                        "REDLOCK_PORCUPINE where it is",
                                        program)
                            : chaos_said_why(&said));
    }
    return statuses[chaos_porcupine_compare(said.text, history, verdict, stdout)];
}

/* The worst of the histories. */
static int ask_porcupine_all(const char *directory, const struct chaos_comparison *judged, bool compared) {
    int worst = CHAOS_EXIT_CLEAN;
    for (int side = 0; side < (compared ? CHAOS_SIDES : 1); side++) {
        const char *path = compared ? PATH("%s/%s", directory, chaos_sides[side].name) : directory;
        int status = ask_porcupine(path, &judged->histories[side], &judged->verdicts[side]);
        worst = status > worst ? status : worst;
    }
    return worst;
}

/* The last line is for scripts. */
static int say(const char *directory, const struct chaos_comparison *judged, bool compared, bool with_page,
               bool with_porcupine) {
    const struct chaos_verdict *verdict = &judged->verdicts[0];
    char line[256];
    if (!compared) {
        chaos_verdict_say(stdout, &judged->histories[0], verdict);
    }
    int status = with_porcupine ? ask_porcupine_all(directory, judged, compared) : CHAOS_EXIT_CLEAN;
    if (with_page && write_page(directory, judged, compared) != CHAOS_EXIT_CLEAN) {
        status = CHAOS_EXIT_BROKEN;
    }
    if (compared) {
        chaos_comparison_say(stdout, judged);
    } else {
        puts(chaos_verdict_line(verdict, line, sizeof line));
    }
    bool clean = compared ? chaos_comparison_holds(judged) : verdict->violation_count == 0;
    return status == CHAOS_EXIT_CLEAN && !clean ? CHAOS_EXIT_VIOLATION : status;
}

int chaos_judge(const char *directory, int64_t slack_ms, bool with_page, bool with_porcupine) {
    /* A run alone is the first side. */
    struct chaos_comparison judged = {0};
    bool compared = is_comparison(directory);
    int status =
        compared ? CHAOS_EXIT_CLEAN : judge_history(directory, slack_ms, &judged.histories[0], &judged.verdicts[0]);
    for (int side = 0; compared && side < CHAOS_SIDES && status == CHAOS_EXIT_CLEAN; side++) {
        status = judge_side(directory, (enum chaos_side)side, slack_ms, &judged);
    }
    if (status == CHAOS_EXIT_CLEAN) {
        status = say(directory, &judged, compared, with_page, with_porcupine);
    }
    chaos_comparison_clear(&judged);
    return status;
}

/* The command that runs a side alone. */
static void say_command(const struct chaos_options *options, enum chaos_side side, char *line, size_t size) {
    static const char compare[] = " --compare";
    const char *words = side == CHAOS_SIDE_FENCING ? " --fencing" : side == CHAOS_SIDE_GUARDS ? " --protect" : "";
    const char *rest = strstr(options->command_line, compare);
    size_t before = rest == NULL ? strlen(options->command_line) : (size_t)(rest - options->command_line);
    snprintf(line, size, "%.*s%s%s", (int)before, options->command_line, words,
             rest == NULL ? "" : rest + sizeof compare - 1);
}

static int run_side(const struct chaos_options *options, const char *directory, enum chaos_side side,
                    bool *interrupted) {
    struct chaos_options own = *options;
    struct chaos_protection *protection = &own.settings.protection;
    const struct chaos_protection *told = &options->settings.protection;
    own.output = PATH("%s/%s", directory, chaos_sides[side].name);
    own.compare = false;
    *protection = chaos_side_protection(side);
    protection->lock_delay_ms = told->lock_delay_ms;
    protection->no_heal = told->no_heal;
    if (chaos_has_guard(protection)) {
        protection->ttl_max_ms =
            told->ttl_max_ms != 0 ? told->ttl_max_ms : options->settings.ttl_ms + told->lock_delay_ms;
    }
    say_command(options, side, own.command_line, sizeof own.command_line);
    printf("%s== %s\n", side == CHAOS_SIDE_NONE ? "" : "\n", chaos_sides[side].title);
    fflush(stdout);
    return chaos_run(&own, interrupted);
}

int chaos_compare(const struct chaos_options *options) {
    struct chaos_place place = {0};
    struct chaos_error error;
    bool interrupted = false;
    int status = CHAOS_EXIT_CLEAN;
    if (!chaos_place_make_directory(&place, options, &error)) {
        fprintf(stderr, "redlock-chaos: the experiment could not run: %s\n", error.text);
        return CHAOS_EXIT_BROKEN;
    }
    for (int side = 0; side < CHAOS_SIDES && status != CHAOS_EXIT_BROKEN && !interrupted; side++) {
        status = run_side(options, place.directory, (enum chaos_side)side, &interrupted);
    }
    if (interrupted) {
        fputs("redlock-chaos: interrupted: there is nothing to compare\n", stderr);
        status = CHAOS_EXIT_BROKEN;
    } else if (status == CHAOS_EXIT_BROKEN) {
        chaos_place_discard(&place); /* what has begun is left */
    } else {
        puts("\n== Compared");
        status = chaos_judge(place.directory, options->slack_ms, true, false);
    }
    chaos_place_clear(&place);
    return status;
}
