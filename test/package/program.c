/* A user's program: takes no lock from nodes that are not there, and learns why. */
#include <redlock/blocking.h>
#include <stdio.h>
#include <string.h>

/* The first ports of loopback: nothing listens there, so each connect is refused at once. */
static const char *const nodes[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};

int main(int argc, char **argv) {
    if (argc != 2 || strcmp(redlock_version(), argv[1]) != 0) {
        fprintf(stderr, "redlock_version() is %s, expected %s\n", redlock_version(),
                argc == 2 ? argv[1] : "an argument");
        return 1;
    }
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = nodes;
    options.node_count = sizeof nodes / sizeof *nodes;
    redlock_client *client = NULL;
    char error[256] = "";
    int code = redlock_client_open(&options, &client, error, sizeof error);
    if (code != REDLOCK_OK) {
        fprintf(stderr, "redlock_client_open: %s: %s\n", redlock_strerror(code), error);
        return 1;
    }
    redlock_lease *lease = NULL;
    redlock_result *result = NULL;
    code = redlock_client_acquire(client, "package", NULL, &lease, &result);
    char message[1024] = "";
    if (result != NULL) {
        redlock_result_message(result, message, sizeof message);
    }
    printf("%s: %s\n", redlock_error_name(code), message);
    redlock_result_free(result);
    redlock_client_close(client);
    return code == REDLOCK_ERR_NO_QUORUM && lease == NULL ? 0 : 1;
}
