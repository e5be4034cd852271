/**
 * @file options.hpp
 * C++: callbacks, options of clients, managers, acquires and elections, and events of elections.
 */
#ifndef REDLOCK_CPP_OPTIONS_HPP
#define REDLOCK_CPP_OPTIONS_HPP

#include <redlock/blocking.h>
#include <redlock/cpp/lease.hpp>
#include <redlock/cpp/telemetry.hpp>
#include <redlock/list.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock {

/** As wait or timeout: without an end. */
inline constexpr milliseconds forever{REDLOCK_WAIT_FOREVER};

/** From is what C gives, To is what the callable gets. */
template <class From, class To> struct as {};

/**
 * What runs more than once: a callable that fits into a pointer, as a captureless lambda, a lambda
 * that captures `this` or one reference, or std::ref(). It is stored there, without an allocation,
 * and nothing owns what it refers to. An exception that leaves it ends the program.
 */
template <class... Arguments> class callback;

/** The only form of a callback. */
template <class... From, class... To> class callback<as<From, To>...> {
  public:
    /** None. */
    callback() noexcept = default;
    /** None. */
    callback(std::nullptr_t) noexcept {
    }
    /** Whether a type is a callable for this. */
    template <class F> static constexpr bool takes = std::is_invocable_v<F &, To...> && !std::is_same_v<F, callback>;
    /** A callable of a pointer's size. */
    template <class F, std::enable_if_t<takes<F>, int> = 0> callback(F callable) noexcept : function_(run<F>) {
        static_assert(sizeof callable <= sizeof data_ && alignof(F) <= alignof(void *) &&
                          std::is_trivially_copyable_v<F>,
                      "capture `this` or one reference, or give std::ref(callable)");
        ::new (static_cast<void *>(&data_)) F(callable);
    }
    /** The function for C, or null. */
    auto function() const noexcept -> void (*)(From..., void *) {
        return function_;
    }
    /** The data for C. */
    void *data() const noexcept {
        return data_;
    }
    /** Whether there is one. */
    explicit operator bool() const noexcept {
        return function_ != nullptr;
    }
    /** Runs it, if there is one. */
    void operator()(From... from) const noexcept {
        if (function_) {
            function_(from..., data_);
        }
    }

  private:
    template <class F> static void run(From... from, void *data) noexcept {
        (*std::launder(reinterpret_cast<F *>(&data)))(To(from)...);
    }

    void (*function_)(From..., void *) = nullptr;
    void *data_ = nullptr;
};

/** The levels of redlock_log_level. */
enum class log_level : int {
    error = REDLOCK_LOG_ERROR,     /**< Needs a person. */
    warning = REDLOCK_LOG_WARNING, /**< A node went away, or breaks the protocol. */
    info = REDLOCK_LOG_INFO,       /**< A node connected. */
    debug = REDLOCK_LOG_DEBUG      /**< Attempts, votes, retries. */
};

/** The guards of redlock_restart_guard. */
enum class restart_guard : int {
    off = REDLOCK_RESTART_GUARD_OFF,           /**< None. */
    observed = REDLOCK_RESTART_GUARD_OBSERVED, /**< Nodes whose restart was noticed. */
    strict = REDLOCK_RESTART_GUARD_STRICT      /**< Also nodes that are met for the first time. */
};

/** The orders of redlock_order. */
enum class order : int {
    fair = REDLOCK_ORDER_FAIR, /**< In a queue on the nodes. */
    none = REDLOCK_ORDER_NONE  /**< By trying again after a random delay. */
};

/** redlock_item: one of several resources. */
struct item {
    /** A resource, and for an adoption its token. */
    item(std::string name, redlock::mode how = redlock::mode::exclusive, std::string taken = {})
        : resource(std::move(name)), mode(how), token(std::move(taken)) {
    }
    /** The same. */
    item(const char *name, redlock::mode how = redlock::mode::exclusive, std::string taken = {})
        : item(std::string(name), how, std::move(taken)) {
    }
    std::string resource; /**< Stands in a list once. */
    redlock::mode mode;   /**< Whether others may have it, too. */
    std::string token;    /**< Only for an adoption. */
};

/** redlock_log_callback: `void(log_level, std::string_view line)` */
using log_callback = callback<as<redlock_log_level, log_level>, as<const char *, std::string_view>>;
/** redlock_event_callback: `void(const telemetry_event &)` */
using event_callback = callback<as<const redlock_telemetry_event *, telemetry_event>>;
/** redlock_lost_callback: `void(lease_view, std::string_view reason)` */
using lost_callback = callback<as<redlock_lease *, lease_view>, as<const char *, std::string_view>>;

/** redlock_expiring_callback: `void(lease_view, milliseconds remaining)` */
using expiring_callback = callback<as<redlock_lease *, lease_view>, as<std::int64_t, milliseconds>>;

/** The versions of redlock_tls_version. */
enum class tls_version : int {
    tls_1_2 = REDLOCK_TLS_1_2, /**< 1.2 */
    tls_1_3 = REDLOCK_TLS_1_3  /**< 1.3 */
};

/** redlock_tls_options. An empty text is the default. */
struct tls_options {
    std::string ca_file;     /**< Certificates of the authorities to trust. */
    std::string ca_dir;      /**< A directory of such certificates. */
    std::string cert_file;   /**< Our certificate, if nodes ask for one. */
    std::string key_file;    /**< Its private key. */
    std::string server_name; /**< The name that the nodes' certificates must have. */
    /** The lowest version to speak. */
    tls_version min_version = tls_version::tls_1_2;
    bool verify = true; /**< Whether a node must prove by its certificate who it is. */
};

class cancel_flag;

/** redlock_manager_options, for managers and clients. An empty text is the default. */
struct manager_options {
    std::vector<std::string> nodes;     /**< Node URIs. */
    milliseconds node_timeout{50};      /**< For one answer of one node. */
    milliseconds connect_timeout{1000}; /**< Connect and handshake together. */
    /** Stands before the resource in a key. */
    std::string key_prefix;
    std::string client_name; /**< For CLIENT SETNAME. */
    log_callback on_log;     /**< Gets each line. */
    /** The most detailed level for on_log. */
    redlock::log_level log_level = redlock::log_level::warning;
    /** Keeps nodes that restarted from voting. */
    redlock::restart_guard restart_guard = redlock::restart_guard::off;
    bool clock_guard = false; /**< Watches the nodes' clocks. */
    bool first_boot = false;  /**< No node has ever granted a lock. */
    /** The longest ttl of any client; for the guards. */
    milliseconds ttl_max{0};
    std::string fence_suffix;       /**< Ends the key of a counter. */
    milliseconds fence_expiry{0};   /**< When unused counters end; 0: never. */
    std::string wait_suffix;        /**< Ends the key of a queue. */
    bool listen = false;            /**< Opens the second connections at once. */
    std::string holder;             /**< Who holds the locks, for people. */
    std::size_t quorum = 0;         /**< How many nodes must grant a lock; 0: more than half. */
    std::size_t loops = 1;          /**< Of a client: how many loops it has. */
    std::optional<tls_options> tls; /**< How to speak TLS with nodes whose URI is rediss://. */
    event_callback on_event;        /**< Is told each step of each lock, on the loop's thread. */
};

/** redlock_acquire_options and redlock_client_acquire_options. */
struct acquire_options {
    milliseconds ttl{10000}; /**< How long the lease lives without a renewal. */
    /** How long to keep trying; 0 tries once; or #forever. */
    milliseconds wait{0};
    bool auto_extend = false;        /**< Renews the lease until it is released. */
    milliseconds auto_extend_max{0}; /**< No renewal after this long; 0: no cap. */
    /** Runs when the lease is lost, on the loop's thread. */
    lost_callback on_lost;
    bool fencing = false; /**< Asks for a fencing token. */
    bool heal = true;     /**< Sets the key again on nodes that lost it. */
    /** Keeps others out after a lease that was lost. */
    milliseconds lock_delay{0};
    redlock::order order = redlock::order::fair; /**< How it waits. */
    milliseconds retry_delay_min{50};            /**< The shortest random delay between attempts. */
    milliseconds retry_delay_max{200};           /**< The longest. */
    /** Clients only: the owner may acquire again what it holds. */
    bool reentrant = false;
    /** Who asks, if reentrant; 0 is the calling thread. */
    std::uint64_t owner = 0;
    /** Clients only: lets another thread end the wait; it must live as long. */
    const cancel_flag *cancel = nullptr;
    bool no_auto_extend = false; /**< client::with(): do not renew the lease while the work runs. */
    void *trace = nullptr;       /**< For on_event, in the events of this acquire and its lease. */
    /** How long before the deadline on_expiring runs; 2 ms to half of the ttl; 0: never. */
    milliseconds expiring{0};
    /** Runs when the lease will end unless a renewal succeeds, on the loop's thread. */
    expiring_callback on_expiring;
    redlock::mode mode = redlock::mode::exclusive; /**< Whether others may have it, too. */
    std::uint32_t permits = 0;                     /**< Of the resource; 0: the lock itself. */
    std::uint32_t limit = 0;                       /**< With permits: how many there are. */
    /** An adopt of permits: their slots, as many. They must live during the call. */
    const std::uint32_t *slots = nullptr;
};

/** redlock_election_options */
struct election_options {
    milliseconds ttl{10000};    /**< How long the others wait for a leader that died. */
    bool campaign = true;       /**< Campaigns at once; otherwise it only observes. */
    bool fencing = false;       /**< Each leadership has a fencing token. */
    bool heal = true;           /**< Sets the key again on nodes that lost it. */
    milliseconds lock_delay{0}; /**< Keeps others out after a leader that was lost. */
    void *trace = nullptr;      /**< For on_event, in the events of each term. */
    /** How long before its deadline a leader is told; at most half of the ttl; 0: never. */
    milliseconds expiring{0};
};

/** redlock_list_options. An empty text is the default. */
struct list_options {
    std::string match;   /**< A pattern for the names of resources. */
    bool others = false; /**< Lists also the locks of other libraries. */
    /** client::list() only: while it is set, a listing ends with errc::cancelled. */
    const cancel_flag *cancel = nullptr;
};

/** redlock_listed: one lock at one node. The texts are valid only during the callback. */
struct listed {
    std::size_t node = 0;                /**< The index of the node. */
    std::string_view resource;           /**< The resource. */
    std::string_view token;              /**< The key's value. */
    std::optional<milliseconds> ttl;     /**< How long the key will live; none if it has no ttl. */
    std::optional<std::int64_t> waiters; /**< How many wait in its queue at this node, if known. */
    std::int64_t readers = 0;            /**< How many read it there; 0: one has it alone. */

    /** From C. */
    explicit listed(const redlock_listed *from) noexcept
        : node(from->node), resource(detail::view(from->resource)), token(detail::view(from->token)),
          readers(from->readers) {
        if (from->ttl_ms >= 0) {
            ttl = milliseconds(from->ttl_ms);
        }
        if (from->waiters >= 0) {
            waiters = from->waiters;
        }
    }
};

/** redlock_leader: who leads. */
struct leader {
    std::string_view token;  /**< The token of the leader's lease; "" if nobody leads. */
    std::string_view holder; /**< Who the leader says it is. */
    bool is_self = false;    /**< It was the election that tells it, when this event came. */

    /** Nobody. */
    leader() noexcept = default;
    /** From C. */
    explicit leader(const redlock_leader *from) noexcept
        : token(detail::view(from->token)), holder(detail::view(from->holder)), is_self(from->is_self) {
    }
};

/** The kinds of redlock_election_event_kind. */
enum class election_event_kind : int {
    nothing = REDLOCK_ELECTION_NOTHING,   /**< The time was over. */
    leading = REDLOCK_ELECTION_LEADING,   /**< We lead from now on: term, fence. */
    lost = REDLOCK_ELECTION_LOST,         /**< We do not lead any more: term, reason. */
    resigned = REDLOCK_ELECTION_RESIGNED, /**< The resignation is decided: code, result. */
    leader = REDLOCK_ELECTION_LEADER,     /**< The leader has changed: leader. */
    /** We cannot win now, or the trouble is over: code, result. */
    trouble = REDLOCK_ELECTION_TROUBLE,
    ended = REDLOCK_ELECTION_ENDED, /**< The last event: code, result. */
    /** We still lead, but not for long unless a renewal succeeds: term, remaining. */
    expiring = REDLOCK_ELECTION_EXPIRING
};

/** redlock_election_event_name(): "LEADING", "LOST", … */
inline const char *name(election_event_kind kind) noexcept {
    return redlock_election_event_name(static_cast<redlock_election_event_kind>(kind));
}

/** redlock_election_event. What it refers to is valid only until the callback returns, or until the
 * next event is read. */
struct election_event {
    election_event_kind kind = election_event_kind::nothing; /**< What happened. */
    /** leading, on a loop: the lease, to read. */
    lease_view lease;
    /** leading, expiring, lost: names this leadership. */
    std::uint64_t term = 0;
    std::uint64_t fence = 0; /**< leading: the fencing token. */
    errc code = errc::ok;    /**< resigned, trouble, ended. */
    /** resigned, trouble, ended: what the nodes said. */
    result_view result;
    std::string_view reason; /**< lost: one sentence. */
    redlock::leader leader;  /**< leader: who leads. */
    /** expiring: the time that is left. */
    milliseconds remaining{0};

    /** Nothing. */
    election_event() noexcept = default;
    /** From C. */
    explicit election_event(const redlock_election_event *from) noexcept
        : kind(static_cast<election_event_kind>(from->kind)), lease(from->lease), term(from->term), fence(from->fence),
          code(static_cast<errc>(from->code)), result(from->result), reason(detail::view(from->reason)),
          leader(from->leader ? redlock::leader(from->leader) : redlock::leader()), remaining(from->remaining_ms) {
    }
};

/** redlock_leader_callback: `void(const leader &)` */
using leader_callback = callback<as<const redlock_leader *, leader>>;
/** redlock_election_callback: `void(const election_event &)` */
using election_callback = callback<as<const redlock_election_event *, election_event>>;

namespace detail {

inline void assign(const char *&to, const std::string &from) noexcept {
    to = from.empty() ? to : from.c_str();
}

struct c_manager_options {
    redlock_manager_options c;
    redlock_tls_options tls;
    const char *nodes[REDLOCK_NODES_MAX];

    explicit c_manager_options(const manager_options &from) noexcept {
        redlock_manager_options_default(&c);
        for (std::size_t i = 0; i < from.nodes.size() && i < REDLOCK_NODES_MAX; i++) {
            nodes[i] = from.nodes[i].c_str();
        }
        c.nodes = nodes;
        c.node_count = from.nodes.size(); /* too many are refused before they are read */
        c.node_timeout_ms = from.node_timeout.count();
        c.connect_timeout_ms = from.connect_timeout.count();
        assign(c.key_prefix, from.key_prefix);
        assign(c.client_name, from.client_name);
        c.on_log = from.on_log.function();
        c.log_level = static_cast<redlock_log_level>(from.log_level);
        c.log_data = from.on_log.data();
        c.restart_guard = static_cast<redlock_restart_guard>(from.restart_guard);
        c.clock_guard = from.clock_guard;
        c.first_boot = from.first_boot;
        c.ttl_max_ms = from.ttl_max.count();
        assign(c.fence_suffix, from.fence_suffix);
        c.fence_expiry_ms = from.fence_expiry.count();
        assign(c.wait_suffix, from.wait_suffix);
        c.listen = from.listen;
        assign(c.holder, from.holder);
        c.quorum = from.quorum;
        c.loops = from.loops;
        if (from.tls) {
            redlock_tls_options_default(&tls);
            assign(tls.ca_file, from.tls->ca_file);
            assign(tls.ca_dir, from.tls->ca_dir);
            assign(tls.cert_file, from.tls->cert_file);
            assign(tls.key_file, from.tls->key_file);
            assign(tls.server_name, from.tls->server_name);
            tls.min_version = static_cast<redlock_tls_version>(from.tls->min_version);
            tls.verify = from.tls->verify;
            c.tls = &tls;
        }
        c.on_event = from.on_event.function();
        c.event_data = from.on_event.data();
    }
    c_manager_options(const c_manager_options &) = delete; /* c points into the others */
    c_manager_options &operator=(const c_manager_options &) = delete;
};

inline redlock_acquire_options to_c(const acquire_options &from) noexcept {
    redlock_acquire_options to;
    redlock_acquire_options_default(&to);
    to.ttl_ms = from.ttl.count();
    to.wait_timeout_ms = from.wait.count();
    to.retry_delay_min_ms = from.retry_delay_min.count();
    to.retry_delay_max_ms = from.retry_delay_max.count();
    to.auto_extend = from.auto_extend;
    to.auto_extend_max_ms = from.auto_extend_max.count();
    to.on_lost = from.on_lost.function();
    to.lost_data = from.on_lost.data();
    to.fencing = from.fencing;
    to.heal = from.heal;
    to.lock_delay_ms = from.lock_delay.count();
    to.order = static_cast<redlock_order>(from.order);
    to.trace = from.trace;
    to.expiring_ms = from.expiring.count();
    to.on_expiring = from.on_expiring.function();
    to.expiring_data = from.on_expiring.data();
    to.mode = static_cast<redlock_mode>(from.mode);
    to.permits = from.permits;
    to.limit = from.limit;
    to.slots = from.slots;
    return to;
}

inline std::vector<redlock_item> to_c(const std::vector<item> &from) {
    std::vector<redlock_item> to;
    to.reserve(from.size());
    for (const item &one : from) {
        redlock_item made{};
        made.size = sizeof made;
        made.resource = text(one.resource).c_str();
        made.mode = static_cast<redlock_mode>(one.mode);
        made.token = text(one.token).c_str();
        to.push_back(made);
    }
    return to;
}

inline redlock_election_options to_c(const election_options &from) noexcept {
    redlock_election_options to;
    redlock_election_options_default(&to);
    to.ttl_ms = from.ttl.count();
    to.campaign = from.campaign;
    to.fencing = from.fencing;
    to.heal = from.heal;
    to.lock_delay_ms = from.lock_delay.count();
    to.trace = from.trace;
    to.expiring_ms = from.expiring.count();
    return to;
}

inline redlock_list_options to_c(const list_options &from) noexcept {
    redlock_list_options to;
    redlock_list_options_default(&to);
    assign(to.match, from.match);
    to.others = from.others;
    return to;
}

} // namespace detail
} // namespace redlock

#endif
