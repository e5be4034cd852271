// A user's C++ program, for compilers with and without exceptions: it takes no lock from nodes that
// are not there, and learns why.
#include <redlock/redlock.hpp>

#include <cstdio>
#include <string>
#include <type_traits>

#ifdef __cpp_exceptions
constexpr bool throws = true;
#else
constexpr bool throws = false;
#endif

template <class T, class = void> constexpr bool has_value_to_throw = false;
template <class T> constexpr bool has_value_to_throw<T, std::void_t<decltype(std::declval<T &>().value())>> = true;

// What throws is there exactly where exceptions are.
static_assert(has_value_to_throw<redlock::expected<int>> == throws);
static_assert(has_value_to_throw<redlock::expected<void>> == throws);
static_assert(std::is_constructible_v<redlock::client, redlock::manager_options> == throws);
static_assert(std::is_constructible_v<redlock::lease, redlock::client &, const char *> == throws);
static_assert(std::is_constructible_v<redlock::election, redlock::client &, const char *> == throws);
static_assert(std::is_constructible_v<redlock::manager, struct ev_loop *, redlock::manager_options> == throws);

int main(int argc, char **argv) {
    if (argc != 2 || redlock::version() != std::string_view(argv[1])) {
        std::fprintf(stderr, "redlock::version() is %s\n", redlock::version());
        return 1;
    }
    redlock::manager_options options;
    // The first ports of loopback: nothing listens there, so each connect is refused at once.
    options.nodes = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};
    redlock::expected<redlock::client> client = redlock::client::open(options);
    if (!client) {
        std::fprintf(stderr, "%s\n", client.message().c_str());
        return 1;
    }
    const redlock::expected<int> done = client->with("package", [](redlock::lease &) { return 1; });
    std::printf("%s: %s\n", redlock::name(done.code()), done.message().c_str());
    return done.code() == redlock::errc::no_quorum && client->close() == redlock::errc::ok ? 0 : 1;
}
