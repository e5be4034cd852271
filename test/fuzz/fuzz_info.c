/* Any INFO text gives printable words within their bounds. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "wire/info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_word(const char *word, size_t room) {
    size_t size = strnlen(word, room);
    assert(size < room);
    for (size_t i = 0; i < size; i++) {
        assert((unsigned char)word[i] >= 0x20 && (unsigned char)word[i] < 0x7f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct redlock_info info;
    redlock_info_parse(&info, (const char *)data, size);
    check_word(info.run_id, sizeof info.run_id);
    check_word(info.version, sizeof info.version);
    check_word(info.role, sizeof info.role);
    check_word(info.mode, sizeof info.mode);
    check_word(info.primary, sizeof info.primary);
    check_word(info.policy, sizeof info.policy);
    /* Callers convert it to ms and ns. */
    assert(info.uptime_s >= -1 && info.uptime_s <= INT64_MAX / 1000000000);
    (void)redlock_info_evicts(&info);
    return 0;
}
