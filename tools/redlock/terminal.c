/* Which process group is in the foreground of the terminal: the tool's or its command's. */
#include "terminal.h"

#include <unistd.h>

bool tool_terminal_is_ours(void) {
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

bool tool_terminal_wanted(void) {
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tool_terminal_is_ours();
}

void tool_terminal_give(pid_t group) {
    /* Fails if the terminal has hung up; then there is nothing to do. */
    (void)tcsetpgrp(STDIN_FILENO, group);
}

void tool_terminal_take_back(struct tool_terminal *terminal) {
    if (terminal->handed) {
        tool_terminal_give(getpgrp());
        terminal->handed = false;
    }
}
