/* Any string is either a node URI, parsed within its bounds, or refused with a sentence. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <redlock/redlock.h>

#include "server/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct redlock_address address;
    char error[256] = "", *uri = malloc(size + 1);
    if (uri == NULL) {
        return 0;
    }
    memcpy(uri, data, size);
    uri[size] = '\0';
    int code = redlock_address_parse(uri, &address, &(struct redlock_error_text){error, sizeof error});
    if (code == REDLOCK_OK) {
        assert(error[0] == '\0');
        assert(address.host[0] != '\0' && address.name[0] != '\0' && address.db <= 65535);
        assert(address.kind == REDLOCK_ADDRESS_UNIX || address.port != 0);
        assert(strlen(address.host) <= 255);
        for (const char *c = address.name; *c != '\0'; c++) {
            assert((unsigned char)*c >= ' ' && *c != 0x7f);
        }
    } else {
        assert(code == REDLOCK_ERR_NO_MEMORY || code == REDLOCK_ERR_INVALID);
        assert(error[0] != '\0' && address.host == NULL && address.credentials.password == NULL);
    }
    redlock_address_clear(&address);
    free(uri);
    return 0;
}
