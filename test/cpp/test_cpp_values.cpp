// The C++ header without a server: options, codes, expected values, callbacks, and empty objects.
#include "kit.hpp"

#include <functional>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

#include "twice.hpp"

namespace {

#define REDLOCK_X(name, value, text) +1
static_assert(0 REDLOCK_ERROR_MAP(REDLOCK_X) == 16, "give redlock::errc the new code, too");
#undef REDLOCK_X

// The last member of each struct, as the header knows it: give it the new one, too.
#define ENDS_WITH(type, member)                                                                                        \
    static_assert(sizeof(type) - offsetof(type, member) <= sizeof(void *), #type " has grown")
ENDS_WITH(redlock_manager_options, loops);
ENDS_WITH(redlock_acquire_options, slots);
ENDS_WITH(redlock_election_options, expiring_ms);
ENDS_WITH(redlock_election_event, remaining_ms);
ENDS_WITH(redlock_tls_options, verify);
ENDS_WITH(redlock_node_info, shared_error);
ENDS_WITH(redlock_vote, readers);
ENDS_WITH(redlock_listed, readers);
ENDS_WITH(redlock_lock_reader, ttl_ms);
ENDS_WITH(redlock_lock_waiter, reads);
ENDS_WITH(redlock_telemetry_event, mode);

template <class T>
constexpr bool moves_only = std::is_nothrow_move_constructible_v<T> &&std::is_nothrow_move_assignable_v<T> &&
                            !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;
static_assert(moves_only<redlock::client> && moves_only<redlock::lease> && moves_only<redlock::election>);
static_assert(moves_only<redlock::manager> && moves_only<redlock::async_lease> && moves_only<redlock::observer>);
static_assert(moves_only<redlock::async_election> && moves_only<redlock::result>);
static_assert(!std::is_move_constructible_v<redlock::async_request>);
using work = long (*)(redlock::lease &);
static_assert(
    std::is_same_v<decltype(std::declval<redlock::client>().with("r", std::declval<work>())), redlock::expected<long>>);

TEST(the_options_have_the_defaults_of_c) {
    redlock_manager_options manager;
    redlock_manager_options_default(&manager);
    const redlock::manager_options given;
    const redlock::detail::c_manager_options made(given);
    assert_int_equal(made.c.size, manager.size);
    assert_int_equal(made.c.node_count, 0);
    assert_int_equal(made.c.node_timeout_ms, manager.node_timeout_ms);
    assert_int_equal(made.c.connect_timeout_ms, manager.connect_timeout_ms);
    assert_ptr_equal(made.c.key_prefix, manager.key_prefix);
    assert_ptr_equal(made.c.client_name, manager.client_name);
    assert_true(made.c.on_log == nullptr);
    assert_int_equal(made.c.log_level, manager.log_level);
    assert_int_equal(made.c.restart_guard, manager.restart_guard);
    assert_int_equal(made.c.clock_guard, manager.clock_guard);
    assert_int_equal(made.c.first_boot, manager.first_boot);
    assert_int_equal(made.c.ttl_max_ms, manager.ttl_max_ms);
    assert_ptr_equal(made.c.fence_suffix, manager.fence_suffix);
    assert_int_equal(made.c.fence_expiry_ms, manager.fence_expiry_ms);
    assert_ptr_equal(made.c.wait_suffix, manager.wait_suffix);
    assert_int_equal(made.c.listen, manager.listen);
    assert_ptr_equal(made.c.holder, manager.holder);
    assert_null(made.c.tls);
    assert_true(made.c.on_event == nullptr);
    redlock_tls_options tls;
    redlock_tls_options_default(&tls);
    redlock::manager_options secure;
    secure.tls.emplace();
    const redlock::detail::c_manager_options secured(secure);
    assert_int_equal(secured.c.tls->size, tls.size);
    assert_ptr_equal(secured.c.tls->ca_file, tls.ca_file);
    assert_int_equal(secured.c.tls->min_version, tls.min_version);
    assert_int_equal(secured.c.tls->verify, tls.verify);

    redlock_client_acquire_options acquire;
    redlock_client_acquire_options_default(&acquire);
    const redlock::acquire_options asked;
    const redlock_acquire_options lock = redlock::detail::to_c(asked);
    assert_int_equal(lock.size, acquire.lock.size);
    assert_int_equal(lock.ttl_ms, acquire.lock.ttl_ms);
    assert_int_equal(lock.wait_timeout_ms, acquire.lock.wait_timeout_ms);
    assert_int_equal(lock.retry_delay_min_ms, acquire.lock.retry_delay_min_ms);
    assert_int_equal(lock.retry_delay_max_ms, acquire.lock.retry_delay_max_ms);
    assert_int_equal(lock.auto_extend, acquire.lock.auto_extend);
    assert_int_equal(lock.auto_extend_max_ms, acquire.lock.auto_extend_max_ms);
    assert_true(lock.on_lost == nullptr);
    assert_int_equal(lock.fencing, acquire.lock.fencing);
    assert_int_equal(lock.heal, acquire.lock.heal);
    assert_int_equal(lock.lock_delay_ms, acquire.lock.lock_delay_ms);
    assert_int_equal(lock.order, acquire.lock.order);
    assert_int_equal(lock.expiring_ms, acquire.lock.expiring_ms);
    assert_true(lock.on_expiring == nullptr);
    assert_is(lock.mode, acquire.lock.mode);
    assert_int_equal(lock.permits, acquire.lock.permits);
    assert_int_equal(lock.limit, acquire.lock.limit);
    assert_ptr_equal(lock.slots, acquire.lock.slots);
    assert_int_equal(asked.reentrant, acquire.reentrant);
    assert_int_equal(asked.owner, acquire.owner);

    redlock_election_options election;
    redlock_election_options_default(&election);
    const redlock_election_options how = redlock::detail::to_c(redlock::election_options());
    assert_int_equal(how.size, election.size);
    assert_int_equal(how.ttl_ms, election.ttl_ms);
    assert_int_equal(how.campaign, election.campaign);
    assert_int_equal(how.fencing, election.fencing);
    assert_int_equal(how.heal, election.heal);
    assert_int_equal(how.lock_delay_ms, election.lock_delay_ms);
    assert_null(how.trace);
    assert_int_equal(how.expiring_ms, election.expiring_ms);
}

TEST(set_options_reach_c) {
    redlock::manager_options manager;
    manager.nodes = {"a:1", "b:2"};
    manager.node_timeout = 2s;
    manager.key_prefix = "p:";
    manager.fence_expiry = 4h;
    manager.holder = "web-3:4711";
    manager.quorum = 2;
    manager.loops = 3;
    manager.log_level = redlock::log_level::debug;
    manager.restart_guard = redlock::restart_guard::strict;
    manager.tls.emplace();
    manager.tls->key_file = "key.pem";
    manager.tls->min_version = redlock::tls_version::tls_1_3;
    manager.tls->verify = false;
    const redlock::detail::c_manager_options made(manager);
    assert_int_equal(made.c.node_count, 2);
    assert_string_equal(made.c.nodes[1], "b:2");
    assert_int_equal(made.c.node_timeout_ms, 2000);
    assert_string_equal(made.c.key_prefix, "p:");
    assert_int_equal(made.c.fence_expiry_ms, 14400000);
    assert_string_equal(made.c.holder, "web-3:4711");
    assert_int_equal(made.c.quorum, 2);
    assert_int_equal(made.c.loops, 3);
    assert_string_equal(made.c.tls->key_file, "key.pem");
    assert_int_equal(made.c.tls->min_version, REDLOCK_TLS_1_3);
    assert_false(made.c.tls->verify);
    assert_int_equal(made.c.log_level, REDLOCK_LOG_DEBUG);
    assert_int_equal(made.c.restart_guard, REDLOCK_RESTART_GUARD_STRICT);
    redlock::acquire_options acquire;
    acquire.wait = redlock::forever;
    acquire.order = redlock::order::none;
    acquire.lock_delay = 1min;
    acquire.expiring = 5s;
    acquire.mode = redlock::mode::shared;
    const std::uint32_t slots[] = {4, 2};
    acquire.permits = 2;
    acquire.limit = 5;
    acquire.slots = slots;
    redlock::milliseconds told{0};
    const auto on_expiring = [&told](redlock::lease_view, redlock::milliseconds remaining) { told = remaining; };
    acquire.on_expiring = on_expiring;
    const redlock_acquire_options lock = redlock::detail::to_c(acquire);
    assert_int_equal(lock.expiring_ms, 5000);
    assert_is(lock.mode, REDLOCK_SHARED);
    assert_int_equal(lock.permits, 2);
    assert_int_equal(lock.limit, 5);
    assert_ptr_equal(lock.slots, slots);
    lock.on_expiring(nullptr, 4321, lock.expiring_data);
    assert_int_equal(told.count(), 4321);
    redlock::election_options election;
    election.expiring = 3s;
    assert_int_equal(redlock::detail::to_c(election).expiring_ms, 3000);
    assert_int_equal(lock.wait_timeout_ms, REDLOCK_WAIT_FOREVER);
    assert_int_equal(lock.order, REDLOCK_ORDER_NONE);
    assert_int_equal(lock.lock_delay_ms, 60000);
}

TEST(names_are_those_of_c) {
    assert_string_equal(redlock::version(), redlock_version());
    assert_string_equal(redlock::describe(redlock::errc::lost), redlock_strerror(REDLOCK_ERR_LOST));
    assert_string_equal(redlock::name(redlock::errc::limit), "LIMIT");
    assert_string_equal(redlock::name(redlock::errc::no_quorum), "NO_QUORUM");
    assert_string_equal(redlock::name(redlock::vote_kind::abstained), "ABSTAINED");
    assert_string_equal(redlock::name(redlock::node_state::unusable), "UNUSABLE");
    assert_string_equal(redlock::name(redlock::election_event_kind::ended), "ENDED");
    assert_true(redlock::token_holder("0123456789abcdef0123456789abcdef@web") == "web");
    assert_true(redlock::token_holder(nullptr).empty());
}

TEST(a_text_with_a_nul_is_no_text) {
    const std::string whole = "abc", cut("a\0b", 3);
    assert_string_equal(redlock::text(whole).c_str(), "abc");
    assert_string_equal(redlock::text("abc").c_str(), "abc");
    assert_null(redlock::text(cut).c_str());
}

TEST(an_error_says_why) {
    redlock::manager_options options;
    redlock::expected<redlock::client> none = redlock::client::open(options);
    assert_false(none);
    assert_true(none.code() == redlock::errc::invalid);
    assert_true(contains(none.message(), "node_count is 0"));
    assert_string_equal(message_of(none.error()).c_str(), none.message().c_str());
    assert_false(static_cast<bool>(none.result()));
    options.nodes.assign(REDLOCK_NODES_MAX + 5, "127.0.0.1:1");
    assert_true(contains(redlock::client::open(options).message(), "node_count is 36"));

    int thrown = 0;
    const auto fails = [&thrown](const char *why, auto act) {
        try {
            act();
        } catch (const redlock::failure &failure) {
            assert_true(failure.code() == redlock::errc::invalid);
            assert_true(contains(failure.what(), why));
            thrown++;
        }
    };
    fails("node_count", [&] { redlock::client client(options); });
    fails("node_count", [&] { (void)redlock::client::open(options).value(); });
    fails("node_count", [&] { (void)none.value(); });
    fails("loop", [&] { redlock::manager manager(nullptr, options); });
    assert_int_equal(thrown, 4);
}

TEST(an_expected_value) {
    redlock::expected<std::unique_ptr<int>> seven(std::make_unique<int>(7));
    assert_true(seven.has_value() && static_cast<bool>(seven));
    assert_true(seven.code() == redlock::errc::ok);
    assert_int_equal(**seven, 7);
    assert_int_equal(*seven->get(), 7);
    assert_int_equal(*seven.value(), 7);
    const std::unique_ptr<int> moved = std::move(seven).value();
    assert_int_equal(*moved, 7);
    redlock::expected<int> none{redlock::error(redlock::errc::busy)};
    assert_false(none.has_value());
    assert_string_equal(none.message().c_str(), redlock_strerror(REDLOCK_ERR_BUSY));
    const redlock::error error = std::move(none).error();
    assert_true(error.code() == redlock::errc::busy);
    assert_true(redlock::expected<void>(redlock::errc::ok).has_value());
    redlock::expected<void>(redlock::errc::ok).value();
    assert_false(redlock::expected<void>(redlock::errc::lost).has_value());
}

struct collector {
    int runs = 0;
    std::string last;

    void operator()(redlock::log_level, std::string_view line) {
        runs++;
        last = line;
    }
};

int lines = 0;
void count_line(redlock::log_level, std::string_view) {
    lines++;
}

static_assert(!std::is_constructible_v<redlock::log_callback, int>);
static_assert(!std::is_constructible_v<redlock::log_callback, void (*)(int, int, int)>);

TEST(callbacks_fit_into_a_pointer) {
    collector collected;
    const redlock::log_callback by_reference = [&collected](redlock::log_level level, std::string_view line) {
        assert_true(level == redlock::log_level::info);
        collected(level, line);
    };
    by_reference.function()(REDLOCK_LOG_INFO, "one", by_reference.data());
    assert_string_equal(collected.last.c_str(), "one");
    const redlock::log_callback wrapped = std::ref(collected);
    const redlock::log_callback copy = wrapped;
    copy.function()(REDLOCK_LOG_INFO, "two", copy.data());
    assert_string_equal(collected.last.c_str(), "two");
    assert_int_equal(collected.runs, 2);
    const redlock::log_callback function = count_line,
                                captureless = [](redlock::log_level, std::string_view) { lines++; };
    function(REDLOCK_LOG_INFO, "");
    captureless(REDLOCK_LOG_INFO, "");
    assert_int_equal(lines, 2);
    const redlock::log_callback none, null = nullptr;
    assert_false(static_cast<bool>(none));
    assert_null(null.data());
    none(REDLOCK_LOG_INFO, "");
}

TEST(an_exception_in_a_callback_ends_the_program) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(STDERR_FILENO);
        const redlock::log_callback throws = [](redlock::log_level, std::string_view) { throw 1; };
        try {
            throws(REDLOCK_LOG_INFO, "");
        } catch (...) {
            _exit(1);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(empty_objects_do_nothing) {
    using redlock::errc;
    redlock::client client;
    assert_true(client.acquire("r").code() == errc::closed);
    assert_true(client.adopt("r", "t").code() == errc::closed);
    assert_true(client.inspect("r").code() == errc::closed);
    assert_true(client.elect("r").code() == errc::closed);
    assert_true(client.statistics().code() == errc::closed);
    assert_true(client.with("r", [](redlock::lease &) {}).code() == errc::closed);
    assert_true(client.acquire_all({"r"}).code() == errc::closed);
    assert_true(client.adopt_all({"r"}).code() == errc::closed);
    assert_true(client.with_all({"r"}, {}, [](redlock::lease &) {}).code() == errc::closed);
    assert_true(client.close() == errc::ok);
    redlock::lease lease = through(redlock::lease());
    assert_int_equal(lease.item_count(), 0);
    assert_true(lease.token(0).empty() && lease.resource(0).empty() && lease.fence(0) == 0);
    assert_true(lease.empty());
    assert_int_equal(lease.validity().count(), 0);
    assert_int_equal(lease.fence(), 0);
    assert_true(lease.token().empty() && lease.resource().empty());
    assert_true(lease.extend(1s).code() == errc::closed);
    assert_true(lease.downgrade().code() == errc::closed);
    assert_true(lease.release().code() == errc::closed);
    assert_true(lease.forget().code() == errc::closed);
    redlock::election election;
    assert_true(election.next(0ms).code() == errc::closed);
    assert_true(election.resign().code() == errc::closed);
    assert_int_equal(election.validity(1).count(), 0);

    redlock::manager manager;
    const auto owned = std::make_shared<int>(1);
    const auto never = [owned](redlock::result_view) { support_fatal("a callback of no request"); };
    assert_true(manager.connect(1s, never) == errc::closed);
    assert_true(manager.inspect("r", never) == errc::closed);
    assert_true(manager.acquire("r", {}, [owned](redlock::result_view, redlock::async_lease) {}) == errc::closed);
    assert_true(manager.acquire_all({"r"}, {}, [owned](redlock::result_view, redlock::async_lease) {}) == errc::closed);
    assert_true(manager.adopt_all({"r"}).code() == errc::closed);
    assert_true(manager.close([owned] {}) == errc::closed);
    assert_true(manager.close() == errc::closed);
    assert_int_equal(manager.node_count(), 0);
    assert_false(manager.node(0).has_value());
    redlock::async_lease none;
    assert_true(none.release() == errc::closed);
    assert_true(none.extend(1s, never) == errc::closed);
    assert_true(none.downgrade(never) == errc::closed);
    none.forget();
    redlock::async_election candidate;
    assert_true(candidate.campaign() == errc::closed);
    redlock::observer().end();
    assert_int_equal(owned.use_count(), 2); // here and in `never`

    redlock::result_view nothing;
    assert_true(nothing.code() == errc::ok);
    assert_true(nothing.message().empty() && nothing.resource().empty());
    assert_int_equal(nothing.size(), 0);
    assert_false(nothing.waiters().has_value());
    assert_false(nothing.readers().has_value());
    assert_false(nothing.reader(0).has_value() || nothing.waiter(0).has_value());
    assert_true(nothing[0].node.empty());
    redlock::result copy(nothing);
    assert_false(static_cast<bool>(copy));
}

} // namespace
