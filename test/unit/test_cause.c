/* What lies behind each error of a server. */
#include "test.h"
#include "wire/error.h"

/* By the code that it begins with, whatever words follow. */
TEST(an_error_has_its_cause) {
    static const struct {
        const char *error;
        enum redlock_cause cause;
    } rows[] = {
        {"NOSCRIPT No matching script.", REDLOCK_CAUSE_NOSCRIPT},
        {"ERR Could not find scripting engine 'lua'", REDLOCK_CAUSE_NO_LUA}, /* no module */
        {"ERR Could not find", REDLOCK_CAUSE_SERVER},
        {"OOM command not allowed when used memory > 'maxmemory'.", REDLOCK_CAUSE_OOM},
        {"OOM", REDLOCK_CAUSE_OOM},
        {"OOMPH no", REDLOCK_CAUSE_SERVER},
        {"ROOM is what it lacks", REDLOCK_CAUSE_SERVER},
        {"ERR no ROOM", REDLOCK_CAUSE_SERVER},
        {"ERR the key 'OOM' is of no use", REDLOCK_CAUSE_SERVER},
        {"", REDLOCK_CAUSE_SERVER},
        {"READONLY You can't write against a read only replica.", REDLOCK_CAUSE_REPLICA},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", REDLOCK_CAUSE_REPLICA},
        {"NOREPLICAS Not enough good replicas to write.", REDLOCK_CAUSE_MISCONF},
        {"MISCONF Redis is configured to save RDB snapshots", REDLOCK_CAUSE_MISCONF},
        {"NOPERM this user has no permissions to run the 'auth' command", REDLOCK_CAUSE_NOPERM},
        {"NOAUTH Authentication required.", REDLOCK_CAUSE_AUTH},
        {"WRONGPASS invalid username-password pair", REDLOCK_CAUSE_AUTH},
        {"LOADING Redis is loading the dataset in memory", REDLOCK_CAUSE_LOADING},
        {"BUSY Redis is busy running a script.", REDLOCK_CAUSE_BUSY},
        {"TRYAGAIN Multiple keys request during rehashing of slot", REDLOCK_CAUSE_BUSY},
        {"ERR max number of clients reached", REDLOCK_CAUSE_BUSY},
        {"MOVED 1234 127.0.0.1:1", REDLOCK_CAUSE_CLUSTER},
        {"ASK 1234 127.0.0.1:1", REDLOCK_CAUSE_CLUSTER},
        {"CROSSSLOT Keys in request don't hash to the same slot", REDLOCK_CAUSE_CLUSTER},
        {"CLUSTERDOWN The cluster is down", REDLOCK_CAUSE_CLUSTER},
        /* Redis before 7 */
        {"ERR Error running script (call to f_0f): @user_script:1: @user_script: 1: -OOM command not allowed",
         REDLOCK_CAUSE_OOM},
        {"The user executing the script can't run this command or subcommand", REDLOCK_CAUSE_NOPERM},
        {"ERR Error running script (call to f_0f): @user_script:1: @user_script: 1: The user executing the script "
         "can't access at least one of the keys mentioned in the command",
         REDLOCK_CAUSE_NOPERM},
        {"ERR The user executing the script can't run this command or subcommand", REDLOCK_CAUSE_NOPERM},
        {"ERR ACL failure in script: User few has no permissions to run the 'zadd' command", REDLOCK_CAUSE_NOPERM},
        {"ERR Error running script (call to f_0f): @user_script:1: attempt to call a nil value", REDLOCK_CAUSE_SERVER},
        {"ERR something else: -OOM", REDLOCK_CAUSE_SERVER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct redlock_reply_value reply = {
            .type = REDLOCK_REPLY_ERROR, .bytes = rows[i].error, .size = strlen(rows[i].error)};
        const enum redlock_cause cause = redlock_wire_cause(&reply);
        if (cause != rows[i].cause) {
            fail_msg("%s has cause %d, not %d", rows[i].error, (int)cause, (int)rows[i].cause);
        }
    }
}

/* The bytes are not terminated. */
TEST(it_reads_no_further_than_the_error) {
    struct redlock_reply_value reply = {.type = REDLOCK_REPLY_ERROR, .bytes = "OOM", .size = 2};
    assert_is(redlock_wire_cause(&reply), REDLOCK_CAUSE_SERVER);
    reply.bytes = "OOMP";
    reply.size = 3;
    assert_is(redlock_wire_cause(&reply), REDLOCK_CAUSE_OOM);
}

TEST(what_is_no_error_has_none) {
    const struct redlock_reply_value reply = {.type = REDLOCK_REPLY_STRING, .bytes = "OOM", .size = 3};
    assert_is(redlock_wire_cause(&reply), REDLOCK_CAUSE_NONE);
}
