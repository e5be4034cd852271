/* The parts of the page: escaping, lanes of faults, acquires by intervals of time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"
#include "report/report_parts.h"
#include "report/report_text.h"

static void is_written(void (*write)(FILE *, const char *), const char *text, const char *expected) {
    char *got = NULL;
    size_t size;
    FILE *out = open_memstream(&got, &size);
    assert_non_null(out);
    write(out, text);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got, expected);
    free(got);
}

#define BAD "\xEF\xBF\xBD"

static void test_text(void **state) {
    (void)state;
    is_written(chaos_page_text, NULL, "");
    is_written(chaos_page_text, "a<b>&\"c\"'d'", "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
    is_written(chaos_page_text, "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\x92", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\x92");
    is_written(chaos_page_text, "a\tb\nc\x01\x7F\r", "a\tb\nc" BAD BAD BAD);
    is_written(chaos_page_json, "a\"\\/<\n", "\"a\\u0022\\u005c/\\u003c\\u000a\"");
    is_written(chaos_page_json, NULL, "\"\"");
    is_written(chaos_page_json, "\xE2\x80\xA8\xE2\x80\xA9", "\"\\u2028\\u2029\"");
}

/* A byte that begins no character is replaced, and takes nothing with it of what follows. */
static void test_bytes_that_are_no_text(void **state) {
    (void)state;
    is_written(chaos_page_text, "\x80<", BAD "&lt;");
    is_written(chaos_page_text, "\xC3<", BAD "&lt;");
    is_written(chaos_page_text, "\xE2\x82<", BAD BAD "&lt;");
    is_written(chaos_page_text, "\xF0\x9F\x94", BAD BAD BAD);
    is_written(chaos_page_text, "\xC0\xBC", BAD BAD);                 /* "<" in two bytes */
    is_written(chaos_page_text, "\xE0\x80\xBC", BAD BAD BAD);         /* in three */
    is_written(chaos_page_text, "\xF0\x80\x80\xBC", BAD BAD BAD BAD); /* in four */
    is_written(chaos_page_text, "\xED\xA0\x80", BAD BAD BAD);         /* half of a pair */
    is_written(chaos_page_text, "\xF4\x90\x80\x80", BAD BAD BAD BAD); /* beyond the last */
    is_written(chaos_page_text, "\xFF\xFE", BAD BAD);
    is_written(chaos_page_text, "\xEF\xBF\xBF\xE2\x80\xAE", BAD BAD); /* no character; one that turns the line around */
}

struct scene {
    struct kit kit;
    struct chaos_verdict verdict;
    struct chaos_view view;
};

static void begin(struct scene *scene) {
    *scene = (struct scene){0};
    kit_begin(&scene->kit, 3, 2, 1);
}

static void look(struct scene *scene) {
    kit_finish(&scene->kit, 10000000);
    assert_true(chaos_view_make(&scene->view, &scene->kit.history, &scene->verdict, NULL));
}

static void end(struct scene *scene) {
    chaos_view_clear(&scene->view);
    kit_clear(&scene->kit);
}

static void test_faults_that_overlap_have_lanes_of_their_own(void **state) {
    (void)state;
    static const uint8_t lanes[] = {0, 1, 2, 0, 1};
    struct scene scene;
    begin(&scene);
    kit_band(&scene.kit, CHAOS_FAULT_OOM, 1, 0, 1000000, 3000000);
    kit_band(&scene.kit, CHAOS_FAULT_PARTITION, 3, 3, 2000000, 5000000);
    kit_band(&scene.kit, CHAOS_FAULT_PASSWORD, 1, 0, 2500000, 2600000);
    kit_band(&scene.kit, CHAOS_FAULT_PAUSE, 1, 0, 3000000, 6000000);
    kit_band(&scene.kit, CHAOS_FAULT_FLUSHALL, 1, 0, 5000000, 5000000);
    look(&scene);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(scene.view.lanes[i * 3], lanes[i]);
    }
    assert_int_equal(scene.view.lanes[1 * 3 + 1], 0);
    assert_true(scene.view.node_height[0] >= 3 * CHAOS_VIEW_LANE);
    assert_true(scene.view.node_height[1] < 2 * CHAOS_VIEW_LANE);
    assert_int_equal(scene.view.node_y[1], scene.view.node_y[0] + scene.view.node_height[0]);
    end(&scene);
}

/* Each fault is drawn in its lane, and over the clients that it hits: neighbours as one. */
static void test_where_faults_are_drawn(void **state) {
    (void)state;
    struct scene scene;
    char *text = NULL, expected[200];
    size_t size;
    begin(&scene);
    kit_band(&scene.kit, CHAOS_FAULT_OOM, 2, 0, 1000000, 3000000);
    kit_band(&scene.kit, CHAOS_FAULT_PARTITION, 2, 3, 2000000, 5000000);
    look(&scene);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    chaos_page_rows(out, &scene.view);
    assert_int_equal(fclose(out), 0);
    snprintf(expected, sizeof expected, "class=\"on-node\" d=\"M10000 %dh20000v15H10000z\"", scene.view.node_y[1] + 3);
    assert_non_null(strstr(text, expected));
    snprintf(expected, sizeof expected, "class=\"on-node\" d=\"M20000 %dh30000v15H20000z\"",
             scene.view.node_y[1] + 3 + CHAOS_VIEW_LANE);
    assert_non_null(strstr(text, expected));
    snprintf(expected, sizeof expected, "class=\"on-client\" d=\"M20000 %dh30000v%dH20000z\"", scene.view.clients_y,
             2 * scene.view.pitch - 1);
    assert_non_null(strstr(text, expected));
    free(text);
    end(&scene);
}

static void acquire(struct scene *scene, int64_t completed_us, int64_t took_us, const char *result) {
    kit_operation(&scene->kit, 0, 0, CHAOS_ACQUIRE, completed_us - took_us, completed_us, result);
}

static void test_acquires_by_intervals(void **state) {
    (void)state;
    struct scene scene;
    size_t count;
    begin(&scene);
    for (int i = 1; i <= 100; i++) {
        acquire(&scene, 1000000 + i * 4000, i * 100, "OK");
    }
    acquire(&scene, 1499999, 1000000, "CONTENDED");
    acquire(&scene, 1200000, 1000000, "NO_QUORUM");
    acquire(&scene, 1200000, 1000000, "TOO_SLOW");
    acquire(&scene, 1300000, 1000000, "CLOSED");
    acquire(&scene, 1500000, 7000, "OK");
    kit_operation(&scene.kit, 0, 0, CHAOS_ACQUIRE, 1600000, CHAOS_NEVER_US, "");
    kit_operation(&scene.kit, 0, 0, CHAOS_RELEASE, 1600000, 1700000, "OK");
    look(&scene);
    assert_int_equal(chaos_view_bucket_us(&scene.view), 500000);
    struct chaos_bucket *buckets = chaos_view_buckets(&scene.view, &count);
    assert_non_null(buckets);
    assert_int_equal(count, 21);
    assert_int_equal(buckets[1].acquired + buckets[1].contended + buckets[1].failed, 0);
    assert_int_equal(buckets[2].acquired, 100);
    assert_int_equal(buckets[2].contended, 1);
    assert_int_equal(buckets[2].failed, 2);
    assert_int_equal(buckets[2].p50_us, 5000);
    assert_int_equal(buckets[2].p99_us, 9900);
    assert_int_equal(buckets[3].acquired, 1);
    assert_int_equal(buckets[3].p50_us, 7000);
    assert_int_equal(buckets[3].p99_us, 7000);
    free(buckets);
    end(&scene);
}

/* How many clients are without a healthy quorum, from when on. */
static void test_clients_without_a_quorum(void **state) {
    (void)state;
    struct scene scene;
    size_t count;
    begin(&scene);
    kit_band(&scene.kit, CHAOS_FAULT_PARTITION, 3, 1, 1000000, 2000000);
    kit_band(&scene.kit, CHAOS_FAULT_PAUSE, 3, 0, 1500000, 3000000);
    look(&scene);
    struct chaos_step *steps = chaos_view_unwell(&scene.view, &count);
    assert_non_null(steps);
    assert_int_equal(count, 3);
    assert_int_equal(steps[0].tick, 10000);
    assert_int_equal(steps[0].clients, 1);
    assert_int_equal(steps[1].tick, 15000);
    assert_int_equal(steps[1].clients, 2);
    assert_int_equal(steps[2].tick, 30000 + 26000); /* and the time to connect again */
    assert_int_equal(steps[2].clients, 0);
    free(steps);
    end(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_faults_that_overlap_have_lanes_of_their_own),
        cmocka_unit_test(test_where_faults_are_drawn),
        cmocka_unit_test(test_acquires_by_intervals),
        cmocka_unit_test(test_clients_without_a_quorum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
