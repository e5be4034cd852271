// The C++ client, its leases and its elections, on five real servers.
#include "kit.hpp"

#include <atomic>
#include <optional>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using redlock::errc;

servers nodes;

int start(void **) {
    servers_start(&nodes, 5, nullptr);
    return 0;
}

int tear_down(void **) {
    servers_stop(&nodes);
    return 0;
}

int set_up(void **) {
    servers_reset(&nodes);
    return 0;
}

redlock::client open() {
    return redlock::client(options_for(nodes));
}

bool no_keys(const char *key) {
    return servers_wait_without_key(&nodes, key, 20000);
}

void delete_everywhere(const char *key) {
    const char *const command[] = {"DEL", key, nullptr};
    for (std::size_t i = 0; i < nodes.count; i++) {
        (void)server_ask_argv(&nodes.at[i], command);
    }
}

TESTS_WITH(start, tear_down);
#define NODES_TEST(name) TEST_WITH(name, set_up, nullptr)

NODES_TEST(a_lease_ends_with_its_scope) {
    redlock::client client = open();
    {
        redlock::lease lease(client, "r", waits(0s));
        assert_false(lease.empty());
        assert_true(lease.validity() > 0s && lease.validity() <= patient);
        assert_true(lease.resource() == "r");
        assert_int_equal(lease.token().size(), 32);
        eventually("all nodes have the key", [] { return servers_with_key(&nodes, "r") == 5; });
    }
    assert_true(no_keys("r"));
}

NODES_TEST(a_lease_that_is_held_is_refused_with_a_sentence) {
    redlock::client client = open();
    redlock::expected<redlock::lease> first = client.acquire("r", waits(0s));
    assert_true(first);
    assert_true(first.result().attempts() == 1 && first.result().size() == 5);
    redlock::expected<redlock::lease> second = client.acquire(std::string("r"), waits(0s));
    assert_true(!second && second.code() == errc::contended);
    assert_true(contains(second.message(), "'r'"));
    std::size_t denied = 0;
    for (const redlock::vote &vote : second.result()) {
        denied += vote.kind == redlock::vote_kind::denied;
    }
    assert_true(denied >= 3);
    try {
        redlock::lease lease(client, "r");
        support_fatal("a lock that is held was taken");
    } catch (const redlock::failure &failure) {
        assert_true(failure.code() == errc::contended);
        assert_true(contains(failure.what(), "'r'"));
    }
    assert_true(client.acquire("").code() == errc::invalid);
    assert_true(client.acquire(std::string("a\0b", 3)).code() == errc::invalid);
}

NODES_TEST(leases_move) {
    redlock::client client = open();
    redlock::lease first(client, "r", waits(0s));
    const redlock_lease *handle = first.get();
    redlock::lease second = std::move(first);
    assert_true(first.empty() && second.get() == handle);
    assert_true(first.release().code() == errc::closed);
    redlock::lease &self = second;
    second = std::move(self);
    assert_ptr_equal(second.get(), handle);
    redlock::client moved = std::move(client);
    assert_null(client.get());
    assert_true(second.extend(patient));
    second = redlock::lease(moved, "other", waits(0s)); // releases "r"
    assert_true(no_keys("r"));
    assert_true(second.resource() == "other");
    second = redlock::lease();
    assert_true(no_keys("other"));
}

NODES_TEST(the_end_of_a_client_ends_its_leases) {
    std::optional<redlock::client> client(open());
    redlock::lease lease(*client, "r", waits(0s));
    redlock::election election(*client, "e");
    assert_true(client->close() == errc::ok);
    assert_true(client->close() == errc::ok);
    assert_true(lease.empty() && lease.validity() == 0s);
    assert_true(lease.release().code() == errc::closed);
    assert_true(client->acquire("r").code() == errc::closed);
    assert_true(election.next(0s).code() == errc::closed);
    assert_true(no_keys("r"));
    redlock::client second = open();
    lease = redlock::lease(second, "r", waits(0s));
    second = redlock::client();
    assert_true(lease.empty());
    client.reset();
}

NODES_TEST(a_lease_is_extended_released_and_adopted) {
    redlock::client client = open();
    redlock::lease lease(client, "r", waits(0s));
    assert_true(lease.extend(2 * patient));
    assert_true(lease.validity() > patient);
    assert_true(lease.extend(-1s).code() == errc::invalid);
    const std::string token(lease.token());
    assert_true(lease.forget());
    assert_true(lease.empty());
    assert_true(servers_with_key(&nodes, "r") >= 3);
    redlock::lease again = client.adopt("r", token).value();
    assert_true(again.validity() == 0s);
    again.extend(patient).value();
    assert_true(again.validity() > 0s);
    const redlock::expected<void> released = again.release();
    assert_true(released && released.result().size() == 5);
    assert_true(again.empty() && no_keys("r"));
    const redlock::expected<void> twice = again.release();
    assert_true(twice.code() == errc::invalid && twice.message() == "the lease is empty");
    assert_true(again.forget().message() == "lease is NULL");
    assert_true(client.adopt("r", "").message() == "token has 0 bytes; it must have 1 to 128");
}

NODES_TEST(several_resources_in_one_lease) {
    redlock::client client = open();
    redlock::acquire_options options = waits(0s);
    options.fencing = true;
    redlock::lease lease = client.acquire_all({"b", {"a", redlock::mode::shared}}, options).value();
    assert_int_equal(lease.item_count(), 2);
    assert_true(lease.resource() == "b" && lease.resource(0) == "b" && lease.resource(1) == "a");
    assert_true(lease.token(0) == lease.token() && lease.token(1).size() == 33 && lease.token(2).empty());
    assert_true(lease.fence(0) == lease.fence() && lease.fence(1) % 1000 == 999 && lease.fence(2) == 0);
    assert_true(client.acquire_all({"0", "b"}, waits(0s)).code() == errc::contended);
    const std::vector<redlock::item> taken{
        {"b", redlock::mode::exclusive, std::string(lease.token(0))},
        {"a", redlock::mode::shared, std::string(lease.token(1))},
    };
    assert_true(lease.forget());
    redlock::lease adopted = client.adopt_all(taken, waits(0s)).value();
    assert_true(adopted.extend(patient));
    assert_true(adopted.validity() > 0s && adopted.release());
    assert_true(no_keys("a") && no_keys("b"));
    assert_true(client.with_all({"a", "b"}, {}, [](redlock::lease &held) { return held.item_count(); }).value() == 2);
    client.with_all({"a", "b"}, {}, [](redlock::lease &) {}).value();
    assert_true(client.acquire_all({"a", std::string("a")}).error().message().find("the same resource") !=
                std::string::npos);
    assert_true(client.acquire_all({}).code() == errc::invalid);
    assert_true(client.adopt_all({"a"}).code() == errc::invalid);
    assert_true(no_keys("a") && no_keys("b"));
}

NODES_TEST(a_writer_becomes_a_reader) {
    redlock::client client = open();
    redlock::acquire_options reading = waits(0s);
    reading.mode = redlock::mode::shared;
    redlock::lease lease(client, "r", waits(0s));
    assert_true(client.acquire("r", reading).code() == errc::contended);
    assert_true(lease.downgrade());
    redlock::lease beside = client.acquire("r", reading).value();
    std::size_t named = 0;
    eventually("both are named by a quorum", [&] {
        const redlock::expected<void> seen = client.inspect("r");
        named = 0;
        while (const std::optional<redlock::lock_reader> reader = seen.result().reader(named)) {
            assert_true((reader->token == lease.token() || reader->token == beside.token()) && reader->ttl > 0s);
            named += reader->nodes >= 3;
        }
        return named == 2;
    });
    std::size_t listed = 0;
    assert_true(client.list({}, [&](const redlock::listed &lock) {
        listed += lock.readers == 2;
        return true;
    }));
    assert_true(listed >= 3);
    assert_true(lease.release() && beside.release());
    assert_true(no_keys("r") && lease.downgrade().code() == errc::invalid);
}

NODES_TEST(work_under_a_lock) {
    redlock::client client = open();
    const redlock::expected<std::string> done = client.with("r", [](redlock::lease &lease) {
        assert_true(lease.validity() > 0s);
        return std::string(lease.resource()) + "!";
    });
    assert_true(done && *done == "r!");
    assert_true(no_keys("r"));
    int runs = 0;
    assert_true(client.with("r", waits(0s), [&](redlock::lease &) { runs++; }));
    assert_int_equal(runs, 1);
    redlock::lease held(client, "r", waits(0s));
    assert_true(client.with("r", [&](redlock::lease &) { runs++; }).code() == errc::contended);
    assert_true(client.with("r", [&](redlock::lease &) { return runs++; }).code() == errc::contended);
    assert_int_equal(runs, 1);
}

NODES_TEST(work_that_throws_lets_go) {
    redlock::client client = open();
    try {
        (void)client.with("r", [](redlock::lease &) -> int { throw std::logic_error("no"); });
        support_fatal("an exception got lost");
    } catch (const std::logic_error &) {
    }
    assert_true(no_keys("r"));
}

NODES_TEST(work_that_loses_its_lock_says_so) {
    redlock::client client = open();
    redlock::acquire_options options;
    options.ttl = 2s;
    int runs = 0;
    redlock::expected<int> lost = client.with("r", options, [&](redlock::lease &lease) {
        delete_everywhere("r");
        eventually("the lease is over", [&] { return lease.validity() == 0s; });
        return ++runs;
    });
    assert_true(!lost && lost.code() == errc::lost);
    assert_int_equal(runs, 1);
    const redlock::expected<redlock::lease_view> renewed = client.with("r", [](redlock::lease &lease) {
        lease.extend(patient).value();
        return lease.view();
    });
    assert_true(renewed);
}

NODES_TEST(work_is_renewed_by_default) {
    redlock::client client = open();
    assert_true(client.with("r", [&client](redlock::lease &lease) {
        lease.extend(2 * patient).value(); // without this, the first renewal comes after 3 s
        lease.extend(300ms).value();       // shortens the period, not the lease
        const std::uint64_t before = client.statistics().value().extends;
        eventually("it was renewed", [&] { return client.statistics().value().extends > before + 1; });
    }));
}

NODES_TEST(a_loss_is_told) {
    redlock::client client = open();
    struct {
        std::atomic<int> runs{0};
        std::string resource, reason;
        void operator()(redlock::lease_view lease, std::string_view why) {
            resource = lease.resource();
            reason = why;
            runs++;
        }
    } lost;
    redlock::acquire_options options;
    options.ttl = 1s;
    options.auto_extend = true;
    options.on_lost = std::ref(lost);
    redlock::lease lease(client, "r", options);
    delete_everywhere("r");
    eventually("the loss is told", [&] { return lost.runs > 0; });
    assert_string_equal(lost.resource.c_str(), "r");
    assert_false(lost.reason.empty());
    assert_true(lease.validity() == 0s && !lease.empty());
    assert_true(lease.release().code() == errc::lost);
    assert_int_equal(lost.runs, 1);
}

NODES_TEST(an_acquire_waits) {
    redlock::client client = open();
    std::optional<redlock::lease> first(std::in_place, client, "r", waits(0s));
    std::thread second([&client] {
        redlock::lease lease(client, "r", waits(redlock::forever));
        if (lease.validity() == 0s) {
            support_fatal("a lease without validity");
        }
    });
    eventually("it waits at a quorum", [&client] {
        const redlock::expected<void> seen = client.inspect("r");
        const std::optional<redlock::lock_waiter> waiter = seen.result().waiter(0);
        return waiter && waiter->nodes >= 3 && waiter->mode == redlock::mode::exclusive && waiter->waited >= 0s;
    });
    first.reset();
    second.join();
    assert_true(client.statistics().value().handed_over == 1);
    assert_true(no_keys("r"));
}

NODES_TEST(all_locks_are_listed) {
    redlock::client client = open();
    redlock::lease first(client, "job:1", waits(0s)), second(client, "other", waits(0s));
    redlock::list_options options;
    options.match = "job:*";
    std::size_t seen = 0;
    const auto each = [&](const redlock::listed &lock) {
        seen += lock.resource == "job:1" && lock.token == first.token() && lock.ttl && lock.waiters == 0;
        return true;
    };
    const redlock::expected<void> done = client.list(options, each);
    assert_true(done && done.result().size() == 5 && seen >= 3);
    assert_true(client.list({}, [](const redlock::listed &) { return false; }).code() == errc::cancelled);
    redlock::cancel_flag flag(client);
    options.cancel = &flag;
    assert_true(client.list(options, each));
    flag.set();
    assert_true(client.list(options, each).code() == errc::cancelled);
    options.cancel = nullptr;
    options.match.assign(5000, 'x');
    const redlock::expected<void> refused = client.list(options, each);
    assert_true(refused.code() == errc::invalid && contains(refused.message(), "match has"));
    assert_true(redlock::client().list({}, each).code() == errc::closed);
}

NODES_TEST(a_wait_is_cancelled) {
    redlock::client client = open();
    redlock::lease held(client, "r", waits(0s));
    redlock::cancel_flag flag(client);
    redlock::acquire_options options = waits(redlock::forever);
    options.cancel = &flag;
    errc code = errc::ok;
    std::thread second([&] { code = client.acquire("r", options).code(); });
    eventually("it waits", [&client] { return client.statistics().value().queued == 1; });
    flag.set();
    second.join();
    assert_true(code == errc::cancelled && flag.is_set());
    assert_true(client.with("other", options, [](redlock::lease &) {}).code() == errc::cancelled);
    flag.clear();
    assert_true(client.with("other", options, [](redlock::lease &) {}));
    redlock::cancel_flag moved = std::move(flag);
    assert_true(!flag.get() && moved.get());
    assert_true(client.close() == errc::ok);
    moved.set(); // does nothing
    assert_true(redlock::cancel_flag::make(client).code() == errc::closed);
}

NODES_TEST(the_nodes_are_known) {
    redlock::client client = open();
    assert_int_equal(client.node_count(), 5);
    assert_int_equal(client.quorum(), 3);
    redlock::owned_node first = client.node(0).value(), second = client.node(1).value();
    assert_true(first.name == nodes.at[0].name && first.state == redlock::node_state::ready);
    assert_true(first.uptime && first.connects == 1 && first.credentials_error.empty());
    second = std::move(first);
    assert_true(second.name == nodes.at[0].name);
    const redlock::owned_node third = std::move(second);
    assert_true(third.name == nodes.at[0].name && second.name.empty());
    assert_true(client.node(5).code() == errc::invalid);
    assert_true(client.set_credentials(redlock::all_nodes, nullptr, "").code() == errc::invalid);
    assert_true(contains(client.set_credentials(9, nullptr, "secret").message(), "9"));
    assert_true(contains(client.adopt("r", "").message(), "token"));
    assert_true(contains(client.acquire("").message(), "resource"));
}

NODES_TEST(reentrant_leases_nest) {
    redlock::client client = open();
    redlock::acquire_options options = waits(0s);
    options.reentrant = true;
    redlock::lease outer(client, "r", options);
    {
        redlock::lease inner(client, "r", options);
        assert_ptr_equal(inner.get(), outer.get());
        assert_true(outer.forget().code() == errc::busy);
        std::thread([&] { assert_true(inner.release().code() == errc::not_owner); }).join();
        assert_false(inner.empty());
    }
    assert_true(servers_with_key(&nodes, "r") >= 3);
    assert_true(outer.release());
    assert_true(no_keys("r"));
    options.owner = 7;
    redlock::lease seven(client, "r", options);
    std::thread([lease = std::move(seven)] {}).join(); // an owner with an id may release anywhere
    assert_true(no_keys("r"));
}

NODES_TEST(each_step_is_told) {
    struct {
        std::vector<redlock::telemetry_kind> kinds; // only the loop thread writes, before the close
        std::vector<redlock::mode> modes;
        void *trace = nullptr;
        void operator()(const redlock::telemetry_event &event) {
            if (event.resource == "r") {
                kinds.push_back(event.kind);
                modes.push_back(event.mode);
                trace = event.trace;
            }
        }
    } told;
    redlock::manager_options manager = options_for(nodes);
    manager.on_event = std::ref(told);
    redlock::client client(manager);
    int span;
    redlock::acquire_options options = waits(0s);
    options.trace = &span;
    redlock::lease(client, "r", options).extend(2 * patient).value();
    options.mode = redlock::mode::shared;
    redlock::lease(client, "r", options).release().value();
    redlock_telemetry snapshot;
    assert_true(client.telemetry(snapshot));
    assert_int_equal(snapshot.acquire.count, 2);
    assert_true(client.close() == errc::ok);
    using kind = redlock::telemetry_kind;
    const std::vector<kind> expected = {kind::started, kind::acquired, kind::extended, kind::released,
                                        kind::started, kind::acquired, kind::released};
    assert_true(told.kinds == expected);
    assert_true(told.modes.front() == redlock::mode::exclusive && told.modes.back() == redlock::mode::shared);
    assert_ptr_equal(told.trace, &span);
    assert_string_equal(redlock::name(kind::node_down), "NODE_DOWN");
    assert_true(client.telemetry(snapshot).code() == errc::closed);
}

NODES_TEST(who_holds_it_and_counts) {
    redlock::manager_options manager = options_for(nodes);
    manager.holder = "web-3:4711";
    redlock::client client(manager);
    redlock::acquire_options options = waits(0s);
    options.fencing = true;
    redlock::lease lease(client, "r", options);
    const std::uint64_t fence = lease.fence();
    assert_true(fence > 0);
    eventually("all nodes have the key", [] { return servers_with_key(&nodes, "r") == 5; });
    const redlock::expected<void> seen = client.inspect("r");
    assert_true(seen);
    std::size_t votes = 0;
    for (const redlock::vote &vote : seen.result()) {
        assert_true(vote.kind != redlock::vote_kind::granted || vote.holder == lease.token());
        assert_true(vote.kind != redlock::vote_kind::granted || vote.holder_text == "web-3:4711");
        assert_true(vote.kind != redlock::vote_kind::granted || (vote.latency && vote.holder_ttl > 0s));
        votes += vote.kind == redlock::vote_kind::granted;
    }
    assert_true(votes >= 3);
    assert_int_equal(seen.result().waiters().value_or(-1), 0);
    assert_int_equal(seen.result().readers().value_or(-1), 0);
    assert_true(redlock::token_holder(std::string(lease.token())) == "web-3:4711");
    assert_true(lease.release());
    lease = redlock::lease(client, "r", options);
    assert_true(lease.fence() > fence);
    assert_int_equal(client.statistics()->acquired, 2);
    assert_true(client.inspect("").code() == errc::invalid);
}

NODES_TEST(leaders_follow_each_other) {
    redlock::manager_options named = options_for(nodes);
    named.holder = "one";
    redlock::client client(named), other = open();
    redlock::election_options options;
    options.ttl = patient;
    options.fencing = true;
    redlock::election first(client, "e", options);
    const auto wait_for = [](redlock::election &election, redlock::election_event_kind kind) {
        for (;;) {
            const redlock::election_event event = election.next(patient).value();
            if (event.kind == kind) {
                return event;
            }
            assert_true(event.kind == redlock::election_event_kind::leader);
        }
    };
    const redlock::election_event leading = wait_for(first, redlock::election_event_kind::leading);
    assert_true(leading.fence > 0);
    const std::uint64_t term = leading.term;
    assert_true(first.validity(term) > 0s && first.validity(term + 1) == 0s);
    redlock::election second = other.elect("e", options).value();
    const redlock::election_event news = wait_for(second, redlock::election_event_kind::leader);
    assert_true(news.leader.holder == "one" && !news.leader.is_self);
    assert_true(second.next(0s).value().kind == redlock::election_event_kind::nothing);
    assert_true(first.resign());
    assert_true(first.validity(term) == 0s);
    assert_true(wait_for(second, redlock::election_event_kind::leading).fence > leading.fence);
    assert_true(wait_for(first, redlock::election_event_kind::resigned).code == errc::ok);
    assert_true(first.campaign());
    second = redlock::election(); // its end makes the first lead again
    assert_true(wait_for(first, redlock::election_event_kind::leading).term > term);
    redlock::election moved = std::move(first);
    assert_null(first.get());
    assert_true(moved.end());
    assert_true(moved.resign().message() == "the election has ended");
    assert_true(moved.campaign().message() == "the election has ended");
    assert_true(wait_for(moved, redlock::election_event_kind::ended).code == errc::ok);
    assert_true(moved.next().code() == errc::closed);
    assert_true(client.elect("").message() == "name has 0 bytes; it must have 1 to 1024");
}

NODES_TEST(a_child_process_sends_nothing) {
    redlock::client client = open();
    redlock::lease lease(client, "r", waits(0s));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const bool refused = lease.release().code() == errc::forked && !lease.empty() &&
                             client.acquire("other").code() == errc::forked && client.close() == errc::ok &&
                             lease.empty();
        _exit(refused ? 0 : 1);
    }
    assert_exits(child, 0);
    assert_true(lease.release());
}

} // namespace
