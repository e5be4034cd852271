/* What the files of the simulation offer each other. */
#ifndef SIM_PARTS_H
#define SIM_PARTS_H

#include "world.h"

/* Nothing fails. A node that hung and runs again is a fault, too: its grants count from WAITs of
 * long ago. */
static inline bool sim_is_calm(const struct sim_world *world) {
    return world->profile.calm && !(world->profile.one_hung && world->phase != SIM_ACTIVE);
}

/* --- world.c: the queue and the loop --- */
struct sim_world *sim_world_new(void);
void sim_world_delete(struct sim_world *world);
/* Runs one schedule; returns true if no checker complained (else: world->checker,
 * world->violation). */
bool sim_world_run(struct sim_world *world, uint64_t seed);
/* A place for an event that is due then, before those of the same time with a higher order. */
struct sim_event *sim_place(struct sim_world *world, int64_t at, uint32_t order);
/* Inline: it is written straight into its place. */
static inline void sim_push(struct sim_world *world, int64_t at, struct sim_event event) {
    event.order = world->order++;
    *sim_place(world, at, event.order) = event;
}
/* The same event later, but still before events that were pushed after it. */
static inline void sim_put_off(struct sim_world *world, struct sim_event event, int64_t at) {
    *sim_place(world, at, event.order) = event;
}
void *sim_arena(struct sim_world *world, size_t size);
/* The last that was taken ends there already. */
void sim_arena_give_back(struct sim_world *world, const char *end);
/* The key of this token may stay until its ttl. */
void sim_forget_token(struct sim_world *world, const char *token);

/* --- readers.c: those who read a lock together, at a node --- */
/* Whether this set is a lock that some read. */
bool sim_is_read(const struct fake_key *set);
/* Whether the token has the lock at the node, alone or with others. */
#define SIM_LIMIT_MAX 4 /* permits of a resource */
/* Whether both cannot be held at once, if they are of one resource. */
static inline bool sim_collide(uint32_t slots, uint32_t others) {
    return (slots | others) == 0 || (slots & others) != 0;
}
bool sim_node_has(struct sim_world *world, unsigned node, unsigned resource, const char *token);
/* Its user does not need it alone any more. */
void sim_lease_reads(struct sim_lease *lease);
/* Until when it reads there, if that is later than `until_ns`. */
int64_t sim_reads_until(const struct sim_node *node, const char *token, int64_t until_ns);
/* The node loses them: at once, or when the last has ended, which is returned (0: nobody). */
int64_t sim_node_lose_readers(struct sim_world *world, unsigned index, bool at_once);
/* Its clock is about to step forward. Guards keep it from voting while these would have read. */
void sim_haunt_readers(struct sim_world *world, unsigned index);
/* The node has this token, which may not be lost, until then. */
void sim_node_haunt(struct sim_world *world, unsigned index, const char *token, size_t size, int64_t gone_ns);
/* At the end: who reads there by now, and should not. When the last of all ends. */
int64_t sim_readers_left(struct sim_world *world, unsigned node, bool checked);
/* Whether this token may be left at the end. */
bool sim_may_stay(const struct sim_world *world, const char *token);
/* How long bytes travel, this time. */
int64_t sim_delay_ns(struct sim_world *world);

/* --- link.c --- */
bool sim_link_send(struct sim_client *client, unsigned node, const struct sim_bytes *bytes, unsigned reply_kind,
                   void *owner, uint32_t round);
void sim_link_flush(struct sim_client *client, unsigned node, int64_t at);
bool sim_key_is_counter(const struct fake_key *key);
/* The key of this resource with this suffix, if the node has it now. */
struct fake_key *sim_key_at(struct sim_world *world, unsigned node, unsigned resource, const char *suffix);
/* The node looks at its clock. */
void sim_node_clock(const struct sim_world *world, struct sim_node *node);
/* When the key will be gone, in true time. */
int64_t sim_key_gone_ns(const struct sim_node *node, const struct fake_key *key);
void sim_link_arrive(struct sim_world *world, const struct sim_event *event);
void sim_link_reply(struct sim_world *world, const struct sim_event *event);
void sim_link_timeout(struct sim_world *world, const struct sim_event *event);
void sim_link_unblock(struct sim_world *world, const struct sim_event *event);

/* --- connection.c: how connections end and come back --- */
/* The connection dies; its client notices at once. */
void sim_link_break(struct sim_world *world, unsigned client, unsigned node);
/* Its client will notice then. */
void sim_link_break_at(struct sim_world *world, unsigned client, unsigned node, int64_t at);
void sim_link_broken(struct sim_world *world, const struct sim_event *event);
void sim_link_reconnect(struct sim_world *world, const struct sim_event *event);
void sim_link_handshake(struct sim_world *world, const struct sim_event *event);
void sim_link_spare(struct sim_world *world, const struct sim_event *event);
void sim_link_ready(struct sim_world *world, const struct sim_event *event);
/* The first connection is tried at from_ns, or soon after. */
void sim_link_open(struct sim_world *world, unsigned client, unsigned node, int64_t from_ns);
/* In a third of the schedules clients take the nodes for Valkey 9. Not all of them are. */
bool sim_deletes(const struct sim_world *world);
bool sim_names(const struct sim_world *world);
bool sim_is_guarded(const struct sim_world *world);

/* --- client.c: the env of one group --- */
bool sim_client_open(struct sim_world *world, unsigned index);
/* Adds up what the group counted, before its end. */
void sim_client_count(struct sim_client *client);
void sim_client_close(struct sim_client *client); /* frees what is left, without callbacks */
/* A step: everything that the library and its user do in one turn of the loop. */
void sim_client_enter(struct sim_client *client);
void sim_client_leave(struct sim_client *client);
void sim_client_pause(struct sim_client *client, int64_t for_ns);
/* For how long the client has not run until now, which is `at`. */
int64_t sim_client_paused(const struct sim_client *client, int64_t at);
void sim_client_wake(struct sim_world *world, const struct sim_event *event);
int64_t sim_client_now(const struct sim_client *client); /* its own clock, without a leap */
int64_t sim_lease_validity_ms(struct sim_world *world, const struct sim_lease *lease);
/* Between a call into the library and its return no callback may run. */
void sim_api_enter(struct sim_client *client);
void sim_api_leave(struct sim_client *client);

/* --- think.c: what users do next --- */
void sim_user_event(struct sim_world *world, const struct sim_event *event);
void sim_user_act(struct sim_client *client, unsigned slot);
void sim_user_finish(struct sim_client *client);

/* --- user.c: their calls --- */
bool sim_user_acquire(struct sim_client *client, unsigned slot, unsigned resource, bool probe);
void sim_user_extend(struct sim_lease *lease);
void sim_user_release(struct sim_lease *lease);
void sim_user_forget(struct sim_lease *lease);
void sim_user_adopt(struct sim_lease *lease, struct sim_client *client, unsigned slot);
void sim_user_cancel(struct sim_call *call);
void sim_user_connect(struct sim_client *client);
void sim_user_inspect(struct sim_client *client, unsigned resource);
void sim_user_close(struct sim_client *client);
struct sim_call *sim_call_new(struct sim_client *client, enum sim_call_kind kind);
/* What the user knows of an item of the handle; 0 for one resource. */
struct sim_lease *sim_lease_new(struct sim_client *client, unsigned resource, redlock_lease *handle, unsigned item);
/* The slot that holds this lease, or -1. */
int sim_slot_of(const struct sim_lease *lease);
const char *sim_resource_name(unsigned resource);
/* Its user gives it up, and after this call does so: how long it is valid... */
int64_t sim_lease_give_up(struct sim_lease *lease);
/* ...and what may stay of it. */
void sim_lease_given_up(struct sim_lease *lease, int64_t left_ms);
/* Its user has no handle any more. */
void sim_lease_end(struct sim_lease *lease);

/* --- callbacks.c: their callbacks --- */
void sim_on_acquired(const redlock_result *result, void *data);
void sim_on_extended(const redlock_result *result, void *data);
void sim_on_released(const redlock_result *result, void *data);
void sim_on_inspected(const redlock_result *result, void *data);
void sim_on_lost(redlock_lease *handle, const char *reason, void *data);

/* --- expiring.c: who is told that a deadline is near --- */
/* How long before the deadline of a lease with this ttl; 0: never. */
int64_t sim_draw_expiring_ms(const struct sim_world *world, int64_t ttl_ms);
void sim_on_expiring(redlock_lease *handle, int64_t remaining_ms, void *data);
/* The owner of the lease is told so now. */
void sim_check_expiring_told(struct sim_lease *lease, int64_t remaining_ms);
/* The lease is valid. */
void sim_check_expiring(struct sim_lease *lease);

/* --- spans.c: the events that the library tells --- */
void sim_on_event(const redlock_telemetry_event *event, void *data);
/* Each acquire and each lease of this client has told its end. */
void sim_check_spans(const struct sim_client *client);

/* --- faults.c --- */
/* ways: 1 towards the node, 2 towards the client, 3 both */
void sim_link_cut(struct sim_world *world, unsigned client, unsigned node, unsigned ways, int64_t for_ns);
/* Prepares what must not fool the clock guard of a client that meets the nodes at at_ns. */
void sim_ambush(struct sim_world *world, int64_t at_ns);
void sim_ambush_event(struct sim_world *world);
/* A push of this node to this client is held up. */
void sim_overtake(struct sim_world *world, unsigned client, unsigned node, int64_t for_ns);
void sim_fault_event(struct sim_world *world);
void sim_restart_event(struct sim_world *world, const struct sim_event *event);
void sim_mode_event(struct sim_world *world, const struct sim_event *event);
/* Heals all faults. Returns when everything works again. */
int64_t sim_faults_heal(struct sim_world *world);

/* --- plagues.c --- */
/* One node, or all of them, permits no queue for so long: one ACL is often that of all. */
void sim_plague_forbid(struct sim_world *world, unsigned node, int64_t for_ns);
/* The client's subscriptions end, and it can open no others for so long. */
void sim_plague_starve(struct sim_world *world, unsigned client, int64_t for_ns);
/* A process dies, now or soon, whose threads, hundreds of them, are in line before all others. What
 * it is handed until then, it keeps. Some of its places were not refreshed for long. */
void sim_plague_die_in_line(struct sim_world *world);

/* --- shape.c: what the schedules of one kind have in common --- */
/* Many users of one resource. */
void sim_shape_crowd(struct sim_profile *profile, struct sim_random *random);
void sim_shape_draw(struct sim_world *world);

/* --- load.c: processes that run late --- */
void sim_load_draw(struct sim_profile *profile, struct sim_random *random);
void sim_load_pace(struct sim_profile *profile, struct sim_random *random);
/* One of all processes does not run for a while, or many nodes do not. */
void sim_load_late(struct sim_world *world);
/* A user has released its lock, and may run no more for a while. */
void sim_load_released(struct sim_client *client);

/* Now and then, keeps a copy of the node's data, if it may come back. */
void sim_node_back_up(const struct sim_world *world, struct sim_node *node);
/* A key that the node loses now, though its ttl is not over. */
void sim_node_lose(struct sim_world *world, unsigned node, struct fake_key *key);

/* --- steps.c: nodes' clocks, as far as guards must notice their steps --- */
/* This node's clock, or another one that is wrong already. */
void sim_step(struct sim_world *world, unsigned node);
/* Each of them, if it may. */
void sim_step_all(struct sim_world *world);
/* Another one than this goes forward. */
void sim_step_another(struct sim_world *world, unsigned node);
/* The server starts. */
void sim_step_at_boot(struct sim_world *world, unsigned node);

/* --- grants.c: what a lease means for those that come after it --- */
struct sim_grant *sim_grant_of(struct sim_world *world, const char *token);
/* An acquire returned OK: checks its fencing token and the lock delay. */
void sim_grant_acquired(struct sim_call *call, const struct sim_lease *lease);
/* An extend of the caller returned OK: nobody else may have been granted the lock meanwhile. */
void sim_grant_extended(const struct sim_call *call, const struct sim_lease *lease);
/* Valid for so long on its client's clock, and the lock delay beyond that. */
void sim_grant_promise(struct sim_world *world, const struct sim_lease *lease, int64_t validity_ms);
/* A client with this token has released it. */
void sim_grant_ended(struct sim_world *world, const char *token);
/* The node set the key under this token now. */
void sim_grant_set(struct sim_world *world, unsigned node, const char *token);

/* --- backing.c: votes that a node's clock makes void --- */
/* The client has read the node's clock. */
void sim_backing_clock(struct sim_client *client, unsigned node, const struct sim_stepped *stepped);
void sim_backing_granted(struct sim_client *client, unsigned node, const char *token, uint32_t steps);
/* The nodes whose votes for this lease are not void, as far as its client can know. */
uint32_t sim_backing_nodes(const struct sim_world *world, const struct sim_lease *lease);

/* --- quarantine.c: runs that may have forgotten locks --- */
/* A run of the server begins. */
void sim_quarantine_begin(struct sim_world *world, struct sim_node *node);
/* Whose key the node has before a request; zero for none. */
void sim_quarantine_look(struct sim_world *world, unsigned node, unsigned resource, char holder[SIM_TOKEN_SIZE]);
/* The node has executed it. */
void sim_quarantine_check(struct sim_world *world, unsigned node, const struct sim_bytes *bytes,
                          const char before[SIM_TOKEN_SIZE]);

/* A client sends this request to these nodes. */
void sim_jumped_check(const struct sim_client *client, uint32_t nodes, const struct sim_bytes *bytes,
                      enum redlock_handing handing);

/* --- reasons.c: why an acquire ends without the lock --- */
void sim_reason_sent(struct sim_client *client, const struct redlock_message *message, redlock_nodes nodes,
                     redlock_nodes taken, struct sim_bytes *bytes);
/* The node has executed the request. */
void sim_reason_executed(struct sim_world *world, unsigned node, const struct sim_bytes *bytes,
                         struct sim_reply *reply);
/* The client reads the answer in time; or its library is told that none came. */
void sim_reason_answered(struct sim_client *client, unsigned node, const struct sim_bytes *bytes,
                         const struct sim_reply *reply);
void sim_reason_over(struct sim_client *client, unsigned node, const struct sim_bytes *bytes);
void sim_reason_check(const struct sim_call *call, int code);

/* --- bundles.c --- */
/* Asks for the call's resource and the other one. */
int sim_bundle_acquire(struct sim_call *call, const redlock_acquire_options *options);
/* What the user knows of the other one, as soon as both are held. */
void sim_bundle_acquired(const struct sim_call *call, struct sim_lease *lease);
/* Another client takes both over, with their tokens. */
int sim_bundle_adopt(struct sim_client *client, const struct sim_lease *lease, const redlock_acquire_options *options,
                     redlock_lease **handle);
void sim_bundle_adopted(struct sim_lease *lease, struct sim_lease *adopted);
/* The user was told that it is lost. */
void sim_bundle_lost(struct sim_lease *lease);

/* --- spec.c: traces for spec/Trace.tla --- */
/* Schedules of SIM_CONTROL_SPEC: nodes, clients and ttls; and how often what happens. */
void sim_spec_draw(struct sim_profile *profile, struct sim_random *random);
void sim_spec_pace(struct sim_world *world);
void sim_spec_begin(struct sim_world *world);
/* A client sends a request to these nodes. Before that, it read this time on its clock. */
void sim_spec_sent(struct sim_client *client, redlock_nodes nodes, const struct sim_bytes *bytes, int64_t now_ns);
/* The node has executed it; before that, its key had this token. */
void sim_spec_executed(struct sim_world *world, unsigned client, unsigned node, const struct sim_bytes *bytes,
                       const char before[SIM_TOKEN_SIZE], const struct fake_reply *reply);
/* The client has the lock, for so long at least. */
void sim_spec_holds(struct sim_client *client, int64_t validity_ms);
void sim_spec_gave_up(struct sim_client *client);
/* Without its keys. */
void sim_spec_restarted(struct sim_world *world, unsigned node);
/* To standard output, at the end of the schedule. */
void sim_spec_write(struct sim_world *world);

/* --- finish.c: the quiet end of each schedule --- */
void sim_heal_event(struct sim_world *world);
/* How long it may take until no key is left. */
int64_t sim_settle_ns(const struct sim_world *world);
/* All users finish now; none is busy. */
void sim_finish(struct sim_world *world);
void sim_leftover_event(struct sim_world *world);
void sim_probe_event(struct sim_world *world);

/* --- checks.c --- */
void sim_violation(struct sim_world *world, const char *checker, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* After every step. */
void sim_check(struct sim_world *world);
void sim_check_call_done(struct sim_call *call, const redlock_result *result);
void sim_check_lost(const struct sim_lease *lease);
/* The node has executed a request about this lock. */
void sim_check_life(struct sim_world *world, unsigned node, unsigned resource);
void sim_check_idle(struct sim_client *client);
void sim_check_closed(const struct sim_client *client);
void sim_check_end(struct sim_world *world);

/* --- idle.c --- */
/* No lock stays free beside somebody who waits for it and can be told. */
void sim_check_free(struct sim_world *world);
/* Nobody waits for long while no user has the lock. */
void sim_check_hiccup(struct sim_world *world);

/* --- trace.c --- */
void sim_trace_write(struct sim_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define SIM_TRACE(world, ...)                                                                                          \
    do {                                                                                                               \
        if ((world)->tracing)                                                                                          \
            sim_trace_write((world), __VA_ARGS__);                                                                     \
    } while (0)

#endif
