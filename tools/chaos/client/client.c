/* A client process: acquires, increments a shared counter or reads it, releases, over and over, and
 * writes down all that it does. */
#include "client/client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <redlock/blocking.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/client_journal.h"
#include "faults/lists.h"
#include "values/clock.h"
#include "values/values.h"

static_assert((int)CHAOS_RESTART_GUARD_OFF == (int)REDLOCK_RESTART_GUARD_OFF &&
                  (int)CHAOS_RESTART_GUARD_OBSERVED == (int)REDLOCK_RESTART_GUARD_OBSERVED &&
                  (int)CHAOS_RESTART_GUARD_STRICT == (int)REDLOCK_RESTART_GUARD_STRICT,
              "the same guards under other names");

enum { LONG_HOLD = 10, AFTER_FAILURE_US = 5000, TALLY_US = 1000000 };

struct client {
    const struct chaos_client_options *options;
    redlock_client *library;
    struct chaos_journal journal;
    int counters;
    uint64_t random;
    redlock_statistics told; /* in the last tally */
    int64_t told_us;
};

static _Noreturn void break_off(const struct client *client, const char *what, const char *why) {
    chaos_break_off(TOOL_TEXT(32, "client %zu", client->options->client + 1), what, why);
}

/* Set once SIGTERM has come. It is blocked but for waits and acquires: the handler runs there
 * alone, and never when the library's client is closed. */
static redlock_cancel *stop;

static void stop_asked(int number) {
    (void)number;
    redlock_cancel_set(stop);
}

/* Sleeps so long, or until SIGTERM comes; true if it has. */
static bool wait_us(int64_t time_us) {
    struct timespec time = {time_us / 1000000, time_us % 1000000 * 1000};
    sigset_t none;
    sigemptyset(&none);
    if (!redlock_cancel_is_set(stop)) {
        (void)ppoll(NULL, 0, &time, &none);
    }
    return redlock_cancel_is_set(stop);
}

/* All choices of one turn, made at its begin by random numbers alone: a seed repeats them, and what
 * the nodes do changes none of them. */
struct choice {
    size_t resource;
    bool auto_extend;
    int64_t before_us; /* held before the counter is read */
    int64_t work_us;   /* and between its read and its write */
    int64_t think_us;
};

/*
 * The library rounds the validity down to ms, and time passes between our look at the clock and its
 * own, so what one look says differs from the next by a little. Only a renewal moves it by as much
 * as the first of these. When the end of the claim is as near as the second (less than 1 ms, so
 * that one more claim is enough), what little more the library says is claimed as well: nothing is
 * done beyond a claim.
 */
enum { RENEWED_US = 20000, NEAR_END_US = 500, LOOK_US = 5000 };

struct hold {
    struct client *client;
    const redlock_lease *lease;
    const struct chaos_held *held;
    struct chaos_resource resource;
    int64_t until_us; /* claimed last; 0: nothing yet */
};

enum look { LOOK_LOST, LOOK_CLAIMED, LOOK_VALID };

/* Our clock is read first: now + validity is never later than the deadline that the library
 * keeps. */
static enum look look(struct hold *hold) {
    int64_t now_us = tool_now_us();
    int64_t validity_ms = redlock_lease_validity_ms(hold->lease);
    int64_t until_us = now_us + validity_ms * 1000;
    if (validity_ms == 0) {
        return LOOK_LOST;
    }
    bool renewed = until_us - hold->until_us >= RENEWED_US;
    bool near_end = until_us > hold->until_us && hold->until_us - now_us < NEAR_END_US;
    if (!renewed && !near_end) {
        return LOOK_VALID;
    }
    chaos_journal_claim(&hold->client->journal, now_us, hold->held, until_us);
    hold->until_us = until_us;
    return LOOK_CLAIMED;
}

/* False if the lease is lost meanwhile. */
static bool stay(struct hold *hold, int64_t hold_us) {
    int64_t end_us = tool_now_us() + hold_us;
    bool stopped = false;
    while (look(hold) != LOOK_LOST) {
        int64_t left_us = end_us - tool_now_us();
        if (left_us <= 0 || stopped) {
            return true;
        }
        stopped = wait_us(left_us < LOOK_US ? left_us : LOOK_US);
    }
    return false;
}

enum outcome { OUTCOME_DONE, OUTCOME_LOST, OUTCOME_REFUSED };

/* Whether the access was granted; writes a refusal down. `read`: see chaos_journal_refused(). */
static bool is_granted(const struct hold *hold, enum chaos_access access, int64_t read,
                       const struct chaos_receipt *receipt) {
    if (access == CHAOS_ACCESS_BROKEN) {
        break_off(hold->client, hold->client->options->counters_path, strerror(errno));
    }
    if (access == CHAOS_ACCESS_REFUSED) {
        chaos_journal_refused(&hold->client->journal, hold->held, read, receipt);
    }
    return access == CHAOS_ACCESS_GRANTED;
}

/*
 * Work ends before the lease does, as it should in any program: a write begins only if there is
 * more time left than a busy machine takes for it. The share is above the margin of `redlock run`:
 * 40 clients have two processors.
 */
static bool has_time(const struct hold *hold) {
    return hold->until_us - tool_now_us() > hold->client->options->settings->ttl_ms * 1000 / 5;
}

/* Until it may write. False if the lease is lost meanwhile. */
static bool await_time(struct hold *hold) {
    for (enum look seen; (seen = look(hold)) != LOOK_LOST;) {
        if (seen == LOOK_CLAIMED) {
            continue; /* what that costs must not lie between the look that counts and the write */
        }
        if (has_time(hold)) {
            return true;
        }
        (void)wait_us(LOOK_US); /* for a renewal */
    }
    return false;
}

static enum outcome increment(struct hold *hold, int64_t work_us) {
    int64_t read = 0;
    struct chaos_receipt receipt;
    enum chaos_access access = chaos_resource_read(&hold->resource, &read, &receipt);
    if (!is_granted(hold, access, -1, &receipt)) {
        return OUTCOME_REFUSED;
    }
    chaos_journal_intent(&hold->client->journal, hold->held, read, &receipt);
    if (!stay(hold, work_us) || !await_time(hold)) {
        return OUTCOME_LOST;
    }
    access = chaos_resource_write(&hold->resource, read + 1, &receipt);
    int64_t now_us = tool_now_us();
    if (!is_granted(hold, access, read, &receipt)) {
        return OUTCOME_REFUSED;
    }
    chaos_journal_done(&hold->client->journal, now_us, hold->held, read, hold->until_us, &receipt);
    return OUTCOME_DONE;
}

/* The time is taken after the access: what was read by then is what it was while the lease was
 * valid, or the time says that it need not be. */
static enum outcome read_once(struct hold *hold) {
    int64_t read = 0;
    struct chaos_receipt receipt;
    enum chaos_access access = chaos_resource_read(&hold->resource, &read, &receipt);
    int64_t now_us = tool_now_us();
    if (!is_granted(hold, access, -1, &receipt)) {
        return OUTCOME_REFUSED;
    }
    chaos_journal_read(&hold->client->journal, now_us, hold->held, read, hold->until_us, &receipt);
    return OUTCOME_DONE;
}

/* Reads the counter at the begin and at the end: nobody may write in between. */
static enum outcome read_twice(struct hold *hold, int64_t hold_us) {
    enum outcome came = stay(hold, 0) ? read_once(hold) : OUTCOME_LOST;
    if (came != OUTCOME_DONE) {
        return came;
    }
    return stay(hold, hold_us) ? read_once(hold) : OUTCOME_LOST;
}

/* Claims, holds, increments the counter or reads it, and ends the claims, before the lease's handle
 * ends. */
static void keep(struct client *client, const redlock_lease *lease, const struct chaos_held *held,
                 const struct choice *choice) {
    struct hold hold = {.client = client,
                        .lease = lease,
                        .held = held,
                        .resource = {.fd = client->counters,
                                     .index = held->resource,
                                     .fencing = client->options->settings->protection.fencing,
                                     .fence = held->fence,
                                     .shared = held->shared}};
    enum outcome came = held->shared                     ? read_twice(&hold, choice->before_us + choice->work_us)
                        : stay(&hold, choice->before_us) ? increment(&hold, choice->work_us)
                                                         : OUTCOME_LOST;
    /* Without a claim there is nothing to end: its validity was over when it was first looked
     * at. */
    if (hold.until_us != 0) {
        chaos_journal_end(&client->journal, held, came == OUTCOME_LOST ? "lost" : "release");
    }
}

/* From 0 to max. */
static int64_t random_up_to(struct client *client, int64_t max) {
    return (int64_t)(tool_random(&client->random) % ((uint64_t)max + 1));
}

static struct choice choose(struct client *client) {
    const struct chaos_settings *settings = client->options->settings;
    struct choice choice;
    choice.resource = (size_t)random_up_to(client, (int64_t)client->options->resource_count - 1);
    bool is_long = random_up_to(client, 9) == 0;
    bool coin = random_up_to(client, 1) == 0;
    choice.auto_extend = is_long || coin;
    int64_t hold_us = random_up_to(client, settings->hold_ms * 1000) * (is_long ? LONG_HOLD : 1);
    /* Half of them work on what they have read, the others read when their work is done. */
    bool reads_first = random_up_to(client, 1) == 0;
    choice.before_us = reads_first ? 0 : hold_us;
    choice.work_us = hold_us - choice.before_us;
    choice.think_us = random_up_to(client, settings->think_ms * 1000);
    return choice;
}

/*
 * By when an acquire ends, whatever the nodes do. With a time to wait, the library's own clock cuts
 * the attempt that is under way when that is over; without one, the one attempt ends when each node
 * has answered or its timeout has passed (R5, R7), where a node that is still being connected to
 * counts from the request on, too. So the longer of the two is the bound; both together are what is
 * promised.
 */
static int64_t acquire_within_ms(const struct chaos_settings *settings) {
    return settings->wait_ms + settings->node_timeout_ms;
}

/*
 * A release asks each node once, by EVALSHA, and once more, by source, where that is answered by
 * NOSCRIPT (R11), each within the node timeout. A node that cannot be asked now is not waited for:
 * the library owes it the release (R8, R15).
 */
static int64_t release_within_ms(const struct chaos_settings *settings) {
    return 2 * settings->node_timeout_ms;
}

static bool may_end_acquire(int code) {
    return code == REDLOCK_OK || code == REDLOCK_ERR_CONTENDED || code == REDLOCK_ERR_NO_QUORUM ||
           code == REDLOCK_ERR_TOO_SLOW || (code == REDLOCK_ERR_CANCELLED && redlock_cancel_is_set(stop));
}

static bool may_end_release(int code) {
    return code == REDLOCK_OK || code == REDLOCK_ERR_LOST || code == REDLOCK_ERR_NO_QUORUM;
}

static _Noreturn void impossible(const struct client *client, const char *what, int code,
                                 const redlock_result *result) {
    char message[2048];
    size_t size = redlock_result_message(result, message, sizeof message);
    break_off(client, TOOL_TEXT(64, "%s ended with %s", what, redlock_error_name(code)),
              size > 0 ? message : redlock_strerror(code));
}

static void set_options(const struct client *client, const struct choice *choice,
                        redlock_client_acquire_options *options) {
    const struct chaos_settings *settings = client->options->settings;
    redlock_client_acquire_options_default(options);
    options->lock.mode = chaos_settings_reads(settings, client->options->client) ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE;
    options->lock.cancel = stop;
    options->lock.ttl_ms = settings->ttl_ms;
    options->lock.wait_timeout_ms = settings->wait_ms;
    options->lock.auto_extend = choice->auto_extend;
    options->lock.fencing = settings->protection.fencing;
    options->lock.heal = !settings->protection.no_heal;
    options->lock.lock_delay_ms = settings->protection.lock_delay_ms;
    options->lock.order = settings->polls ? REDLOCK_ORDER_NONE : REDLOCK_ORDER_FAIR;
}

enum { TICKET_DIGITS = 16, WAITER_DIGITS = 48 };

static void keep_token(struct chaos_held *held, const char *token) {
    char ticket[TICKET_DIGITS + 1] = "0";
    size_t length = strlen(token), digits = length - held->shared; /* it ends with an s */
    if (digits == WAITER_DIGITS) {
        memcpy(ticket, token, TICKET_DIGITS);
    }
    held->ticket = (int64_t)strtoll(ticket, NULL, 16);
    snprintf(held->token, sizeof held->token, "%s", chaos_token_end(token, length));
}

/* NULL where the lease was not taken. */
static redlock_lease *acquire(struct client *client, const struct choice *choice, struct chaos_held *held) {
    redlock_client_acquire_options options;
    redlock_result *result = NULL;
    redlock_lease *lease = NULL;
    const sigset_t term = chaos_stop_signal();
    set_options(client, choice, &options);
    *held = (struct chaos_held){.resource = choice->resource, .shared = options.lock.mode == REDLOCK_SHARED};
    chaos_journal_invoke(&client->journal, CHAOS_ACQUIRE, held, acquire_within_ms(client->options->settings));
    pthread_sigmask(SIG_UNBLOCK, &term, NULL);
    int code = redlock_client_acquire(client->library, client->options->resources[choice->resource], &options, &lease,
                                      &result);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    if (code == REDLOCK_OK) {
        keep_token(held, redlock_lease_token(lease));
        held->fence = (int64_t)redlock_lease_fence(lease);
    }
    chaos_journal_complete(&client->journal, code, held, result);
    if (!may_end_acquire(code)) {
        impossible(client, "an acquire", code, result);
    }
    redlock_result_free(result);
    return lease;
}

static void release(struct client *client, redlock_lease *lease, const struct chaos_held *held) {
    redlock_result *result = NULL;
    chaos_journal_invoke(&client->journal, CHAOS_RELEASE, held, release_within_ms(client->options->settings));
    int code = redlock_client_release(client->library, lease, &result);
    chaos_journal_complete(&client->journal, code, held, result);
    if (!may_end_release(code)) {
        impossible(client, "a release", code, result);
    }
    redlock_result_free(result);
}

/* Acquire, increment or read, release. */
static void take_turn(struct client *client, const struct choice *choice) {
    struct chaos_held held;
    redlock_lease *lease = acquire(client, choice, &held);
    if (lease == NULL) {
        (void)wait_us(AFTER_FAILURE_US);
        return;
    }
    keep(client, lease, &held, choice);
    release(client, lease, &held);
}

/* In protected runs, what the library has counted: after an event of a guard, once a second, and at
 * the end. */
static void tally(struct client *client, bool last) {
    const struct chaos_protection *protection = &client->options->settings->protection;
    redlock_statistics now = {.size = sizeof now};
    if ((!protection->fencing && !chaos_has_guard(protection)) ||
        redlock_client_statistics(client->library, &now) != REDLOCK_OK) {
        return;
    }
    int64_t now_us = tool_now_us();
    bool is_new = now.quarantines != client->told.quarantines || now.clock_jumps != client->told.clock_jumps;
    if (is_new || last || now_us - client->told_us >= TALLY_US) {
        client->told = now;
        client->told_us = now_us;
        chaos_journal_tally(&client->journal, &now);
    }
}

static void work(struct client *client) {
    for (bool stopped = wait_us(0); !stopped;) {
        struct choice choice = choose(client);
        take_turn(client, &choice);
        tally(client, false);
        stopped = wait_us(choice.think_us);
    }
    tally(client, true);
    (void)redlock_client_close(client->library);
    redlock_cancel_free(stop);
}

static void open_library(struct client *client) {
    redlock_manager_options options;
    redlock_tls_options tls;
    char error[256];
    redlock_manager_options_default(&options);
    redlock_tls_options_default(&tls);
    options.nodes = client->options->nodes;
    options.node_count = client->options->node_count;
    options.quorum = client->options->setup.quorum;
    options.node_timeout_ms = client->options->settings->node_timeout_ms;
    options.client_name = TOOL_TEXT(32, "chaos-client-%zu", client->options->client + 1);
    tls.ca_file = client->options->ca_file;
    options.tls = tls.ca_file != NULL ? &tls : NULL;
    const struct chaos_protection *protection = &client->options->settings->protection;
    options.restart_guard = (redlock_restart_guard)protection->restart_guard;
    options.clock_guard = protection->clock_guard;
    options.first_boot = protection->first_boot && !client->options->late;
    options.ttl_max_ms = protection->ttl_max_ms;
    if (redlock_client_open(&options, &client->library, error, sizeof error) != REDLOCK_OK) {
        break_off(client, "cannot open the library's client", error);
    }
    if (redlock_cancel_new(client->library, &stop) != REDLOCK_OK || signal(SIGTERM, stop_asked) == SIG_ERR) {
        break_off(client, "cannot take SIGTERM", strerror(errno));
    }
}

int chaos_client_run(const struct chaos_client_options *options) {
    struct client client = {.options = options,
                            .journal = {.client = (int)options->client + 1,
                                        .nodes = options->setup.nodes != 0 ? options->setup.nodes
                                                                           : (uint32_t)chaos_all(options->node_count),
                                        .op = (int64_t)getpid() * 1000000},
                            .random = options->seed};
    const sigset_t term = chaos_stop_signal();
    if (sigprocmask(SIG_BLOCK, &term, NULL) != 0) {
        break_off(&client, "cannot block SIGTERM", strerror(errno));
    }
    if (!chaos_log_open(&client.journal.log, options->log_path)) {
        break_off(&client, options->log_path, strerror(errno));
    }
    client.counters = open(options->counters_path, O_RDWR | O_CLOEXEC);
    if (client.counters < 0) {
        break_off(&client, options->counters_path, strerror(errno));
    }
    open_library(&client);
    work(&client);
    close(client.counters);
    chaos_log_close(&client.journal.log);
    return 0;
}
