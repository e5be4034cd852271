/* One schedule three times: without protection, with fencing tokens, with guards as well; and what
 * that shows. */
#include <stdio.h>
#include <string.h>

#include "checks/comparison.h"
#include "conductor/place.h"
#include "conductor/run.h"

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
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, chaos_sides[side].name);
    own.output = path;
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
        status = chaos_judge(place.directory, options->slack_ms, true);
    }
    chaos_place_clear(&place);
    return status;
}
