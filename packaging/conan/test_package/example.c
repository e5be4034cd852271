/* The library is linked, and says its version. */
#include <redlock/redlock.h>
#include <stdio.h>

int main(void) {
    printf("redlock %s\n", redlock_version());
    return 0;
}
