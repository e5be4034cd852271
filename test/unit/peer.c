/* The server's end of a node's connection. */
#include "peer.h"

#include "test.h"
#include "wire/holder_query.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/time.h"
#include "peer_clock.h"
#include "wire/script.h"

static bool is_token(const char *value, size_t size) {
    return size == sizeof PEER_TOKEN - 1 && memcmp(value, PEER_TOKEN, size) == 0;
}

/* Compares as a group does. */
static void on_answer(void *context, unsigned index, void *owner, uint32_t round, struct redlock_answer *answer) {
    struct peer *peer = context;
    assert_int_equal(index, 0);
    if (answer->named != REDLOCK_NAMED_NOT) {
        const bool is_first_ours = answer->named == REDLOCK_NAMED_TWICE && is_token(answer->first, answer->first_size);
        if (redlock_holder_query_compared(answer, is_first_ours, is_token(answer->holder, answer->holder_size))) {
            redlock_node_names_holders(peer->node);
        }
    }
    assert_true(peer->answer_count < PEER_ANSWERS_MAX);
    struct peer_answer *kept = &peer->answers[peer->answer_count++];
    kept->owner = owner;
    kept->round = round;
    kept->vote = answer->vote;
    kept->clock = answer->clock;
    (void)snprintf(kept->text, sizeof kept->text, "%s", redlock_text_string(answer->text));
    kept->cause = redlock_text_cause(answer->text);
    if (peer->in_answer != NULL) {
        peer->in_answer(peer);
    }
}

static void on_granted(void *context, unsigned index, void *owner, uint32_t round, int64_t read_ns) {
    struct redlock_answer answer = {.vote = REDLOCK_VOTE_GRANTED, .read_ns = read_ns};
    on_answer(context, index, owner, round, &answer);
}

static void on_greeted(void *context, unsigned index, const struct redlock_greeting *greeting) {
    struct peer *peer = context;
    assert_int_equal(index, 0);
    peer->greeted++;
    peer->settled_when_greeted = peer->became_ready;
    if (peer->listens_when_greeted) {
        redlock_node_listen(peer->node, "ch");
    }
    peer->greeting = *greeting;
    (void)snprintf(peer->greeted_run_id, sizeof peer->greeted_run_id, "%s", greeting->run_id);
    peer->greeting.run_id = peer->greeted_run_id;
}

static void on_ready_changed(void *context, unsigned index, bool ready) {
    struct peer *peer = context;
    (void)index;
    if (ready) {
        peer->became_ready++;
    } else {
        peer->became_unready++;
    }
}

static void on_pushed(void *context, unsigned index, const struct redlock_push *push) {
    struct peer *peer = context;
    assert_int_equal(index, 0);
    peer->pushes++;
    peer->push = *push;
    (void)snprintf(peer->push_token, sizeof peer->push_token, "%.*s", (int)push->token_size, push->token);
    (void)snprintf(peer->push_key, sizeof peer->push_key, "%.*s", (int)push->key_size, push->key);
}

static void on_listens(void *context, unsigned index, enum redlock_listening listening, struct redlock_text *why) {
    struct peer *peer = context;
    assert_int_equal(index, 0);
    peer->told_listening++;
    peer->listening = listening;
    (void)snprintf(peer->why_not, sizeof peer->why_not, "%s", redlock_text_string(why));
}

static void on_hinted(void *context, unsigned index, const struct redlock_hint *hint) {
    struct peer *peer = context;
    assert_int_equal(index, 0);
    peer->hints++;
    (void)snprintf(peer->hinted, sizeof peer->hinted, "%.*s", (int)hint->key_size, hint->key);
}

static void on_hears(void *context, unsigned index, const struct redlock_channel *channel) {
    struct peer *peer = context;
    assert_int_equal(index, 0);
    assert_int_equal(channel->heard | channel->refused, 1);
    assert_int_equal(channel->heard & channel->refused, 0);
    peer->told_hears++;
    peer->hears = channel;
}

static const char *on_same_server(void *context, unsigned index, const char *run_id, bool *yields) {
    struct peer *peer = context;
    (void)index;
    assert_true(run_id[0] != '\0');
    peer->rival_asked++;
    *yields = peer->rival_yields;
    return peer->rival;
}

static void on_log(redlock_log_level level, const char *line, void *data) {
    struct peer *peer = data;
    size_t used = strlen(peer->log);
    (void)snprintf(peer->log + used, sizeof peer->log - used, "%d %s\n", (int)level, line);
}

static void peer_start_listening(struct peer *peer) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(peer->port)};
    const int reuse = 1;
    socklen_t size = sizeof address;
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(peer->listener >= 0);
    assert_int_equal(setsockopt(peer->listener, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse), 0);
    assert_int_equal(bind(peer->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(peer->listener, 16), 0);
    assert_int_equal(getsockname(peer->listener, (struct sockaddr *)&address, &size), 0);
    peer->port = ntohs(address.sin_port);
}

static size_t on_other_marks(void *ctx, unsigned index, const char *marks[REDLOCK_SERVER_OTHERS_MAX]) {
    (void)ctx;
    (void)index;
    marks[0] = PEER_OTHER_MARK;
    return 1;
}

static void start(struct peer *peer, bool guarded, const char *marker, const char *credentials) {
    struct redlock_server_options options = {.node_timeout_ms = PEER_TIMEOUT_MS,
                                             .connect_timeout_ms = 2000,
                                             .client_name = "me",
                                             .probed = REDLOCK_PROBED_KEY,
                                             .marker = marker,
                                             .guarded = guarded};
    struct redlock_server_callbacks listener = {.ctx = peer,
                                                .granted = on_granted,
                                                .answer = on_answer,
                                                .greeted = on_greeted,
                                                .ready_changed = on_ready_changed,
                                                .pushed = on_pushed,
                                                .listens = on_listens,
                                                .hinted = on_hinted,
                                                .hears = on_hears,
                                                .same_server = on_same_server,
                                                .other_marks = on_other_marks};
    struct redlock_loop_hooks hooks = {.on_log = on_log, .log_level = REDLOCK_LOG_INFO, .log_data = peer};
    struct redlock_reactor reactor;
    struct redlock_address address;
    char uri[64];
    memset(peer, 0, sizeof *peer);
    peer->connection = -1;
    peer_clock_sleep_s(0);
    peer_start_listening(peer);
    peer->ev = ev_loop_new(0);
    peer->loop = redlock_loop_new(&redlock_libev_ops, peer->ev, &hooks);
    assert_non_null(peer->loop);
    redlock_loop_reactor(peer->loop, &reactor);
    (void)snprintf(uri, sizeof uri, "redis://%s127.0.0.1:%u", credentials, (unsigned)peer->port);
    assert_is(redlock_address_parse(uri, &address, &(struct redlock_error_text){0}), REDLOCK_OK);
    peer->node = redlock_node_new(0, &address, &options, &reactor, &listener);
    assert_non_null(peer->node);
}

void peer_start(struct peer *peer) {
    start(peer, false, NULL, "");
}

void peer_start_with(struct peer *peer, const char *credentials) {
    start(peer, false, NULL, credentials);
}

void peer_start_guarded(struct peer *peer) {
    start(peer, true, NULL, "");
}

void peer_start_marked(struct peer *peer) {
    start(peer, false, "mk", "");
}

void peer_close(struct peer *peer) {
    if (peer->connection >= 0) {
        (void)close(peer->connection);
    }
    peer->connection = -1;
}

void peer_stop(struct peer *peer) {
    size_t answers = peer->answer_count;
    redlock_node_delete(peer->node, false);
    assert_int_equal(peer->answer_count, answers);
    redlock_loop_delete(peer->loop);
    ev_loop_destroy(peer->ev);
    peer_close(peer);
    (void)close(peer->listener);
}

void peer_turn(struct peer *peer) {
    ssize_t got = -1;
    ev_run(peer->ev, EVRUN_NOWAIT);
    if (peer->connection >= 0) {
        got =
            recv(peer->connection, peer->heard + peer->heard_size, sizeof peer->heard - peer->heard_size, MSG_DONTWAIT);
        peer->heard_size += got > 0 ? (size_t)got : 0;
        peer->heard_end = peer->heard_end || got == 0;
        peer->heard_reset = peer->heard_reset || (got < 0 && errno == ECONNRESET);
    }
    (void)poll(NULL, 0, got > 0 ? 0 : 1);
    (void)redlock_loop_now_ns(NULL); /* time goes on */
}

/* Not one that the node has ended already: a spare that was needless. */
static bool accepted(struct peer *peer) {
    peer->connection = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
    struct pollfd ended = {.fd = peer->connection};
    if (peer->connection >= 0 && poll(&ended, 1, 0) > 0) {
        peer_close(peer);
    }
    return peer->connection >= 0;
}

int peer_put_aside(struct peer *peer) {
    const int connection = peer->connection;
    assert_true(connection >= 0);
    peer->connection = -1;
    return connection;
}

void peer_accept(struct peer *peer) {
    peer_close(peer);
    peer->heard_size = 0;
    peer->heard_end = peer->heard_reset = false;
    PEER_UNTIL(peer, accepted(peer));
}

void peer_expect(struct peer *peer, const char *bytes) {
    size_t size = strlen(bytes);
    PEER_UNTIL(peer, peer->heard_size >= size || peer->heard_end || peer->heard_reset);
    assert_true(peer->heard_size >= size);
    assert_memory_equal(peer->heard, bytes, size);
    memmove(peer->heard, peer->heard + size, peer->heard_size - size);
    peer->heard_size -= size;
}

void peer_expect_end(struct peer *peer, bool reset) {
    PEER_UNTIL(peer, reset ? peer->heard_reset : peer->heard_end);
}

void peer_say(struct peer *peer, const char *bytes) {
    size_t size = strlen(bytes);
    assert_int_equal(send(peer->connection, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

void peer_serve(struct peer *peer, const char *heard, const char *answer) {
    peer_expect(peer, heard);
    peer_say(peer, answer);
}

static bool heard_at_the_end(const struct peer *peer, const char *probe, size_t rest) {
    const size_t size = strlen(probe) + rest;
    return peer->heard_size > size && memcmp(peer->heard + peer->heard_size - size, probe, strlen(probe)) == 0;
}

/* The probe is the end: its words are the same each time, but for the mark. One node alone has
 * none. */
static bool heard_the_end(struct peer *peer) {
    static const char other[] = "$33\r\n" PEER_OTHER_MARK "\r\n";
    const size_t rest = 34 + sizeof other - 1;
    if (heard_at_the_end(peer, "$13\r\nredlock:probe\r\n$2\r\nmk\r\n$33\r\ns", rest)) {
        (void)snprintf(peer->mark, sizeof peer->mark, "%.33s", peer->heard + peer->heard_size - rest - 1);
        return true;
    }
    peer->mark[0] = '\0';
    return heard_at_the_end(peer, "$13\r\nredlock:probe\r\n$0\r\n\r\n$0\r\n\r\n", 0);
}

void peer_introduced(struct peer *peer) {
    static const char name[] = "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n";
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n*1\r\n$4\r\nROLE\r\n";
    PEER_UNTIL(peer, heard_the_end(peer));
    assert_non_null(memmem(peer->heard, peer->heard_size, name, sizeof name - 1));
    if (memmem(peer->heard, peer->heard_size, hello, sizeof hello - 1) != NULL) {
        peer_say(peer, "-ERR unknown command 'HELLO'\r\n-NOPERM no ROLE\r\n");
    }
    peer->heard_size = 0;
    peer_say(peer, "+OK\r\n");
    for (int i = 0; i <= REDLOCK_SCRIPT_COUNT; i++) {
        peer_say(peer, "$1\r\na\r\n");
    }
    char answer[128];
    const char *mark = peer->finds_other ? PEER_OTHER_MARK : peer->mark;
    (void)snprintf(answer, sizeof answer, "*2\r\n$0\r\n\r\n$%zu\r\n%s\r\n", strlen(mark), mark);
    peer_say(peer, answer);
}

void peer_ping(struct peer *peer) {
    peer_expect(peer, "*1\r\n$4\r\nPING\r\n");
    peer_say(peer, "+PONG\r\n");
}

void peer_hello(struct peer *peer, const char *run_id, int id, int kills) {
    char info[256], bytes[512];
    peer_ping(peer);
    peer_expect(peer, "*1\r\n$4\r\nINFO\r\n*1\r\n$4\r\nTIME\r\n");
    peer_expect(peer, "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n");
    (void)snprintf(info, sizeof info, "%s\r\nrole:master\r\nrun_id:%s\r\nuptime_in_seconds:12\r\n",
                   peer->version == NULL ? "redis_version:7.0.15" : peer->version, run_id);
    (void)snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(info), info);
    peer_say(peer, bytes);
    peer_say(peer, "*2\r\n$10\r\n1763791726\r\n$5\r\n50413\r\n");
    (void)snprintf(bytes, sizeof bytes, ":%d\r\n", id);
    peer_say(peer, bytes);
    if (kills != 0) {
        char number[16];
        (void)snprintf(number, sizeof number, "%d", kills);
        (void)snprintf(bytes, sizeof bytes, "*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$%zu\r\n%s\r\n",
                       strlen(number), number);
        peer_expect(peer, bytes);
        peer_say(peer, ":1\r\n");
    }
}

void peer_greet(struct peer *peer, const char *run_id, int id, int kills) {
    peer_accept(peer);
    peer_hello(peer, run_id, id, kills);
    peer_introduced(peer);
}

bool peer_queue(struct peer *peer, const char *bytes, unsigned reply_kind, uint32_t round, int64_t now_ns) {
    if (reply_kind & (REDLOCK_KIND_SHARED | REDLOCK_KIND_SLOTS)) {
        redlock_node_load(peer->node, reply_kind);
    }
    return redlock_node_send(
        peer->node, bytes, strlen(bytes),
        &(struct redlock_inflight_entry){
            .owner = peer, .queued_ns = now_ns, .round = round, .reply_kind = (uint16_t)reply_kind});
}

bool peer_send_as(struct peer *peer, const char *bytes, unsigned reply_kind, uint32_t round) {
    return peer_queue(peer, bytes, reply_kind, round, redlock_loop_now_ns(NULL));
}

bool peer_send(struct peer *peer, const char *bytes, uint32_t round) {
    return peer_send_as(peer, bytes, REDLOCK_OP_ACQUIRE, round);
}

void peer_sends(struct peer *peer, const char *bytes, uint32_t round) {
    assert_true(peer_send(peer, bytes, round));
    peer_expect(peer, bytes);
}

void peer_sends_each(struct peer *peer, const char *letters) {
    for (uint32_t i = 0; letters[i] != '\0'; i++) {
        assert_true(peer_send(peer, (const char[]){letters[i], '\0'}, i + 1));
    }
    peer_expect(peer, letters);
}

void peer_until_answers(struct peer *peer, size_t count) {
    PEER_UNTIL(peer, peer->answer_count >= count);
    assert_int_equal(peer->answer_count, count);
}

void peer_until_state(struct peer *peer, redlock_node_state state) {
    PEER_UNTIL(peer, peer_info(peer).state == state);
}

void peer_assert_answer(const struct peer *peer, size_t index, uint32_t round, redlock_vote_kind vote,
                        const char *words) {
    const struct peer_answer *answer = &peer->answers[index];
    assert_true(index < peer->answer_count);
    assert_ptr_equal(answer->owner, peer);
    assert_int_equal(answer->round, round);
    assert_int_equal(answer->vote, vote);
    assert_contains(answer->text, words);
}

void peer_until_answer(struct peer *peer, size_t index, uint32_t round, redlock_vote_kind vote, const char *words) {
    peer_until_answers(peer, index + 1);
    peer_assert_answer(peer, index, round, vote, words);
}

redlock_node_info peer_info(const struct peer *peer) {
    redlock_node_info info = {.size = sizeof info};
    redlock_node_info_get(peer->node, &info);
    return info;
}

unsigned peer_times_logged(const struct peer *peer, const char *words) {
    unsigned times = 0;
    for (const char *at = peer->log; (at = strstr(at, words)) != NULL; at++) {
        times++;
    }
    return times;
}
