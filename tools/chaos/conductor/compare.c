/* One schedule three times: without protection, with fencing tokens, with guards as well; and what
 * that shows. */
#include "conductor/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conductor/place.h"
#include "conductor/run.h"
#include "report/report.h"

enum { PATH_SIZE = 4096 };

static void side_path(char path[PATH_SIZE], const char *directory, enum chaos_side side, const char *file) {
    snprintf(path, PATH_SIZE, "%s/%s%s%s", directory, chaos_side_name(side), file[0] == '\0' ? "" : "/", file);
}

/* The command that runs a side alone. */
static void say_command(const struct chaos_options *options, enum chaos_side side, char *line, size_t size) {
    static const char *const words[CHAOS_SIDES] = {
        [CHAOS_SIDE_FENCING] = " --fencing", [CHAOS_SIDE_GUARDS] = " --protect"};
    static const char compare[] = " --compare";
    const char *rest = strstr(options->command_line, compare);
    size_t before = rest == NULL ? strlen(options->command_line) : (size_t)(rest - options->command_line);
    snprintf(line, size, "%.*s%s%s", (int)before, options->command_line, words[side] == NULL ? "" : words[side],
             rest == NULL ? "" : rest + sizeof compare - 1);
}

static int run_side(const struct chaos_options *options, const char *directory, enum chaos_side side,
                    bool *interrupted) {
    struct chaos_options own = *options;
    struct chaos_protection *protection = &own.settings.protection;
    const struct chaos_protection told = options->settings.protection;
    char path[PATH_SIZE];
    side_path(path, directory, side, "");
    own.output = path;
    own.compare = false;
    *protection = chaos_side_protection(side);
    protection->lock_delay_ms = told.lock_delay_ms;
    protection->no_heal = told.no_heal;
    if (chaos_has_guard(protection)) {
        protection->ttl_max_ms = told.ttl_max_ms != 0 ? told.ttl_max_ms : options->settings.ttl_ms + told.lock_delay_ms;
    }
    say_command(options, side, own.command_line, sizeof own.command_line);
    printf("%s== %s\n", side == CHAOS_SIDE_NONE ? "" : "\n", chaos_side_title(side));
    fflush(stdout);
    return chaos_run(&own, interrupted);
}

int chaos_compare(const struct chaos_options *options) {
    struct chaos_place place = {0};
    char error[1024];
    bool interrupted = false;
    int status = CHAOS_EXIT_CLEAN;
    if (!chaos_place_make_directory(&place, options, error, sizeof error)) {
        fprintf(stderr, "redlock-chaos: the experiment could not run: %s\n", error);
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
        status = chaos_judge_comparison(place.directory, options->slack_ms, true);
    }
    chaos_place_clear(&place);
    return status;
}

bool chaos_is_comparison(const char *directory) {
    char path[PATH_SIZE];
    for (int side = 0; side < CHAOS_SIDES; side++) {
        side_path(path, directory, (enum chaos_side)side, "history.jsonl");
        if (access(path, F_OK) != 0) {
            return false;
        }
    }
    return true;
}

static bool write_comparison(FILE *page, const void *what) {
    const struct chaos_comparison *comparison = what;
    return chaos_report_compare(page, comparison,
                                chaos_experiment_find(comparison->histories[CHAOS_SIDE_NONE].experiment));
}

static bool judge_side(const char *directory, enum chaos_side side, int64_t slack_ms,
                       struct chaos_comparison *comparison) {
    char path[PATH_SIZE];
    side_path(path, directory, side, "");
    if (!chaos_load(path, &comparison->histories[side])) {
        return false;
    }
    const struct chaos_protection told = comparison->histories[side].protection, own = chaos_side_protection(side);
    if (told.fencing != own.fencing || chaos_has_guard(&told) != chaos_has_guard(&own)) {
        (void)chaos_complain("compare", path, "it was run with another protection");
        return false;
    }
    chaos_check(&comparison->histories[side], slack_ms * 1000, &comparison->verdicts[side]);
    return true;
}

int chaos_judge_comparison(const char *directory, int64_t slack_ms, bool with_page) {
    struct chaos_comparison *comparison = calloc(1, sizeof *comparison);
    int status = CHAOS_EXIT_CLEAN;
    if (comparison == NULL) {
        return chaos_complain("judge", directory, "out of memory");
    }
    for (int side = 0; side < CHAOS_SIDES && status == CHAOS_EXIT_CLEAN; side++) {
        status =
            judge_side(directory, (enum chaos_side)side, slack_ms, comparison) ? CHAOS_EXIT_CLEAN : CHAOS_EXIT_BROKEN;
    }
    if (status == CHAOS_EXIT_CLEAN && with_page) {
        status = chaos_write_page(directory, write_comparison, comparison);
    }
    if (status == CHAOS_EXIT_CLEAN) {
        chaos_comparison_say(stdout, comparison);
        status = chaos_comparison_holds(comparison) ? CHAOS_EXIT_CLEAN : CHAOS_EXIT_VIOLATION;
    }
    chaos_comparison_clear(comparison);
    free(comparison);
    return status;
}
