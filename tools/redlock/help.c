/* What --help says. */
#include "help.h"

#include <stdio.h>

static const char general[] =
    "usage: redlock [-n URI,URI,…] [OPTION…] COMMAND …\n"
    "\n"
    "Locks a resource across independent Redis nodes (Redlock): the lock is held while a quorum of the nodes,\n"
    "more than half, has granted it. Dead or slow nodes in the minority do no harm.\n"
    "\n"
    "commands (redlock COMMAND --help tells more):\n"
    "  run RESOURCE -- CMD …   take the lock, run CMD, renew the lock while it runs, release the lock\n"
    "  acquire RESOURCE        take the lock and print its token\n"
    "  extend RESOURCE TOKEN   let the lock live longer\n"
    "  release RESOURCE TOKEN  give the lock back\n"
    "  status [RESOURCE…]      show the nodes, and who holds each resource\n";

static const char global_options[] =
    "\n"
    "options of every command:\n"
    "  -n, --nodes URI,URI,…     the nodes; default: the environment's REDLOCK_NODES, which keeps passwords out of "
    "ps.\n"
    "                            redis://[user[:password]@]host[:port][/db], unix:///path[?db=n], host:port, "
    "[v6]:port\n"
    "                            a password alone: redis://:PASSWORD@host; a comma in it: %2C, an @: %40, a /: %2F\n"
    "      --node-timeout MS     how long one node may take to answer, in ms; default 50, from 1 to 60000\n"
    "      --connect-timeout T   how long connecting to a node may take at the start; default 1s, up to 60s\n"
    "      --restart-guard MODE  keep the votes of nodes that may have forgotten their locks out for the time of "
    "--ttl-max:\n"
    "                            off (default); observed: of those that restart while this waits; strict: of those "
    "not\n"
    "                            known to have been up for so long, too; default: the environment's "
    "REDLOCK_RESTART_GUARD\n"
    "      --clock-guard         likewise of nodes whose clock jumps; or REDLOCK_CLOCK_GUARD=on; --no-clock-guard: "
    "not\n"
    "      --ttl-max TIME        the longest ttl, lock delay included, of any client of these nodes; the guards need "
    "it,\n"
    "                            a longer -t is refused; default: REDLOCK_TTL_MAX, else none\n"
    "      --first-boot          all nodes are new and have never granted a lock: they may vote at once\n"
    "      --json                results and errors as one JSON object on standard output (run: on standard error)\n"
    "  -q, --quiet               no sentences about success or failure: the exit status tells; in cron it hides what\n"
    "                            the mail should say, such as no quorum\n"
    "  -v, --verbose             what happens at each node, on standard error\n"
    "  -h, --help                this\n"
    "  -V, --version             the version\n"
    "\n"
    "times are whole numbers with a unit: 500ms, 10s, 2m, 1h, 1d\n";

static const char statuses[] = "\n"
                               "exit status:\n"
                               "   0  done\n"
                               "  64  bad usage or input\n"
                               "  69  no quorum: too few nodes answered, or may vote; or too late for the ttl\n"
                               "  71  the system failed us (memory, descriptors)\n"
                               "  74  standard output could not be written\n";

static const char run_help[] =
    "usage: redlock run [-t TTL] [-w WAIT] [-E N] [--fence] [OPTION…] RESOURCE -- CMD …\n"
    "\n"
    "Takes the lock, runs CMD, renews the lock while CMD runs, and releases it when CMD ends. CMD finds "
    "REDLOCK_RESOURCE,\n"
    "REDLOCK_TOKEN, REDLOCK_VALIDITY_MS and, with --fence, REDLOCK_FENCE in its environment. If the lease is lost, "
    "CMD\n"
    "and all in its process group get SIGTERM at once and SIGKILL after the grace time. HUP, INT, QUIT, TERM, USR1,\n"
    "USR2, ALRM, WINCH, TSTP and CONT are passed on to CMD.\n"
    "\n"
    "options:\n"
    "  -t, --ttl TTL             time to live on the nodes, renewed at a third of it; default 30s\n"
    "  -w, --wait WAIT           keep trying for this long, or forever; default 0: try once\n"
    "  -E, --contended-status N  exit with N, not 75, and say nothing, if others hold the lock\n"
    "      --fence               ask for a fencing token, a number that rises with every lease: CMD's REDLOCK_FENCE\n"
    "      --fence-suffix TEXT   a fencing counter's key is RESOURCE and this; default: REDLOCK_FENCE_SUFFIX, else "
    ":fence\n"
    "      --fence-expiry TIME   drop a fencing counter that is not used for so long, from 3h on; default:\n"
    "                            REDLOCK_FENCE_EXPIRY, else never\n"
    "      --lock-delay TIME     if the lease is lost or its holder dies, others stay out for so long after its ttl; "
    "default 0\n"
    "      --no-heal             do not set the key again on nodes that lost it\n"
    "      --grace TIME          between SIGTERM and SIGKILL after a loss; default 5s\n"
    "      --max-time TIME       no renewal after this long: then the lease is lost at the end of its ttl; default: "
    "none\n";

static const char run_tail[] = "  75  held by others until the end of the wait (-E changes it); CMD did not run\n"
                               "  76  the lease was lost: CMD may have overlapped with another's work\n"
                               "126, 127  CMD could not be executed, was not found\n"
                               "else  CMD's own status, or 128 + n if signal n killed it\n"
                               "\n"
                               "example: redlock run -w 1m nightly-backup -- tar -czf /backup/home.tar.gz /home\n";

static const char acquire_help[] =
    "usage: redlock acquire [-t TTL] [-w WAIT] [-E N] [--fence] [OPTION…] RESOURCE\n"
    "\n"
    "Takes the lock, prints its token and exits; with --fence it prints \"TOKEN FENCE\" on one line. The lock stays "
    "until its\n"
    "ttl ends or the token is used to release it.\n"
    "\n"
    "options:\n"
    "  -t, --ttl TTL             time to live on the nodes; default 10s\n"
    "  -w, --wait WAIT           keep trying for this long, or forever; default 0: try once\n"
    "  -E, --contended-status N  exit with N, not 75 nor 0, and say nothing, if others hold the lock\n"
    "      --fence               ask for a fencing token, a number that rises with every lease, too\n"
    "      --fence-suffix TEXT   a fencing counter's key is RESOURCE and this; default: REDLOCK_FENCE_SUFFIX, else "
    ":fence\n"
    "      --fence-expiry TIME   drop a fencing counter that is not used for so long, from 3h on; default:\n"
    "                            REDLOCK_FENCE_EXPIRY, else never\n"
    "      --lock-delay TIME     others stay out for so long after the ttl, unless it is released; default 0\n";

static const char acquire_tail[] = "  75  held by others until the end of the wait (-E changes it)\n"
                                   " 128 + n  signal n ended the wait; nothing is held\n"
                                   "\n"
                                   "example: token=$(redlock acquire -t 1m deploy) || exit\n"
                                   "         ./deploy\n"
                                   "         redlock release deploy \"$token\"\n"
                                   "         lock=$(redlock acquire --fence deploy) || exit\n"
                                   "         token=${lock% *} fence=${lock#* }\n";

static const char extend_help[] =
    "usage: redlock extend -t TTL RESOURCE TOKEN\n"
    "\n"
    "Lets the lock with this token live for TTL from now, and prints for how long it surely holds. It never shortens:\n"
    "where the lock lives longer already, that stands; to end it, release it.\n"
    "\n"
    "options:\n"
    "  -t, --ttl TTL             the new time to live on the nodes; must be given\n"
    "      --lock-delay TIME     others stay out for so long after the ttl; as given to acquire; default 0\n";

static const char extend_tail[] = "  76  the lock is lost: it expired, or has another token\n"
                                  "\n"
                                  "example: redlock extend -t 1m deploy \"$token\"\n";

static const char release_help[] = "usage: redlock release RESOURCE TOKEN\n"
                                   "\n"
                                   "Gives the lock with this token back. A lock with another token is left alone.\n";

static const char release_tail[] = "  76  the lock was lost before: it expired, or has another token\n"
                                   "\n"
                                   "example: redlock release deploy \"$token\"\n";

static const char status_help[] = "usage: redlock status [RESOURCE…]\n"
                                  "\n"
                                  "Shows each node (state, version, role, uptime, round trip, what is wrong with it) "
                                  "and, for each RESOURCE, who holds\n"
                                  "it on which nodes and for how long. It looks and takes no lock. With a guard it "
                                  "shows the nodes that have no vote.\n";

static const char status_tail[] =
    "\n"
    "0 says that a quorum of nodes is ready, may vote and could tell of each RESOURCE, whoever holds it.\n"
    "\n"
    "example: redlock status nightly-backup\n";

void tool_help_print(enum tool_command command) {
    static const struct {
        const char *head;
        const char *tail;
    } texts[] = {
        [TOOL_NO_COMMAND] = {general, "  75  held by others until the end of the wait\n"
                                      "  76  the lease was lost\n"
                                      "  run returns the status of the command it ran\n"
                                      "\n"
                                      "example: redlock -n 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379 status\n"},
        [TOOL_RUN] = {run_help, run_tail},
        [TOOL_ACQUIRE] = {acquire_help, acquire_tail},
        [TOOL_EXTEND] = {extend_help, extend_tail},
        [TOOL_RELEASE] = {release_help, release_tail},
        [TOOL_STATUS] = {status_help, status_tail},
    };
    fputs(texts[command].head, stdout);
    fputs(global_options, stdout);
    fputs(statuses, stdout);
    fputs(texts[command].tail, stdout);
}
