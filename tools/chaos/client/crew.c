/* The conductor's own processes: clients and the auditor. */
#include "client/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "values/clock.h"

/*
 * In the child: dies with the conductor, takes signals as a program of its own, and keeps nothing
 * open that is the conductor's (a socket that is open here, too, does not tell its other end that
 * the conductor is gone). False if the conductor is dead already.
 */
static bool become_child(pid_t parent, const char *name) {
    sigset_t mask = chaos_stop_signal();
    prctl(PR_SET_NAME, name);
    signal(SIGINT, SIG_IGN); /* the terminal's Ctrl-C is the conductor's business */
    /* and so is what else is sent to its whole group, by timeout(1) for one */
    (void)setpgid(0, 0);
    closefrom(STDERR_FILENO + 1);
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && sigprocmask(SIG_SETMASK, &mask, NULL) == 0;
}

/* SIGTERM waits until the child has a way to take it: who is asked to end right after its start
 * must not die of it. */
static pid_t fork_child(const char *name) {
    sigset_t term = chaos_stop_signal(), before;
    fflush(NULL);
    if (sigprocmask(SIG_BLOCK, &term, &before) != 0) {
        return -1;
    }
    pid_t parent = getpid(), pid = fork();
    if (pid == 0 && !become_child(parent, name)) {
        _exit(70);
    }
    if (pid != 0) {
        int error = errno;
        sigprocmask(SIG_SETMASK, &before, NULL);
        errno = error;
    }
    return pid;
}

static _Noreturn void leave(int status) {
    fflush(NULL);
    _exit(status);
}

static void log_spawn(struct chaos_crew *crew, int64_t at_us, size_t client) {
    const struct chaos_setup *setup = &crew->client[client].setup;
    struct chaos_setup all = chaos_setup_default(crew->auditor_options.node_count);
    json_int_t pid = (json_int_t)crew->clients[client].pid;
    if (setup->nodes == 0 || (setup->nodes == all.nodes && setup->quorum == all.quorum)) {
        chaos_log_event(crew->log, at_us, "spawn", "s:i,s:I", "client", (int)client + 1, "pid", pid);
    } else {
        chaos_log_event(crew->log, at_us, "spawn", "s:i,s:I,s:o,s:I", "client", (int)client + 1, "pid", pid, "nodes",
                        chaos_log_numbers(setup->nodes), "quorum", (json_int_t)setup->quorum);
    }
}

bool chaos_crew_spawn(struct chaos_crew *crew, size_t client) {
    struct chaos_member *member = &crew->clients[client];
    if (member->pid != 0) {
        return true;
    }
    int64_t now_us = tool_now_us();
    uint64_t number = ++crew->spawned;
    pid_t pid = fork_child("chaos-client");
    if (pid == 0) {
        struct chaos_client_options options = crew->client[client];
        options.seed = options.seed * 1000003 + number;
        options.late = member->again;
        leave(chaos_client_run(&options));
    }
    if (pid < 0) {
        return false;
    }
    *member = (struct chaos_member){.pid = pid};
    log_spawn(crew, now_us, client);
    return true;
}

bool chaos_crew_configure(struct chaos_crew *crew, size_t client, const struct chaos_setup *setup) {
    struct chaos_member *member = &crew->clients[client];
    crew->client[client].setup = *setup;
    crew->client[client].node_count = chaos_count_bits(setup->nodes);
    member->leaving = member->pid != 0;
    return member->pid == 0 || kill(member->pid, SIGTERM) == 0;
}

bool chaos_crew_spawn_auditor(struct chaos_crew *crew) {
    pid_t pid = fork_child("chaos-auditor");
    if (pid == 0) {
        leave(chaos_auditor_run(&crew->auditor_options));
    }
    crew->auditor = pid > 0 ? pid : crew->auditor;
    return pid > 0;
}

bool chaos_crew_signal(struct chaos_crew *crew, size_t client, int signal) {
    struct chaos_member *member = &crew->clients[client];
    if (member->pid == 0) {
        return signal == SIGCONT; /* it was killed while it was paused: nothing is left to resume */
    }
    member->expected |= signal == SIGKILL;
    return kill(member->pid, signal) == 0;
}

bool chaos_crew_ended(struct chaos_crew *crew, pid_t pid, int status) {
    if (pid == crew->auditor) {
        crew->auditor = 0;
        return true;
    }
    for (size_t c = 0; c < crew->client_count; c++) {
        struct chaos_member *member = &crew->clients[c];
        if (member->pid != pid) {
            continue;
        }
        bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        bool expected = member->expected || ((crew->ending || member->leaving) && clean);
        crew->crashes += !expected;
        chaos_log_event(crew->log, tool_now_us(), "exit", "s:i,s:I,s:i,s:i,s:b", "client", (int)c + 1, "pid",
                        (json_int_t)pid, "status", WIFEXITED(status) ? WEXITSTATUS(status) : -1, "signal",
                        WIFSIGNALED(status) ? WTERMSIG(status) : 0, "expected", (int)expected);
        *member = (struct chaos_member){.again = true};
        return true;
    }
    return false;
}

size_t chaos_crew_running(const struct chaos_crew *crew) {
    size_t running = 0;
    for (size_t c = 0; c < crew->client_count; c++) {
        running += crew->clients[c].pid != 0;
    }
    return running;
}
