/* The auditor process: asks every node, past the proxy, who has which key. */
#include "client/auditor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "client/auditor_probe.h"
#include "history/log.h"

enum { EXIT_BROKEN = 70 };

struct auditor {
    const struct chaos_auditor_options *options;
    struct chaos_log log;
    struct chaos_probe probes[CHAOS_NODES_MAX];
    char *questions; /* of one sweep, to any node */
    size_t questions_size;
    int signals; /* readable once SIGTERM has come */
    bool stopped;
};

static int broken(const char *what) {
    fprintf(stderr, "redlock-chaos: auditor: %s: %s\n", what, strerror(errno));
    return EXIT_BROKEN;
}

static bool write_questions(struct auditor *auditor) {
    FILE *out = open_memstream(&auditor->questions, &auditor->questions_size);
    if (out == NULL) {
        return false;
    }
    for (size_t i = 0; i < auditor->options->resource_count; i++) {
        const char *key = auditor->options->resources[i];
        static const char *const commands[CHAOS_PROBE_QUESTIONS] = {"GET", "PTTL", "GET"};
        for (size_t q = 0; q < CHAOS_PROBE_QUESTIONS; q++) {
            fprintf(out, "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(commands[q]), commands[q], strlen(key), key);
        }
    }
    bool worked = ferror(out) == 0;
    return fclose(out) == 0 && worked;
}

static bool is_anybody_asked(const struct auditor *auditor) {
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        if (auditor->probes[n].state == CHAOS_PROBE_ASKED) {
            return true;
        }
    }
    return false;
}

/* Takes what comes until then: all that comes, or what this sweep waits for. What is there by then
 * is taken, however late we look. */
static void take(struct auditor *auditor, int64_t until_us, bool of_sweep) {
    struct pollfd fds[CHAOS_NODES_MAX + 1];
    size_t count = auditor->options->node_count;
    while (of_sweep ? is_anybody_asked(auditor) : !auditor->stopped) {
        int64_t left_us = until_us - chaos_now_us();
        left_us = left_us > 0 ? left_us : 0;
        for (size_t n = 0; n < count; n++) {
            fds[n] = (struct pollfd){auditor->probes[n].fd, chaos_probe_events(&auditor->probes[n]), 0};
        }
        fds[count] = (struct pollfd){auditor->stopped ? -1 : auditor->signals, POLLIN, 0};
        struct timespec left = {left_us / 1000000, left_us % 1000000 * 1000};
        int ready = ppoll(fds, count + 1, &left, NULL);
        if (ready == 0) {
            return;
        }
        if (ready < 0) {
            continue; /* a signal that is none of ours */
        }
        for (size_t n = 0; n < count; n++) {
            if (fds[n].revents != 0) {
                chaos_probe_io(&auditor->probes[n]);
            }
        }
        auditor->stopped |= fds[count].revents != 0;
    }
}

static json_t *sight_of(const struct chaos_sight *sight) {
    return sight->answered ? json_pack("[s,I]", sight->token, (json_int_t)sight->pttl_ms) : json_null();
}

static void write_down(struct auditor *auditor, int64_t from_us, int64_t to_us, size_t resource) {
    json_t *nodes = json_array();
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        if (json_array_append_new(nodes, sight_of(&auditor->probes[n].sights[resource])) != 0) {
            fputs("redlock-chaos: auditor: out of memory\n", stderr);
            _exit(EXIT_BROKEN); /* as chaos_log_event() does */
        }
    }
    chaos_log_event(&auditor->log, from_us, "keys", "s:I,s:i,s:o", "to", (json_int_t)to_us, "resource",
                    (int)resource + 1, "nodes", nodes);
}

static void sweep(struct auditor *auditor) {
    int64_t from_us = chaos_now_us(), to_us = from_us;
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        chaos_probe_begin(&auditor->probes[n], auditor->questions, auditor->questions_size);
    }
    take(auditor, from_us + auditor->options->timeout_ms * 1000, true);
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        chaos_probe_end(&auditor->probes[n]);
        to_us = auditor->probes[n].last_us > to_us ? auditor->probes[n].last_us : to_us;
    }
    for (size_t i = 0; i < auditor->options->resource_count; i++) {
        write_down(auditor, from_us, to_us, i);
    }
}

static void work(struct auditor *auditor) {
    const struct chaos_auditor_options *options = auditor->options;
    int64_t next_us = chaos_now_us();
    for (size_t n = 0; n < options->node_count; n++) {
        chaos_probe_init(&auditor->probes[n], options->ports[n], options->resource_count);
    }
    while (!auditor->stopped) {
        sweep(auditor);
        /* Sweeps that were missed, for this process stood still, are not made up for. */
        int64_t now_us = chaos_now_us();
        next_us += options->interval_ms * 1000;
        next_us = next_us < now_us ? now_us : next_us;
        take(auditor, next_us, false);
    }
    for (size_t n = 0; n < options->node_count; n++) {
        chaos_probe_clear(&auditor->probes[n]);
    }
}

static int take_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    return sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
}

int chaos_auditor_run(const struct chaos_auditor_options *options) {
    struct auditor auditor = {.options = options};
    int status = 0;
    auditor.signals = take_signal();
    if (auditor.signals < 0) {
        return broken("cannot take SIGTERM");
    }
    if (!chaos_log_open(&auditor.log, options->log_path)) {
        status = broken(options->log_path);
    } else if (!write_questions(&auditor)) {
        status = broken("the commands");
    } else {
        work(&auditor);
    }
    free(auditor.questions);
    chaos_log_close(&auditor.log);
    close(auditor.signals);
    return status;
}
