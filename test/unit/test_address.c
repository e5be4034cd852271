/* Node URIs: every form that is accepted, and the error text for every form that is not. */
#include "test.h"
#include <redlock/redlock.h>

#include "server/address.h"

struct good {
    const char *uri, *name, *host;
    uint16_t port;
    uint32_t db;
    const char *user, *password;
};

static void assert_text(const char *text, const char *expected) {
    if (expected == NULL) {
        assert_null(text);
    } else {
        assert_string_equal(text, expected);
    }
}

TEST(good_uris) {
    static const struct good rows[] = {
        {"127.0.0.1:7000", "127.0.0.1:7000", "127.0.0.1", 7000, 0, NULL, NULL},
        {"node-1.example", "node-1.example:6379", "node-1.example", 6379, 0, NULL, NULL},
        {"[::1]:7000", "[::1]:7000", "::1", 7000, 0, NULL, NULL},
        {"redis:1", "redis:1", "redis", 1, 0, NULL, NULL},
        {"redis", "redis:6379", "redis", 6379, 0, NULL, NULL},
        {"redis/1", "redis:6379", "redis", 6379, 1, NULL, NULL},
        {"redis://a", "a:6379", "a", 6379, 0, NULL, NULL},
        {"redis://a/", "a:6379", "a", 6379, 0, NULL, NULL},
        {"redis://a:1/15", "a:1", "a", 1, 15, NULL, NULL},
        {"redis://a:65535/65535", "a:65535", "a", 65535, 65535, NULL, NULL},
        {"redis://:pw@a", "a:6379", "a", 6379, 0, NULL, "pw"},
        {"redis://u:pw@a:2/3", "a:2", "a", 2, 3, "u", "pw"},
        {"redis://u@a", "a:6379", "a", 6379, 0, "u", NULL},
        {"redis://u:@a", "a:6379", "a", 6379, 0, "u", NULL},
        {"redis://u%40x:p%3a%2F%25@a", "a:6379", "a", 6379, 0, "u@x", "p:/%"},
        {"redis://:p@ss/w?rd@a", "a:6379", "a", 6379, 0, NULL, "p@ss/w?rd"},
        {"redis://u:p:q@[fe80::1%25eth0]:9", "[fe80::1%25eth0]:9", "fe80::1%25eth0", 9, 0, "u", "p:q"},
        {"rediss://a", "a:6379", "a", 6379, 0, NULL, NULL},
        {"[::ffff:1.2.3.4]:2", "[::ffff:1.2.3.4]:2", "::ffff:1.2.3.4", 2, 0, NULL, NULL},
        {"[2001:db8:0:0:1:2:3:4]", "[2001:db8:0:0:1:2:3:4]:6379", "2001:db8:0:0:1:2:3:4", 6379, 0, NULL, NULL},
        {"1.2.3.4.example", "1.2.3.4.example:6379", "1.2.3.4.example", 6379, 0, NULL, NULL},
        {"redis.1:2", "redis.1:2", "redis.1", 2, 0, NULL, NULL},
        {"0xag", "0xag:6379", "0xag", 6379, 0, NULL, NULL},
        {"rediss://u:pw@[::1]:2/3", "[::1]:2", "::1", 2, 3, "u", "pw"},
        {"unix:///run/redis.sock", "/run/redis.sock", "/run/redis.sock", 0, 0, NULL, NULL},
        {"unix:///run/a%20b?db=4", "/run/a b", "/run/a b", 0, 4, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct redlock_address address;
        char error[256] = "";
        struct redlock_error_text failure = {error, sizeof error};
        int code = redlock_address_parse(rows[i].uri, &address, &failure);
        assert_string_equal(error, "");
        assert_is(code, REDLOCK_OK);
        assert_int_equal(address.kind,
                         strncmp(rows[i].uri, "unix", 4) == 0 ? REDLOCK_ADDRESS_UNIX : REDLOCK_ADDRESS_TCP);
        assert_int_equal(address.tls, strncmp(rows[i].uri, "rediss:", 7) == 0);
        assert_string_equal(address.name, rows[i].name);
        assert_string_equal(address.host, rows[i].host);
        assert_int_equal(address.port, rows[i].port);
        assert_int_equal(address.db, rows[i].db);
        assert_text(address.credentials.user, rows[i].user);
        assert_text(address.credentials.password, rows[i].password);
        redlock_address_clear(&address);
        redlock_address_clear(&address);
    }
}

TEST(bad_uris) {
    static const char *const rows[][2] = {
        {"", "empty"},
        {"redis://", "host of a node URI is empty"},
        {"redis://:6379", "host of a node URI is empty"},
        {"redis://u:secret@", "host of a node URI is empty"},
        {"redis://u:secret@:1", "host of a node URI is empty"},
        {"a:", "port of node 'a'"},
        {"a:0", "port of node 'a'"},
        {"a:65536", "port of node 'a'"},
        {"a:-1", "port of node 'a'"},
        {"a:1x", "port of node 'a'"},
        {"a:0000000001", "port of node 'a'"},
        {"redis://user:secret", "port of node 'user' is not a number from 1 to 65535; after USER:PASSWORD comes '@'"},
        {"redis://user:secret:1", "comes '@'"},
        {"host:1:2", "only one ':' may follow the host"},
        {"a:1\xc2\xa0", "not ASCII"},
        {"redis://a:1redis://b:2", "a second 'redis://' inside"},
        {"redis://u:secret@a:1rediss://u:secret@b:2", "a second 'rediss://' inside"},
        {"redis//a", "the scheme 'redis' of a node URI is not followed by '://'"},
        {"redis:/a:1", "the scheme 'redis' of a node URI is not followed by '://'"},
        {"rediss:10.0.0.1:1", "the scheme 'rediss' of a node URI is not followed by '://'"},
        {"Redis:u:secret@a", "the scheme 'Redis' of a node URI is not followed by '://'"},
        {"unix:/run/x", "the scheme 'unix' of a node URI is not followed by '://'"},
        {"redis:65536", "port of node 'redis'"},
        {"redis/65536", "database of node 'redis'"},
        {"Redis://a", "scheme of a node URI is unknown: use redis://, rediss:// or unix://, in lower case"},
        {"/run/x", "begins with '/': write unix:///path"},
        {"//a", "begins with '/'"},
        {"run/x", "a socket is written unix:///path"},
        {"unix://:secret@/run/x", "has no place for user and password"},
        {"::1:6379", "host of a node URI is empty; an IPv6 address needs brackets"},
        {"fe80::1", "needs brackets"},
        {"[::1", "no closing ']'"},
        {"[a]:1", "not an IPv6 address"},
        {"[::g]:1", "'[::g]' in a node URI is not an IPv6 address"},
        {"[1:2:3]", "not an IPv6 address"},
        {"[:::]", "not an IPv6 address"},
        {"[1:2:3:4:5:6:7:8:9]", "not an IPv6 address"},
        {"[12345::]", "not an IPv6 address"},
        {"[::ffff:1.2.3.256]", "not an IPv6 address"},
        {"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]", "not an IPv6 address"},
        {"[127.0.0.1]", "not an IPv6 address"},
        {"[%lo]", "not an IPv6 address"},
        {"[fe80::1%]", "not an IPv6 address"},
        {"[fe80::1%a%b]", "not an IPv6 address"},
        {"[fe80::1%a:b]", "not an IPv6 address"},
        {"[::1]:0", "port of node '::1'"},
        {"[::1]6379", "only :PORT and /DB"},
        {"256.1.1.1:1", "'256.1.1.1' in a node URI is no IPv4 address: write four numbers from 0 to 255"},
        {"1.2.3", "no IPv4 address"},
        {"1.2.3.4.5", "no IPv4 address"},
        {"127.0.0.1.", "no IPv4 address"},
        {"127.0.0.01", "without leading zeros"},
        {"2130706433", "no IPv4 address"},
        {"0x7f.1", "no IPv4 address"},
        {"0xa", "no IPv4 address"},
        {"..", "no IPv4 address"},
        {"redis://u:secret@127.1/1", "'127.1' in a node URI is no IPv4 address"},
        {"redis://123:secret", "port of node '123'"},
        {"[::1]x", "only :PORT and /DB"},
        {"a/x", "database of node 'a'"},
        {"a/65536", "database of node 'a'"},
        {"a/1/2", "database of node 'a'"},
        {"a/1?x", "only :PORT and /DB"},
        {"a?x", "only :PORT and /DB"},
        {"a#x", "only :PORT and /DB"},
        {"a b", "space or a control character at position 2"},
        {"a\n", "space or a control character at position 2"},
        {"a,b", "no host name has"},
        {"u:secret@a", "needs a scheme"},
        {"redis://@a", "without user or password"},
        {"redis://:@a", "without user or password"},
        {"redis://u:secre%t@a", "password of a node URI has a '%'"},
        {"redis://u:secret%4@a", "password of a node URI has a '%'"},
        {"redis://u:secret%00@a", "password of a node URI has a zero byte"},
        {"redis://%zz:secret@a", "user of a node URI has a '%'"},
        {"rediss://u:secret@", "host of a node URI is empty"},
        {"redisss://a", "scheme of a node URI is unknown"},
        {"http://u:secret@a", "scheme of a node URI is unknown"},
        {"unix://", "absolute path"},
        {"unix://run/x", "absolute path"},
        {"unix:///run/x?db=", "database of node '/run/x'"},
        {"unix:///run/x?db=z", "database of node '/run/x'"},
        {"unix:///run/x?timeout=1", "only ?db=N"},
        {"unix:///run/x%0a", "control character"},
        {"unix:///run/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"
         "789012",
         "longer than"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct redlock_address address;
        char error[256] = "";
        struct redlock_error_text failure = {error, sizeof error};
        assert_is(redlock_address_parse(rows[i][0], &address, &failure), REDLOCK_ERR_INVALID);
        if (strstr(error, rows[i][1]) == NULL) {
            fail_msg("'%s': \"%s\" does not say \"%s\"", rows[i][0], error, rows[i][1]);
        }
        assert_lacks(error, "secre");
        assert_null(address.host);
        assert_null(address.credentials.password);
        assert_is(redlock_address_parse(rows[i][0], &address, &(struct redlock_error_text){0}), REDLOCK_ERR_INVALID);
    }
}

TEST(one_address_has_several_names) {
    static const struct {
        const char *name, *other;
        bool is_same;
    } rows[] =
        LIST({"a:1", "a:1", true}, {"A.example:1", "a.EXAMPLE:1", true}, {"a:1", "a:2", false}, {"a:1", "b:1", false},
             {"1.2.3.4:1", "1.2.3.4:1", true}, {"1.2.3.4:1", "1.2.3.4:2", false}, {"1.2.3.4:1", "1.2.3.5:1", false},
             {"[::1]:1", "[::1]:1", true}, {"[::1]:1", "[0:0:0:0:0:0:0:1]:1", true}, {"[::1]:1", "[0::0001]:1", true},
             {"[2001:DB8::a]:1", "[2001:db8:0::A]:1", true}, {"[::1]:1", "[::1]:2", false},
             {"[::1]:1", "[::2]:1", false}, {"[::ffff:1.2.3.4]:1", "1.2.3.4:1", true},
             {"1.2.3.4:1", "[::ffff:102:304]:1", true}, {"1.2.3.4:1", "[::1.2.3.4]:1", false},
             {"[fe80::1%a]:1", "[fe80:0::1%a]:1", true}, {"[fe80::1%a]:1", "[fe80::1%b]:1", false},
             {"[fe80::1%a]:1", "[fe80::1]:1", false}, {"[::1]:1", "localhost:1", false}, {"/run/a", "/run/a", true},
             {"/run/a", "/run/A", false}, {"/run/a", "//run///a", true}, {"/run/a", "/./run/././a", true},
             {"/run/a", "/run/a/.", true}, {"/run/a", "/run/.a", false}, {"/run/a", "/run/a/b", false},
             {"/run/a", "/run", false}, {"/run/ab", "/run/a", false}, {"/run/a", "a:1", false});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (redlock_address_is_same(rows[i].name, rows[i].other) != rows[i].is_same ||
            redlock_address_is_same(rows[i].other, rows[i].name) != rows[i].is_same) {
            fail_msg("%s and %s", rows[i].name, rows[i].other);
        }
    }
}
