/* A loopback proxy for a network that misbehaves. */
/*
 * One link of the fault proxy (tools/proxy), in a process of its own: it delays, holds, cuts and
 * falsifies what goes between a client and a server. What a function does has happened when it
 * returns. A failure ends the program.
 */
#ifndef TEST_SUPPORT_PROXY_H
#define TEST_SUPPORT_PROXY_H

#include <stdbool.h>

#include "proxy/mishap.h"
#include "proxy/pipe.h"

struct proxy;

enum proxy_cut { PROXY_FIN, PROXY_RST };

/* Listens on a free port of 127.0.0.1 and connects each client to 127.0.0.1:target_port, until
 * proxy_stop() or the end of the calling thread. */
struct proxy *proxy_start(int target_port);
void proxy_stop(struct proxy *proxy);

/* redis://127.0.0.1:port and 127.0.0.1:port, owned by the proxy. */
const char *proxy_uri(const struct proxy *proxy);
const char *proxy_name(const struct proxy *proxy);

/* Each piece of bytes is passed on this much later. */
void proxy_delay(struct proxy *proxy, enum proxy_way way, int delay_ms);
/* Keeps the bytes of one way until it is told otherwise; then they go on in order. If the client
 * has closed meanwhile, held requests still go to the server, as bytes in a network do. */
void proxy_hold(struct proxy *proxy, enum proxy_way way, bool on);
/* Passes on one byte at a time. */
void proxy_trickle(struct proxy *proxy, enum proxy_way way, bool on);
/* One mishap of this way, in place of one that was planned and has not happened; MISHAP_NONE calls
 * it off. */
void proxy_plan(struct proxy *proxy, enum proxy_way way, const struct mishap *mishap);
/* How many of a kind have happened since the start, either way. */
long long proxy_mishaps(struct proxy *proxy, enum mishap_kind kind);
/* Each connection is cut as soon as so many bytes have passed one way; -1: never. */
void proxy_cut_after(struct proxy *proxy, enum proxy_way way, long long bytes, enum proxy_cut how);
/* Cuts the connections that stand, towards the client as said; what is held is thrown away. The
 * server sees a FIN. */
void proxy_cut_now(struct proxy *proxy, enum proxy_cut how);
/* Holds both ways of the connections that stand, and not of later ones: old bytes are on their way
 * while a new path is open. */
void proxy_freeze_now(struct proxy *proxy);
/* What the clients of the connections that stand send from here on never arrives. */
void proxy_deafen_now(struct proxy *proxy);
/* Tells the clients of the connections that stand that the server has closed them. Their requests
 * still go on to it. */
void proxy_dismiss_now(struct proxy *proxy);
void proxy_thaw(struct proxy *proxy);
/* New clients are reset at once. */
void proxy_refuse(struct proxy *proxy, bool on);

/* Bytes that came in one way, since the start or since they were forgotten; connections accepted
 * since the start. */
long long proxy_bytes(struct proxy *proxy, enum proxy_way way);
void proxy_forget_bytes(struct proxy *proxy);
int proxy_connections(struct proxy *proxy);
/* Connections that stand. */
int proxy_open_links(struct proxy *proxy);

#endif
