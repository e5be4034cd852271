/**
 * @file tls.h
 * TLS to the nodes. Included by redlock/redlock.h.
 *
 * A manager uses TLS for each node whose URI begins with `rediss://`, and for no other.
 * docs/operations.md, "TLS", says how to set it up and how to change certificates.
 */
#ifndef REDLOCK_TLS_H
#define REDLOCK_TLS_H

#include <redlock/result.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The lowest version of TLS to speak. */
typedef enum redlock_tls_version {
    REDLOCK_TLS_1_2 = 2, /**< 1.2 and newer. */
    REDLOCK_TLS_1_3 = 3  /**< 1.3 and newer. */
} redlock_tls_version;

/**
 * How to speak TLS with the nodes whose URI is rediss://. All strings are copied; files are in PEM.
 * A relative path begins at the directory that is current when the program creates the manager. A
 * file that has changed is read again before the next connection. If the new one cannot be used,
 * the old one stays in use, and on_log gets one WARNING.
 */
typedef struct redlock_tls_options {
    size_t size;         /**< sizeof this struct; set by the _default function. */
    const char *ca_file; /**< Certificates of the authorities to trust; may be NULL. */
    /** A directory of such certificates, prepared by `openssl rehash`; may be NULL. If ca_file and
     * ca_dir are both NULL, the system's store is used. */
    const char *ca_dir;
    const char *cert_file; /**< Our certificate, then its chain, if nodes ask for one; or NULL. */
    const char *key_file;  /**< Its private key, not encrypted; NULL without cert_file. */
    /** The name, or IP address, that the nodes' certificates must have; a name is also sent (SNI).
     * NULL, the default: for each node the host of its URI. */
    const char *server_name;
    redlock_tls_version min_version; /**< The lowest version to speak; default #REDLOCK_TLS_1_2. */
    /** Whether a node must prove by its certificate who it is; default true. Without it anybody
     * between us and the node can read and change everything. */
    bool verify;
} redlock_tls_options;

/** Fills in the defaults. Call it first, then set what you need. Any thread. */
REDLOCK_API void redlock_tls_options_default(redlock_tls_options *options);

/** The TLS library that is linked, such as "OpenSSL 3.0.19 27 Jan 2026"; NULL if this library was
 * built without TLS. Any thread. */
REDLOCK_API const char *redlock_tls_library(void);

#ifdef __cplusplus
}
#endif

#endif
