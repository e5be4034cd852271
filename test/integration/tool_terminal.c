/* Runs a command on a terminal of its own, waits for words on it and answers with keys. Exits like
 * the command. */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEADLINE_S = 30, SCREEN_SIZE = 65536 };

struct screen {
    int fd;
    pid_t pid;
    time_t deadline_s;
    size_t used;
    size_t seen; /* where the search for the next words begins */
    char text[SCREEN_SIZE + 1];
};

static time_t now_s(void) {
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? now.tv_sec : 0;
}

_Noreturn static void give_up(struct screen *screen, const char *why) {
    fprintf(stderr, "tool_terminal: %s\n", why);
    kill(screen->pid, SIGKILL);
    exit(99);
}

/* Returns 0 when the terminal has no more output. */
static int read_more(struct screen *screen) {
    struct pollfd wait = {.fd = screen->fd, .events = POLLIN};
    if (poll(&wait, 1, 100) <= 0) {
        return now_s() <= screen->deadline_s ? 1 : (give_up(screen, "nothing came in time"), 0);
    }
    ssize_t size = read(screen->fd, screen->text + screen->used, SCREEN_SIZE - screen->used);
    if (size <= 0) {
        return 0; /* EIO: the last process closed it; or the screen is full */
    }
    fwrite(screen->text + screen->used, 1, (size_t)size, stdout);
    fflush(stdout);
    screen->used += (size_t)size;
    screen->text[screen->used] = '\0';
    return 1;
}

static void answer(struct screen *screen, const char *words, const char *keys) {
    const char *found;
    while ((found = strstr(screen->text + screen->seen, words)) == NULL) {
        if (!read_more(screen)) {
            give_up(screen, "the command ended before it said what was waited for");
        }
    }
    screen->seen = (size_t)(found - screen->text) + strlen(words);
    if (write(screen->fd, keys, strlen(keys)) < 0) {
        give_up(screen, strerror(errno));
    }
}

int main(int argc, char **argv) {
    static struct screen screen;
    int command = 1;
    while (command < argc && strcmp(argv[command], "--") != 0) {
        command++;
    }
    if (command + 1 >= argc || command % 2 == 0) {
        fputs("usage: tool_terminal [WORDS KEYS]… -- COMMAND…\n", stderr);
        return 98;
    }
    screen.deadline_s = now_s() + DEADLINE_S;
    screen.pid = forkpty(&screen.fd, NULL, NULL, NULL);
    if (screen.pid < 0) {
        perror("tool_terminal: forkpty");
        return 98;
    }
    if (screen.pid == 0) {
        execvp(argv[command + 1], argv + command + 1);
        _exit(97);
    }
    for (int i = 1; i + 1 < command; i += 2) {
        answer(&screen, argv[i], argv[i + 1]);
    }
    while (read_more(&screen)) {
    }
    int status;
    if (waitpid(screen.pid, &status, 0) != screen.pid) {
        perror("tool_terminal: waitpid");
        return 98;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
