/**
 * @file node.hpp
 * C++: what is known of a node.
 */
#ifndef REDLOCK_CPP_NODE_HPP
#define REDLOCK_CPP_NODE_HPP

#include <redlock/blocking.h>
#include <redlock/cpp/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace redlock {

/** The states of redlock_node_state. */
enum class node_state : int {
    /** Resolving the name, connecting, or in the handshake. */
    connecting = REDLOCK_NODE_CONNECTING,
    ready = REDLOCK_NODE_READY,      /**< May vote. */
    stalled = REDLOCK_NODE_STALLED,  /**< Timed out repeatedly. */
    waiting = REDLOCK_NODE_WAITING,  /**< Not connected; the next try follows. */
    unusable = REDLOCK_NODE_UNUSABLE /**< Answers but may not vote. */
};

/** redlock_node_state_name(): "READY", "STALLED", … */
inline const char *name(node_state state) noexcept {
    return redlock_node_state_name(static_cast<redlock_node_state>(state));
}

/** For set_credentials(): every node. */
inline constexpr std::size_t all_nodes = REDLOCK_ALL_NODES;

/** redlock_node_info. The texts are valid until control returns to the loop; those of an owned_node
 * as long as it. */
struct node_info {
    node_state state = node_state::connecting; /**< The state now. */
    std::string_view name;                     /**< host:port or the socket's path. */
    std::string_view version;                  /**< "redis 7.0.15" */
    std::string_view role;                     /**< "master" or "slave" */
    /** Such as an evicting maxmemory policy. */
    std::string_view warning;
    std::string_view error;                              /**< Why the node is not ready. */
    std::optional<std::chrono::seconds> uptime;          /**< At the handshake. */
    std::optional<std::chrono::microseconds> round_trip; /**< Of the last answer. */
    std::uint64_t connects = 0;                          /**< Handshakes completed. */
    /** How long a guard keeps it from voting. */
    milliseconds quarantine_left{0};
    std::string_view quarantine; /**< Why it may not vote. */
    /** It tells us when a lock is handed to us. */
    bool listens = false;
    std::string_view queue_error; /**< Why it does not. */
    /** Waiters do not rely on this node. It is tried again, at least every 10 s. */
    bool queue_refused = false;
    bool credentials_pending = false;   /**< It has not accepted the newest credentials. */
    std::string_view credentials_error; /**< Why it refused them. */
    /** The shortest on this connection; none of its votes comes in time if node_timeout is less. */
    std::optional<std::chrono::microseconds> round_trip_min;
    std::string_view shared_error; /**< What mode::shared lacks there. */

    /** An unknown node. */
    node_info() noexcept = default;
    /** From C. */
    explicit node_info(const redlock_node_info &from) noexcept
        : state(static_cast<node_state>(from.state)), name(detail::view(from.name)),
          version(detail::view(from.version)), role(detail::view(from.role)), warning(detail::view(from.warning)),
          error(detail::view(from.error)), connects(from.connects), quarantine_left(from.quarantine_ms),
          quarantine(detail::view(from.quarantine)), listens(from.listens), queue_error(detail::view(from.queue_error)),
          queue_refused(from.queue_refused), credentials_pending(from.credentials_pending),
          credentials_error(detail::view(from.credentials_error)), shared_error(detail::view(from.shared_error)) {
        if (from.uptime_s >= 0) {
            uptime = std::chrono::seconds(from.uptime_s);
        }
        if (from.round_trip_us >= 0) {
            round_trip = std::chrono::microseconds(from.round_trip_us);
        }
        if (from.round_trip_min_us >= 0) {
            round_trip_min = std::chrono::microseconds(from.round_trip_min_us);
        }
    }
};

/** What a redlock::client knows of a node. It owns its texts, and can be moved. */
class owned_node : public node_info {
  public:
    /** From redlock_client_node(). */
    explicit owned_node(const redlock_node_info &from) noexcept : node_info(from), texts_(from) {
    }
    /** Moves. */
    owned_node(owned_node &&other) noexcept
        : node_info(std::exchange(static_cast<node_info &>(other), node_info())),
          texts_(std::exchange(other.texts_, redlock_node_info{})) {
    }
    /** Moves. */
    owned_node &operator=(owned_node &&other) noexcept {
        std::swap(static_cast<node_info &>(*this), static_cast<node_info &>(other));
        std::swap(texts_, other.texts_);
        return *this;
    }
    /** Frees the texts. */
    ~owned_node() {
        redlock_node_info_free(&texts_);
    }

  private:
    redlock_node_info texts_;
};

} // namespace redlock

#endif
