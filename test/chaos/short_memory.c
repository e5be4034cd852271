/* Memory that runs out. */
#include "short_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include "faults/lists.h"
#include "scarce_memory.h"
#include "test.h"

enum { STATUS_OF_END = 100 };

enum short_end short_run(long at, enum short_end (*work)(void *what), void *what) {
    static const char sentence[] = "redlock-chaos: out of memory: ";
    char said[1024] = "";
    int words[2], status;
    assert_int_equal(pipe(words), 0);
    fflush(NULL); /* else the process has a second copy of what waits */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(words[1], STDERR_FILENO);
        memory_fails_at(at);
        enum short_end end = work(what);
        _exit(STATUS_OF_END + (int)(end == SHORT_ENOUGH && memory.count >= at ? SHORT_SURVIVED : end));
    }
    close(words[1]);
    ssize_t length = read(words[0], said, sizeof said - 1); /* one line at most: it is one write */
    close(words[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CHAOS_STATUS_NO_MEMORY) {
        assert_true(length > 0 && said[length - 1] == '\n');
        assert_memory_equal(said, sentence, sizeof sentence - 1);
        return SHORT_ENDED;
    }
    if (WEXITSTATUS(status) < STATUS_OF_END || WEXITSTATUS(status) >= STATUS_OF_END + SHORT_ENDED) {
        fail_msg("allocation %ld: status %d: %s", at, WEXITSTATUS(status), said);
    }
    return (enum short_end)(WEXITSTATUS(status) - STATUS_OF_END);
}
