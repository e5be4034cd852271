/* The certificates of the TLS tests, made once a program by pki.sh, which lists them. */
#ifndef TEST_SUPPORT_PKI_H
#define TEST_SUPPORT_PKI_H

#include <stdbool.h>

/* Whether there is an openssl command to make them. */
bool pki_is_possible(void);

/* The path of a file, such as "node.pem", valid for ever. The first call makes them all. They are
 * gone after the death of this process. */
const char *pki_file(const char *name);

/* A path in the same folder for a file of the test's own. */
const char *pki_own_file(const char *name);

/* Makes `path` a copy of the file `name`, at once for all who read it: a rename. */
void pki_copy(const char *name, const char *path);

#endif
