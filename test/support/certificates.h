/* Certificates for the tests of TLS: made when they are needed, and written as PEM files. */
#ifndef TEST_SUPPORT_CERTIFICATES_H
#define TEST_SUPPORT_CERTIFICATES_H

#include <stdbool.h>

struct certificate_options {
    const char *alternatives; /* such as "DNS:db.example,IP:127.0.0.1"; NULL for none */
    long from_s, until_s;     /* from now on; both 0: since a day ago, for a day */
    bool authority;           /* it may sign others */
};

/* Writes FOLDER/NAME.crt and FOLDER/NAME.key. NAME is the common name, too. `signer` is the name of
 * an authority in that folder; NULL: it signs itself. NULL options are all zero. A failure ends the
 * program. */
void certificate_make(const char *folder, const char *name, const char *signer,
                      const struct certificate_options *options);

#endif
