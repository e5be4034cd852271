/* The rules for those who read beside those who write, each check alone: a clean history, a planted
 * violation, and the limits between. */
#include "check_kit.h"

/* OUTLIVED: a reader has an entry among others, or the whole key. */

FRESH_TEST(a_quorum_has_the_reader) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S), sweep = kit_sweep(kit, 0, 1100 * MS, 1110 * MS);
    kit_see_reader(kit, sweep, 0x07, "b", 100);
    kit_see_reader(kit, sweep, 0x03, "a", 890);
    kit_see(kit, sweep, 0x08, "a", 890);
    kit_release(kit, lease, 1300 * MS);
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.sweeps[sweep].nodes[0].readers[1].left_ms = 888;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    expect_text(0, "at first: node 1 has it for 888 ms more only, node 2 has it, node 3 another's token, node 4 has "
                   "it, node 5 no key");
}
