/* The parts of the page: escaping, and data for the script. report_drive.js tests what the script
 * draws. */
#include "kit.h"
#include "report/html.h"
#include "report/parts.h"
#include "test.h"

#define BAD "\xEF\xBF\xBD"

static FILE *begin(char **text) {
    static size_t size;
    FILE *out = open_memstream(text, &size);
    assert_non_null(out);
    return out;
}

static void is_written(const char *text, const char *expected) {
    char *got = NULL;
    FILE *out = begin(&got);
    chaos_html(out, "%s", text);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got, expected);
    free(got);
}

/* Writes JSON for a script and reads it again. */
static void is_json(const char *text, const char *expected, const char *read) {
    char *got = NULL;
    FILE *out = begin(&got);
    json_t *json = json_pack("[o]", chaos_json_text(text));
    assert_true(chaos_html_json(out, json));
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got, expected);
    json_t *again = json_loads(got, 0, NULL);
    assert_string_equal(json_string_value(json_array_get(again, 0)), read);
    json_decref(again);
    json_decref(json);
    free(got);
}

TEST(test_text) {
    is_written(NULL, "");
    is_written("a<b>&\"c\"'d'", "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
    is_written("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\x92", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\x92");
    is_written("a\tb\nc\x01\x7F\r", "a\tb\nc" BAD BAD BAD);
}

TEST(test_json) {
    is_json("a\"\\/<\n", "[\"a\\\"\\\\/\\u003c\\n\"]", "a\"\\/<\n");
    is_json(NULL, "[\"\"]", "");
    is_json("\xE2\x80\xA8\xE2\x80\xA9", "[\"\\u2028\\u2029\"]", "\xE2\x80\xA8\xE2\x80\xA9");
    is_json("<!--<script>\x01\xC3</script>", "[\"\\u003c!--\\u003cscript>\\uFFFD\\uFFFD\\u003c/script>\"]",
            "<!--<script>" BAD BAD "</script>");
    assert_false(chaos_html_json(NULL, NULL));
}

TEST(test_formats) {
    char *got = NULL;
    FILE *out = begin(&got);
    chaos_html(out, "<b title=\"%s\">%s, %s</b>", "\"><", CHAOS_SAY("%d<", -1234), CHAOS_COUNT(12345678));
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got, "<b title=\"&quot;&gt;&lt;\">-1234&lt;, 12,345,678</b>");
    free(got);
}

/* A byte that starts no character is replaced, without anything of what follows. */
TEST(test_bytes_that_are_no_text) {
    is_written("\x80<", BAD "&lt;");
    is_written("\xC3<", BAD "&lt;");
    is_written("\xE2\x82<", BAD BAD "&lt;");
    is_written("\xF0\x9F\x94", BAD BAD BAD);
    is_written("\xC0\xBC", BAD BAD);                 /* "<" in two bytes */
    is_written("\xE0\x80\xBC", BAD BAD BAD);         /* in three */
    is_written("\xF0\x80\x80\xBC", BAD BAD BAD BAD); /* in four */
    is_written("\xED\xA0\x80", BAD BAD BAD);         /* half of a surrogate pair */
    is_written("\xF4\x90\x80\x80", BAD BAD BAD BAD); /* beyond the last code point */
    is_written("\xFF\xFE", BAD BAD);
    is_written("\xEF\xBF\xBF\xE2\x80\xAE", BAD BAD); /* a noncharacter; a direction override */
}

static json_t *of_client(json_t *data, size_t client, const char *list, size_t index) {
    return json_array_get(json_object_get(json_array_get(json_object_get(data, "clients"), client), list), index);
}

/* One lease of the data, in ticks of 100 µs: see data.c. */
static void lease_is(json_t *data, size_t client, size_t index, int gap, int length, int how, int until) {
    json_t *lease = of_client(data, client, "leases", index);
    assert_non_null(lease);
    assert_int_equal(json_integer_value(json_array_get(lease, 0)), gap);
    assert_int_equal(json_integer_value(json_array_get(lease, 1)), length);
    assert_int_equal(json_integer_value(json_array_get(lease, 3)), how);
    if (until >= 0) {
        assert_int_equal(json_integer_value(json_array_get(lease, 5)), until);
    } else {
        assert_int_equal(json_array_size(lease), 5);
    }
}

TEST(test_how_leases_ended) {
    struct kit own = {0}, *kit = &own;
    struct chaos_verdict verdict = {0};
    kit_begin(kit, 3, 3, 1);
    kit_release(kit, kit_acquire(kit, 0, 0, "aaaa", 100000, 1100000), 150000);
    kit_end(kit, kit_acquire(kit, 0, 0, "bbbb", 200000, 1200000), 1200000, false);
    kit_acquire(kit, 1, 0, "cccc", 1500000, 2500000);
    kit_kill(kit, 1, 1700000);
    size_t renewed = kit_acquire(kit, 2, 0, "dddd", 2600000, 3600000);
    kit_claim(kit, renewed, 3000000, 4000000);
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, 2000000, 4000000, "NO_QUORUM");
    kit_release(kit, kit_acquire(kit, 0, 0, "eeee", 4100000, 4500000), 4600000);
    kit_finish(kit, 5000000);
    struct chaos_view view = chaos_view_of(&kit->history, &verdict, NULL);
    json_t *data = chaos_page_data(&view);
    lease_is(data, 0, 0, 1000, 500, 0, -1);
    lease_is(data, 0, 1, 500, 10000, 1, 10000);
    lease_is(data, 0, 2, 29000, 4000, 4, 4000);
    lease_is(data, 1, 0, 15000, 2000, 2, 10000);
    lease_is(data, 2, 0, 26000, 14000, 3, 14000);
    json_t *lease = of_client(data, 2, "leases", 0);
    assert_int_equal(json_integer_value(json_array_get(lease, 6)), 4000);
    /* The acquire was invoked 1 ms before. */
    json_t *acquire = of_client(data, 2, "acquires", 0);
    assert_int_equal(json_integer_value(json_array_get(acquire, 0)), 26000);
    assert_int_equal(json_integer_value(json_array_get(acquire, 1)), 1000);
    assert_string_equal(json_string_value(json_array_get(acquire, 3)), "OK");
    acquire = of_client(data, 0, "acquires", 2);
    assert_int_equal(json_integer_value(json_array_get(acquire, 0)), 38000);
    assert_int_equal(json_integer_value(json_array_get(acquire, 1)), 2000000);
    assert_string_equal(json_string_value(json_array_get(acquire, 3)), "NO_QUORUM");
    assert_non_null(of_client(data, 0, "acquires", 3));
    assert_null(of_client(data, 0, "acquires", 4));
    json_decref(data);
    kit_clear(kit);
}

TEST(test_leases_that_are_shared) {
    struct kit own = {0}, *kit = &own;
    struct chaos_verdict verdict = {0};
    kit_begin(kit, 3, 2, 1);
    kit_release(kit, kit_acquire_shared(kit, 0, 0, "aaaa", 100000, 1100000), 150000);
    kit_end(kit, kit_acquire_shared(kit, 0, 0, "bbbb", 200000, 1200000), 1200000, false);
    kit_release(kit, kit_acquire(kit, 1, 0, "cccc", 1300000, 2300000), 1350000);
    kit_finish(kit, 5000000);
    struct chaos_view view = chaos_view_of(&kit->history, &verdict, NULL);
    json_t *data = chaos_page_data(&view);
    lease_is(data, 0, 0, 1000, 500, 8, -1);
    lease_is(data, 0, 1, 500, 10000, 9, 10000);
    lease_is(data, 1, 0, 13000, 500, 0, -1);
    assert_int_equal(json_integer_value(json_array_get(of_client(data, 0, "acquires", 0), 6)), 1);
    assert_int_equal(json_array_size(of_client(data, 1, "acquires", 0)), 6);
    json_decref(data);
    kit_clear(kit);
}

/* The spans in which each client has no healthy quorum. */
TEST(test_clients_without_a_quorum) {
    struct kit kit = {0};
    struct chaos_verdict verdict = {0};
    kit_begin(&kit, 3, 2, 1);
    kit_band(&kit, CHAOS_FAULT_PARTITION, 3, 1, 1000000, 2000000);
    kit_band(&kit, CHAOS_FAULT_PAUSE, 3, 0, 1500000, 3000000);
    kit_finish(&kit, 10000000);
    struct chaos_view view = chaos_view_of(&kit.history, &verdict, NULL);
    json_t *data = chaos_page_data(&view), *clients = json_object_get(data, "clients");
    for (size_t i = 0; i < 2; i++) {
        json_t *spans = json_object_get(json_array_get(clients, i), "unhealthy");
        assert_int_equal(json_array_size(spans), 1);
        json_t *span = json_array_get(spans, 0);
        assert_int_equal(json_integer_value(json_array_get(span, 0)), i == 0 ? 10000 : 15000);
        /* Plus the time to connect. */
        assert_int_equal(json_integer_value(json_array_get(span, 1)), 30000 + 26000);
    }
    json_decref(data);
    kit_clear(&kit);
}

TEST(test_numbers_for_people) {
    static const struct {
        int64_t us;
        const char *said;
    } durations[] = {{0, "0 µs"},          {812, "812 µs"},          {1234, "1.23 ms"},         {9996, "10.00 ms"},
                     {45678, "45.7 ms"},   {999499, "999 ms"},       {999500, "1.00 s"},        {12345678, "12.3 s"},
                     {99949999, "99.9 s"}, {99950000, "1 min 40 s"}, {200000000, "3 min 20 s"}, {-1, "?"}};
    char buffer[CHAOS_NUMBER_SIZE];
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
        assert_string_equal(chaos_say_duration(durations[i].us, buffer), durations[i].said);
    }
    assert_string_equal(chaos_say_count(0, buffer), "0");
    assert_string_equal(chaos_say_count(999, buffer), "999");
    assert_string_equal(chaos_say_count(1000, buffer), "1,000");
    assert_string_equal(chaos_say_count(1234567, buffer), "1,234,567");
    assert_string_equal(chaos_say_count(-123456, buffer), "-123,456");
    assert_string_equal(chaos_say_count(INT64_MIN, buffer), "-9,223,372,036,854,775,808");
    assert_string_equal(chaos_say_share(10000, buffer), "100 %");
    assert_string_equal(chaos_say_share(9987, buffer), "99.87 %");
    assert_string_equal(chaos_say_share(5, buffer), "0.05 %");
    assert_string_equal(chaos_say_time(12345678, buffer), "12.346 s");
    assert_string_equal(chaos_say_time(-1500000, buffer), "-1.500 s");
    assert_string_equal(chaos_say_many(1, "lease", buffer), "1 lease");
    assert_string_equal(chaos_say_many(1200, "lease", buffer), "1,200 leases");
}
