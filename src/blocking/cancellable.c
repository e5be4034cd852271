/* The list of the calls that somebody may cancel. */
#include "blocking/cancellable.h"

#include <assert.h>

void redlock_cancellable_add(struct redlock_cancellable **list, struct redlock_cancellable *call) {
    if (call->cancel == NULL) {
        return;
    }
    assert(call->stop && !call->link);
    call->next = *list;
    call->link = list;
    if (call->next != NULL) {
        call->next->link = &call->next;
    }
    *list = call;
}

void redlock_cancellable_remove(struct redlock_cancellable *call) {
    if (call->link == NULL) {
        return;
    }
    assert(*call->link == call);
    *call->link = call->next;
    if (call->next != NULL) {
        call->next->link = call->link;
    }
    call->link = NULL;
}

/* No callback runs inside stop(), so no call is unlisted meanwhile. */
void redlock_cancellables_check(struct redlock_cancellable *list) {
    for (struct redlock_cancellable *call = list; call != NULL; call = call->next) {
        if (redlock_cancellable_is_cancelled(call)) {
            call->stop(call);
        }
    }
}
