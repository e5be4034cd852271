/* The text that --help prints. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

static const char general[] =
    "usage: redlock [-n URI,URI,…] [OPTION…] COMMAND …\n"
    "\n"
    "Locks a resource across independent Redis nodes (Redlock). The lock is held while a quorum of the\n"
    "nodes, more than half, has granted it. Dead or slow nodes in the minority do no harm.\n"
    "\n"
    "commands (redlock COMMAND --help tells more):\n"
    "  run RESOURCE … -- CMD … take the locks, run CMD, renew them while CMD runs, release them\n"
    "  elect RESOURCE -- CMD … run CMD while we are the leader; campaign again after a loss\n"
    "  acquire RESOURCE …      take the locks and print their tokens\n"
    "  extend RESOURCE TOKEN   let the lock live longer\n"
    "  downgrade RESOURCE TOKEN  let others read it, too, and nobody write\n"
    "  release RESOURCE TOKEN  release the lock\n"
    "  clear RESOURCE          free the lock of somebody else, after a question\n"
    "  status [RESOURCE…]      show the nodes, and who holds each resource, or all locks\n"
    "  help [COMMAND]          print this text, or that of a command\n";

/* Every command has it, before its own options. */
static const char nodes_option[] =
    "  -n, --nodes URI,URI,…     the nodes: host:port, [v6]:port, unix:///path[?db=n] or\n"
    "                            redis://[user[:password]@]host[:port][/db]; rediss:// is that with TLS.\n"
    "                            Default: REDLOCK_NODES, which keeps passwords out of ps\n";

static const char global_options[] =
    "\n"
    "nodes:\n"
    "      --nodes-file FILE     the nodes, one URI a line; default: REDLOCK_NODES_FILE. New passwords\n"
    "                            in it are used without a restart\n"
    "      --quorum N            how many nodes must grant a lock, more than half of them; default:\n"
    "                            REDLOCK_QUORUM, else the fewest possible\n"
    "      --node-timeout MS     how long a node may take to answer, 1 to 60000 ms; default 50\n"
    "      --connect-timeout T   how long connecting to a node may take, up to 60s; default 1s\n"
    "      --wait-suffix TEXT    a queue's key is RESOURCE followed by TEXT, the same for all clients;\n"
    "                            default: REDLOCK_WAIT_SUFFIX, else :wait\n"
    "\n"
    "guards:\n"
    "      --restart-guard MODE  nodes that may have forgotten locks do not vote for --ttl-max: if they\n"
    "                            restart meanwhile (observed), or also if they have not been up for so\n"
    "                            long (strict); default: REDLOCK_RESTART_GUARD, else off\n"
    "      --clock-guard         the same for nodes whose clock jumps; --no-clock-guard switches it off;\n"
    "                            default: REDLOCK_CLOCK_GUARD (on or off), else off\n"
    "      --ttl-max TIME        the longest ttl of any client, lock delay included; the guards need it;\n"
    "                            default: REDLOCK_TTL_MAX\n"
    "      --first-boot          all nodes are new and have never granted a lock: they may vote at once\n"
    "\n"
    "TLS:\n"
    "      --tls                 for nodes without a scheme; default: REDLOCK_TLS (1 or 0), else no\n"
    "      --cacert FILE         trust the authorities in this PEM file; default: REDLOCK_CACERT\n"
    "      --cacertdir DIR       trust those in DIR; default: REDLOCK_CACERTDIR, else the system's\n"
    "      --cert FILE           our certificate, for nodes that ask for one; default: REDLOCK_CERT\n"
    "      --key FILE            its private key; default: REDLOCK_KEY\n"
    "      --sni NAME            the name in the nodes' certificates; default: REDLOCK_SNI, else the host\n"
    "      --insecure            do not check certificates: anybody between may read and change\n"
    "                            everything; default: REDLOCK_INSECURE (1 or 0)\n"
    "\n"
    "output:\n"
    "      --json                one JSON object on standard output (run, elect: on standard error)\n"
    "  -q, --quiet               no sentences about success or failure: the exit status tells\n"
    "      --no-warn WHICH       settings: no warnings about the settings of nodes that work; all: no\n"
    "                            warnings; errors are still told; default: REDLOCK_NO_WARN, else none\n"
    "  -v, --verbose             what happens at each node, on standard error\n"
    "  -h, --help                print this text\n"
    "  -V, --version             print the version, and which TLS there is\n"
    "\n"
    "A time is a whole number with a unit: 500ms, 10s, 2m, 1h, 1d. man redlock says more of each option.\n";

/* Those of every command. An entry begins with its number. */
static const char statuses[] =
    "   0  done\n"
    "  64  bad usage or input\n"
    "  69  no quorum: too few nodes answered or may vote, or they answered too late for the ttl\n"
    "  71  the system failed (memory, descriptors)\n"
    "  74  standard output could not be written\n";

/* Options that some commands share. */
#define ORDER_OPTION                                                                                                   \
    "      --order fair|none     how to wait: in a queue (fair), or by trying again after random delays\n"             \
    "                            (none); default: REDLOCK_ORDER, else fair\n"
#define SHARED_OPTION                                                                                                  \
    "  -s, --shared              read: others who read may hold the lock, too, and nobody alone. All wait\n"           \
    "                            in one order. With several: those behind it are read\n"
#define PERMITS_OPTION                                                                                                 \
    "      --permits K/L         take K of the L permits of RESOURCE: up to L are in use at once. All who\n"           \
    "                            take some give the same L\n"
#define SLOTS_OPTION "      --slots SLOT,…        the lock is of permits: the slots that acquire --permits printed\n"
#define COUNTER_OPTIONS                                                                                                \
    "      --fence-suffix TEXT   the key of a fencing counter is RESOURCE followed by TEXT; default:\n"                \
    "                            REDLOCK_FENCE_SUFFIX, else :fence\n"                                                  \
    "      --fence-expiry TIME   drop a fencing counter that is not used for this long, 3h or more;\n"                 \
    "                            default: REDLOCK_FENCE_EXPIRY, else never\n"
#define GRACE_OPTION                                                                                                   \
    "      --grace TIME          from SIGTERM to SIGKILL: default 5s, a fifth of the ttl at most. SIGKILL\n"           \
    "                            comes a tenth of the ttl, 500ms at most, before the lease ends\n"
#define NO_HEAL_OPTION "      --no-heal             do not set the key again on nodes that lost it\n"
#define HOLDER_OPTION(whom, whose)                                                                                     \
    "      --holder TEXT         what people see of the " whom ": up to 64 printable characters, no space;\n"          \
    "                            '' for none; default: REDLOCK_HOLDER, else HOST:PID " whose "\n"

static const char run_help[] =
    "usage: redlock run [-t TTL] [-w WAIT] [--shared] [OPTION…] RESOURCE … -- CMD …\n"
    "\n"
    "Takes the lock, runs CMD, renews the lock while CMD runs, and releases it when CMD ends. CMD finds\n"
    "REDLOCK_RESOURCE, REDLOCK_TOKEN, REDLOCK_VALIDITY_MS and, with --fence, REDLOCK_FENCE, and with\n"
    "--permits REDLOCK_SLOTS in its environment. If the lease cannot be renewed, CMD's process group gets\n"
    "SIGTERM, and SIGKILL before the lease ends. redlock passes HUP, INT, QUIT, TERM, USR1, USR2, ALRM,\n"
    "WINCH, TSTP and CONT on.\n"
    "\n"
    "Of several RESOURCEs it takes all or none, and waits for others who want some of them without a\n"
    "deadlock, in whatever order they are given. The variables then have a line for each.\n";

static const char run_options[] =
    "  -t, --ttl TTL             time to live on the nodes, renewed at a third of it; default 30s\n"
    "  -w, --wait WAIT           keep trying for this long, or forever; default 0: try once\n" SHARED_OPTION
        PERMITS_OPTION
    "  -E, --contended-status N  if others hold the lock, exit with N instead of 75 and print nothing\n"
    "      --at-least TIME       if CMD exits with 0, keep the lock until this long after it was taken,\n"
    "                            or for the ttl if that is longer: a job that several machines start\n"
    "                            then runs once in that time\n"
    "      --max-time TIME       stop renewing after this long: CMD is stopped before the ttl ends;\n"
    "                            default: no limit\n" GRACE_OPTION
    "      --fence               ask for a fencing token, a number that rises with every lease, and set\n"
    "                            it as REDLOCK_FENCE for CMD\n"
    "      --lock-delay TIME     if the lease is lost or its holder dies, keep others out for this long\n"
    "                            after its ttl; default 0\n" HOLDER_OPTION("holder", "of this process");

static const char run_more[] = ORDER_OPTION COUNTER_OPTIONS NO_HEAL_OPTION;

static const char run_tail[] =
    "  70  CMD succeeded, but too few nodes confirmed the release: the lock ends with its ttl\n"
    "  75  others held the lock until the end of the wait (-E changes it); CMD did not run\n"
    "  76  the lease was lost, or not renewed in time, and CMD was stopped; if the lock was taken\n"
    "      away, CMD may have overlapped with another holder's work\n"
    "126, 127  CMD could not be executed, CMD was not found\n"
    "else  CMD's own status, or 128 + n if signal n killed CMD\n"
    "\n"
    "example: redlock run -w 1m nightly-backup -- tar -czf /backup/home.tar.gz /home\n";

static const char elect_help[] =
    "usage: redlock elect [-t TTL] [--fence] [OPTION…] RESOURCE -- CMD …\n"
    "       redlock elect --observe [OPTION…] RESOURCE\n"
    "\n"
    "Campaigns to lead: waits in the queue until it holds the lock, however long that takes. Then runs\n"
    "CMD and renews the lock, as run does. If the lease is lost, stops CMD as run does, campaigns again\n"
    "at the end of the queue, and starts CMD again when it leads. When CMD ends by itself, resigns, so\n"
    "that the next in the queue leads, and exits with the status of CMD. CMD finds REDLOCK_RESOURCE,\n"
    "REDLOCK_TOKEN, REDLOCK_VALIDITY_MS and, with --fence, REDLOCK_FENCE in its environment. It gets the\n"
    "same signals as with run.\n"
    "\n"
    "With --observe it does not campaign. It prints a line for each change of the leader, at first who\n"
    "leads now, until a signal ends it; with --json an object for each change.\n";

static const char elect_options[] =
    "  -t, --ttl TTL             how long the others wait for a leader that died; renewed at a third of\n"
    "                            it; default 30s\n"
    "      --observe             only print who leads\n" GRACE_OPTION
    "      --fence               ask for a fencing token, a number that rises with every leader, and set\n"
    "                            it as REDLOCK_FENCE for CMD\n"
    "      --lock-delay TIME     if the lease is lost or the leader dies, keep others out for this long\n"
    "                            after its ttl; default 0\n" HOLDER_OPTION("leader", "of this process");

static const char elect_more[] = COUNTER_OPTIONS NO_HEAL_OPTION;

static const char elect_tail[] =
    "  70  CMD succeeded, but too few nodes confirmed the release: the lock ends with its ttl\n"
    "  76  CMD ended, but the lease was lost before: CMD may have overlapped with the next leader's work;\n"
    "      or a signal came while CMD was being stopped\n"
    "126, 127  CMD could not be executed, CMD was not found\n"
    " 128 + n  signal n ended the campaign, or --observe\n"
    "else  CMD's own status, or 128 + n if signal n killed CMD\n"
    "\n"
    "example: redlock elect -t 10s scheduler -- ./run-scheduler\n"
    "         redlock elect --observe scheduler\n";

static const char acquire_help[] =
    "usage: redlock acquire [-t TTL] [-w WAIT] [-E N] [--shared] [--fence] [OPTION…] RESOURCE …\n"
    "\n"
    "Takes the lock, prints its token and exits; with --fence it prints \"TOKEN FENCE\" on one line. The\n"
    "lock stays until its ttl ends or until somebody releases it with the token. Of several RESOURCEs it\n"
    "takes all or none, and prints a line for each, in their order. With --permits the slots follow\n"
    "the token, as in \"TOKEN 3,17\".\n";

static const char acquire_options[] =
    "  -t, --ttl TTL             time to live on the nodes; default 10s\n"
    "  -w, --wait WAIT           keep trying for this long, or forever; default 0: try once\n" SHARED_OPTION
        PERMITS_OPTION
    "  -E, --contended-status N  if others hold the lock, exit with N (not 0) instead of 75 and print\n"
    "                            nothing\n"
    "      --fence               also ask for a fencing token, a number that rises with every lease\n"
    "      --lock-delay TIME     keep others out for this long after the ttl, unless the lock is\n"
    "                            released; default 0\n" HOLDER_OPTION("holder", "of the caller");

static const char acquire_more[] = ORDER_OPTION COUNTER_OPTIONS;

static const char acquire_tail[] = "  75  others held the lock until the end of the wait (-E changes it)\n"
                                   " 128 + n  signal n ended the wait; nothing is held\n"
                                   "\n"
                                   "example: token=$(redlock acquire -t 1m deploy) || exit\n"
                                   "         ./deploy\n"
                                   "         redlock release deploy \"$token\"\n"
                                   "         lock=$(redlock acquire --fence deploy) || exit\n"
                                   "         token=${lock% *} fence=${lock#* }\n";

static const char extend_help[] =
    "usage: redlock extend -t TTL [--shared] RESOURCE … TOKEN …\n"
    "\n"
    "Lets the lock with this token live for TTL from now, and prints for how long it is valid at least.\n"
    "It never shortens: a lock that lives longer already keeps its time. To end a lock, release it. Of\n"
    "several, the TOKENs stand behind the RESOURCEs, in the same order; if one is lost, all are.\n";

static const char extend_options[] =
    "  -t, --ttl TTL             the new time to live on the nodes; required\n"
    "  -s, --shared              the lock was downgraded: its token does not say so, and without this it\n"
    "                            would be lost. With several: those behind it were\n" SLOTS_OPTION
    "      --lock-delay TIME     keep others out for this long after the ttl; give the same as to\n"
    "                            acquire; default 0\n";

static const char extend_tail[] = "  76  the lock is lost: it expired, or has another token\n"
                                  "\n"
                                  "example: redlock extend -t 1m deploy \"$token\"\n";

static const char downgrade_help[] =
    "usage: redlock downgrade [-t TTL] RESOURCE … TOKEN …\n"
    "\n"
    "Lets others read the lock with this token, without a gap in which one of them could write. From now\n"
    "on it is held as with --shared, under the same token, and lives for TTL from now, or longer: extend\n"
    "it with --shared. There is no way back: release it, and acquire it again. Not for the lock of run\n"
    "while its CMD runs.\n";

static const char downgrade_options[] =
    "  -t, --ttl TTL             the least time to live on the nodes from now on; default 10s\n"
    "      --lock-delay TIME     keep others out for this long after the ttl; give the same as to\n"
    "                            acquire; default 0\n";

static const char downgrade_tail[] = "  76  the lock is lost: it expired, or has another token\n"
                                     "\n"
                                     "example: redlock downgrade -t 1m cache \"$token\"\n";

static const char release_help[] =
    "usage: redlock release RESOURCE … TOKEN …\n"
    "\n"
    "Releases the lock with this token. It leaves a lock with another token alone. Of several, the TOKENs\n"
    "stand behind the RESOURCEs, in the same order.\n";

static const char release_options[] = SLOTS_OPTION;

static const char release_tail[] = "  76  the lock was lost before: it expired, or has another token\n"
                                   "\n"
                                   "example: redlock release deploy \"$token\"\n"
                                   "         redlock release alice bob $tokens\n";

static const char clear_help[] =
    "usage: redlock clear [--yes] RESOURCE\n"
    "\n"
    "Frees a lock by force: for a holder that is dead, or that nobody can reach. Shows who holds it, asks\n"
    "on the terminal, and then releases the tokens that it has shown, as their owner would. The next in\n"
    "the queue gets the lock. If the lock has changed hands meanwhile, it stays as it is. A holder that\n"
    "is still alive learns of the loss at its next renewal: until then two may work at once. Where some\n"
    "read it, all of them are shown and released.\n";

static const char clear_options[] = "  -y, --yes                 do not ask\n";

static const char clear_tail[] = "  75  the answer was not yes: nothing was done\n"
                                 "  76  the lock changed meanwhile: nothing was done to its new holder\n"
                                 " 128 + n  signal n ended the question\n"
                                 "\n"
                                 "example: redlock clear nightly-backup\n";

static const char status_help[] =
    "usage: redlock status [--all-ready] [OPTION…] [RESOURCE…]\n"
    "       redlock status --all | --match PATTERN [OPTION…]\n"
    "       redlock status --limit L [OPTION…] RESOURCE …\n"
    "\n"
    "Shows each node: state, version, role, uptime, round trip, and what is wrong with it. For each\n"
    "RESOURCE it shows who holds it, or all who read it, on which nodes, for how much longer, and who\n"
    "waits for it. It takes no lock. With a guard it also shows which nodes may not vote.\n";

static const char status_options[] =
    "  -a, --all                 list all locks of the nodes: strings that look like a token of redlock,\n"
    "                            and sets of such tokens, which some read\n"
    "      --match PATTERN       list the locks whose names match, as in 'lock:*', also those of other\n"
    "                            libraries: all strings with a ttl and up to 128 bytes\n"
    "      --limit L             each RESOURCE has L permits: show which of them are taken, and by whom\n"
    "      --all-ready           exit with 68 if any node is not ready\n"
    "      --watch[=TIME]        show it again and again, every 2 s or every TIME, until a signal comes\n"
    "      --metrics             print metrics for Prometheus\n"
    "      --output FILE         with --metrics: replace FILE in one step, for the textfile collector\n";

static const char status_tail[] =
    "  68  with --all-ready: a node is not ready, but a quorum is\n"
    " 128 + n  signal n ended --watch\n"
    "\n"
    "0 means that a quorum of nodes is ready, may vote and answered for each RESOURCE, whoever holds it.\n"
    "\n"
    "example: redlock status nightly-backup\n"
    "         redlock status --all --watch=5s\n";

/* What has no number comes last. */
static long number_of(const char *entry) {
    char *end;
    const long number = strtol(entry, &end, 10);
    return end != entry ? number : LONG_MAX;
}

/* Prints the entry, with the lines that go on under it; returns what follows. */
static const char *print_entry(const char *entry) {
    do {
        const char *const next = strchr(entry, '\n') + 1;
        fwrite(entry, 1, (size_t)(next - entry), stdout);
        entry = next;
    } while (strncmp(entry, "      ", 6) == 0);
    return entry;
}

/* Those of every command and the command's own, by their numbers; then the rest of its text. */
static void print_statuses(const char *own) {
    const char *common = statuses;
    fputs("\nexit status:\n", stdout);
    while (*common != '\0') {
        if (number_of(own) < number_of(common)) {
            own = print_entry(own);
        } else {
            common = print_entry(common);
        }
    }
    fputs(own, stdout);
}

void tool_help_print(enum tool_command command) {
    static const struct {
        const char *head;
        const char *options;
        const char *more;
        const char *tail;
    } texts[] = {
        [TOOL_NO_COMMAND] = {general, "", "",
                             "  68  status --all-ready: a node is not ready\n"
                             "  70  run, elect: CMD succeeded, but too few nodes confirmed the release\n"
                             "  75  others held the lock until the end of the wait; clear: the answer was not yes\n"
                             "  76  the lease was lost\n"
                             "126, 127  run, elect: CMD could not be executed, CMD was not found\n"
                             " 128 + n  signal n ended it\n"
                             "else  run, elect: CMD's own status\n"
                             "\n"
                             "example: redlock -n 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379 status\n"},
        [TOOL_RUN] = {run_help, run_options, run_more, run_tail},
        [TOOL_ELECT] = {elect_help, elect_options, elect_more, elect_tail},
        [TOOL_ACQUIRE] = {acquire_help, acquire_options, acquire_more, acquire_tail},
        [TOOL_EXTEND] = {extend_help, extend_options, "", extend_tail},
        [TOOL_DOWNGRADE] = {downgrade_help, downgrade_options, "", downgrade_tail},
        [TOOL_RELEASE] = {release_help, release_options, "", release_tail},
        [TOOL_CLEAR] = {clear_help, clear_options, "", clear_tail},
        [TOOL_STATUS] = {status_help, status_options, "", status_tail},
    };
    fputs(texts[command].head, stdout);
    fputs(command == TOOL_NO_COMMAND ? "\noptions of every command:\n" : "\noptions:\n", stdout);
    fputs(nodes_option, stdout);
    fputs(texts[command].options, stdout);
    if (texts[command].more[0] != '\0') {
        printf("\nmore about the lock:\n%s", texts[command].more);
    }
    fputs(global_options, stdout);
    print_statuses(texts[command].tail);
}
