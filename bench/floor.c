/* The floor: raw epoll and prepared bytes. It does the least that a lock on N nodes needs, so no
 * client can be faster.
 *
 * With the arguments `tls CA_FILE`, it speaks TLS. With `sealed CA_FILE`, it encrypts the requests
 * before the clock starts and decrypts the replies after it has stopped, so TLS costs the client
 * nothing: what is left is the cost of TLS in the nodes. */
#include <stdio.h>
#include <string.h>

#include "floor_nodes.h"

#define ANSWER_MS 5000 /* without any answer for this long, give up */
#define LATE_MS   100

/* More than there are cycles in a millisecond. */
#define SEALED_A_MS 40

/* Encrypts what one worker sends from here on, as far as that is not done. */
static bool seal(struct floor *floor, uint64_t cycle_count) {
    const struct exchange_worker *worker = &floor->exchange.workers[0];
    for (; floor->sealed_cycles < cycle_count; floor->sealed_cycles++) {
        const uint64_t name = (worker->name + floor->sealed_cycles) % CONTENDER_NAMES;
        const struct exchange_request *acquire = &worker->acquire[name], *release = &worker->release[name];
        for (unsigned i = 0; i < floor->exchange.node_count; i++) {
            struct floor_tls *tls = floor->nodes[i].tls;
            if (!floor_tls_seal(tls, acquire->bytes, acquire->size) ||
                !floor_tls_seal(tls, release->bytes, release->size)) {
                return false;
            }
        }
    }
    return true;
}

/* Checks the replies of all nodes. */
static bool unseal(struct floor *floor, const struct contender_cycles *cycles) {
    bool all = cycles->failed == 0 && cycles->cycles <= floor->sealed_cycles;
    floor->sealed_cycles -= all ? cycles->cycles : floor->sealed_cycles;
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        all = floor_tls_unseal(floor->nodes[i].tls) && all;
    }
    return all;
}

static void cycles(void *data, struct contender_cycles *cycles, char error[CONTENDER_ERROR_SIZE]) {
    struct floor *floor = data;
    floor->error = error;
    if (floor->exchange.node_count == 0) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
        return;
    }
    if (floor->seals && (cycles->workers != 1 || !seal(floor, (uint64_t)cycles->duration_ms * SEALED_A_MS))) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "requests are sealed for one worker only, or there is no memory");
        return;
    }
    int64_t began_ns = contender_now_ns(), now_ns = began_ns;
    exchange_begin(&floor->exchange, cycles);
    while (floor->exchange.outstanding > 0) {
        floor_flush(floor);
        if (!floor_wait(floor, ANSWER_MS)) {
            floor_fail(floor, "epoll_wait");
        }
        now_ns = contender_now_ns();
        floor->exchange.ending = floor->exchange.ending || now_ns - began_ns >= cycles->duration_ms * 1000000;
    }
    cycles->took_ns = now_ns - began_ns;
    floor_flush(floor);
    while (!*error && !floor_is_idle(floor) && floor_wait(floor, floor->seals ? ANSWER_MS : LATE_MS)) {
        /* count late votes in this run, except those of a node that hangs */
        floor_flush(floor);
    }
    if (floor->seals && !*error && !unseal(floor, cycles)) {
        cycles->cycles = cycles->failed = 0;
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "a reply was missing or was no yes");
    }
}

int main(int count, char **arguments) {
    const bool seals = count == 3 && strcmp(arguments[1], "sealed") == 0;
    const bool tls = seals || (count == 3 && strcmp(arguments[1], "tls") == 0);
    if (count > 1 && !tls) {
        contender_fatal("usage: floor [tls CA_FILE | sealed CA_FILE]");
    }
    const struct contender contender = {
        .name = seals ? "floor_sealed"
                : tls ? "floor_tls"
                      : "floor",
        .version = "1",
        .notes = seals ? "floor_tls that encrypts before the clock starts and decrypts after it"
                 : tls ? "floor over TLS: OpenSSL on the sockets"
                       : "no lock: preformatted bytes, votes counted; no validity, no timeouts, no random tokens, no "
                         "reconnection",
        .connect = floor_connect,
        .cycles = cycles};
    struct floor floor = {.wake_up = -1, .seals = seals};
    if (tls) {
        floor.tls = floor_tls_begin();
        floor.ca_file = arguments[2];
    }
    floor_begin(&floor);
    int status = contender_run(&contender, &floor);
    floor_end(&floor);
    floor_tls_end(floor.tls);
    return status;
}
