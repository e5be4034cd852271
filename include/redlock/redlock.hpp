/**
 * @file redlock.hpp
 * The whole library for C++17: this header over the C API, and nothing to link beyond libredlock.
 *
 * - For threads that block: redlock::client, redlock::lease, redlock::election.
 * - For event loops: redlock::manager, redlock::async_lease, redlock::async_election,
 *   redlock::observer.
 *
 * Functions return a redlock::expected: a value, or why there is none. They throw nothing but
 * std::bad_alloc. Constructors with arguments and redlock::expected::value() throw redlock::failure
 * instead; they are not there with -fno-exceptions. The header needs no run-time type information.
 *
 * The C headers say what each function promises. This one says only what differs. The rules for
 * threads are the same. Each class gives its C handle with get(), for anything that C can do.
 *
 * An exception must not leave a callback: C code called it. If one does, std::terminate() ends the
 * program, as when an exception leaves a thread.
 */
#ifndef REDLOCK_REDLOCK_HPP
#define REDLOCK_REDLOCK_HPP

#include <redlock/cpp/client.hpp>
#include <redlock/cpp/manager.hpp>

#endif
