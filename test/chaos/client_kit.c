/* The common kit for tests of redlock-chaos' own processes: nodes, a directory, child processes,
 * events. */
#include "client_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_MAX = 32, PATHS_MAX = 64 };

struct servers kit_servers;
const char *const kit_resources[KIT_RESOURCES] = {"r1", "r2", "r3"};
char kit_counters_path[96];
struct rusage kit_usage;

static char directory[64];
static char paths[PATHS_MAX][96];
static size_t path_count;
static pid_t children[CHILDREN_MAX];

int kit_start(UNUSED void **state) {
    static const struct server_options options = {.config = "user chaos on >chaos ~* &* +@all\n"};
    servers_start(&kit_servers, KIT_NODES, &options);
    return 0;
}

int kit_stop(UNUSED void **state) {
    servers_stop(&kit_servers);
    return 0;
}

int kit_setup(UNUSED void **state) {
    servers_reset(&kit_servers);
    snprintf(directory, sizeof directory, "/tmp/chaos-client-XXXXXX");
    if (mkdtemp(directory) == NULL) {
        support_fatal("mkdtemp: %s", strerror(errno));
    }
    support_remove_tree_at_death(directory);
    path_count = 0;
    snprintf(kit_counters_path, sizeof kit_counters_path, "%s/counters", directory);
    int fd = open(kit_counters_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, CHAOS_RESOURCE_FILE_SIZE) != 0) {
        support_fatal("%s: %s", kit_counters_path, strerror(errno));
    }
    close(fd);
    return 0;
}

int kit_teardown(UNUSED void **state) {
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        if (children[i] != 0) {
            kill(children[i], SIGKILL);
            (void)kit_wait(children[i]);
        }
    }
    support_remove_tree(directory);
    return 0;
}

const char *kit_path(const char *name) {
    char *path = paths[path_count++ % PATHS_MAX];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

struct chaos_settings kit_settings(void) {
    return (struct chaos_settings){.nodes = KIT_NODES,
                                   .clients = 2,
                                   .resources = KIT_RESOURCES,
                                   .ttl_ms = 20000,
                                   .node_timeout_ms = 5000,
                                   .wait_ms = 20000,
                                   .hold_ms = 10,
                                   .think_ms = 2};
}

struct chaos_client_options kit_client(size_t client, const struct chaos_settings *settings, const char *log_path) {
    return (struct chaos_client_options){.client = client,
                                         .seed = 7 + client,
                                         .nodes = kit_servers.uris,
                                         .node_count = KIT_NODES,
                                         .resources = kit_resources,
                                         .resource_count = KIT_RESOURCES,
                                         .log_path = log_path,
                                         .counters_path = kit_counters_path,
                                         .settings = settings};
}

pid_t kit_run(int (*run)(const void *options), const void *options) {
    pid_t parent = getpid();
    size_t free_place = 0;
    while (free_place < CHILDREN_MAX && children[free_place] != 0) {
        free_place++;
    }
    assert_true(free_place < CHILDREN_MAX);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int status = getppid() == parent ? run(options) : 127;
        exit(status); /* sanitizers look for leaks at exit; the servers stay */
    }
    children[free_place] = pid;
    return pid;
}

static int run_client(const void *options) {
    return chaos_client_run(options);
}

pid_t kit_run_client(const struct chaos_client_options *options) {
    return kit_run(run_client, options);
}

int kit_wait(pid_t pid) {
    int status = 0;
    pid_t ended = 0;
    kit_until((ended = wait4(pid, &status, WNOHANG, &kit_usage)) != 0);
    assert_int_equal(ended, pid);
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        children[i] = children[i] == pid ? 0 : children[i];
    }
    return status;
}

int kit_end(pid_t pid) {
    assert_int_equal(kill(pid, SIGTERM), 0);
    return kit_wait(pid);
}

/* Reads the events. In a live file the last line may be incomplete. */
static json_t *read_events(const char *path, bool live) {
    char *text = support_read_file(path);
    json_t *events = json_array();
    if (text == NULL) {
        return events;
    }
    /* Not strchr(): a sanitizer's version scans the whole rest each time, and so would never catch
     * up with the writer. */
    const char *text_end = text + strlen(text);
    for (char *line = text, *end; *line != '\0'; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text_end - line));
        if (end == NULL && live) {
            break;
        }
        assert_non_null(end);
        json_error_t error;
        json_t *event = json_loadb(line, (size_t)(end - line), 0, &error);
        if (event == NULL) {
            fail_msg("%s: %.*s", error.text, (int)(end - line), line);
        }
        assert_true(json_is_integer(json_object_get(event, "t")));
        assert_true(json_is_string(json_object_get(event, "event")));
        json_array_append_new(events, event);
    }
    free(text);
    return events;
}

json_t *kit_events(const char *path) {
    return read_events(path, false);
}

size_t kit_count(const char *path, const char *event, const char *member, const char *value) {
    json_t *events = read_events(path, true), *one;
    size_t index, count = 0;
    json_array_foreach(events, index, one) {
        count += kit_is(one, event) && (member == NULL || strcmp(kit_string(one, member), value) == 0);
    }
    json_decref(events);
    return count;
}

void kit_await(const char *path, const char *event, const char *member, const char *value, size_t count) {
    kit_until(kit_count(path, event, member, value) >= count);
}

int64_t kit_number(const json_t *event, const char *member) {
    const json_t *number = json_object_get(event, member);
    if (!json_is_integer(number)) {
        fail_msg("no number \"%s\" in %s", member, kit_string(event, "event"));
    }
    return json_integer_value(number);
}

const char *kit_string(const json_t *event, const char *member) {
    const char *string = json_string_value(json_object_get(event, member));
    if (string == NULL) {
        fail_msg("no string \"%s\"", member);
    }
    return string;
}

bool kit_is(const json_t *event, const char *name) {
    return strcmp(kit_string(event, "event"), name) == 0;
}

int64_t kit_counter(size_t resource) {
    unsigned char bytes[8];
    int fd = open(kit_counters_path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, bytes, sizeof bytes, (off_t)resource * 8), sizeof bytes);
    close(fd);
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        number |= (uint64_t)bytes[i] << (8 * i);
    }
    return (int64_t)number;
}
