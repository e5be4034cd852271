/* What a schedule may do, and which assumption a run breaks. */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include <redlock/redlock.h>

struct sim_world;

/*
 * What is assumed, and what protects.
 * TRUSTED  no node forgets a lock before its ttl, and no node's clock steps: no guards needed
 * GUARDED  nodes forget and clocks step, within what docs/safety.md allows for; guards are on
 * RECKLESS nodes forget and clocks step as they like, without guards: only fencing tokens are safe
 */
enum sim_trust { SIM_TRUSTED, SIM_GUARDED, SIM_RECKLESS };

/* What a schedule may do, drawn from its seed. */
struct sim_profile {
    unsigned nodes, clients, resources, slots;
    /* What client i asks: so many of the first nodes, and this quorum; 0: all nodes, and more than
     * half of them. */
    unsigned own_nodes[6], own_quorum[6];
    bool calm;        /* no faults, no pauses, delays far below timeouts */
    bool one_hung;    /* calm but for node 0, which hangs all the time */
    bool leaps;       /* pauses inside env calls */
    bool may_kill;    /* CLIENT KILL ID is permitted (R9) */
    bool auto_extend; /* users like it */
    enum sim_trust trust;
    bool early; /* each client has met each node before anything happens */
    /* Nodes may lose counters of fencing tokens; else clients' wall clocks may be wrong. */
    bool counters_die;
    /* No pauses or delays beyond the node timeout: clocks are read well, and may step by little. */
    bool prompt;
    bool storm;   /* locks are dropped all the time, and most proposals are too low */
    bool fencing; /* users ask for fencing tokens */
    /* All clients draw the same low digits for them. No harm where no counter is lost. */
    bool same_digits;
    unsigned readers;        /* so many percent of those who acquire only read */
    unsigned bundles;        /* so many percent want both resources at once */
    unsigned limit;          /* all acquires are of permits: so many there are; 0: of locks */
    bool heal;               /* as they should be */
    bool crowd;              /* many wait for one resource, and who has it releases it soon, */
    bool holds_long;         /* or keeps it */
    int64_t late_max_ms;     /* processes run so late, and users do nothing but wait; 0: neither */
    bool deafens;            /* with them, subscriptions end, and the clients learn it at once; */
    bool blocks;             /* locks are held for long; who leaves one free stops running */
    bool stalls;             /* pushes come later than keys end, often */
    bool overtakes;          /* later grants are known before them; then a clock steps */
    bool replaced;           /* so are nodes, often */
    bool all_probe;          /* at the end all clients want each resource at once */
    unsigned old_clients;    /* bit i: client i never queues */
    unsigned refusing;       /* bit i: node i lets nobody use a queue, */
    unsigned silent;         /* or hear who leads */
    unsigned unopened;       /* bit i: client i can never open a second connection */
    bool waking;             /* clients begin before they are connected, with wrong wall clocks */
    unsigned stall_permille; /* pushes after which nothing comes on that subscription for long */
    redlock_restart_guard restart_guard;
    bool clock_guard, first_boot;
    /* A node that forgot comes back before what it had granted has ended. */
    bool forgets_at_once;
    /* And then its clock is set, so that it seems to have been up for long. */
    bool steps_at_boot;
    int64_t guarded_ttl_max_ms; /* with the lock delay */
    int64_t lock_delay_max_ms;
    int64_t fence_expiry_ms;
    int64_t step_min_ns, step_max_ns; /* of nodes' clocks */
    int64_t uptime_ns;                /* of nodes, when it begins */
    unsigned faults;                  /* bit i: enum sim_fault i may happen */
    unsigned leap_permille;
    unsigned no_random_permille; /* the kernel gives no random bytes */
    int64_t fault_gap_ns, user_gap_ns, active_ns;
    int64_t delay_min_ns, delay_max_ns;
    unsigned spike_permille;
    int64_t node_timeout_ms;
    int64_t ttl_min_ms, ttl_max_ms;
};

/* Runs that break an assumption, or run without a protection. */
enum sim_control {
    SIM_CONTROL_NONE,
    SIM_CONTROL_SKEW,       /* clocks run at rates beyond the drift */
    SIM_CONTROL_MEMORYLESS, /* nodes forget, and nothing protects against it */
    /* Nothing is broken: all schedules are GUARDED, as in the next two. */
    SIM_CONTROL_GUARDED,
    SIM_CONTROL_NO_RESTART_GUARD, /* GUARDED, but for that */
    SIM_CONTROL_NO_CLOCK_GUARD,
    /* A clock is set right just before a client reads it for the first time. */
    SIM_CONTROL_RIGHTED,
    /* Nothing is broken: the clocks of many nodes step at once, often, while many wait. */
    SIM_CONTROL_STEPPING,
    SIM_CONTROL_RESTARTING,     /* Nor here: nodes restart often, while many wait. */
    SIM_CONTROL_REPLACING,      /* Nor here: other servers take the place of nodes meanwhile. */
    SIM_CONTROL_LATE,           /* Nor here: clients meet nodes whose clocks have just stepped. */
    SIM_CONTROL_DEAD,           /* Nor here: all is calm, but those at the head of queues die. */
    SIM_CONTROL_SILENT,         /* Nor here: connections go silent, and no lease may end by that. */
    SIM_CONTROL_LOADED,         /* Nor here: processes get the processor late, while all wait. */
    SIM_CONTROL_WRONG_AND_LOST, /* wrong wall clocks, and counters that are lost */
    SIM_CONTROL_STARVED,        /* at the end, nodes do not serve one of the clients */
    /* Nothing is broken: clients have different nodes and quorums, which may run beside each
     * other (docs/operations.md, "Changing the nodes"). */
    SIM_CONTROL_MIXED,
    SIM_CONTROL_PARTED,         /* the same, but their quorums need not share a node */
    SIM_CONTROL_SHARED,         /* Nothing is broken: many read, and some write. */
    SIM_CONTROL_SHARED_LOADED,  /* Nor here: likewise, as in LOADED. */
    SIM_CONTROL_BUNDLES,        /* Nor here: many want two resources at once. */
    SIM_CONTROL_BUNDLES_LOADED, /* Nor here: likewise, as in LOADED. */
    SIM_CONTROL_PERMITS,        /* Nor here: resources have permits. */
    SIM_CONTROL_SPEC,           /* Nothing is broken: only what spec/Lock.tla has, too, happens. */
    SIM_CONTROL_MISQUOTED       /* an answer reaches its client as another one */
};

static inline bool sim_is_loaded(enum sim_control control) {
    return control == SIM_CONTROL_LOADED || control == SIM_CONTROL_SHARED_LOADED ||
           control == SIM_CONTROL_BUNDLES_LOADED;
}

void sim_profile_draw(struct sim_world *world);

#endif
