/**
 * @file telemetry.hpp
 * C++: the events of telemetry.
 */
#ifndef REDLOCK_CPP_TELEMETRY_HPP
#define REDLOCK_CPP_TELEMETRY_HPP

#include <redlock/cpp/result.hpp>
#include <redlock/telemetry.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock {

/** The kinds of redlock_telemetry_kind. */
enum class telemetry_kind : int {
    started = REDLOCK_TELEMETRY_STARTED,     /**< An acquire was accepted. */
    denied = REDLOCK_TELEMETRY_DENIED,       /**< A try failed, and the acquire goes on. */
    queued = REDLOCK_TELEMETRY_QUEUED,       /**< It waits in the queue. */
    acquired = REDLOCK_TELEMETRY_ACQUIRED,   /**< The lock is ours. */
    failed = REDLOCK_TELEMETRY_FAILED,       /**< The acquire ended without the lock. */
    adopted = REDLOCK_TELEMETRY_ADOPTED,     /**< A lease was made by adopt(). */
    extended = REDLOCK_TELEMETRY_EXTENDED,   /**< A round of extension has ended. */
    lost = REDLOCK_TELEMETRY_LOST,           /**< The lease is lost. */
    released = REDLOCK_TELEMETRY_RELEASED,   /**< The release is decided. */
    forgotten = REDLOCK_TELEMETRY_FORGOTTEN, /**< forget() ended the handle. */
    node_up = REDLOCK_TELEMETRY_NODE_UP,     /**< The node is ready. */
    node_down = REDLOCK_TELEMETRY_NODE_DOWN, /**< The node is ready no more. */
    expiring = REDLOCK_TELEMETRY_EXPIRING    /**< The lease will end unless a renewal succeeds. */
};

/** redlock_telemetry_kind_name(): "STARTED", "ACQUIRED", … */
inline const char *name(telemetry_kind kind) noexcept {
    return redlock_telemetry_kind_name(static_cast<redlock_telemetry_kind>(kind));
}

/** redlock_telemetry_event. What it refers to is valid only during the call. */
struct telemetry_event {
    telemetry_kind kind;               /**< What happened. */
    errc code;                         /**< As in the result of the request. */
    std::uint64_t id;                  /**< Of an acquire and its lease; 0 for nodes. */
    void *trace;                       /**< acquire_options::trace. */
    std::string_view resource;         /**< The resource; "" for nodes. */
    std::string_view node;             /**< The node's name. */
    std::size_t node_index;            /**< Its place in the options. */
    std::string_view reason;           /**< One sentence. */
    std::uint64_t attempts;            /**< The tries of the acquire until now. */
    std::chrono::microseconds elapsed; /**< How long it took, or the lock was held. */
    milliseconds validity;             /**< The time that is left of the lease. */
    std::uint64_t fence;               /**< The fencing token. */
    bool automatic;                    /**< The library renewed the lease. */
    redlock::mode mode;                /**< Whether it shares the lock. */

    /** From C. */
    explicit telemetry_event(const redlock_telemetry_event *from) noexcept
        : kind(static_cast<telemetry_kind>(from->kind)), code(static_cast<errc>(from->code)), id(from->id),
          trace(from->trace), resource(detail::view(from->resource)), node(detail::view(from->node)),
          node_index(from->node_index), reason(detail::view(from->reason)), attempts(from->attempts),
          elapsed(from->elapsed_us), validity(from->validity_ms), fence(from->fence), automatic(from->automatic),
          mode(static_cast<redlock::mode>(from->mode)) {
    }
};

} // namespace redlock

#endif
