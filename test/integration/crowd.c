/* The test's side of a crowd: starts, signals and watches its processes. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd_member.h"

struct crowd *crowd;
struct servers crowd_servers;

int crowd_five(UNUSED void **state) {
    crowd = mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crowd == MAP_FAILED) {
        return -1;
    }
    servers_start(&crowd_servers, 5, NULL);
    return 0;
}

int crowd_end(UNUSED void **state) {
    servers_stop(&crowd_servers);
    return munmap(crowd, sizeof *crowd);
}

int crowd_setup(UNUSED void **state) {
    memset(crowd, 0, sizeof *crowd);
    servers_reset(&crowd_servers);
    return 0;
}

int crowd_teardown(UNUSED void **state) {
    for (size_t i = 0; i < crowd->count; i++) {
        if (crowd->member[i].pid > 0) {
            crowd_kill(&crowd->member[i]);
        }
        if (atomic_load(&crowd->member[i].child) > 0) {
            (void)kill(atomic_load(&crowd->member[i].child), SIGKILL);
        }
    }
    for (size_t i = 0; i < crowd_servers.count; i++) {
        if (crowd_servers.at[i].paused) {
            server_resume(&crowd_servers.at[i]);
        }
    }
    return 0;
}

struct member *crowd_start(struct servers *servers, const struct crowd_options *options) {
    if (crowd->count == CROWD_MAX) {
        support_fatal("more than %d processes in a crowd", CROWD_MAX);
    }
    struct member *member = &crowd->member[crowd->count];
    const pid_t parent = getpid();
    member->options = *options;
    const pid_t child = fork();
    if (child < 0) {
        support_fatal("fork failed");
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        member_run(member, servers);
    }
    member->pid = child;
    crowd->count++;
    crowd_until(atomic_load(&member->ready));
    return member;
}

void crowd_kill(struct member *member) {
    if (kill(member->pid, SIGKILL) != 0 || waitpid(member->pid, NULL, 0) != member->pid) {
        support_fatal("cannot kill a process of the crowd");
    }
    member->pid = 0;
}

void crowd_stop(struct member *member) {
    int status;
    if (kill(member->pid, SIGSTOP) != 0 || waitpid(member->pid, &status, WUNTRACED) != member->pid ||
        !WIFSTOPPED(status)) {
        support_fatal("cannot stop a process of the crowd");
    }
}

void crowd_continue(struct member *member) {
    if (kill(member->pid, SIGCONT) != 0) {
        support_fatal("cannot continue a process of the crowd");
    }
}

bool crowd_holds(const struct member *member) {
    return atomic_load(&member->valid_until_ns) > support_now_ns();
}

int crowd_served(void) {
    int served = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        served += atomic_load(&crowd->member[i].served);
    }
    return served;
}

static void describe(void) {
    for (size_t i = 0; i < crowd->count; i++) {
        const struct member *member = &crowd->member[i];
        print_error("process %zu: asked %d times, served %d, lost %d%s%s\n", i, atomic_load(&member->asked),
                    atomic_load(&member->served), atomic_load(&member->lost),
                    crowd_holds(member) ? ", holds the lock" : "", member->pid ? "" : ", has ended");
    }
}

static void reap(struct member *member) {
    int status;
    if (waitpid(member->pid, &status, WNOHANG) != member->pid) {
        return;
    }
    member->pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        describe();
        fail_msg("process %zu ended with status %d: %s", (size_t)(member - crowd->member), status, member->failure);
    }
}

void crowd_look(const char *condition, int64_t deadline_ms) {
    support_pause_ms(2);
    for (size_t i = 0; i < crowd->count; i++) {
        if (crowd->member[i].pid > 0) {
            reap(&crowd->member[i]);
        }
    }
    if (support_now_ms() > deadline_ms) {
        describe();
        fail_msg("not in time: %s", condition);
    }
}

void crowd_leave(void) {
    for (size_t i = 0; i < crowd->count; i++) {
        atomic_store(&crowd->member[i].leaves, true);
    }
    for (size_t i = 0; i < crowd->count; i++) {
        crowd_until(crowd->member[i].pid == 0);
    }
}

void crowd_finish(void) {
    crowd_leave();
    if (atomic_load(&crowd->overlaps) > 0) {
        describe();
    }
    assert_int_equal(atomic_load(&crowd->overlaps), 0);
}

bool crowd_is_long(struct servers *servers, const char *key, long long waiters, size_t nodes) {
    size_t like = 0;
    for (size_t i = 0; i < servers->count; i++) {
        struct server *server = &servers->at[i];
        like += server->pid != 0 && !server->paused && atoll(server_ask(server, "ZCARD", key)) == waiters;
    }
    return like >= nodes;
}

bool crowd_is_subscribed(struct servers *servers, long long channels, size_t nodes) {
    static const char name[] = "pubsub_channels:";
    size_t like = 0;
    for (size_t i = 0; i < servers->count; i++) {
        struct server *server = &servers->at[i];
        if (server->pid != 0 && !server->paused) {
            const char *found = strstr(server_ask(server, "INFO", "stats"), name);
            like += found && atoll(found + strlen(name)) == channels;
        }
    }
    return like >= nodes;
}

bool crowd_has_no_key(struct servers *servers) {
    return servers_key_count(servers) == 0;
}
