// A C++ program that includes each header twice; result.h comes first, on its own.
#include <redlock/result.h>

#include <redlock/adapters/poll.h>
#include <redlock/blocking.h>
#include <redlock/loop.h>
#include <redlock/redlock.h>

#include <redlock/adapters/poll.h>
#include <redlock/blocking.h>
#include <redlock/loop.h>
#include <redlock/redlock.h>
#include <redlock/result.h>

#include <cstdio>
#include <cstring>

int main(int argc, char **argv) {
    redlock_manager_options manager;
    redlock_manager_options_default(&manager);
    redlock_client_acquire_options acquire;
    redlock_client_acquire_options_default(&acquire);
    if (argc != 2 || std::strcmp(redlock_version(), argv[1]) != 0 || manager.size != sizeof manager ||
        acquire.size != sizeof acquire || acquire.lock.size != sizeof acquire.lock) {
        std::fprintf(stderr, "version %s, or the sizes of options, are not what C++ sees\n", redlock_version());
        return 1;
    }
    return 0;
}
