/* INFO as several kinds of servers send it, and as a hostile one might. */
#include "test.h"
#include "wire/info.h"

static struct redlock_info parsed(const char *text) {
    struct redlock_info info;
    redlock_info_parse(&info, text, strlen(text));
    return info;
}

TEST(info_of_redis) {
    struct redlock_info info =
        parsed("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:abc123\r\n"
               "uptime_in_seconds:77\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru"
               "\r\n# Persistence\r\nloading:0\r\n# Replication\r\nrole:master\r\n");
    assert_string_equal(info.version, "redis 7.0.15");
    assert_string_equal(info.run_id, "abc123");
    assert_string_equal(info.role, "master");
    assert_string_equal(info.mode, "standalone");
    assert_int_equal(info.uptime_s, 77);
    assert_false(info.loading);
    assert_false(redlock_info_evicts(&info));
}

TEST(info_of_valkey_and_others) {
    assert_string_equal(parsed("redis_version:7.2.4\nserver_name:valkey\nvalkey_version:8.0.1\n").version,
                        "valkey 8.0.1");
    assert_string_equal(parsed("redis_version:6.3.4\r\nserver_name:keydb").version, "keydb 6.3.4");
    assert_string_equal(parsed("server_mode:cluster").mode, "cluster");
}

TEST(a_replica_and_its_primary) {
    struct redlock_info info = parsed("role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6380\r\nloading:1\r\n");
    assert_string_equal(info.role, "slave");
    assert_string_equal(info.primary, "10.0.0.1:6380");
    assert_true(info.loading);
}

TEST(evicting_policies) {
    struct redlock_info info;
    info = parsed("maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n");
    assert_true(redlock_info_evicts(&info));
    info = parsed("maxmemory:100\r\nmaxmemory_policy:volatile-ttl\r\n");
    assert_true(redlock_info_evicts(&info));
    info = parsed("maxmemory:100\r\nmaxmemory_policy:noeviction\r\n");
    assert_false(redlock_info_evicts(&info));
    info = parsed("maxmemory:100\r\n");
    assert_false(redlock_info_evicts(&info));
}

TEST(empty_and_nonsense) {
    struct redlock_info info = parsed("");
    assert_string_equal(info.version, "");
    assert_int_equal(info.uptime_s, -1);
    info = parsed(":\r\n::\r\nrole\r\nrun_id:\r\nuptime_in_seconds:-5\r\nmaxmemory:99999999999999999999\r\n"
                  "redis_version:\x1b[2J\x7f\xff\r\nuptime_in_seconds:12x");
    assert_string_equal(info.role, "");
    assert_int_equal(info.uptime_s, -1);
    assert_true(info.memory_max > 0); /* it has a limit, of whatever size */
    assert_string_equal(info.version, "redis ?[2J??");
    char word[300];
    memset(word, 'x', sizeof word);
    memcpy(word, "run_id:", 7);
    redlock_info_parse(&info, word, sizeof word);
    assert_int_equal(strlen(info.run_id), REDLOCK_INFO_WORD_SIZE - 1);
}

/* The caller multiplies and adds these numbers. */
TEST(numbers_beyond_their_bounds) {
    assert_int_equal(parsed("uptime_in_seconds:9000000000\n").uptime_s, 9000000000);
    assert_int_equal(parsed("uptime_in_seconds:0000000000000000000000000077\n").uptime_s, 77);
    assert_int_equal(parsed("uptime_in_seconds:9000000001\n").uptime_s, -1);
    assert_int_equal(parsed("uptime_in_seconds:999999999999999999\n").uptime_s, -1);
    /* It would be 1 in 64 bits. */
    assert_int_equal(parsed("uptime_in_seconds:18446744073709551617\n").uptime_s, -1);
    struct redlock_info info = parsed("maxmemory:18446744073709551615\nmaxmemory_policy:allkeys-lru\n");
    assert_true(redlock_info_evicts(&info));
}

TEST(the_version_says_which_command_deletes) {
    static const struct {
        const char *info;
        enum redlock_deleting deleting;
    } rows[] = {
        {"redis_version:8.4.0", REDLOCK_DELETING_DELEX},
        {"redis_version:8.10.2", REDLOCK_DELETING_DELEX},
        {"redis_version:10.0.0", REDLOCK_DELETING_DELEX},
        {"redis_version:8.3.224", REDLOCK_DELETING_SCRIPT},
        {"redis_version:7.9.9", REDLOCK_DELETING_SCRIPT},
        {"redis_version:84", REDLOCK_DELETING_SCRIPT},
        {"redis_version:x8.4", REDLOCK_DELETING_SCRIPT},
        {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0", REDLOCK_DELETING_DELIFEQ},
        {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:10.1.0", REDLOCK_DELETING_DELIFEQ},
        {"redis_version:8.6.0\r\nvalkey_version:8.1.4", REDLOCK_DELETING_SCRIPT},
        {"redis_version:9.4.0\r\nserver_name:keydb", REDLOCK_DELETING_SCRIPT}, /* who knows */
        {"valkey_version:99999999999999999999.0", REDLOCK_DELETING_SCRIPT},
        {"role:master", REDLOCK_DELETING_SCRIPT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct redlock_info info = parsed(rows[i].info);
        if (redlock_info_deleting(&info) != rows[i].deleting) {
            fail_msg("%s: %d", rows[i].info, (int)redlock_info_deleting(&info));
        }
    }
}

TEST(the_version_says_whether_a_denied_set_may_name_the_holder) {
    static const struct {
        const char *info;
        bool names;
    } rows[] = {
        {"redis_version:7.0.0", true},
        {"redis_version:8.2.1", true},
        {"redis_version:6.2.14", false}, /* has GET, but not beside NX */
        {"redis_version:6.9.9", false},
        {"redis_version:7", false},
        {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:7.2.8", true},
        {"valkey_version:9.1.0", true},
        {"redis_version:7.4.0\r\nserver_name:keydb", false},
        {"role:master", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct redlock_info info = parsed(rows[i].info);
        if (redlock_info_names(&info) != rows[i].names) {
            fail_msg("%s", rows[i].info);
        }
    }
}
