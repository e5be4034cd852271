/* The simulator plants these bugs to prove that it finds them. Only its test build has them. */
#ifndef REDLOCK_CORE_PLANTED_H
#define REDLOCK_CORE_PLANTED_H

#ifdef REDLOCK_PLANTED_BUGS

enum redlock_planted_bug {
    REDLOCK_BUG_NONE = 0,
    REDLOCK_BUG_QUORUM_HALF,          /* quorum n/2 */
    REDLOCK_BUG_NO_DRIFT,             /* drift left out */
    REDLOCK_BUG_START_AFTER_SEND,     /* start read after the send */
    REDLOCK_BUG_RELEASE_ANY_TOKEN,    /* DEL without comparing the token */
    REDLOCK_BUG_TOKEN_REUSED,         /* one token for all attempts */
    REDLOCK_BUG_UNKNOWN_GRANTS,       /* UNKNOWN counted as GRANTED */
    REDLOCK_BUG_NO_RELEASE_TIMED_OUT, /* no release to nodes that timed out */
    REDLOCK_BUG_EXTEND_AFTER_END,     /* extend after the deadline */
    REDLOCK_BUG_LOSS_ON_REPLY_ONLY,   /* a loss is noticed only when a reply arrives */
    REDLOCK_BUG_EXTEND_SHORTENS,      /* an extension that comes late may shorten the key's life */
    REDLOCK_BUG_FENCE_INCR,           /* each node counts alone; the token is the largest count */
    /* slow path: the largest counter + 1, which is not written back */
    REDLOCK_BUG_FENCE_NO_WRITE_BACK,
    REDLOCK_BUG_FENCE_ACCEPTS_EQUAL,  /* a node accepts a proposal equal to its counter */
    REDLOCK_BUG_FENCE_ACKS_ANY,       /* confirms an equal write-back, also where we have no lock */
    REDLOCK_BUG_FENCE_COLLIDES,       /* coarse proposals: harmless while nodes keep counters */
    REDLOCK_BUG_HEAL_COUNTS,          /* an extension sets missing keys again and counts them */
    REDLOCK_BUG_QUARANTINE_BY_UPTIME, /* quarantine ends when the server's uptime says so */
    REDLOCK_BUG_QUARANTINE_SHORT,     /* quarantine of a quarter of ttl_max */
    REDLOCK_BUG_JUMP_IGNORED,         /* a jump of a clock voids no vote of a lease that is held */
    REDLOCK_BUG_CLOCK_MEDIAN,         /* a clock is compared with the median, right or wrong */
    REDLOCK_BUG_DEBT_ENDS_BY_CLOCK,   /* every owed release ends with the ttl */
    REDLOCK_BUG_PLAIN_CLOSE,          /* close() of a connection, without CLIENT KILL */
    REDLOCK_BUG_QUEUE_NO_SERIALS,     /* a push counts, though a later WAIT was answered "queued" */
    REDLOCK_BUG_QUEUE_BOUND_AT_PUSH,  /* a grant counts from the arrival of the push */
    /* A late push backs a lease, whatever its bound; and without a look at the clock, whose answer
     * would come behind newer grants (docs/protocols.md, "Waiting in a queue"). */
    REDLOCK_BUG_QUEUE_LATE_BACKING,
    REDLOCK_BUG_QUEUE_YIELD_KEEPS,  /* a waiter that yields keeps its token */
    REDLOCK_BUG_QUEUE_OWN_CLOCK,    /* the ticket comes from the client's own clock, */
    REDLOCK_BUG_QUEUE_EARLY_TICKET, /* or only before any node has told the time; then it stays */
    REDLOCK_BUG_QUEUE_POLLS_ON,     /* who once could not queue polls for ever */
    REDLOCK_BUG_QUEUE_DEAF,         /* who cannot be told of a grant waits in the queue */
    /* A push of another run_id counts, and WAITs go to nodes that may not vote. In the simulator
     * each of these rules covers for the other (docs/protocols.md, "Waiting in a queue"). */
    REDLOCK_BUG_QUEUE_ANY_SERVER,
    REDLOCK_BUG_QUEUE_PUSH_CLOCK,      /* nobody reads a node's clock after its push */
    REDLOCK_BUG_WAIT_UNGREETED,        /* a WAIT is queued to a guarded node that has not greeted */
    REDLOCK_BUG_RELEASE_UNGUARDED,     /* a node in quarantine hands over a lock that is released */
    REDLOCK_BUG_LEFT_UNTOLD,           /* a lock is left free, and nobody in line is told */
    REDLOCK_BUG_QUEUE_RELEASE_STAYS,   /* a release does not leave the queue */
    REDLOCK_BUG_QUEUE_SERVES_STALE,    /* a stale entry is served */
    REDLOCK_BUG_QUEUE_SERVES_FEW,      /* of the dead, a release passes over 64, WAIT over none */
    REDLOCK_BUG_QUEUE_FEW_LOOK,        /* with eight or more before it, a waiter does not look */
    REDLOCK_BUG_QUEUE_COUNTS_PATTERNS, /* who subscribes to a pattern counts as a waiter */
    REDLOCK_BUG_QUEUE_UNHEARD_RESTS,   /* whom too few nodes can tell waits for its refresh */
    REDLOCK_BUG_QUEUE_NO_EXPIRY,       /* the keys of a queue stay for ever */
    REDLOCK_BUG_MARK_NEVER,            /* a WAIT marks no lock, */
    REDLOCK_BUG_MARK_ANY,              /* or marks every value, */
    REDLOCK_BUG_MARK_ENDLESS,          /* or takes the key's time to live away */
    REDLOCK_BUG_MARK_UNKNOWN,          /* an extension takes the mark for another token */
    REDLOCK_BUG_MARK_DELETED,          /* the release of a try deletes a marked lock, too */
    REDLOCK_BUG_SHARED_WRITER_JOINS,   /* a writer is served while others read, */
    REDLOCK_BUG_SHARED_RELEASE_ALL,    /* or the release of one who reads is that of all, */
    REDLOCK_BUG_SHARED_LEAVES_QUIETLY, /* or lets nobody in while others read on, */
    REDLOCK_BUG_SHARED_KEEP_JOINS,     /* or an extension joins again, and counts, */
    REDLOCK_BUG_SHARED_ONE_LIFE,       /* or all have the time to live of the first, */
    REDLOCK_BUG_SHARED_LINE_IGNORED,   /* or none of them sees the writer who is first in line */
    REDLOCK_BUG_BUNDLE_UNSORTED,       /* a bundle takes its items as they were given, */
    REDLOCK_BUG_BUNDLE_KEEPS_ALL,      /* or keeps those after the one that it waits for, */
    REDLOCK_BUG_BUNDLE_LEAVES_PREFIX,  /* or fails without a release, */
    REDLOCK_BUG_BUNDLE_LOSES_ONE,      /* or goes on without the one that was lost, */
    REDLOCK_BUG_BUNDLE_FIRST_DEADLINE, /* or is valid as long as its first item */
    REDLOCK_BUG_PERMITS_ANY_SLOTS,     /* all slots that nodes give count as the same, */
    REDLOCK_BUG_PERMITS_OTHERS_STAY,   /* or what a minority gave stays there, */
    REDLOCK_BUG_PERMITS_GATE_STAYS,    /* or who has his slots keeps the gate, */
    REDLOCK_BUG_PERMITS_GATE_RESTS,    /* or who stands there takes only what he is told of, */
    REDLOCK_BUG_PERMITS_ONE_SLOT,      /* or an extension asks for the first slot only */
    REDLOCK_BUG_DELETE_FINAL,          /* what a command does not delete counts as gone */
    REDLOCK_BUG_HEAL_OUTLIVES,         /* a key that is healed lives for twice its ttl */
    REDLOCK_BUG_LOSS_ENDS_NOTHING,     /* a lease that was lost tells no end */
    REDLOCK_BUG_REASON_SILENT,         /* a node that is silent counts as one that answered */
    REDLOCK_BUG_REASON_EARLY,          /* a lost round ends before its reason is known */
    REDLOCK_BUG_JUMP_VOTES,            /* a node whose clock jumped goes on voting */
    REDLOCK_BUG_EXPIRING_ONCE,         /* after an extension, nobody is told of the new deadline */
    REDLOCK_BUG_ELECT_LOSS_LATE,       /* LOST is told when the candidate next looks */
    REDLOCK_BUG_ELECT_LOSS_RESTS,      /* who lost does not campaign again */
    REDLOCK_BUG_ELECT_RESIGN_KEEPS,    /* a release names another token, so the lock stays ours */
    REDLOCK_BUG_ELECT_RESIGN_SKIPS,    /* a release hands the lock of an election to nobody */
    REDLOCK_BUG_PUSH_COUNTS_ANY,       /* a push counts, whoever says it of whichever node, */
    REDLOCK_BUG_PUSH_GIVES_ANY,        /* or any token that one names is released, */
    REDLOCK_BUG_PUSH_GIVES_FORGOTTEN,  /* or the token of a lease that was forgotten */
    REDLOCK_BUG_OBSERVER_BELIEVES,     /* what a channel says counts as the word of the node */
    REDLOCK_BUG_OBSERVER_DEAF,         /* who knows a leader ignores announcements, */
    REDLOCK_BUG_OBSERVER_ASKS_ONCE,    /* or asks nobody */
    REDLOCK_BUG_OBSERVER_ANY_NODE,     /* whom one node names leads */
    REDLOCK_BUG_OBSERVER_OLD_WORDS,    /* words from before a leader was found make another one */
    REDLOCK_BUG_OBSERVER_UNCHECKED,    /* nobody leads as soon as a quorum says so */
    REDLOCK_BUG_SILENT_WAITS,          /* no second connection beside one that is silent */
    REDLOCK_BUG_COUNT
};

extern enum redlock_planted_bug redlock_planted_bug;
#define REDLOCK_PLANTED(bug) (redlock_planted_bug == REDLOCK_BUG_##bug)

#else
#define REDLOCK_PLANTED(bug) 0
#endif

#endif
