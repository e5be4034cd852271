/* The page: its words, its form, escaping and size. It is the same each time. */
#include <errno.h>

#include "test.h"
#include <jansson.h>

#include "report/report.h"
#include "report_runs.h"
#include "scarce_memory.h"
#include "short_memory.h"

struct page {
    struct kit kit;
    struct chaos_verdict verdict;
    char *text;
    size_t size;
};

static const struct report_run everything = {"everything", 5, 20, 3, 60, 25000, UINT32_MAX, 0};
static const struct report_run small = {"small", 5, 3, 2, 10, 40000, UINT32_MAX, 0};
static const struct report_run crowded = {"crowded", 5, 20, 12, 60, 30000, UINT32_MAX, 0};

static void write_page(struct page *page, const struct chaos_experiment *experiment) {
    free(page->text);
    FILE *out = open_memstream(&page->text, &page->size);
    assert_non_null(out);
    assert_true(chaos_report_write(out, &page->kit.history, &page->verdict, experiment));
    assert_int_equal(fclose(out), 0);
}

static void judge(struct page *page) {
    chaos_verdict_clear(&page->verdict);
    page->verdict = (struct chaos_verdict){0};
    chaos_check(&page->kit.history, 500000, &page->verdict);
}

static void make_page(struct page *page, const struct report_run *run) {
    *page = (struct page){0};
    report_run_make(run, &page->kit);
    judge(page);
    write_page(page, NULL);
}

static void clear_page(struct page *page) {
    free(page->text);
    chaos_verdict_clear(&page->verdict);
    kit_clear(&page->kit);
}

static void has(const struct page *page, const char *text) {
    assert_contains(page->text, text);
}

static void has_not(const struct page *page, const char *text) {
    const char *at = strstr(page->text, text);
    if (at != NULL) {
        fail_msg("the page has \"%.60s\"", at);
    }
}

/* The data that the script draws. */
static json_t *data_of(const struct page *page) {
    const char *begin = strstr(page->text, "id=\"chaos-data\">");
    assert_non_null(begin);
    begin = strchr(begin, '>') + 1;
    const char *end = strstr(begin, "</script>");
    assert_non_null(end);
    json_error_t error;
    json_t *data = json_loadb(begin, (size_t)(end - begin), 0, &error);
    if (data == NULL) {
        fail_msg("data: %s at %d", error.text, error.position);
    }
    assert_int_equal(json_array_size(json_object_get(data, "runs")), 1);
    json_t *run = json_incref(json_array_get(json_object_get(data, "runs"), 0));
    json_decref(data);
    return run;
}

/* Every element that begins ends, in order. */
static void is_well_formed(const struct page *page) {
    static const char *const empty[] = {"!doctype", "meta", NULL};
    char stack[64][24];
    size_t depth = 0;
    for (const char *at = strchr(page->text, '<'); at != NULL; at = strchr(at, '<')) {
        char name[24];
        bool ends = at[1] == '/';
        assert_int_equal(sscanf(at + 1 + ends, "%23[a-z0-9!]", name), 1);
        const char *close = strchr(at, '>');
        assert_non_null(close);
        bool alone = close[-1] == '/';
        for (size_t i = 0; empty[i] != NULL; i++) {
            alone = alone || strcmp(name, empty[i]) == 0;
        }
        at = close;
        if (ends) {
            assert_true(depth > 0);
            depth--;
            assert_string_equal(name, stack[depth]);
        } else if (!alone) {
            assert_true(depth < 64);
            strcpy(stack[depth++], name);
            if (strcmp(name, "script") == 0 || strcmp(name, "style") == 0) {
                at = strstr(at, strcmp(name, "script") == 0 ? "</script>" : "</style>");
            }
        }
    }
    assert_int_equal(depth, 0);
}

/* Every link has a target, and all targets are on the page. */
static void links_lead_somewhere(const struct page *page) {
    size_t links = 0;
    for (const char *at = strstr(page->text, " href=\""); at != NULL; at = strstr(at + 1, " href=\"")) {
        char target[64], id[80];
        assert_int_equal(sscanf(at, " href=\"#%63[^\"]", target), 1);
        snprintf(id, sizeof id, " id=\"%s\"", target);
        const char *place = strstr(page->text, id);
        assert_non_null(place);
        assert_lacks(place + 1, id);
        links++;
    }
    assert_true(links > 0);
}

static void is_utf_8(const struct page *page) {
    json_t *text = json_stringn(page->text, page->size);
    assert_non_null(text);
    json_decref(text);
}

static void is_sound(const struct page *page) {
    static const char *const foreign[] = {"http:",   "https:", "@import", "url(//",
                                          " src=\"", "<link",  "fetch(",  "XMLHttp"};
    is_well_formed(page);
    links_lead_somewhere(page);
    is_utf_8(page);
    json_decref(data_of(page));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        const char *at = strstr(page->text, foreign[i]);
        /* The only address is the name of SVG's namespace, which no browser fetches. */
        while (at != NULL && strncmp(at, "http://www.w3.org/2000/svg'", 27) == 0) {
            at = strstr(at + 1, foreign[i]);
        }
        if (at != NULL) {
            fail_msg("the page reaches out: %.60s", at);
        }
    }
}

TEST(test_it_tells_a_clean_run) {
    static const struct chaos_experiment experiment = {"everything", "Everything & more", "What <is> seen", false};
    struct page page;
    make_page(&page, &everything);
    page.kit.history.breaks_assumptions = false;
    write_page(&page, &experiment);
    is_sound(&page);
    has(&page, "<h1>Everything &amp; more</h1>");
    has(&page, "What &lt;is&gt; seen");
    has(&page, "<section class=\"verdict clean\"");
    has(&page, "id=\"verdict\">No violation</h2>");
    has(&page, "20 clients acquired 3 resources ");
    has(&page, " on 5 nodes within 60.0 s, under ");
    has(&page, "Seed <b class=\"number\">7</b>");
    has(&page, page.kit.history.command);
    has_not(&page, "id=\"violations\"");
    clear_page(&page);
}

/* How long each kind waited; other runs do not speak of readers. */
TEST(test_it_tells_of_readers) {
    struct page page = {0};
    struct kit *kit = &page.kit;
    kit_begin(kit, 3, 2, 1);
    kit_release(kit, kit_acquire_shared(kit, 0, 0, "a", 100000, 1100000), 150000);
    kit_release(kit, kit_acquire(kit, 1, 0, "w", 1300000, 2300000), 1350000);
    kit_sweep(kit, 0, 2000000, 2000300);
    kit->history.readers = 50;
    kit_finish(kit, 5000000);
    judge(&page);
    write_page(&page, NULL);
    is_sound(&page);
    has(&page, "At no time did a client rely on a resource that another one had alone; no update was lost;");
    has(&page, "<th scope=\"row\">acquire, to read</th><td>1</td>");
    has(&page, "<th scope=\"row\">acquire, to write</th><td>1</td>");
    has(&page, "<th scope=\"row\">clients that read</th><td>50 %</td>");
    kit->history.readers = 0;
    kit->history.operations[0].shared = kit->history.leases[0].shared = false;
    judge(&page);
    write_page(&page, NULL);
    has(&page, "At no time did two clients rely on one resource; no update was lost;");
    has_not(&page, "acquire, to read</th>");
    has_not(&page, "clients that read</th>");
    clear_page(&page);
}

TEST(test_it_tells_violations) {
    struct report_run broken = small;
    broken.overlap = 500;
    struct page page;
    make_page(&page, &broken);
    assert_true(page.verdict.counts[CHAOS_VIOLATION_OVERLAP] > 5);
    is_sound(&page);
    has(&page, "<section class=\"verdict expected\"");
    has(&page, " violations, as expected</h2>");
    has(&page, "<li id=\"v1\"><a href=\"#time\" data-violation=\"0\">");
    has(&page, page.verdict.violations[0].text);
    json_t *data = data_of(&page), *violations = json_object_get(data, "violations");
    assert_int_equal(json_array_size(violations), page.verdict.violation_count);
    assert_string_equal(json_string_value(json_object_get(json_array_get(violations, 0), "text")),
                        page.verdict.violations[0].text);
    json_decref(data);
    page.kit.history.breaks_assumptions = false;
    write_page(&page, NULL);
    is_sound(&page);
    has(&page, "<section class=\"verdict wrong\"");
    has(&page, "this must not happen");
    clear_page(&page);
}

/* A jumping clock does not explain a crash. */
TEST(test_not_every_violation_is_expected) {
    struct page page = {0};
    report_run_make(&small, &page.kit);
    kit_leave(&page.kit, "node 2 has key r1");
    judge(&page);
    write_page(&page, NULL);
    assert_true(page.kit.history.breaks_assumptions);
    assert_int_equal(page.verdict.counts[CHAOS_VIOLATION_LEFT], 1);
    has(&page, "<section class=\"verdict wrong\"");
    has(&page, "<h3>Left behind</h3><ul><li>node 2 has key r1</li></ul>");
    clear_page(&page);
}

TEST(test_it_shows_a_bounded_number_of_violations) {
    struct page page = {0};
    report_run_make(&small, &page.kit);
    page.verdict.violations = calloc(1500, sizeof *page.verdict.violations);
    assert_non_null(page.verdict.violations);
    for (int i = 0; i < 1500; i++) {
        page.verdict.violations[i] = (struct chaos_violation){
            CHAOS_VIOLATION_LATE, KIT_START_US + i * 5000, KIT_START_US + i * 5000, -1, {i % 3, -1}, strdup("late")};
    }
    page.verdict.violation_count = page.verdict.counts[CHAOS_VIOLATION_LATE] = 1500;
    write_page(&page, NULL);
    is_sound(&page);
    has(&page, "<h2 id=\"verdict\">1,500 violations</h2>");
    has(&page, "<code>redlock-chaos check</code> tells all 1,500.");
    has(&page, " id=\"v1000\"");
    has_not(&page, " id=\"v1001\"");
    json_t *data = data_of(&page);
    assert_int_equal(json_array_size(json_object_get(data, "violations")), 1000);
    json_decref(data);
    clear_page(&page);
}

TEST(test_nothing_happened) {
    static const struct report_run nothing = {"nothing", 5, 20, 3, 60, 0, 0, 0};
    struct page page;
    make_page(&page, &nothing);
    is_sound(&page);
    has(&page, "acquired 3 resources 0 times on 5 nodes within 60.0 s, without faults.");
    has_not(&page, "nan");
    page.verdict.violation_count = 0;
    memset(page.verdict.counts, 0, sizeof page.verdict.counts);
    write_page(&page, NULL);
    has(&page, "<section class=\"verdict nothing\"");
    has(&page, "this run proves nothing");
    page.verdict.violation_count = 1;
    clear_page(&page);
}

/* A history that broke off at once: no time, no finish, no client, and only one node. */
TEST(test_a_history_that_broke_off) {
    struct page page = {0};
    kit_begin(&page.kit, 1, 1, 1);
    page.kit.history.finish_us = CHAOS_NEVER_US;
    judge(&page);
    write_page(&page, NULL);
    is_well_formed(&page);
    has(&page, "proves nothing");
    clear_page(&page);
}

TEST(test_what_comes_from_outside_is_escaped) {
    struct report_run hostile = small;
    hostile.overlap = 500;
    struct page page = {0};
    report_run_make(&hostile, &page.kit);
    report_run_poison(&page.kit);
    judge(&page);
    struct chaos_experiment experiment = {report_poison, report_poison, report_poison, true};
    write_page(&page, &experiment);
    is_sound(&page);
    has_not(&page, "<script>window.broken");
    has_not(&page, "<img");
    has_not(&page, "\xE2\x80\xAE");
    has(&page, "&lt;/script&gt;&lt;/title&gt;&lt;/style&gt;--&gt;&lt;script&gt;window.broken=1&lt;/script&gt;");
    json_t *data = data_of(&page);
    const char *name = json_string_value(json_array_get(json_object_get(data, "resources"), 0));
    assert_non_null(name);
    assert_string_equal(
        name, "</script></title></style>--><script>window.broken=1</script><img src=x onerror=\"window.broken="
              "2\">\"'&amp;\\u003c\\ \xE2\x80\xA8\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD"
              "\xEF\xBF\xBD \xEF\xBF\xBD\n]]><!--<script>");
    json_decref(data);
    clear_page(&page);
}

TEST(test_it_is_small_and_the_same_each_time) {
    struct page page;
    make_page(&page, &crowded);
    is_sound(&page);
    assert_true(page.kit.history.lease_count > 9000);
    assert_true(page.size < 3000000);
    char *before = strdup(page.text);
    assert_non_null(before);
    write_page(&page, NULL);
    assert_string_equal(page.text, before);
    free(before);
    clear_page(&page);
}

TEST(test_the_largest_run) {
    static const struct report_run largest = {"largest", 31, 64, 32, 20, 60000, UINT32_MAX, 0};
    struct page page;
    make_page(&page, &largest);
    is_sound(&page);
    json_t *data = data_of(&page);
    assert_int_equal(json_integer_value(json_object_get(data, "nodes")), 31);
    assert_int_equal(json_array_size(json_object_get(data, "clients")), 64);
    json_decref(data);
    clear_page(&page);
}

/* With very many leases, the page has tokens only for leases with an event. */
TEST(test_very_many_leases) {
    struct page page = {0};
    kit_begin(&page.kit, 3, 1, 1);
    for (int64_t i = 0; i < 41000; i++) {
        kit_end(&page.kit, kit_lease(&page.kit, 0, 0, "aaaabbbbccccdddd", i * 1000, i * 1000 + 900), i * 1000 + 500,
                true);
    }
    kit_end(&page.kit, kit_lease(&page.kit, 0, 0, "eeeeffffgggghhhh", 50000000, 50000900), 50000900, false);
    kit_finish(&page.kit, 60000000);
    write_page(&page, NULL);
    is_sound(&page);
    has_not(&page, "aaaabbbbccccdddd");
    has(&page, "eeeeffffgggghhhh");
    assert_true(page.size < 1500000);
    clear_page(&page);
}

/* An acquire while too few nodes are healthy does not count for availability. */
TEST(test_how_many_acquires_counted) {
    struct page page = {0};
    kit_begin(&page.kit, 3, 1, 1);
    kit_band(&page.kit, CHAOS_FAULT_PAUSE, 3, 0, 1000000, 2000000);
    kit_release(&page.kit, kit_acquire(&page.kit, 0, 0, "aaaa", 100000, 1100000), 150000);
    kit_operation(&page.kit, 0, 0, CHAOS_ACQUIRE, 1100000, 1900000, "NO_QUORUM");
    kit_release(&page.kit, kit_acquire(&page.kit, 0, 0, "bbbb", 8000000, 9000000), 8100000);
    kit_finish(&page.kit, 10000000);
    judge(&page);
    write_page(&page, NULL);
    has(&page, "<span>2 of 2 acquires</span><span>2 of 3 counted</span>");
    page.verdict.healthy_acquires = page.verdict.acquires;
    write_page(&page, NULL);
    has(&page, "<span>2 of 3 acquires</span></dd>");
    clear_page(&page);
}

/* The script comes last on the page, so verdict and figures do not need it. */
TEST(test_it_is_read_without_a_script) {
    static const char *const words[] = {"id=\"verdict\"", "<dt>Availability</dt>", "<noscript>",    "id=\"violations\"",
                                        "<td>none</td>",  ">acquire</th>",         "id=\"faults\"", "id=\"settings\""};
    struct report_run broken = small;
    broken.overlap = 500;
    struct page page;
    make_page(&page, &broken);
    char *script = strstr(page.text, "<script");
    assert_non_null(script);
    *script = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        has(&page, words[i]);
    }
    has(&page, page.verdict.violations[0].text);
    clear_page(&page);
}

TEST(test_a_full_disk_is_told) {
    struct page page;
    make_page(&page, &small);
    FILE *full = fopen("/dev/full", "we");
    assert_non_null(full);
    assert_false(chaos_report_write(full, &page.kit.history, &page.verdict, NULL));
    assert_int_equal(errno, ENOSPC);
    fclose(full);
    clear_page(&page);
}

static enum short_end write_tiny(void *what) {
    const struct page *page = what;
    FILE *out = fopen("/dev/null", "we");
    errno = 0;
    bool worked = out != NULL && chaos_report_write(out, &page->kit.history, &page->verdict, NULL);
    return worked ? SHORT_ENOUGH : errno == ENOMEM ? SHORT_TOLD : SHORT_WRONG;
}

TEST(test_the_end_of_memory_is_told) {
    static const struct report_run tiny = {"tiny", 3, 2, 1, 2, 20000, UINT32_MAX, 500};
    struct page page;
    make_page(&page, &tiny);
    json_set_alloc_funcs(__wrap_malloc, free);
    long at = 1;
    for (enum short_end end; (end = short_run(at, write_tiny, &page)) != SHORT_ENOUGH; at++) {
        assert_true(end == SHORT_TOLD || end == SHORT_ENDED);
    }
    json_set_alloc_funcs(malloc, free);
    assert_true(at > 100);
    clear_page(&page);
}
