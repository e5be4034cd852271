/* The checker of events: each acquire and each lease tells its steps in order, and its end once. */
#include "parts.h"

enum { ASKED, HELD, LOST }; /* struct sim_span.state */

static struct sim_span *find(struct sim_client *client, uint64_t id) {
    struct sim_world *world = client->world;
    for (unsigned i = 0; i < world->span_count; i++) {
        if (world->spans[i].client == client->index && world->spans[i].id == id) {
            return &world->spans[i];
        }
    }
    return NULL;
}

static void open_span(struct sim_client *client, uint64_t id, unsigned state) {
    struct sim_world *world = client->world;
    if (world->span_count == SIM_SPANS_MAX) {
        sim_violation(world, "budget", "a schedule needs more than %u spans", SIM_SPANS_MAX);
        return;
    }
    world->spans[world->span_count++] =
        (struct sim_span){.id = id, .client = (uint8_t)client->index, .state = (uint8_t)state};
}

static void close_span(struct sim_world *world, struct sim_span *span) {
    *span = world->spans[--world->span_count];
}

/* Whether this event may come in this state; NULL: nobody knows this id. */
static bool is_next(const struct sim_span *span, redlock_telemetry_kind kind) {
    switch (kind) {
    case REDLOCK_TELEMETRY_STARTED:
    case REDLOCK_TELEMETRY_ADOPTED:
        return span == NULL;
    case REDLOCK_TELEMETRY_DENIED:
    case REDLOCK_TELEMETRY_ACQUIRED:
    case REDLOCK_TELEMETRY_FAILED:
        return span != NULL && span->state == ASKED;
    case REDLOCK_TELEMETRY_QUEUED:
        return span != NULL && span->state == ASKED && !span->queued;
    case REDLOCK_TELEMETRY_LOST:
    case REDLOCK_TELEMETRY_EXPIRING:
        return span != NULL && span->state == HELD;
    case REDLOCK_TELEMETRY_EXTENDED:
    case REDLOCK_TELEMETRY_RELEASED:
    case REDLOCK_TELEMETRY_FORGOTTEN:
        return span != NULL && span->state != ASKED;
    default:
        return false;
    }
}

static void follow(struct sim_client *client, struct sim_span *span, const redlock_telemetry_event *event) {
    switch (event->kind) {
    case REDLOCK_TELEMETRY_STARTED:
        open_span(client, event->id, ASKED);
        break;
    case REDLOCK_TELEMETRY_ADOPTED:
        open_span(client, event->id, HELD);
        break;
    case REDLOCK_TELEMETRY_QUEUED:
        span->queued = true;
        break;
    case REDLOCK_TELEMETRY_ACQUIRED:
        span->state = HELD;
        break;
    case REDLOCK_TELEMETRY_LOST:
        span->state = LOST;
        break;
    case REDLOCK_TELEMETRY_FAILED:
    case REDLOCK_TELEMETRY_RELEASED:
    case REDLOCK_TELEMETRY_FORGOTTEN:
        close_span(client->world, span);
        break;
    default:
        break;
    }
}

static void node_event(struct sim_client *client, const redlock_telemetry_event *event) {
    const uint32_t node = 1u << event->node_index;
    const bool up = event->kind == REDLOCK_TELEMETRY_NODE_UP;
    if ((client->nodes_told & node) != 0 && up == ((client->nodes_up & node) != 0)) {
        sim_violation(client->world, "events", "client %u: node %zu was told twice to be %s", client->index,
                      event->node_index, up ? "up" : "down");
    }
    client->nodes_told |= node;
    client->nodes_up = up ? client->nodes_up | node : client->nodes_up & ~node;
}

void sim_on_event(const redlock_telemetry_event *event, void *data) {
    struct sim_client *client = data;
    if (event->kind == REDLOCK_TELEMETRY_NODE_UP || event->kind == REDLOCK_TELEMETRY_NODE_DOWN) {
        node_event(client, event);
        return;
    }
    struct sim_span *span = find(client, event->id);
    SIM_TRACE(client->world, "client %u tells %s of '%s'", client->index, redlock_telemetry_kind_name(event->kind),
              event->resource);
    if (!is_next(span, event->kind)) {
        sim_violation(client->world, "events", "client %u tells %s of '%s', which cannot come now", client->index,
                      redlock_telemetry_kind_name(event->kind), event->resource);
        return;
    }
    follow(client, span, event);
    if (event->kind == REDLOCK_TELEMETRY_EXTENDED && event->code == REDLOCK_OK) {
        sim_spec_holds(client, event->validity_ms);
    } else if (event->kind == REDLOCK_TELEMETRY_LOST) {
        sim_spec_gave_up(client);
    }
}

void sim_check_spans(const struct sim_client *client) {
    const struct sim_world *world = client->world;
    for (unsigned i = 0; i < world->span_count; i++) {
        if (world->spans[i].client == client->index) {
            sim_violation(client->world, "events", "client %u is closed, but has not told the end of %s", client->index,
                          world->spans[i].state == ASKED ? "an acquire" : "a lease");
            return;
        }
    }
}
