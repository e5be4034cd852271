/* The server's end of a subscription that died without a sound. */
#include "node/zombie.h"

#include <stdio.h>
#include <string.h>

#include "node/handshake.h"
#include "node/node_state.h"

void redlock_zombie_note(struct redlock_subscription *subscription, int64_t client_id) {
    subscription->client_id = client_id;
}

void redlock_zombie_left(struct redlock_subscription *subscription) {
    const char *run_id = subscription->node->info.run_id;
    if (subscription->connection.fd >= 0 && subscription->client_id > 0 && run_id[0] != '\0') {
        subscription->zombie_id = subscription->client_id;
        memcpy(subscription->zombie_run_id, run_id, sizeof subscription->zombie_run_id);
    }
}

bool redlock_zombie_is_there(const struct redlock_subscription *subscription) {
    return subscription->zombie_id != 0 && strcmp(subscription->zombie_run_id, subscription->node->info.run_id) == 0;
}

bool redlock_zombie_kill(struct redlock_subscription *subscription) {
    char id[24];
    (void)snprintf(id, sizeof id, "%lld", (long long)subscription->zombie_id);
    subscription->zombie_id = 0;
    return redlock_handshake_say(&subscription->connection.hello, (const char *[4]){"CLIENT", "KILL", "ID", id});
}
