/* A daemon that works only while it leads. Start it on several machines:
 *
 *     leader scheduler 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379
 *
 * SIGTERM ends it: it resigns first. SIGHUP lets another one lead.
 *
 * cc leader.c $(pkg-config --cflags --libs redlock) -o leader */
#define _POSIX_C_SOURCE 200809L /* gethostname() */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <redlock/blocking.h>

#define STEP_MS   200 /* the time between two steps */
#define MARGIN_MS 500 /* a step may take that long */

static volatile sig_atomic_t stopped, stands_back;

static void signalled(int number) {
    if (number == SIGHUP) {
        stands_back = 1;
    } else {
        stopped = 1;
    }
}

/* One step of the work. Its store refuses a fencing token below the highest that it has seen. */
static void step(uint64_t fence) {
    printf("step with fence %" PRIu64 "\n", fence);
    fflush(stdout);
}

/* Prints the event. Returns the term in which we lead after it; 0 if we do not lead. */
static uint64_t take(const redlock_election_event *event, uint64_t term) {
    switch (event->kind) {
    case REDLOCK_ELECTION_LEADING:
        printf("leading, term %" PRIu64 "\n", event->term);
        return event->term;
    case REDLOCK_ELECTION_EXPIRING: /* with the option expiring_ms */
        printf("ends in %ld ms unless a renewal succeeds\n", (long)event->remaining_ms);
        return term;
    case REDLOCK_ELECTION_LOST:
        printf("lost: %s\n", event->reason);
        return 0;
    case REDLOCK_ELECTION_LEADER:
        if (event->leader->token[0] == '\0') {
            printf("nobody leads\n");
        } else {
            printf("the leader is %s\n", event->leader->is_self ? "this program" : event->leader->holder);
        }
        return term;
    case REDLOCK_ELECTION_TROUBLE: {
        char message[1024] = ""; /* what each node said */
        (void)redlock_result_message(event->result, message, sizeof message);
        printf("trouble: %s\n", message[0] != '\0' ? message : redlock_strerror(event->code));
        return term;
    }
    case REDLOCK_ELECTION_RESIGNED:
        printf("resigned: %s\n", redlock_strerror(event->code));
        return 0;
    case REDLOCK_ELECTION_ENDED:
        return 0;
    case REDLOCK_ELECTION_NOTHING:
        return term;
    }
    return term;
}

/* Between two steps, so nobody works any more when the next one begins to lead. */
static int stand_back(redlock_client_election *election) {
    stands_back = 0;
    (void)redlock_client_election_resign(election, NULL); /* RESIGNED tells what came of it */
    return redlock_client_election_campaign(election);    /* at the end of the queue */
}

/* Works while it leads, until a signal or an error. */
static int work(redlock_client_election *election) {
    uint64_t term = 0, fence = 0;
    while (!stopped) {
        redlock_election_event event = {.size = sizeof event};
        int code = redlock_client_election_next(election, STEP_MS, &event);
        if (code != REDLOCK_OK) {
            return code;
        }
        term = take(&event, term);
        fence = event.kind == REDLOCK_ELECTION_LEADING ? event.fence : fence;
        fflush(stdout);
        /* Before each step, not only after each event: the lease may end while we work. */
        if (term != 0 && redlock_client_election_validity_ms(election, term) > MARGIN_MS) {
            step(fence);
        }
        if (stands_back && (code = stand_back(election)) != REDLOCK_OK) {
            return code;
        }
    }
    return REDLOCK_OK;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: leader NAME NODE…\n");
        return 64;
    }
    signal(SIGINT, signalled);
    signal(SIGTERM, signalled);
    signal(SIGHUP, signalled);
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    char host[41] = "", holder[REDLOCK_HOLDER_SIZE_MAX + 1];
    (void)gethostname(host, sizeof host - 1); /* a longer name is cut */
    snprintf(holder, sizeof holder, "%s:%ld", host, (long)getpid());
    options.holder = holder; /* what the others print while we lead */
    redlock_client *client;
    char error[256] = "";
    int code = redlock_client_open(&options, &client, error, sizeof error);
    if (code != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    redlock_election_options how;
    redlock_election_options_default(&how);
    how.ttl_ms = 3000; /* so long nobody leads after a crash of the leader */
    how.fencing = true;
    redlock_client_election *election;
    code = redlock_client_elect(client, argv[1], &how, &election);
    if (code == REDLOCK_OK) {
        code = work(election);
        (void)redlock_client_election_end(election, NULL); /* resigns: the next one leads at once */
    } else {
        (void)redlock_client_invalid(client, error, sizeof error); /* which argument is wrong */
    }
    redlock_client_close(client);
    if (code != REDLOCK_OK) {
        fprintf(stderr, "%s%s%s\n", redlock_strerror(code), error[0] != '\0' ? ": " : "", error);
    }
    return code != REDLOCK_OK;
}
