/* Lost packets: iptables drops what a container sends and receives, in the container's own network
 * namespace. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backend_compose.h"

/* The image need not have iptables: it is ours, run in the container's network alone. The rules end
 * with that network, when the container does. */

/* What a node has to do with itself, such as its health check, still passes. */
static const char *const rules[][3] = {{"INPUT", "-i", "lo"}, {"OUTPUT", "-o", "lo"}};

enum { RULES = sizeof rules / sizeof rules[0] };

static bool is_in_container(int proc, const char *id) {
    char text[4096];
    int fd = openat(proc, "cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[length < 0 ? 0 : length] = '\0';
    return strstr(text, id) != NULL;
}

/*
 * The container's network namespace; -1 with a sentence. Where the daemon is elsewhere, its pids
 * are not ours: one may be that of a process that has nothing to do with it. So the process must be
 * in the container's control group, and its network must not be our own; and all is asked of one
 * directory in /proc, which is that process or none.
 */
static int open_network(const struct chaos_container *container, size_t node, struct chaos_error *error) {
    char path[64];
    struct stat own, its;
    snprintf(path, sizeof path, "/proc/%d", container->pid);
    int proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), network = -1;
    if (proc < 0 || !is_in_container(proc, container->id)) {
        chaos_fail(error,
                   "node %zu: its process is not to be found here (pid %d of container %.12s): packets can be dropped "
                   "only where the Docker daemon runs on this machine, and not in a virtual one",
                   node + 1, container->pid, container->id);
    } else if ((network = openat(proc, "ns/net", O_RDONLY | O_CLOEXEC)) < 0) {
        chaos_fail(error, "node %zu: cannot open %s/ns/net: %s%s", node + 1, path, strerror(errno),
                   errno == EACCES || errno == EPERM ? "; only root can drop packets" : "");
    } else if (stat("/proc/self/ns/net", &own) != 0 || fstat(network, &its) != 0 ||
               (own.st_dev == its.st_dev && own.st_ino == its.st_ino)) {
        chaos_fail(error, "node %zu: its container has no network of its own, so nothing is dropped there", node + 1);
        close(network);
        network = -1;
    }
    if (proc >= 0) {
        close(proc);
    }
    return network;
}

/* `iptables` with these words and a rule's, or its chain's alone, in there. */
static void iptables(int network, const char *verb, const char *const *rule, bool whole, struct chaos_said *said) {
    char net[64];
    snprintf(net, sizeof net, "--net=/proc/%d/fd/%d", (int)getpid(), network);
    chaos_program_run((const char *const[]){"nsenter", net, "iptables", "-w", "5", verb, rule[0], whole ? "!" : NULL,
                                            rule[1], rule[2], "-j", "DROP", NULL},
                      NULL, -1, CHAOS_DOCKER_MS, said);
}

/* Adds or removes the rule. It looks first, so that each rule is there at most once. */
static bool set_rule(int network, const char *const *rule, bool there, struct chaos_said *said) {
    char line[64];
    snprintf(line, sizeof line, "-A %s ! %s %s -j DROP", rule[0], rule[1], rule[2]);
    iptables(network, "-S", rule, false, said);
    if (said->status != 0 || (strstr(said->text, line) != NULL) == there) {
        return said->status == 0;
    }
    iptables(network, there ? "-I" : "-D", rule, true, said);
    return said->status == 0;
}

static bool set_rules(int network, size_t node, bool there, struct chaos_error *error) {
    bool worked = true;
    for (size_t r = 0; r < RULES && (worked || !there); r++) {
        struct chaos_said said;
        if (set_rule(network, rules[r], there, &said)) {
            continue;
        }
        const char *help = said.status == CHAOS_CANNOT_RUN
                               ? "; install it (Debian: apt-get install iptables util-linux)"
                           : geteuid() != 0 ? "; only root can drop packets"
                                            : "";
        chaos_fail(error, "node %zu: iptables in its network: %.300s%s", node + 1, chaos_said_why(&said), help);
        worked = false;
    }
    return worked;
}

/* Whether the node's rules are there, or not, from now on. Those of a dead node ended with it. */
bool chaos_compose_lose(struct chaos_backend *backend, size_t node, bool drop, struct chaos_error *error) {
    struct chaos_container container;
    enum chaos_compose_state state = chaos_compose_look(backend, node, &container, error);
    if (state == CHAOS_CONTAINER_DEAD && drop) {
        chaos_fail(error, "node %zu is dead: there are no packets to be dropped", node + 1);
    }
    if (state == CHAOS_CONTAINER_UNKNOWN || state == CHAOS_CONTAINER_DEAD) {
        return state == CHAOS_CONTAINER_DEAD && !drop;
    }
    int network = open_network(&container, node, error);
    if (network < 0) {
        return false;
    }
    bool worked = set_rules(network, node, drop, error);
    if (drop && !worked) {
        (void)set_rules(network, node, false, NULL);
    }
    close(network);
    return worked;
}
