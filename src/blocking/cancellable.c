/* The list of the calls that somebody may cancel. */
#include "blocking/cancellable.h"

#include <assert.h>

void redlock_cancellable_add(struct redlock_list *list, struct redlock_cancellable *call) {
    if (call->cancel != NULL) {
        assert(call->stop);
        redlock_list_prepend(list, &call->entry);
    }
}

void redlock_cancellable_remove(struct redlock_cancellable *call) {
    if (redlock_list_is_in(&call->entry)) {
        redlock_list_remove(&call->entry);
    }
}

/* No callback runs inside stop(), so no call is unlisted meanwhile. */
void redlock_cancellables_check(const struct redlock_list *list) {
    REDLOCK_LIST_EACH(at, list) {
        struct redlock_cancellable *call = REDLOCK_CONTAINER(at, struct redlock_cancellable, entry);
        if (redlock_cancellable_is_cancelled(call)) {
            call->stop(call);
        }
    }
}
