/* Starts and asks nodes for tests. */
#include "node_kit.h"

#include <dirent.h>
#include <hiredis/hiredis.h>
#include <unistd.h>

#include "test.h"
#undef stop /* a macro of cmocka 2 */

#define AWAIT_MS 20000

bool nodes_create(struct nodes *nodes) {
    if (nodes->directory[0] == '\0') {
        strcpy(nodes->directory, "/tmp/redlock nodes:XXXXXX");
        assert_non_null(mkdtemp(nodes->directory));
    }
    nodes->options.directory = nodes->options.directory != NULL ? nodes->options.directory : nodes->directory;
    nodes->options.nodes = nodes->options.nodes > 0 ? nodes->options.nodes : 1;
    const char *kind = nodes->kind != NULL ? nodes->kind : "process";
    nodes->backend = chaos_backend_create(kind, &nodes->options, &nodes->error);
    return nodes->backend != NULL;
}

void nodes_start(struct nodes *nodes) {
    if (!nodes_create(nodes) || !nodes->backend->ops->start(nodes->backend, &nodes->error)) {
        fail_msg("%s", nodes->error.text);
    }
}

void nodes_stop(struct nodes *nodes) {
    if (nodes->backend != NULL) {
        if (!nodes->backend->ops->stop(nodes->backend, &nodes->error)) {
            fail_msg("left: %s", nodes->error.text);
        }
        chaos_backend_destroy(nodes->backend);
        nodes->backend = NULL;
    }
    assert_int_equal(nodes_children(), 0);
    if (nodes->directory[0] != '\0') {
        support_remove_tree(nodes->directory);
        assert_int_equal(access(nodes->directory, F_OK), -1);
    }
    memset(nodes, 0, sizeof *nodes);
}

const char *nodes_ask(const struct nodes *nodes, size_t n, const char *command) {
    static char text[512];
    /* A healthy node answers within it, however busy the machine is. */
    struct timeval timeout = {2, 0};
    snprintf(text, sizeof text, "no answer");
    redisContext *redis = redisConnectWithTimeout("127.0.0.1", nodes->backend->ports[n], timeout);
    if (redis != NULL && redis->err == 0 && redisSetTimeout(redis, timeout) == REDIS_OK) {
        redisReply *reply = redisCommand(redis, command);
        if (reply != NULL && reply->type == REDIS_REPLY_INTEGER) {
            snprintf(text, sizeof text, "%lld", reply->integer);
        } else if (reply != NULL && reply->type == REDIS_REPLY_NIL) {
            snprintf(text, sizeof text, "(nil)");
        } else if (reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
            snprintf(text, sizeof text, "%s %s", reply->element[0]->str, reply->element[1]->str);
        } else if (reply != NULL && reply->str != NULL) {
            snprintf(text, sizeof text, "%s", reply->str);
        }
        freeReplyObject(reply);
    }
    redisFree(redis);
    return text;
}

void nodes_await(const struct nodes *nodes, size_t n, const char *command, const char *answer) {
    int64_t deadline_ms = support_now_ms() + AWAIT_MS;
    const char *got;
    while (strcmp(got = nodes_ask(nodes, n, command), answer) != 0) {
        if (support_now_ms() > deadline_ms) {
            fail_msg("%s: expected %s, got %s", command, answer, got);
        }
        support_pause_ms(5);
    }
}

/* Reads fields 3 and 4 of /proc/PID/stat. Returns 0 without such a process. */
static char read_stat(const char *pid, int *parent) {
    char path[64], line[512];
    char state = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        return 0;
    }
    const char *end = fgets(line, sizeof line, in) != NULL ? strrchr(line, ')') : NULL;
    if (end == NULL || sscanf(end + 1, " %c %d", &state, parent) != 2) {
        state = 0;
    }
    fclose(in);
    return state;
}

char nodes_process_state(pid_t pid) {
    char text[32];
    int parent;
    snprintf(text, sizeof text, "%d", (int)pid);
    return read_stat(text, &parent);
}

size_t nodes_children(void) {
    size_t count = 0;
    DIR *stream = opendir("/proc");
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        int parent = 0;
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && read_stat(entry->d_name, &parent) != 0) {
            count += parent == getpid();
        }
    }
    closedir(stream);
    return count;
}
