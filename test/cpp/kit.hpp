// What the C++ tests share: cmocka, real servers, and waits for a condition.
#ifndef TEST_CPP_KIT_HPP
#define TEST_CPP_KIT_HPP

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <redlock/redlock.hpp>

#define _Noreturn [[noreturn]]
extern "C" {
#include "servers.h"
#include "support.h"
#include "test.h"
}
#undef _Noreturn
// cmocka's own cast the condition to an integer, which an explicit operator bool does not allow.
#undef assert_true
#undef assert_false
#define assert_true(condition)  _assert_true(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define assert_false(condition) _assert_true(!static_cast<bool>(condition), "!(" #condition ")", __FILE__, __LINE__)

using namespace std::chrono_literals;

inline constexpr auto patient = 60s; // for waits that must end, where the time does not matter

// Polls until the condition holds, in any thread.
template <class Condition> void eventually(const char *what, Condition condition) {
    const std::int64_t deadline_ms = support_now_ms() + std::chrono::milliseconds(patient).count();
    while (!condition()) {
        if (support_now_ms() > deadline_ms) {
            support_fatal("never so: %s", what);
        }
        support_pause_ms(1);
    }
}

inline bool contains(const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
}

inline redlock::manager_options options_for(const servers &nodes) {
    redlock::manager_options options;
    options.nodes.assign(nodes.uris, nodes.uris + nodes.count);
    options.node_timeout = 5s;
    options.connect_timeout = 20s;
    return options;
}

inline redlock::acquire_options waits(redlock::milliseconds wait) {
    redlock::acquire_options options;
    options.ttl = patient;
    options.wait = wait;
    return options;
}

#endif
