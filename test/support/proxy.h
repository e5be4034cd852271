/* A loopback proxy that simulates a faulty network. */
/*
 * One link of the fault proxy (tools/proxy), in its own process. It delays, holds, cuts and
 * falsifies bytes between a client and a server. Each function returns after its effect has
 * happened. A failure ends the program.
 */
#ifndef TEST_SUPPORT_PROXY_H
#define TEST_SUPPORT_PROXY_H

#include <stdbool.h>

#include "proxy/pipe.h"

struct proxy;

enum proxy_cut { PROXY_FIN, PROXY_RST };

/* Listens on a free port of 127.0.0.1 and connects each client to 127.0.0.1:target_port, until
 * proxy_stop() or the end of the calling thread. */
struct proxy *proxy_start(int target_port);
void proxy_stop(struct proxy *proxy);

/* redis://127.0.0.1:port and 127.0.0.1:port. The proxy owns both. */
const char *proxy_uri(const struct proxy *proxy);
const char *proxy_name(const struct proxy *proxy);

/* Delays each piece of bytes by this time. */
void proxy_delay(struct proxy *proxy, enum proxy_way way, int delay_ms);
/* Keeps the bytes of one way until it is off again; then they continue in order. Held requests
 * still reach the server after their client has closed, as on a real network. */
void proxy_hold(struct proxy *proxy, enum proxy_way way, bool on);
/* Forwards one byte at a time. */
void proxy_trickle(struct proxy *proxy, enum proxy_way way, bool on);
/* Plans one mishap for this way. It replaces a planned one that has not happened yet. MISHAP_NONE
 * cancels that one. */
void proxy_plan(struct proxy *proxy, enum proxy_way way, const struct mishap *mishap);
/* How many mishaps of a kind have happened since the start, both ways together. */
long long proxy_mishaps(struct proxy *proxy, enum mishap_kind kind);
/* Cuts each connection as soon as this many bytes have passed one way; -1: never. */
void proxy_cut_after(struct proxy *proxy, enum proxy_way way, long long bytes, enum proxy_cut how);
/* Cuts all open connections and drops held bytes. The client sees what `how` says; the server sees
 * a FIN. */
void proxy_cut_now(struct proxy *proxy, enum proxy_cut how);
/* Holds both ways of the connections that are open now, but not of later ones. So old bytes are on
 * their way while a new path is open. */
void proxy_freeze_now(struct proxy *proxy);
/* Drops everything that clients send from now on, on the connections that are open now. */
void proxy_deafen_now(struct proxy *proxy);
/* Tells the clients of all open connections that the server has closed. Their requests still go on
 * to the server. */
void proxy_dismiss_now(struct proxy *proxy);
void proxy_thaw(struct proxy *proxy);
/* Resets new clients at once. */
void proxy_refuse(struct proxy *proxy, bool on);

/* Bytes that came in one way since the start or since proxy_forget_bytes(), and connections
 * accepted since the start. */
long long proxy_bytes(struct proxy *proxy, enum proxy_way way);
void proxy_forget_bytes(struct proxy *proxy);
int proxy_connections(struct proxy *proxy);
/* The number of open connections. */
int proxy_open_links(struct proxy *proxy);

#endif
