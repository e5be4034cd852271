/* A daemon whose threads work under locks. SIGTERM ends their waits, and what they do in hand is
 * done first; SIGHUP reads the password again:
 *
 *     threads /etc/redlock/password locker 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379
 *
 * cc threads.c $(pkg-config --cflags --libs redlock) -pthread -o threads */
#define _POSIX_C_SOURCE 200809L /* sigwait(), nanosleep() */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <redlock/blocking.h>

#define THREADS  4
#define STEP_MS  20
#define ACCEPT_S 5 /* how long nodes may take to accept a password */

struct daemon {
    redlock_client *client;
    redlock_cancel *stop;
    const char *password_file, *user;
};

static void sleep_ms(long ms) {
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static int work(redlock_lease *lease, void *data) {
    (void)data;
    for (int step = 0; step < 3; step++) {
        if (redlock_lease_validity_ms(lease) == 0) {
            return 1; /* lost: somebody else may work already */
        }
        sleep_ms(STEP_MS);
    }
    printf("did %s\n", redlock_lease_resource(lease));
    return 0;
}

static void *work_again_and_again(void *data) {
    const struct daemon *daemon = data;
    redlock_client_acquire_options options;
    redlock_client_acquire_options_default(&options);
    options.lock.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.lock.cancel = daemon->stop;
    int code = REDLOCK_OK;
    while (code != REDLOCK_ERR_CANCELLED) {
        redlock_result *result = NULL;
        /* The lease is renewed while the work runs. */
        code = redlock_client_with(daemon->client, "job", &options, work, NULL, NULL, &result);
        if (code != REDLOCK_OK && code != REDLOCK_ERR_CANCELLED) {
            char message[2048] = "out of memory";
            (void)redlock_result_message(result, message, sizeof message);
            fprintf(stderr, "%s\n", message);
            sleep_ms(1000);
        }
        redlock_result_free(result);
    }
    return NULL;
}

/* How many nodes use the password that was given last. Prints why the others do not, if asked. */
static size_t count_accepted(redlock_client *client, int print) {
    size_t accepted = 0;
    for (size_t i = 0; i < redlock_client_node_count(client); i++) {
        redlock_node_info info = {.size = sizeof info};
        if (redlock_client_node(client, i, &info) != REDLOCK_OK) {
            continue;
        }
        if (info.state == REDLOCK_NODE_READY && !info.credentials_pending) {
            accepted++;
        } else if (print) {
            fprintf(stderr, "%s: %s\n", info.name, info.error[0] != '\0' ? info.error : info.credentials_error);
        }
        redlock_node_info_free(&info);
    }
    return accepted;
}

static int read_password(const struct daemon *daemon) {
    char password[512] = "", why[256];
    FILE *file = fopen(daemon->password_file, "r");
    const int got = file != NULL && fgets(password, sizeof password, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    password[strcspn(password, "\n")] = '\0';
    if (!got || password[0] == '\0') {
        fprintf(stderr, "%s: %s\n", daemon->password_file, file == NULL ? strerror(errno) : "no password in it");
        return 0;
    }
    const int code = redlock_client_set_credentials(daemon->client, REDLOCK_ALL_NODES, daemon->user, password);
    memset(password, 0, sizeof password);
    if (code != REDLOCK_OK) {
        (void)redlock_client_invalid(daemon->client, why, sizeof why);
        fprintf(stderr, "the password: %s: %s\n", redlock_strerror(code), why);
        return 0;
    }
    const size_t count = redlock_client_node_count(daemon->client);
    for (int tries = 0; count_accepted(daemon->client, 0) < count && tries < ACCEPT_S * 100; tries++) {
        sleep_ms(10);
    }
    const size_t accepted = count_accepted(daemon->client, 1);
    printf("%zu of %zu nodes have accepted the password\n", accepted, count);
    return accepted >= redlock_client_quorum(daemon->client);
}

static int run(struct daemon *daemon, const sigset_t *signals) {
    pthread_t threads[THREADS];
    size_t started = 0;
    int number = SIGHUP;
    int usable = read_password(daemon);
    while (usable && started < THREADS && pthread_create(&threads[started], NULL, work_again_and_again, daemon) == 0) {
        started++;
    }
    while (started == THREADS && number == SIGHUP && sigwait(signals, &number) == 0) {
        if (number == SIGHUP) {
            (void)read_password(daemon); /* if the nodes refuse it, the old one stays in use */
        }
    }
    redlock_cancel_set(daemon->stop);
    for (size_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("stopped\n");
    return started < THREADS;
}

int main(int argc, char **argv) {
    struct daemon daemon = {.client = NULL};
    redlock_manager_options options;
    sigset_t signals;
    char error[256];
    if (argc < 4) {
        fprintf(stderr, "usage: threads PASSWORD_FILE USER NODE…\n");
        return 64;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* in all threads; run() waits for them */
    redlock_manager_options_default(&options);
    options.nodes = (const char *const *)(argv + 3);
    options.node_count = (size_t)argc - 3;
    daemon.password_file = argv[1];
    daemon.user = argv[2];
    if (redlock_client_open(&options, &daemon.client, error, sizeof error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    int status = 1;
    if (redlock_cancel_new(daemon.client, &daemon.stop) == REDLOCK_OK) {
        status = run(&daemon, &signals);
    }
    redlock_client_close(daemon.client);
    redlock_cancel_free(daemon.stop);
    return status;
}
