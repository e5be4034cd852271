/* Tokens: of 48 characters for those who wait, of 32 for others, and those of peers. The letter
 * behind them that says that they read is left out. */
#ifndef SIM_TOKEN_H
#define SIM_TOKEN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fake_node.h"

#define SIM_TICKET_SIZE 16
#define SIM_PLAIN_SIZE  32
#define SIM_TOKEN_SIZE  (SIM_TICKET_SIZE + SIM_PLAIN_SIZE) /* a shorter token ends in zeros */

static inline size_t sim_token_size(const char *token) {
    return token[SIM_PLAIN_SIZE] != '\0'       ? SIM_TOKEN_SIZE
           : token[SIM_PLAIN_SIZE - 1] != '\0' ? SIM_PLAIN_SIZE
                                               : strnlen(token, SIM_PLAIN_SIZE);
}

/* Whether both are one token. Here most differ, with a ticket or without: no call is needed. */
static inline bool sim_token_is(const char *a, const char *b) {
    uint64_t of_a, of_b;
    memcpy(&of_a, a + SIM_TICKET_SIZE, sizeof of_a);
    memcpy(&of_b, b + SIM_TICKET_SIZE, sizeof of_b);
    return of_a == of_b && memcmp(a, b, SIM_TOKEN_SIZE) == 0;
}

/* The part that a person can follow in a trace. */
static inline const char *sim_name(const char *token) {
    return token[SIM_PLAIN_SIZE] == '\0' ? token : token + SIM_TICKET_SIZE;
}

/* The digits up to the first that is none. */
static inline uint64_t sim_hexadecimal(const char *digits, unsigned count) {
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++) {
        const char c = digits[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            break;
        }
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
}

/* 0 for a token without a place in a queue. */
static inline uint64_t sim_ticket(const char *token) {
    return token[SIM_PLAIN_SIZE] == '\0' ? 0 : sim_hexadecimal(token, SIM_TICKET_SIZE);
}

/* Whether the token says that it reads. Without its digits, no other has one of these sizes. */
static inline bool sim_token_reads(const char *bytes, size_t size) {
    return (size == SIM_PLAIN_SIZE + 1 || size == SIM_TOKEN_SIZE + 1) && bytes[size - 1] == 's';
}

/* Whether something follows the digits: it reads, or has a gate. */
static inline bool sim_token_says(const char *bytes, size_t size) {
    return sim_token_reads(bytes, size) || (size == SIM_TOKEN_SIZE + 1 && bytes[size - 1] == 'p');
}

static inline void sim_token_set(char token[SIM_TOKEN_SIZE], const char *bytes, size_t size) {
    memset(token, 0, SIM_TOKEN_SIZE);
    size -= sim_token_says(bytes, size);
    memcpy(token, bytes, size < SIM_TOKEN_SIZE ? size : SIM_TOKEN_SIZE);
}

/* A waiter of a process that died: SIM_FAULT_DEAD. */
static inline bool sim_is_dead(const char *token) {
    return sim_name(token)[0] == 'd';
}

static inline bool sim_key_has(const struct fake_key *key, const char *token) {
    const size_t size = sim_token_size(token), has = key->value_size - sim_token_says(key->value, key->value_size);
    /* Most differ in their last digit. */
    return has == size && (size == 0 || key->value[size - 1] == token[size - 1]) &&
           memcmp(key->value, token, size) == 0;
}

static inline const char *sim_key_name(const struct fake_key *key) {
    return key->value_size == SIM_TOKEN_SIZE ? key->value + SIM_TICKET_SIZE : key->value;
}

#endif
