/* One command for the fake node and a real server: they must answer the same. */
#ifndef SIM_CONFORMANCE_KIT_H
#define SIM_CONFORMANCE_KIT_H

#include "fake_node.h"
#include "servers.h"
#include "test.h"

#define CONFORMANCE_ANSWER_MAX 512
#define TTL_LEAST_MS           200000 /* ttls above half of this may differ a little */
/* Somebody listens to this channel, and to no other. */
#define HEARD "redlock:heard"

extern struct servers servers; /* one */
extern struct fake_node fake;
extern struct raw listener;            /* to the channel at the real server */
extern struct raw observer;            /* to the channels of all leaders */
extern unsigned pushes, announcements; /* that were compared */

int64_t clock_us(void);
int64_t clock_ms(void);

/* Fails the test if the answers or the pushes differ. */
void ask_both_bytes(const char *bytes, size_t size);
void ask_both_argv(const char *const *argv);
#define ask_both(...) ask_both_argv((const char *const[]){__VA_ARGS__, NULL})

/* The fake node alone; the answer in the words of raw.h. */
void ask_fake(const char *bytes, size_t size, char answer[CONFORMANCE_ANSWER_MAX]);
/* Writes a command, and returns its size. */
size_t format_argv(char *bytes, const char *const *argv);

/* The fake's PUBLISH. */
bool publish(void *ctx, const char *channel, size_t channel_size, const char *payload, size_t payload_size);
bool hears(void *ctx, const char *channel, size_t channel_size);

#endif
