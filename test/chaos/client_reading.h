/* Reads a client's events in order: each must follow from those before. */
#ifndef TEST_CHAOS_CLIENT_READING_H
#define TEST_CHAOS_CLIENT_READING_H

#include "client_kit.h"

/* What is known of a client while its events are read. */
struct reading {
    int64_t client;
    int64_t op, deadline_us; /* of the pending operation; 0: none */
    char what[16];
    int64_t resource;
    int64_t acquired_us;
    char token[64]; /* of the last lease that it acquired; "" for none */
    bool shared;    /* its mode */
    bool ended;
    int64_t until_us;
    size_t claims, most_claims;
    int64_t intended; /* -1: nothing */
    size_t dones[KIT_RESOURCES];
    size_t acquired, lost, refused;
    size_t reads;    /* under shared leases */
    int64_t fenced;  /* acquires that got a token, as the library counts them */
    bool may_be_cut; /* killed, so its last operation may be incomplete */
};

/* Fails the test if an event does not follow from those before. */
struct reading read_client(const char *path, int64_t client, int64_t ttl_ms, bool killed);
/* Expects that the process ended in order. */
void expect_clean(int status);

#endif
