/* What the contenders in C share: they read commands and print figures, as README.md says. */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONTENDER_NODES_MAX   31
#define CONTENDER_WORKERS_MAX 4096
#define CONTENDER_CLIENTS_MAX 1024
#define CONTENDER_NAMES       8     /* used by each worker in turn */
#define CONTENDER_TTL_MS      10000 /* ttl of every lock */
#define CONTENDER_SAMPLES_MAX 200000
#define CONTENDER_ERROR_SIZE  512

struct contender_nodes {
    size_t count;
    const char *at[CONTENDER_NODES_MAX]; /* host:port; valid during the call */
};

/* Keeps the first `wanted` latencies and drops the rest. */
struct contender_samples {
    size_t wanted, count;
    int64_t *ns;
};

struct contender_cycles {
    unsigned workers;
    int64_t duration_ms;
    unsigned rest_us; /* before each acquire but the first */
    uint64_t cycles, failed;
    int64_t took_ns;
    struct contender_samples acquire, release;
};

/* One client's wish for the lock, in µs of CLOCK_MONOTONIC; 0 for what never came. */
struct contender_wait {
    unsigned client;
    int64_t began_us, granted_us, released_us;
};

/* `line` or `loop`. A contender adds its waits with contender_wait_begin(). */
struct contender_contest {
    unsigned clients;
    int64_t hold_us, begin_us, space_us, end_us;
    int64_t free_us;     /* when the leader, client number `clients`, releases; 0: there is none */
    bool again;          /* clients begin again until end_us */
    const char *counter; /* a file that each holder reads and writes back; NULL: none */
    uint64_t failed;
    size_t count, room;
    struct contender_wait *waits;
};

/* A contender. Each function fills in the figures, and an error ("" for none). `cycles` may return
 * both: the figures and the message of the first failure. A NULL function is unsupported. */
struct contender {
    const char *name, *version, *notes;
    void (*connect)(void *data, const struct contender_nodes *nodes, char error[CONTENDER_ERROR_SIZE]);
    void (*cycles)(void *data, struct contender_cycles *cycles, char error[CONTENDER_ERROR_SIZE]);
    void (*contend)(void *data, struct contender_contest *contest, char error[CONTENDER_ERROR_SIZE]);
    /* Handles any other command. `arguments` is the rest of the line. Writes the members of a JSON
     * object. Returns false for an unknown command. */
    bool (*other)(void *data, const char *command, const char *arguments, FILE *json, char error[CONTENDER_ERROR_SIZE]);
};

/* Writes `,"NAME":[…]`, in µs with one decimal. */
void contender_write_samples(FILE *json, const char *name, const struct contender_samples *samples);

/* Allocates room for `wanted` samples; contender_samples_end() frees it. */
void contender_samples_begin(struct contender_samples *samples, size_t wanted);
void contender_samples_end(struct contender_samples *samples);

/* Writes the members of the answer to `cycles`. */
void contender_write_cycles(FILE *json, const struct contender_cycles *cycles);

/* Reads "WORKERS MS SAMPLES [REST_US]" and allocates the samples. Returns false if the text has
 * another form. */
bool contender_read_cycles(const char *arguments, struct contender_cycles *cycles);

/* Adds a wait that begins now. Returns its index. */
size_t contender_wait_begin(struct contender_contest *contest, unsigned client);

/* What the counter's file holds, and the same back. */
long long contender_counter_read(const char *path);
void contender_counter_write(const char *path, long long value);

/* Reads commands until the end of input. Returns the exit status. */
int contender_run(const struct contender *contender, void *data);

/* CLOCK_MONOTONIC. */
int64_t contender_now_ns(void);
int64_t contender_now_us(void);

/* Processor time that this process has used. */
int64_t contender_cpu_ns(void);

/* Connects to HOST:PORT, where HOST is an IPv4 address. Returns -1 and sets errno on failure. */
int contender_open_socket(const char *at);

static inline bool contender_sampling(const struct contender_samples *samples) {
    return samples->count < samples->wanted;
}

static inline void contender_sample(struct contender_samples *samples, int64_t ns) {
    if (samples->count < samples->wanted) {
        samples->ns[samples->count++] = ns;
    }
}

/* Prints a message and ends the program. */
__attribute__((format(printf, 1, 2), noreturn)) void contender_fatal(const char *format, ...);

#endif
