// The C++ manager on a libev loop, with leases, observers and elections, on three real servers.
#include "kit.hpp"

#include <ev.h>
#include <functional>
#include <memory>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include "drive.h"
}

namespace {

using redlock::async_lease;
using redlock::errc;
using redlock::result_view;

servers nodes;
struct ev_loop *loop;

int start(void **) {
    servers_start(&nodes, 3, nullptr);
    return 0;
}

int stop_nodes(void **) {
    servers_stop(&nodes);
    return 0;
}

int set_up(void **) {
    servers_reset(&nodes);
    loop = ev_loop_new(EVFLAG_AUTO);
    return loop ? 0 : -1;
}

int tear_down(void **) {
    ev_loop_destroy(loop);
    return 0;
}

// Runs the loop until the condition holds.
template <class Condition> void run_until(Condition condition) {
    assert_true(drive_until(
        loop, [](void *data) { return (*static_cast<Condition *>(data))(); }, &condition, 60000));
}

redlock::manager create() {
    return redlock::manager(loop, options_for(nodes));
}

void close(redlock::manager &manager) {
    bool closed = false;
    assert_true(manager.close([&closed] { closed = true; }) == errc::ok);
    run_until([&closed] { return closed; });
}

async_lease acquire(redlock::manager &manager, const char *resource) {
    std::optional<async_lease> taken;
    assert_true(manager.acquire(resource, waits(0s), [&taken](result_view result, async_lease lease) {
        assert_true(result.code() == errc::ok);
        taken = std::move(lease);
    }) == errc::ok);
    run_until([&taken] { return taken.has_value(); });
    return *std::move(taken);
}

bool free_again(const char *key) {
    run_until([key] { return servers_with_key(&nodes, key) == 0; });
    return true;
}

TESTS_WITH(start, stop_nodes);
#define LOOP_TEST(name) TEST_WITH(name, set_up, tear_down)

LOOP_TEST(several_resources_in_one_lease) {
    redlock::manager manager = create();
    async_lease lease;
    assert_true(manager.acquire_all({"a", "b"}, waits(60s), [&](result_view result, async_lease taken) {
        assert_true(result.code() == errc::ok);
        lease = std::move(taken);
    }) == errc::ok);
    run_until([&] { return !lease.empty(); });
    assert_int_equal(lease.item_count(), 2);
    const std::vector<redlock::item> taken{
        {"a", redlock::mode::exclusive, std::string(lease.token(0))},
        {"b", redlock::mode::exclusive, std::string(lease.token(1))},
    };
    lease.forget();
    async_lease adopted = manager.adopt_all(taken, waits(60s)).value();
    bool extended = false;
    assert_true(adopted.extend(patient, [&](result_view result) { extended = result.code() == errc::ok; }) == errc::ok);
    run_until([&] { return extended; });
    assert_true(adopted.validity() > 0s && adopted.release() == errc::ok);
    assert_true(free_again("a") && free_again("b"));
    assert_true(manager.acquire_all({"a", "a"}, {}, [](result_view, async_lease) {}) == errc::invalid);
    assert_true(manager.adopt_all({"a"}).code() == errc::invalid);
    redlock::async_request request;
    redlock::errc code = errc::ok;
    async_lease b = acquire(manager, "b");
    assert_true(manager.acquire_all(
                    {"b", "a"}, waits(60s), [&](result_view result, const async_lease &) { code = result.code(); },
                    &request) == errc::ok);
    assert_true(request.pending());
    request.cancel();
    run_until([&] { return !request.pending(); });
    assert_true(code == errc::cancelled);
    close(manager);
}

LOOP_TEST(a_lease_is_taken_extended_and_released) {
    redlock::manager manager = create();
    int steps = 0;
    assert_true(manager.connect(20s, [&](result_view result) { steps += result.code() == errc::ok; }) == errc::ok);
    run_until([&] { return steps == 1; });
    async_lease lease = acquire(manager, "r");
    assert_true(lease.validity() > 0s && lease.resource() == "r" && lease.token().size() == 32);
    assert_true(lease.extend(2 * patient, [&](result_view result) { steps += result.code() == errc::ok; }) == errc::ok);
    assert_true(lease.extend(patient, [](result_view) {}) == errc::busy);
    run_until([&] { return steps == 2; });
    assert_true(lease.validity() > patient);
    assert_true(lease.downgrade([&](result_view result) { steps += result.code() == errc::ok; }) == errc::ok);
    run_until([&] { return steps == 3; });
    assert_true(lease.release([&](result_view result) { steps += result.code() == errc::ok; }) == errc::ok);
    assert_true(lease.empty() && lease.release() == errc::invalid);
    assert_true(lease.downgrade([](result_view) {}) == errc::invalid);
    run_until([&] { return steps == 4; });
    assert_true(free_again("r"));
    assert_int_equal(manager.statistics().released, 1);
    redlock_telemetry snapshot;
    assert_true(manager.telemetry(snapshot) == errc::ok && snapshot.held.count == 1);
    assert_int_equal(manager.node_count(), 3);
    assert_int_equal(manager.quorum(), 2);
    const redlock::node_info node = manager.node(0).value();
    assert_true(node.state == redlock::node_state::ready && node.name == nodes.at[0].name && node.round_trip &&
                node.round_trip_min && *node.round_trip_min <= *node.round_trip);
    assert_false(manager.node(3).has_value());
    close(manager);
}

LOOP_TEST(a_lease_that_nobody_keeps_is_released) {
    redlock::manager manager = create();
    bool ran = false;
    assert_true(manager.acquire("r", waits(0s), [&](result_view, async_lease lease) { ran = !lease.empty(); }) ==
                errc::ok);
    run_until([&] { return ran; });
    assert_true(free_again("r"));
    {
        async_lease first = acquire(manager, "r");
        async_lease second = std::move(first);
        assert_true(first.empty() && !second.empty());
        second = acquire(manager, "other");
        assert_true(free_again("r"));
    }
    assert_true(free_again("other"));
    close(manager);
}

LOOP_TEST(the_close_ends_leases_and_requests) {
    std::optional<redlock::manager> manager(create());
    async_lease lease = acquire(*manager, "r");
    const auto owned = std::make_shared<int>(0);
    errc code = errc::ok;
    assert_true(manager->acquire("r", waits(redlock::forever), [&code, owned](result_view result, async_lease none) {
        code = result.code();
        assert_true(none.empty());
    }) == errc::ok);
    assert_int_equal(owned.use_count(), 2);
    redlock::manager moved = *std::move(manager);
    manager.reset();
    close(moved);
    assert_true(code == errc::closed);
    assert_int_equal(owned.use_count(), 1);
    assert_true(lease.empty() && lease.validity() == 0s && lease.release() == errc::closed);
    assert_int_equal(servers_with_key(&nodes, "r"), 0);
    {
        redlock::manager second = create();
        lease = acquire(second, "r");
    } // closes it
    assert_true(lease.empty());
    assert_int_equal(ev_run(loop, 0), 0);
    assert_int_equal(servers_with_key(&nodes, "r"), 0);
}

LOOP_TEST(an_acquire_is_cancelled) {
    redlock::manager manager = create();
    async_lease held = acquire(manager, "r");
    redlock::async_request request;
    request.cancel();
    errc code = errc::ok;
    assert_true(manager.acquire(
                    "r", waits(redlock::forever), [&](result_view result, async_lease) { code = result.code(); },
                    &request) == errc::ok);
    assert_true(request.pending());
    run_until([&] { return manager.statistics().queued == 1; });
    request.cancel();
    request.cancel();
    run_until([&] { return code != errc::ok; });
    assert_true(code == errc::cancelled && !request.pending() && !request.get());
    close(manager);
}

LOOP_TEST(refused_requests_free_their_callables) {
    redlock::manager manager = create();
    const auto owned = std::make_shared<int>(0);
    assert_true(manager.inspect("", [owned](result_view) {}) == errc::invalid);
    assert_true(manager.connect(-1s, [owned](result_view) {}) == errc::invalid);
    assert_true(manager.acquire("", {}, [owned](result_view, async_lease) {}) == errc::invalid);
    redlock::acquire_options reentrant;
    reentrant.reentrant = true;
    assert_true(manager.acquire("r", reentrant, [owned](result_view, async_lease) {}) == errc::invalid);
    assert_true(manager.adopt("r", "").code() == errc::invalid);
    assert_true(manager.elect("r", {}, nullptr).code() == errc::invalid);
    assert_true(manager.observe("r", nullptr).code() == errc::invalid);
    assert_true(contains(manager.adopt("", "token").message(), "resource"));
    assert_true(contains(std::string(manager.invalid()), "resource"));
    assert_true(contains(manager.set_credentials(7, nullptr, "secret").message(), "7"));
    assert_int_equal(owned.use_count(), 1);
    bool seen = false;
    assert_true(manager.inspect("r", [owned, &seen](result_view result) {
        seen = result.code() == errc::ok && result.waiters() == 0;
        assert_false(contains(result.message(), "nonsense"));
    }) == errc::ok);
    assert_int_equal(owned.use_count(), 2);
    run_until([&] { return seen; });
    assert_int_equal(owned.use_count(), 1);
    close(manager);
}

LOOP_TEST(all_locks_are_listed) {
    redlock::manager manager = create();
    async_lease first = acquire(manager, "job:1"), second = acquire(manager, "other");
    const auto owned = std::make_shared<int>(0);
    std::size_t seen = 0;
    errc code = errc::invalid;
    redlock::list_options options;
    options.match = "job:*";
    const auto each = [&first, &seen, owned](const redlock::listed &lock) {
        assert_true(lock.resource == "job:1" && lock.token == first.token() && lock.ttl && lock.waiters == 0);
        seen++;
        return true;
    };
    assert_true(manager.list(options, each, [&code](result_view result) { code = result.code(); }) == errc::ok);
    run_until([&] { return code != errc::invalid; });
    assert_true(code == errc::ok && seen >= 2);
    const auto none = [&code](result_view result) { code = result.code(); };
    assert_true(manager.list(
                    {}, [](const redlock::listed &) { return false; }, none) == errc::ok);
    run_until([&] { return code != errc::ok; });
    assert_true(code == errc::cancelled);
    options.match.assign(5000, 'x');
    assert_true(manager.list(options, each, none) == errc::invalid);
    assert_int_equal(owned.use_count(), 2); // here and in `each`
    close(manager);
}

LOOP_TEST(a_forgotten_lease_is_adopted) {
    redlock::manager manager = create();
    async_lease lease = acquire(manager, "r");
    const std::string token(lease.token());
    lease.forget();
    assert_true(lease.empty());
    lease = manager.adopt("r", token).value();
    assert_true(lease.validity() == 0s);
    bool extended = false;
    assert_true(lease.extend(patient, [&](result_view result) { extended = result.code() == errc::ok; }) == errc::ok);
    run_until([&] { return extended; });
    assert_true(lease.validity() > 0s);
    lease = async_lease();
    assert_true(free_again("r"));
    close(manager);
}

LOOP_TEST(a_loss_is_told) {
    redlock::manager manager = create();
    std::string reason;
    const auto lost = [&reason](redlock::lease_view lease, std::string_view why) {
        assert_true(lease.resource() == "r" && lease.validity() == 0s);
        reason = why;
    };
    redlock::acquire_options options;
    options.ttl = 500ms;
    options.on_lost = lost;
    async_lease kept;
    assert_true(manager.acquire("r", options, [&kept](result_view, async_lease lease) { kept = std::move(lease); }) ==
                errc::ok);
    run_until([&] { return !reason.empty(); });
    assert_false(kept.empty());
    errc code = errc::ok;
    assert_true(kept.release([&code](result_view result) { code = result.code(); }) == errc::ok);
    run_until([&] { return code != errc::ok; });
    assert_true(code == errc::lost);
    close(manager);
}

// What an election and an observer have told.
struct news {
    std::vector<redlock::election_event_kind> events;
    std::uint64_t term = 0;
    std::string leader = "?";

    void operator()(const redlock::election_event &event) {
        events.push_back(event.kind);
        if (event.kind == redlock::election_event_kind::leading) {
            term = event.term;
            assert_true(event.lease.validity() > 0s && event.lease.resource() == "e");
        }
    }
    void operator()(const redlock::leader &who) {
        leader = who.holder;
        assert_false(who.is_self);
    }
    bool has(redlock::election_event_kind kind) const {
        for (const redlock::election_event_kind event : events) {
            if (event == kind) {
                return true;
            }
        }
        return false;
    }
};

LOOP_TEST(leaders_are_elected_and_observed) {
    using kind = redlock::election_event_kind;
    redlock::manager_options options = options_for(nodes);
    options.holder = "one";
    redlock::manager manager(loop, options), other = create();
    news first, second, seen;
    redlock::observer observer = other.observe("e", std::ref(seen)).value();
    run_until([&] { return seen.leader.empty(); });
    redlock::async_election one = manager.elect("e", {}, std::ref(first)).value();
    run_until([&] { return first.has(kind::leading) && seen.leader == "one"; });
    assert_true(one.validity(first.term) > 0s && one.validity(first.term + 1) == 0s);
    std::optional<redlock::async_election> two(other.elect("e", {}, std::ref(second)).value());
    run_until([&] { return second.has(kind::leader); });
    assert_true(one.resign() == errc::ok);
    run_until([&] { return first.has(kind::resigned) && second.has(kind::leading); });
    redlock::observer moved = std::move(observer);
    moved.end();
    const std::size_t told = second.events.size();
    two.reset(); // ends it silently: the next leads
    assert_true(one.campaign() == errc::ok);
    run_until([&] { return first.events.back() == kind::leader || first.events.back() == kind::leading; });
    run_until([&] { return one.validity(first.term) > 0s; });
    assert_int_equal(second.events.size(), told);
    redlock::async_election last = std::move(one);
    assert_true(one.resign() == errc::closed);
    assert_true(last.end() == errc::ok);
    run_until([&] { return first.has(kind::ended); });
    assert_null(last.get());
    assert_true(last.end() == errc::closed);
    close(other);
    close(manager);
}

LOOP_TEST(elections_and_observers_outlive_their_manager) {
    redlock::manager manager = create();
    news told, seen;
    redlock::observer observer = manager.observe("e", std::ref(seen)).value();
    redlock::async_election kept = manager.elect("e", {}, std::ref(told)).value();
    std::optional<redlock::async_election> dropped(manager
                                                       .elect("f", {},
                                                              [](const redlock::election_event &event) {
                                                                  assert_true(event.kind !=
                                                                              redlock::election_event_kind::ended);
                                                              })
                                                       .value());
    run_until([&] { return told.has(redlock::election_event_kind::leading); });
    assert_true(manager.close() == errc::ok);
    dropped.reset();
    run_until([&] { return told.has(redlock::election_event_kind::ended); });
    assert_int_equal(kept.validity(told.term).count(), 0);
    assert_int_equal(ev_run(loop, 0), 0);
}

// An election that ends itself in its callbacks.
struct suicidal {
    redlock::async_election election;
    bool gone = false;

    void operator()(const redlock::election_event &event) {
        if (event.kind == redlock::election_event_kind::leading) {
            election = redlock::async_election();
            gone = true;
        } else if (gone) {
            support_fatal("an event after the end");
        }
    }
};

LOOP_TEST(an_election_may_end_itself) {
    redlock::manager manager = create();
    suicidal self;
    self.election = manager.elect("e", {}, std::ref(self)).value();
    run_until([&] { return self.gone; });
    assert_true(free_again("e"));
    close(manager);
}

LOOP_TEST(any_loop_will_do) {
    int calls = 0;
    const auto create_here = [&](const redlock_manager_options *options, redlock_manager **handle, char *error,
                                 std::size_t size) {
        calls++;
        return redlock_manager_create(loop, options, handle, error, size);
    };
    redlock::manager manager = redlock::manager::create_by(options_for(nodes), create_here).value();
    assert_int_equal(calls, 1);
    redlock::manager_options wrong;
    assert_true(contains(redlock::manager::create_by(wrong, create_here).message(), "node_count"));
    close(manager);
}

LOOP_TEST(a_child_process_lets_go) {
    redlock::manager manager = create();
    async_lease lease = acquire(manager, "r");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const bool refused = lease.release() == errc::forked;
        manager = redlock::manager(); // abandons it
        _exit(refused && lease.empty() && lease.release() == errc::closed ? 0 : 1);
    }
    assert_exits(child, 0);
    assert_true(lease.validity() > 0s);
    close(manager);
}

} // namespace
