/* The minimal lock exchange: it sends prepared bytes and counts votes. */
#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RELEASE_SHA1 "9e4679119e4e7b1f5962e12a581a4a83afeb9bf0"

const char exchange_release_script[] =
    "local v=redis.pcall('GET',KEYS[1])\n"
    "if v==ARGV[1] then return redis.call('DEL',KEYS[1]) end\n"
    "if not v then return 0 end\n"
    "if type(v)=='table' and not string.find(v.err,'WRONGTYPE',1,true) then return v end\n"
    "return -1";

bool exchange_sha1_matches(const char *sha1, size_t size) {
    return size == sizeof RELEASE_SHA1 - 1 && memcmp(sha1, RELEASE_SHA1, size) == 0;
}

static uint32_t checked(int size) {
    if (size < 0 || (size_t)size >= sizeof(((struct exchange_request *)0)->bytes)) {
        contender_fatal("a request of %d bytes does not fit", size);
    }
    return (uint32_t)size;
}

static void make_requests(struct exchange_worker *worker, unsigned number, unsigned name) {
    struct exchange_request *acquire = &worker->acquire[name], *release = &worker->release[name];
    char key[32], token[33];
    int key_size = snprintf(key, sizeof key, "bench-%u-%u", number, name);
    (void)snprintf(token, sizeof token, "%016x%016x", number + 1, name + 1);
    acquire->size =
        checked(snprintf(acquire->bytes, sizeof acquire->bytes,
                         "*6\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$32\r\n%s\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n%d\r\n", key_size,
                         key, token, CONTENDER_TTL_MS));
    release->size =
        checked(snprintf(release->bytes, sizeof release->bytes,
                         "*5\r\n$7\r\nEVALSHA\r\n$40\r\n" RELEASE_SHA1 "\r\n$1\r\n1\r\n$%d\r\n%s\r\n$32\r\n%s\r\n",
                         key_size, key, token));
}

void exchange_make(struct exchange *exchange) {
    exchange->workers = calloc(CONTENDER_WORKERS_MAX, sizeof *exchange->workers);
    if (!exchange->workers) {
        contender_fatal("no memory for the requests");
    }
    for (unsigned w = 0; w < CONTENDER_WORKERS_MAX; w++) {
        for (unsigned n = 0; n < CONTENDER_NAMES; n++) {
            make_requests(&exchange->workers[w], w, n);
        }
    }
}

void exchange_free(struct exchange *exchange) {
    free(exchange->workers);
}

void exchange_begin_phase(struct exchange *exchange, struct exchange_worker *worker, bool releasing) {
    struct exchange_tag tag = {(uint32_t)(worker - exchange->workers), ++worker->sequence};
    worker->releasing = releasing;
    worker->granted = worker->refused = 0;
    if (contender_sampling(&exchange->cycles->release)) {
        worker->began_ns = contender_now_ns();
    }
    exchange->send(exchange->data, releasing ? &worker->release[worker->name] : &worker->acquire[worker->name], tag);
}

static void end_cycle(struct exchange *exchange, struct exchange_worker *worker, bool succeeded) {
    exchange->cycles->cycles += succeeded;
    exchange->cycles->failed += !succeeded;
    worker->name = (uint8_t)((worker->name + 1) % CONTENDER_NAMES);
    if (exchange->ending) {
        exchange->outstanding--;
        worker->sequence++;
    } else {
        exchange_begin_phase(exchange, worker, false);
    }
}

void exchange_begin(struct exchange *exchange, struct contender_cycles *cycles) {
    exchange->cycles = cycles;
    exchange->ending = false;
    exchange->outstanding = cycles->workers;
    for (unsigned i = 0; i < cycles->workers; i++) {
        exchange_begin_phase(exchange, &exchange->workers[i], false);
    }
}

static void end_phase(struct exchange *exchange, struct exchange_worker *worker, bool granted) {
    struct contender_samples *samples = worker->releasing ? &exchange->cycles->release : &exchange->cycles->acquire;
    if (exchange->decided) {
        worker->sequence++;
        exchange->decided(exchange->data, worker, granted);
        return;
    }
    if (!granted) {
        end_cycle(exchange, worker, false);
        return;
    }
    if (contender_sampling(samples)) {
        contender_sample(samples, contender_now_ns() - worker->began_ns);
    }
    if (worker->releasing) {
        end_cycle(exchange, worker, true);
    } else {
        exchange_begin_phase(exchange, worker, true);
    }
}

void exchange_vote(struct exchange *exchange, struct exchange_tag tag, bool granted) {
    struct exchange_worker *worker = &exchange->workers[tag.worker];
    if (worker->sequence != tag.sequence) {
        return;
    }
    if (granted && ++worker->granted == exchange->quorum) {
        end_phase(exchange, worker, true);
    } else if (!granted && ++worker->refused > exchange->node_count - exchange->quorum) {
        end_phase(exchange, worker, false);
    }
}
