/* The inside of a blocking client. A call is a struct on its caller's stack: the loop thread gets a
 * pointer to it, and the caller waits until it is done. */
#ifndef REDLOCK_BLOCKING_CLIENT_H
#define REDLOCK_BLOCKING_CLIENT_H

#include <redlock/blocking.h>

#include "base/check.h"
#include "blocking/cancellable.h"
#include "blocking/eventcount.h"
#include "blocking/mailbox.h"
#include "blocking/reentrant.h"
#include "result/result.h"

/* One blocking call. The caller owns it until it puts it into the mailbox. Then the loop thread
 * owns it until it finishes `sleeper`. */
struct redlock_call {
    /* First member. */
    struct redlock_mailbox_item item;
    struct redlock_list_entry completed;
    /* Runs on the loop thread. True if a request will call redlock_call_answer(); false if `code`
     * is set. */
    bool (*begin)(redlock_manager *manager, struct redlock_call *call);
    redlock_client *client;
    char *sentence; /* that of the calling thread; set by redlock_client_perform() */
    /* For the result of a call that is refused; NULL: it has none. */
    const char *resource;
    enum redlock_result_of of;
    redlock_lease *acquired;
    redlock_result *result; /* a copy, if it is wanted and there is memory */
    bool want_result;
    /* Why `begin` refused the call with ERR_INVALID; NULL: the manager says it. */
    const char *reason;
    int code;
    struct redlock_sleeper sleeper; /* the caller */
};

/* The callback of each request. `data` is the call. */
void redlock_call_answer(const redlock_result *result, void *data);
/* For a call that no request answers. Its code is set. */
void redlock_call_complete(struct redlock_call *call);

/* For a call that was refused before a node was asked: makes its result, where it has one. `reason`
 * is for ERR_INVALID, and goes into the sentence of the calling thread, too. Returns `code`. */
int redlock_call_refuse(struct redlock_call *call, int code, const char *reason);

/* Begins the call, on the loop thread. False if it is complete, refused perhaps. */
bool redlock_call_begin(struct redlock_call *call, redlock_manager *manager);

/* Most calls: enters, lets the loop thread do the call, and exits. `result`, if not NULL, is set
 * to the result, or to NULL. */
int redlock_call_perform(redlock_client *client, struct redlock_call *call, redlock_result **result);

/* A handle that the close of the client frees. Only the loop thread attaches. Embed it. */
struct redlock_attached {
    struct redlock_list_entry entry;
    void (*free)(struct redlock_attached *attached);
};
void redlock_client_attach(redlock_client *client, struct redlock_attached *attached);

/*
 * Every public function that asks the loop thread calls these two. Enter returns
 * REDLOCK_ERR_INVALID, with a sentence, for NULL and on the loop thread, and REDLOCK_ERR_FORKED in
 * a child process. Until exit, nobody frees the client, and the thread cannot be cancelled: the
 * loop thread may be using its stack.
 */
int redlock_client_enter(redlock_client *client, int *cancel_state);
void redlock_client_exit(redlock_client *client, int cancel_state);
/* For a function that only reads: from the first to the second call, nobody frees the client. */
void redlock_client_hold(redlock_client *client);
void redlock_client_let_go(redlock_client *client);

/* Lets the loop thread do the call, waits, and returns its code. */
int redlock_client_perform(redlock_client *client, struct redlock_call *call);

/* Where the calling thread's sentence for redlock_client_invalid() goes. */
struct redlock_failure redlock_client_failure(void);
struct redlock_reentrant *redlock_client_reentrant(redlock_client *client);
/* The calls that somebody may cancel; for the loop thread. */
struct redlock_list *redlock_client_cancellables(redlock_client *client);
/* The loop thread looks which of them are cancelled. Any thread; safe in a signal handler. */
void redlock_client_wake_cancelled(redlock_client *client);
int64_t redlock_client_try_ms(const redlock_client *client);

#endif
