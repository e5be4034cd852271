/* New users and passwords for the nodes while the tool runs, from the file that names the nodes. */
#include "reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nodes_file.h"
#include "report.h"
#include "thread.h"
#include "userinfo.h"

#define LOOK_EVERY_S    1
#define GIVE_UP_AFTER_S 1

struct tool_reload {
    /* Only the loop uses these. */
    struct tool_session *session;
    ev_async told;
    ev_prepare each_turn;           /* while a node is pending */
    char *given[REDLOCK_NODES_MAX]; /* the user info that each node got last; "": none */
    uint32_t pending, refused;      /* a bit for each node */
    char warned[1024];              /* the last warning */
    /* Only the thread uses this after the start. */
    struct tool_stamp read;
    /* Both. */
    struct tool_thread thread;     /* its mutex protects the rest */
    struct tool_nodes_file *fresh; /* read, and not yet taken by the loop */
};

/* The thread. */

/* Returns what the file has now; NULL if that is nothing new, if it may still be written, or
 * without memory. */
static struct tool_nodes_file *look(const char *path, struct tool_stamp *read, struct tool_stamp *seen) {
    const struct tool_stamp now = tool_nodes_file_stamp(path);
    const bool is_settled = tool_stamps_are_same(&now, seen);
    *seen = now;
    if (!is_settled || tool_stamps_are_same(&now, read)) {
        return NULL;
    }
    struct tool_nodes_file *file = malloc(sizeof *file);
    if (file != NULL) {
        (void)tool_nodes_file_read(path, file); /* `why` tells of a failure */
        *read = now;
    }
    return file;
}

static void drop(struct tool_nodes_file *file) {
    if (file != NULL) {
        tool_nodes_file_clear(file);
        free(file);
    }
}

static void *run(void *data) {
    struct tool_reload *reload = data;
    const char *path = reload->session->options->nodes_file;
    struct tool_stamp seen = reload->read;
    pthread_mutex_lock(&reload->thread.mutex);
    while (!tool_thread_wait(&reload->thread, LOOK_EVERY_S, &reload->thread.ending, NULL)) {
        pthread_mutex_unlock(&reload->thread.mutex);
        struct tool_nodes_file *file = look(path, &reload->read, &seen);
        pthread_mutex_lock(&reload->thread.mutex);
        if (file != NULL && !reload->thread.ending) {
            drop(reload->fresh);
            reload->fresh = file;
            ev_async_send(reload->session->loop, &reload->told);
        } else {
            drop(file);
        }
    }
    tool_thread_is_over(&reload->thread);
    return NULL;
}

/* The loop. */

static void warn_once(struct tool_reload *reload, const char *sentence) {
    if (strcmp(sentence, reload->warned) != 0) {
        strcpy(reload->warned, sentence);
        tool_report_warning(reload->session->options, "NODES_FILE", sentence);
    }
}

#define warn(reload, ...) warn_once(reload, TOOL_TEXT(sizeof(reload)->warned, __VA_ARGS__))

static void report_accepted(const struct tool_reload *reload) {
    const struct tool_options *options = reload->session->options;
    if (options->command == TOOL_STATUS) {
        return; /* it shows the nodes */
    }
    if (!options->json) {
        tool_report_note(options, TOOL_WORDS_INFO,
                         TOOL_SENTENCE("all nodes have accepted the users and passwords in %s", options->nodes_file));
        return;
    }
    struct tool_json json = tool_json_begin(tool_words_line(options->words));
    tool_json_string(&json, "credentials", "ACCEPTED");
    tool_json_string(&json, "nodes_file", options->nodes_file);
    tool_report_send(&json, options, TOOL_WORDS_INFO);
}

/* A node that is not up tries the new ones again by itself. */
static void report_refused(const struct tool_options *options, const redlock_node_info *info) {
    const bool is_up = info->state == REDLOCK_NODE_READY || info->state == REDLOCK_NODE_STALLED;
    tool_report_warn(options, "CREDENTIALS", "node %s refuses its user and password in %s: %s%s", info->name,
                     options->nodes_file, info->credentials_error,
                     is_up ? "; it goes on with the old ones; when the node has the new ones, touch the file" : "");
}

/* Before each poll, while a node is pending. */
static void look_at_nodes(struct ev_loop *loop, ev_prepare *watcher, int events) {
    (void)events;
    struct tool_reload *reload = watcher->data;
    const struct tool_options *options = reload->session->options;
    for (size_t i = 0; i < options->node_count; i++) {
        const uint32_t bit = UINT32_C(1) << i;
        if ((reload->pending & bit) == 0) {
            continue;
        }
        const redlock_node_info info = tool_session_node(reload->session, i);
        if (!info.credentials_pending) {
            reload->pending &= ~bit;
        } else if (info.credentials_error[0] != '\0' && (reload->refused & bit) == 0) {
            reload->refused |= bit;
            report_refused(options, &info);
        }
    }
    if (reload->pending == 0) {
        ev_prepare_stop(loop, watcher);
        report_accepted(reload);
    }
}

/* A copy of the URIs' user info, and what is in it. */
struct changes {
    char *given[REDLOCK_NODES_MAX]; /* NULL: the file does not have the node */
    struct tool_login logins[REDLOCK_NODES_MAX];
    unsigned other_line; /* the first that is none of our nodes; 0: none */
    const char *missing; /* a node that the file does not have any more; NULL: none */
    const char *bare;    /* likewise, without the password that it had */
};

static void clear_changes(struct changes *changes) {
    for (size_t i = 0; i < REDLOCK_NODES_MAX; i++) {
        tool_userinfo_clear(&changes->given[i]);
        tool_login_clear(&changes->logins[i]);
    }
}

static const char *scheme_of(const struct tool_options *options) {
    return options->tls ? "rediss://" : "redis://";
}

/* Returns which of our nodes it is, or their count. */
static size_t find_node(const struct tool_options *options, const struct tool_uri *uri) {
    size_t i = 0;
    for (; i < options->node_count; i++) {
        const struct tool_uri ours = tool_uri_split(options->nodes[i], scheme_of(options));
        if (tool_uris_meet(&ours, uri)) {
            break;
        }
    }
    return i;
}

/* Returns NULL, or what is wrong with the URI. */
static const char *read_uri(const struct tool_options *options, const char *text, unsigned line,
                            struct changes *changes) {
    const struct tool_uri uri = tool_uri_split(text, scheme_of(options));
    const size_t node = find_node(options, &uri);
    if (node == options->node_count) {
        changes->other_line = changes->other_line != 0 ? changes->other_line : line;
        return NULL;
    }
    if (changes->given[node] != NULL) {
        return "it is the second one for this node";
    }
    changes->given[node] = tool_userinfo_copy(&uri);
    return changes->given[node] != NULL ? tool_login_read(&changes->logins[node], uri.user_info, uri.user_info_size)
                                        : "there is no memory for it";
}

/* Returns whether the file can be used. */
static bool read_changes(struct tool_reload *reload, const struct tool_nodes_file *file, struct changes *changes) {
    const struct tool_options *options = reload->session->options;
    for (size_t i = 0; i < file->count; i++) {
        const char *wrong = read_uri(options, file->uris[i], file->lines[i], changes);
        if (wrong != NULL) {
            warn(reload, "%s has changed, and cannot be used: line %u: %s; the old users and passwords stay in use",
                 options->nodes_file, file->lines[i], wrong);
            return false;
        }
    }
    return true;
}

static void offer(struct tool_reload *reload, size_t node, struct changes *changes) {
    struct tool_session *session = reload->session;
    const struct tool_login *login = &changes->logins[node];
    const uint32_t bit = UINT32_C(1) << node;
    const int code = redlock_manager_set_credentials(session->manager, node, login->user, login->password);
    if (code != REDLOCK_OK) {
        warn(reload, "the new user and password of node %s cannot be used: %s",
             tool_session_node(reload->session, node).name, redlock_strerror(code));
        return;
    }
    tool_userinfo_clear(&reload->given[node]);
    reload->given[node] = changes->given[node];
    changes->given[node] = NULL;
    reload->pending |= bit;
    reload->refused &= ~bit;
    session->warned_unusable &= ~bit;
}

/* What the file has for our nodes. */
static void give(struct tool_reload *reload, struct changes *changes) {
    for (size_t i = 0; i < reload->session->options->node_count; i++) {
        const redlock_node_info info = tool_session_node(reload->session, i);
        const bool is_other = changes->given[i] != NULL && strcmp(changes->given[i], reload->given[i]) != 0;
        if (changes->given[i] == NULL) {
            changes->missing = info.name;
        } else if (is_other && changes->logins[i].password == NULL) {
            changes->bare = info.name;
        } else if (is_other || info.credentials_error[0] != '\0') {
            offer(reload, i, changes);
        }
    }
    if (reload->pending != 0) {
        ev_prepare_start(reload->session->loop, &reload->each_turn);
    }
}

static void warn_of_rest(struct tool_reload *reload, const struct tool_nodes_file *file,
                         const struct changes *changes) {
    const char *path = reload->session->options->nodes_file;
    static const char rule[] = "only users and passwords may change while redlock runs: restart it to use the rest";
    if (changes->other_line != 0) {
        warn(reload, "%s has changed, and line %u is none of the nodes that are in use; %s", path, changes->other_line,
             rule);
    } else if (changes->missing != NULL) {
        warn(reload, "%s has changed, and does not have node %s any more; %s", path, changes->missing, rule);
    } else if (changes->bare != NULL) {
        warn(reload, "%s has changed, and node %s has no password there any more; %s", path, changes->bare, rule);
    } else if (file->warning[0] != '\0') {
        warn(reload, "%s", file->warning);
    } else {
        reload->warned[0] = '\0';
    }
}

static void take(struct ev_loop *loop, ev_async *watcher, int events) {
    (void)loop, (void)events;
    struct tool_reload *reload = watcher->data;
    struct changes changes = {0};
    pthread_mutex_lock(&reload->thread.mutex);
    struct tool_nodes_file *file = reload->fresh;
    reload->fresh = NULL;
    pthread_mutex_unlock(&reload->thread.mutex);
    if (file == NULL) {
        return;
    }
    if (file->why[0] != '\0') {
        warn(reload, "the nodes file has changed, and cannot be used: %s; the old users and passwords stay in use",
             file->why);
    } else if (read_changes(reload, file, &changes)) {
        give(reload, &changes);
        warn_of_rest(reload, file, &changes);
    }
    clear_changes(&changes);
    drop(file);
}

/* Start and end. */

/* Returns false without memory. */
static bool remember_given(struct tool_reload *reload) {
    const struct tool_options *options = reload->session->options;
    for (size_t i = 0; i < options->node_count; i++) {
        const struct tool_uri uri = tool_uri_split(options->nodes[i], scheme_of(options));
        reload->given[i] = tool_userinfo_copy(&uri);
        if (reload->given[i] == NULL) {
            return false;
        }
    }
    return true;
}

static void free_reload(struct tool_reload *reload) {
    for (size_t i = 0; i < REDLOCK_NODES_MAX; i++) {
        tool_userinfo_clear(&reload->given[i]);
    }
    drop(reload->fresh);
    free(reload);
}

void tool_reload_begin(struct tool_session *session) {
    const struct tool_options *options = session->options;
    if (options->nodes_file == NULL || !options->nodes_stamp.is_regular) {
        return;
    }
    struct tool_reload *reload = calloc(1, sizeof *reload);
    int error = ENOMEM;
    if (reload != NULL) {
        reload->session = session;
        reload->read = options->nodes_stamp;
        ev_async_init(&reload->told, take);
        ev_prepare_init(&reload->each_turn, look_at_nodes);
        reload->told.data = reload->each_turn.data = reload;
        ev_async_start(session->loop, &reload->told);
        error = remember_given(reload) ? tool_thread_start(&reload->thread, run, reload) : ENOMEM;
    }
    if (error == 0) {
        session->reload = reload;
        return;
    }
    tool_report_warn(options, "NODES_FILE", "cannot look for new passwords in %s: %s", options->nodes_file,
                     strerror(error));
    if (reload != NULL) {
        ev_async_stop(session->loop, &reload->told);
        free_reload(reload);
    }
}

/* A thread that is still reading then may go on until the process ends. */
void tool_reload_end(struct tool_session *session) {
    struct tool_reload *reload = session->reload;
    if (reload == NULL) {
        return;
    }
    session->reload = NULL;
    ev_async_stop(session->loop, &reload->told);
    ev_prepare_stop(session->loop, &reload->each_turn);
    if (tool_thread_end(&reload->thread, GIVE_UP_AFTER_S, NULL)) {
        free_reload(reload);
    }
}
