/* What the blocking client says of its nodes, in copies that any thread may keep. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "blocking/client.h"

/* All strings of a node_info. */
static const size_t strings[] = {
    offsetof(redlock_node_info, name),        offsetof(redlock_node_info, version),
    offsetof(redlock_node_info, role),        offsetof(redlock_node_info, warning),
    offsetof(redlock_node_info, error),       offsetof(redlock_node_info, quarantine),
    offsetof(redlock_node_info, queue_error), offsetof(redlock_node_info, credentials_error),
    offsetof(redlock_node_info, shared_error)};

#define STRING_COUNT (sizeof strings / sizeof *strings)
/* The name is the beginning of the memory with all copies, so it must be there. */
#define SIZE_MIN offsetof(redlock_node_info, version)

static const char **string_of(redlock_node_info *info, size_t i) {
    assert(i < STRING_COUNT);
    return (const char **)((char *)info + strings[i]);
}

/* Replaces the strings with copies. Returns false without memory. */
static bool own_strings(redlock_node_info *info) {
    size_t size = 0;
    for (size_t i = 0; i < STRING_COUNT; i++) {
        assert(*string_of(info, i));
        size += strlen(*string_of(info, i)) + 1;
    }
    char *at = malloc(size);
    if (at == NULL) {
        return false;
    }
    for (size_t i = 0; i < STRING_COUNT; i++) {
        const char **string = string_of(info, i);
        const size_t length = strlen(*string) + 1;
        *string = memcpy(at, *string, length);
        at += length;
    }
    assert(at == *string_of(info, 0) + size);
    return true;
}

struct node_call {
    struct redlock_call call; /* first member */
    size_t index;
    redlock_node_info info;
};

static int node_begins(struct redlock_call *call) {
    struct node_call *node = (struct node_call *)call;
    node->info.size = sizeof node->info;
    const int code = redlock_manager_node(redlock_worker_manager(call->worker), node->index, &node->info);
    return code == REDLOCK_OK && !own_strings(&node->info) ? REDLOCK_ERR_NO_MEMORY : code;
}

/* What all loops say: the first one of whose connections something is wrong, else the first. The
 * caller is inside. */
static int ask_loops(const redlock_client *client, size_t index, redlock_node_info *info) {
    const unsigned loops = client->loops;
    int code = REDLOCK_OK;
    for (unsigned i = 0; code == REDLOCK_OK && i < loops; i++) {
        struct node_call node = {.call = {.begin = node_begins}, .index = index};
        code = redlock_worker_perform(client->workers[i], &node.call);
        const bool is_well = node.info.state == REDLOCK_NODE_READY && !node.info.credentials_pending;
        if (code == REDLOCK_OK && (i == 0 || !is_well)) {
            redlock_node_info_free(info);
            *info = node.info;
            i = is_well ? i : loops;
        } else if (code == REDLOCK_OK) {
            redlock_node_info_free(&node.info);
        }
    }
    if (code != REDLOCK_OK) {
        redlock_node_info_free(info);
    }
    return code;
}

int redlock_client_node(redlock_client *client, size_t index, redlock_node_info *info) {
    redlock_node_info asked = {.size = sizeof asked};
    struct redlock_error_text failure = redlock_call_failure();
    int cancel_state;
    int code = redlock_check_struct_of(&failure, "info", info, SIZE_MIN);
    if (code != REDLOCK_OK) {
        return code;
    }
    code = redlock_client_enter(client, NULL, &cancel_state);
    if (code == REDLOCK_OK) {
        code = ask_loops(client, index, &asked);
        redlock_client_exit(client, cancel_state);
    }
    if (code == REDLOCK_OK) {
        redlock_fill_struct(info, &asked, sizeof asked);
    }
    return code;
}

struct credentials_call {
    struct redlock_call call; /* first member */
    size_t node;
    const char *user, *password;
};

static int credentials_begin(struct redlock_call *call) {
    const struct credentials_call *given = (struct credentials_call *)call;
    return redlock_manager_set_credentials(redlock_worker_manager(call->worker), given->node, given->user,
                                           given->password);
}

int redlock_client_set_credentials(redlock_client *client, size_t node, const char *user, const char *password) {
    int cancel_state, code = redlock_client_enter(client, NULL, &cancel_state);
    if (code != REDLOCK_OK) {
        return code;
    }
    pthread_mutex_lock(&client->credentials);
    for (unsigned i = 0; code == REDLOCK_OK && i < client->loops; i++) {
        struct credentials_call given = {
            .call = {.begin = credentials_begin}, .node = node, .user = user, .password = password};
        code = redlock_worker_perform(client->workers[i], &given.call);
    }
    pthread_mutex_unlock(&client->credentials);
    redlock_client_exit(client, cancel_state);
    return code;
}

void redlock_node_info_free(redlock_node_info *info) {
    if (info != NULL && info->size >= SIZE_MIN) {
        const size_t size = info->size;
        free((char *)(uintptr_t)info->name);
        memset(info, 0, size < sizeof *info ? size : sizeof *info);
        info->size = size;
    }
}
