// A job that runs on one machine at a time. It waits for its turn, works in steps, and stops if the
// lock is lost. Start it on several machines:
//
//     job nightly 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379
//
// c++ -std=c++17 job.cpp $(pkg-config --cflags --libs redlock) -o job
#include <cstdint>
#include <cstdio>

#include <redlock/redlock.hpp>

using namespace std::chrono_literals;

// One step of the work. Its store refuses a fencing token below the highest that it has seen.
static void step(int number, std::uint64_t fence) {
    std::printf("step %d with fence %llu\n", number, static_cast<unsigned long long>(fence));
}

int main(int argc, char **argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: job NAME NODE…\n");
        return 64;
    }
    redlock::manager_options options;
    options.nodes.assign(argv + 2, argv + argc);
    redlock::acquire_options how;
    how.wait = 1min;
    how.auto_extend = true;
    how.fencing = true;
    try {
        redlock::client client(options);
        redlock::lease lease(client, argv[1], how);
        for (int number = 1; number <= 3; number++) {
            if (lease.validity() < 500ms) { // a step may take that long
                std::fprintf(stderr, "the lease is lost\n");
                return 1;
            }
            step(number, lease.fence());
        }
        lease.release().value(); // throws if the lock was not ours until now
    } catch (const redlock::failure &failure) {
        std::fprintf(stderr, "%s\n", failure.what()); // what was tried, and what each node said
        return failure.code() == redlock::errc::contended ? 75 : 1;
    }
    return 0;
}
