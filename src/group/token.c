/* Draws a fresh token for each attempt (R10). */
#include "group/token.h"

#include <string.h>

#include "base/holder.h"
#include "group/waiting.h"

static char digit(unsigned nibble) {
    return (char)(nibble + '0' + (nibble > 9 ? 'a' - '0' - 10 : 0));
}

/* The tokens of waiters sort by their tickets. */
static size_t write_ticket(struct redlock_lease *lease, bool for_place) {
    const uint64_t ticket = for_place ? redlock_waiting_ticket(lease) : 0;
    char *token = redlock_lease_own_token(lease);
    for (unsigned i = 0; i < REDLOCK_TICKET_DIGITS; i++) {
        token[i] = digit((unsigned)(ticket >> (4 * (REDLOCK_TICKET_DIGITS - 1 - i)) & 15));
    }
    lease->waiting->has_place = for_place;
    lease->waiting->no_push_due = lease->waiting->timing = 0;
    return REDLOCK_TICKET_DIGITS;
}

static void append_holder(struct redlock_lease *lease) {
    const struct redlock_group *group = lease->group;
    char *token = redlock_lease_own_token(lease);
    memcpy(token + lease->token_size, group->holder, group->holder_size);
    lease->token_size = (uint8_t)(lease->token_size + group->holder_size);
    token[lease->token_size] = '\0';
}

/* 128 bits and the end. */
static void write_digits(char *restrict digits, const unsigned char *restrict bytes) {
    const size_t size = REDLOCK_TOKEN_DIGITS / 2;
    for (size_t i = 0; i < size; i++) {
        digits[i] = digit(bytes[i] >> 4);
        digits[i + size] = digit(bytes[i] & 15);
    }
    digits[REDLOCK_TOKEN_DIGITS] = '\0';
}

/*
 * R10: a fresh token for every attempt: 128 bits from the kernel, printable. Two copies of a
 * virtual machine have the same bytes in their pools, but hardly the same nanosecond. So half of
 * the token is mixed with the time, which keeps it as random as it was.
 */
int redlock_lease_draw_token(struct redlock_lease *lease, int64_t now_ns, bool for_place) {
    uint64_t halves[2];
    const int code = lease->group->env.random(lease->group->env.ctx, halves, sizeof halves);
    if (code != REDLOCK_OK) {
        return code;
    }
    halves[1] ^= (uint64_t)now_ns;
    const size_t ticket_size = lease->waiting ? write_ticket(lease, for_place) : 0;
    write_digits(redlock_lease_own_token(lease) + ticket_size, (const unsigned char *)halves);
    lease->token_size = (uint8_t)(ticket_size + REDLOCK_TOKEN_DIGITS);
    if (lease->group->holder_size > 0) {
        append_holder(lease);
    }
    lease->token_drawn = true;
    return REDLOCK_OK;
}
