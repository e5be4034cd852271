/* What a client writes down, as events of README.md. */
#include "client/client_journal.h"
#include "values/clock.h"

#include <unistd.h>

/* The members of what is told of a lease. */
#define OF_LEASE             "s:i,s:i,s:s"
#define LEASE(journal, held) "client", (journal)->client, "resource", (int)(held)->resource + 1, "token", (held)->token

/* Told of what is shared alone. */
static const char *mode_of(const struct chaos_held *held) {
    return held->shared ? "shared" : NULL;
}

void chaos_journal_invoke(struct chaos_journal *journal, enum chaos_what what, const struct chaos_held *held,
                          int64_t within_ms) {
    int64_t now_us = tool_now_us();
    journal->op++;
    chaos_log_event(&journal->log, now_us, "invoke", "s:i,s:I,s:s,s:i,s:I,s:s*", "client", journal->client, "op",
                    (json_int_t)journal->op, "what", what == CHAOS_ACQUIRE ? "acquire" : "release", "resource",
                    (int)held->resource + 1, "deadline", (json_int_t)(now_us + within_ms * 1000), "mode",
                    what == CHAOS_ACQUIRE ? mode_of(held) : NULL);
}

/* A letter for each node up to the last that the client asks. The first letters of the names
 * differ. */
static void spell_votes(uint32_t nodes, const redlock_result *result, char *letters) {
    size_t length = 0, index = 0;
    for (; result != NULL && nodes != 0; nodes >>= 1) {
        redlock_vote vote = {.size = sizeof vote};
        bool asked = (nodes & 1) != 0;
        bool told = asked && redlock_result_vote(result, index++, &vote) == REDLOCK_OK;
        letters[length++] = told ? redlock_vote_name(vote.kind)[0] : asked ? '?' : '-';
    }
    letters[length] = '\0';
}

/* What a node said may be no UTF-8, which JSON must be. */
static void make_ascii(char *text) {
    for (; *text != '\0'; text++) {
        *text = *text >= ' ' && *text <= '~' ? *text : '?';
    }
}

void chaos_journal_complete(struct chaos_journal *journal, int code, const struct chaos_held *held,
                            const redlock_result *result) {
    int64_t now_us = tool_now_us();
    char message[2048] = "", votes[REDLOCK_NODES_MAX + 1];
    spell_votes(journal->nodes, result, votes);
    if (code != REDLOCK_OK && result != NULL) {
        redlock_result_message(result, message, sizeof message);
        make_ascii(message);
    }
    chaos_log_event(&journal->log, now_us, "complete", "s:i,s:I,s:s,s:I,s:s,s:I,s:I,s:s,s:s", "client", journal->client,
                    "op", (json_int_t)journal->op, "result", redlock_error_name(code), "attempts",
                    (json_int_t)(result == NULL ? 0 : redlock_result_attempts(result)), "token", held->token, "fence",
                    (json_int_t)held->fence, "ticket", (json_int_t)held->ticket, "votes", votes, "message", message);
}

void chaos_journal_claim(struct chaos_journal *journal, int64_t at_us, const struct chaos_held *held,
                         int64_t until_us) {
    chaos_log_event(&journal->log, at_us, "claim", OF_LEASE ",s:I,s:s*", LEASE(journal, held), "until",
                    (json_int_t)until_us, "mode", mode_of(held));
}

void chaos_journal_end(struct chaos_journal *journal, const struct chaos_held *held, const char *how) {
    chaos_log_event(&journal->log, tool_now_us(), "end", OF_LEASE ",s:s", LEASE(journal, held), "how", how);
}

void chaos_journal_intent(struct chaos_journal *journal, const struct chaos_held *held, int64_t read,
                          const struct chaos_receipt *receipt) {
    chaos_log_event(&journal->log, tool_now_us(), "intent", OF_LEASE ",s:I,s:I,s:I", LEASE(journal, held), "read",
                    (json_int_t)read, "fence", (json_int_t)held->fence, "number", (json_int_t)receipt->number);
}

void chaos_journal_done(struct chaos_journal *journal, int64_t at_us, const struct chaos_held *held, int64_t read,
                        int64_t until_us, const struct chaos_receipt *receipt) {
    chaos_log_event(&journal->log, at_us, "done", OF_LEASE ",s:I,s:I,s:I", LEASE(journal, held), "read",
                    (json_int_t)read, "until", (json_int_t)until_us, "number", (json_int_t)receipt->number);
}

void chaos_journal_read(struct chaos_journal *journal, int64_t at_us, const struct chaos_held *held, int64_t read,
                        int64_t until_us, const struct chaos_receipt *receipt) {
    chaos_log_event(&journal->log, at_us, "read", OF_LEASE ",s:I,s:I,s:I,s:I", LEASE(journal, held), "read",
                    (json_int_t)read, "until", (json_int_t)until_us, "fence", (json_int_t)held->fence, "number",
                    (json_int_t)receipt->number);
}

void chaos_journal_refused(struct chaos_journal *journal, const struct chaos_held *held, int64_t read,
                           const struct chaos_receipt *receipt) {
    chaos_log_event(&journal->log, tool_now_us(), "refused", OF_LEASE ",s:s,s:I,s:I,s:I", LEASE(journal, held), "what",
                    read < 0 ? "read" : "write", "read", (json_int_t)(read < 0 ? 0 : read), "fence",
                    (json_int_t)held->fence, "highest", (json_int_t)receipt->highest);
}

void chaos_journal_tally(struct chaos_journal *journal, const redlock_statistics *statistics) {
    chaos_log_event(&journal->log, tool_now_us(), "tally", "s:i,s:i,s:I,s:I,s:I,s:I,s:I", "client", journal->client,
                    "pid", (int)getpid(), "fenced_fast", (json_int_t)statistics->fenced_fast, "fenced_slow",
                    (json_int_t)statistics->fenced_slow, "healed", (json_int_t)statistics->healed, "quarantines",
                    (json_int_t)statistics->quarantines, "clock_jumps", (json_int_t)statistics->clock_jumps);
}
