/* Random talks over links whose rules keep changing. The bytes that arrive were sent, and a talk
 * that ends in order is complete. */
#include "test.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"

enum { CLIENTS = 2, NODES = 2, TALKS = 24, STEPS = 12000, PART_MAX = 9000 };

/* Side 0 is the client's socket. Side 1 is the node's, once its connection is known. */
struct talk {
    uint32_t id; /* the first bytes that the client sends; 0: unused */
    size_t client, node;
    int fds[2];
    size_t sent[2], got[2]; /* by side */
    bool shut[2];           /* it has sent its FIN */
    bool heard[2];          /* it has received one */
    bool broken;            /* a socket was reset: bytes may be missing */
};

struct crowd {
    struct ends ends;
    struct talk talks[TALKS];
    uint32_t last_id;
    size_t unknown_count;
    int unknown[TALKS * 2]; /* nodes' sockets whose id is incomplete */
    size_t completed, broken;
};

/* Byte k from this side. The client's first four are the id. */
static char byte_of(const struct talk *talk, int side, size_t k) {
    if (side == 0 && k < sizeof talk->id) {
        return ((const char *)&talk->id)[k];
    }
    return (char)((talk->id * 31 + (unsigned)side * 17 + k) * 2654435761U >> 13);
}

static struct talk *pick(struct crowd *crowd) {
    return &crowd->talks[rand() % TALKS];
}

static void say(struct talk *talk, int side) {
    char bytes[PART_MAX];
    size_t size = 1 + (size_t)rand() % (rand() % 4 == 0 ? PART_MAX : 50);
    if (talk->fds[side] < 0 || talk->shut[side]) {
        return;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_of(talk, side, talk->sent[side] + i);
    }
    ssize_t sent = send(talk->fds[side], bytes, size, MSG_NOSIGNAL);
    if (sent > 0) {
        talk->sent[side] += (size_t)sent;
    } else {
        assert_true(errno == EAGAIN || talk->broken);
    }
}

static void begin(struct crowd *crowd, struct talk *talk) {
    *talk = (struct talk){.id = ++crowd->last_id, .client = (size_t)rand() % CLIENTS, .node = (size_t)rand() % NODES};
    talk->fds[0] = ends_connect(crowd->ends.links.ports[talk->client][talk->node]);
    talk->fds[1] = -1;
    ends_send(talk->fds[0], &talk->id, sizeof talk->id);
    talk->sent[0] = sizeof talk->id;
}

static void finish(struct crowd *crowd, struct talk *talk) {
    for (int side = 0; side < 2; side++) {
        if (talk->fds[side] >= 0) {
            ends_close(talk->fds[side]);
        }
    }
    crowd->completed += !talk->broken;
    crowd->broken += talk->broken;
    talk->id = 0;
}

/* Reads everything that has come to this side. */
static void hear(struct talk *talk, int side) {
    char bytes[PART_MAX];
    ssize_t got = 0;
    if (talk->fds[side] < 0 || talk->heard[side]) {
        return;
    }
    while ((got = recv(talk->fds[side], bytes, sizeof bytes, 0)) > 0) {
        for (ssize_t i = 0; i < got; i++, talk->got[side]++) {
            assert_int_equal(bytes[i], byte_of(talk, 1 - side, talk->got[side]));
        }
        assert_true(talk->got[side] <= talk->sent[1 - side]);
    }
    if (got == 0) {
        talk->heard[side] = true;
        assert_true(talk->broken || (talk->shut[1 - side] && talk->got[side] == talk->sent[1 - side]));
    } else if (errno != EAGAIN) {
        talk->heard[side] = true;
        assert_true(talk->broken);
    }
}

static void reset_side(struct talk *talk, int side) {
    if (talk->fds[side] >= 0) {
        ends_reset(talk->fds[side]);
        talk->fds[side] = -1;
        talk->broken = true;
    }
}

/* Accepts the nodes' new connections, and finds the talk of each. */
static void meet(struct crowd *crowd) {
    for (size_t n = 0; n < NODES; n++) {
        while (crowd->unknown_count < sizeof crowd->unknown / sizeof crowd->unknown[0] &&
               ends_is_called(crowd->ends.listeners[n], 0)) {
            crowd->unknown[crowd->unknown_count++] = ends_accept(crowd->ends.listeners[n]);
        }
    }
    for (size_t i = 0; i < crowd->unknown_count;) {
        uint32_t id;
        ssize_t got = recv(crowd->unknown[i], &id, sizeof id, MSG_PEEK);
        if (got != (ssize_t)sizeof id && (got > 0 || (got < 0 && errno == EAGAIN))) {
            i++;
            continue;
        }
        struct talk *talk = NULL;
        for (size_t t = 0; got > 0 && t < TALKS; t++) {
            talk = crowd->talks[t].id == id ? &crowd->talks[t] : talk;
        }
        if (talk == NULL) {
            ends_close(crowd->unknown[i]); /* its talk is over */
        } else {
            assert_int_equal(talk->fds[1], -1);
            talk->fds[1] = crowd->unknown[i];
        }
        crowd->unknown[i] = crowd->unknown[--crowd->unknown_count];
    }
}

static void shut(struct talk *talk, int side) {
    if (talk->fds[side] >= 0 && !talk->shut[side]) {
        (void)shutdown(talk->fds[side], SHUT_WR);
        talk->shut[side] = true;
    }
}

static void cut(struct crowd *crowd, size_t client, size_t node) {
    for (size_t t = 0; t < TALKS; t++) {
        struct talk *talk = &crowd->talks[t];
        talk->broken |= talk->id != 0 && talk->client == client && talk->node == node;
    }
    ends_cut(&crowd->ends, client, node);
}

static void change_rule(struct crowd *crowd) {
    struct chaos_link_rule rule = {.hold_requests = rand() % 4 == 0, .hold_replies = rand() % 4 == 0};
    rule.delay_us = rand() % 3 == 0 ? rand() % 4000 : 0;
    rule.jitter_us = rand() % 3 == 0 ? rand() % 4000 : 0;
    rule.bytes_per_s = rand() % 4 == 0 ? 10000 + rand() % 2000000 : 0;
    ends_set(&crowd->ends, (size_t)rand() % CLIENTS, (size_t)rand() % NODES, rule);
}

static void step(struct crowd *crowd) {
    struct talk *talk = pick(crowd);
    int side = rand() % 2;
    meet(crowd);
    if (talk->id == 0) {
        begin(crowd, talk);
        return;
    }
    hear(talk, 0);
    hear(talk, 1);
    if (talk->heard[0] && (talk->heard[1] || talk->fds[1] < 0)) {
        finish(crowd, talk);
        return;
    }
    int what = rand() % 600;
    if (what == 0) {
        reset_side(talk, side);
        finish(crowd, talk);
    } else if (what == 1) {
        cut(crowd, talk->client, talk->node);
    } else if (what < 14) {
        shut(talk, side);
    } else if (what < 23) {
        change_rule(crowd);
    } else {
        say(talk, side);
    }
}

/* Without rules, every talk that was not reset comes to its end. */
static void calm_down(struct crowd *crowd) {
    int64_t deadline_ms = support_now_ms() + 20000;
    size_t left = TALKS;
    for (size_t i = 0; i < CLIENTS * NODES; i++) {
        ends_set(&crowd->ends, i / NODES, i % NODES, (struct chaos_link_rule){0});
    }
    while (left > 0 && support_now_ms() < deadline_ms) {
        left = 0;
        meet(crowd);
        for (size_t t = 0; t < TALKS; t++) {
            struct talk *talk = &crowd->talks[t];
            for (int side = 0; talk->id != 0 && side < 2; side++) {
                hear(talk, side);
                shut(talk, side);
            }
            if (talk->id != 0 && (talk->broken || (talk->heard[0] && talk->heard[1]))) {
                finish(crowd, talk);
            }
            left += talk->id != 0;
        }
        support_pause_ms(1);
    }
    assert_int_equal(left, 0);
}

TEST(random_talk_arrives_in_order) {
    struct crowd *crowd = calloc(1, sizeof *crowd);
    const char *seed = getenv("LINKS_SEED");
    assert_non_null(crowd);
    srand(seed == NULL ? 7 : (unsigned)atoi(seed));
    ends_start(&crowd->ends, CLIENTS, NODES);
    size_t files = ends_files(crowd->ends.links.proxy.pid);
    for (int i = 0; i < STEPS; i++) {
        step(crowd);
    }
    calm_down(crowd);
    while (crowd->unknown_count > 0) {
        ends_close(crowd->unknown[--crowd->unknown_count]);
    }
    for (size_t n = 0; n < NODES; n++) {
        while (ends_is_called(crowd->ends.listeners[n], 20)) {
            ends_close(ends_accept(crowd->ends.listeners[n]));
        }
    }
    ends_wait_files(crowd->ends.links.proxy.pid, files);
    print_message("%zu talks were complete, %zu were reset\n", crowd->completed, crowd->broken);
    assert_true(crowd->completed > 20 && crowd->broken > 5);
    ends_stop(&crowd->ends);
    free(crowd);
}
