/* What redlock-chaos says about itself. */
#include <stdio.h>

#include "conductor/options.h"

void chaos_options_help(void) {
    fputs(
        "usage: redlock-chaos run [EXPERIMENT] [OPTION]...\n"
        "       redlock-chaos fault --run DIR FAULT [nodes=1,2] [clients=3-5] [for=3s] [amount=20ms]\n"
        "       redlock-chaos check DIR\n"
        "       redlock-chaos report DIR\n"
        "       redlock-chaos list\n"
        "\n"
        "run     clients lock shared resources on nodes that it starts, faults happen, everything is written down "
        "and judged\n"
        "fault   a fault by hand, in an experiment that runs\n"
        "check   judges the history of a run again;  report  does so and writes the page again\n"
        "list    the named experiments and the kinds of faults\n"
        "\n"
        "Options of run; an experiment brings settings of its own, those that are given here count:\n"
        "  --backend process|compose   redis-servers on loopback (the default), or docker-compose\n"
        "  --nodes N                   5;  1 to 31\n"
        "  --clients N                 20; processes of their own; 1 to 64\n"
        "  --resources N               3\n"
        "  --seconds N                 60\n"
        "  --seed N                    repeats the faults and the clients' choices; default: a random one, which is "
        "told\n"
        "  --faults LIST               kinds for a random schedule: names with commas, safe (the default: all under "
        "which no\n"
        "                              violation may happen), all, none; drop only by its name\n"
        "  --schedule FILE             faults from a file (- is standard input), one a line: at=2s for=3s "
        "fault=pause nodes=1,2\n"
        "  --ttl TIME                  2s; of the locks\n"
        "  --node-timeout TIME         50ms\n"
        "  --wait TIME                 10s; how long an acquire tries\n"
        "  --hold TIME, --think TIME   20ms, 200ms; how long a client holds and pauses, at most; a tenth of them "
        "holds ten times as long\n"
        "  --persistence none|aof      aof: a node that is killed comes back with its keys\n"
        "  --output DIR                default: redlock-chaos-EXPERIMENT-SEED; gets history.jsonl, report.html, "
        "schedule.txt,\n"
        "                              and the nodes' logs\n"
        "  --server PROGRAM            redis-server or valkey-server; default: from the PATH\n"
        "  --compose-file FILE         docker-compose.yml\n"
        "  --slack TIME                1s; what this machine may add to an operation's deadline\n"
        "\n"
        "Protection of the clients; none by default:\n"
        "  --protect                   all of the following but the lock delay, with --restart-guard strict\n"
        "  --fencing                   leases have fencing tokens, and the shared counter refuses accesses with old "
        "ones\n"
        "  --restart-guard GUARD       off, observed or strict: whether a node that restarted may vote\n"
        "  --first-boot                the clients that begin with the run trust the nodes that they meet\n"
        "  --clock-guard               a node whose clock jumps forward loses its votes\n"
        "  --ttl-max TIME              of the guards: how long such a node does not vote; default: ttl and lock "
        "delay\n"
        "  --lock-delay TIME           keys outlive a lease that is lost or abandoned by this\n"
        "  --no-heal                   keys that nodes lost are not set again\n"
        "  --compare                   runs the same schedule without protection, with fencing tokens, and with all; "
        "one page\n"
        "                              shows the three side by side; 0 only if violations come without, and none with "
        "all\n"
        "\n"
        "The last line is violations=V lost_updates=U operations=O availability=A. Exit status: 0 no violation, 1 "
        "violations,\n"
        "2 bad usage, 3 the experiment could not run. docs/experiments.md tells more.\n",
        stdout);
}

void chaos_options_list(void) {
    puts("* breaks what Redlock assumes: violations are expected.\n\nExperiments (redlock-chaos run NAME):");
    for (size_t i = 0; i < chaos_experiment_count(); i++) {
        const struct chaos_experiment *experiment = chaos_experiment_at(i);
        printf("  %-20s%c %s\n", experiment->name, experiment->breaks ? '*' : ' ', experiment->title);
    }
    puts("\nFaults (redlock-chaos fault, and --faults):");
    for (int kind = 0; kind < CHAOS_FAULT_KINDS; kind++) {
        const struct chaos_fault_about *about = chaos_fault_about((enum chaos_fault_kind)kind);
        printf("  %-14s%c %s\n", about->name, about->breaks ? '*' : ' ', about->help);
    }
}
