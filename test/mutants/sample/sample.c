/* What test_mutants.sh makes mutants of. Its test has a gap: it never asks for the limit itself. */
#include <assert.h>

#define REDLOCK_PLANTED(bug) 0

int sample_fee(int weight);

/* A comment, with if (weight > 10) and a + b, is not changed. */
int sample_fee(int weight) {
    assert(weight >= 0);
    if (REDLOCK_PLANTED(WEIGHT_IGNORED)) {
        return 4;
    }
    return weight > 10 ? 20 : 5;
}
