/* The signal dispositions and mask at the tool's start, which the child of `run` gets back. */
#include "signals.h"

#include <stddef.h>

void tool_signals_begin(struct tool_signals *signals) {
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        /* Fails for the signals that the C library reserves. */
        signals->ignored[number] = sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, &signals->mask);
}

void tool_signals_restore(const struct tool_signals *signals) {
    for (int number = 1; number < NSIG; number++) {
        if (number != SIGKILL && number != SIGSTOP) {
            signal(number, signals->ignored[number] ? SIG_IGN : SIG_DFL);
        }
    }
    sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}
