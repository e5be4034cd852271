/**
 * @file client.hpp
 * C++: locks and elections for threads that block.
 */
#ifndef REDLOCK_CPP_CLIENT_HPP
#define REDLOCK_CPP_CLIENT_HPP

#include <redlock/blocking.h>
#include <redlock/cpp/node.hpp>
#include <redlock/cpp/options.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock {

class election;
class lease;

namespace detail {

/* The error of a call of this thread that has no result. */
inline error failed(int code) {
    char sentence[256] = "";
    if (code == REDLOCK_ERR_INVALID) {
        redlock_client_invalid(nullptr, sentence, sizeof sentence);
    }
    return error(static_cast<errc>(code), {}, sentence);
}

} // namespace detail

/**
 * redlock_client: a set of nodes, and a thread that talks to them. Any number of threads may use
 * it. Its close ends its leases and elections: those that still exist are empty then.
 */
class client {
  public:
    /** None: every call gives errc::closed. */
    client() noexcept = default;
    /** redlock_client_open() */
    static expected<client> open(const manager_options &options);
#ifdef REDLOCK_CPP_EXCEPTIONS
    /** As open(). Throws redlock::failure. */
    explicit client(const manager_options &options) : client(open(options).value()) {
    }
#endif
    /** Moves. Its leases stay. */
    client(client &&other) noexcept = default;
    /** Closes, then moves. */
    client &operator=(client &&other) noexcept {
        close();
        link_ = std::move(other.link_);
        return *this;
    }
    /** As close(). */
    ~client() {
        close();
    }
    /**
     * redlock_client_close(): releases the leases that are still held. No other thread may be about
     * to use the client or a lease of it.
     * @return errc::ok, also if it is closed already; errc::invalid on the loop thread
     */
    errc close() noexcept {
        const errc code = get() ? static_cast<errc>(redlock_client_close(get())) : errc::ok;
        if (get() && code == errc::ok) {
            link_.set(nullptr);
        }
        return code;
    }

    /** redlock_client_acquire() */
    expected<lease> acquire(text resource, const acquire_options &options = {});
    /** redlock_client_acquire_all(): several resources in one lease. */
    expected<lease> acquire_all(const std::vector<item> &items, const acquire_options &options = {});
    /** redlock_client_adopt(). Its validity is 0 until an extend(). */
    expected<lease> adopt(text resource, text token, const acquire_options &options = {});
    /** redlock_client_adopt_all(): the token of each item is needed. */
    expected<lease> adopt_all(const std::vector<item> &items, const acquire_options &options = {});
    /** redlock_client_inspect(): result() has a vote with the holder for each node. */
    expected<void> inspect(text resource);
    /**
     * redlock_client_list(): result() has a vote for each node.
     * @param each  `bool(const listed &)`: whether to go on. It runs on the loop thread.
     */
    template <class Each> expected<void> list(const list_options &options, Each &&each);
    /** redlock_client_statistics() */
    expected<redlock_statistics> statistics();
    /** redlock_client_telemetry(): fills in the snapshot, whose size it sets. */
    expected<void> telemetry(redlock_telemetry &snapshot) {
        snapshot.size = sizeof snapshot;
        return detail::failed(link_.call(redlock_client_telemetry, &snapshot));
    }
    /** redlock_client_node_count() */
    std::size_t node_count() const noexcept {
        return get() ? redlock_client_node_count(get()) : 0;
    }
    /** redlock_client_quorum() */
    std::size_t quorum() const noexcept {
        return get() ? redlock_client_quorum(get()) : 0;
    }
    /** redlock_client_node() */
    expected<owned_node> node(std::size_t index);
    /**
     * redlock_client_set_credentials()
     * @param node  an index, or #all_nodes
     * @param user  null is the default user
     */
    expected<void> set_credentials(std::size_t node, text user, text password);
    /** redlock_client_elect() */
    expected<election> elect(text name, const election_options &options = {});

    /**
     * redlock_client_with(): acquires the lock, runs the work, and releases the lock however the
     * work ends, also by an exception, which goes on to the caller then. The lease is renewed while
     * the work runs, unless the option no_auto_extend is set.
     * @param work  gets a `lease &`. What it returns must be an object that can be moved, or void.
     * @return what the work returned, if the lock was ours until the work had ended; else why not.
     *         Then the work has not run, or it may have overlapped with that of another holder.
     */
    template <class Work> auto with(text resource, const acquire_options &options, Work &&work);
    /** The same with the default options. */
    template <class Work> auto with(text resource, Work &&work);
    /** with(), under a lease of several resources. */
    template <class Work> auto with_all(const std::vector<item> &items, const acquire_options &options, Work &&work);
    /** The C handle, or null. */
    redlock_client *get() const noexcept {
        return link_.get();
    }

  private:
    friend class cancel_flag;
    /* Makes an acquire: begin(client, options, lease, result). */
    template <class Begin> expected<lease> ask(const acquire_options &options, Begin begin);
    /* Does work under a lease: acquire(options). */
    template <class Acquire, class Work> static auto hold(const acquire_options &options, Acquire acquire, Work &&work);
    explicit client(detail::link<redlock_client> &&link) noexcept : link_(std::move(link)) {
    }

    detail::link<redlock_client> link_;
};

/**
 * redlock_cancel: any thread may set it, and a signal handler. While it is set, each acquire and
 * listing that names it ends with errc::cancelled. It must outlive them.
 */
class cancel_flag {
  public:
    /** redlock_cancel_new() */
    static expected<cancel_flag> make(client &client) {
        redlock_cancel *handle = nullptr;
        const int code = client.link_.call(redlock_cancel_new, &handle);
        if (code != REDLOCK_OK) {
            return detail::failed(code);
        }
        return cancel_flag(handle, client.link_);
    }
#ifdef REDLOCK_CPP_EXCEPTIONS
    /** As make(). Throws redlock::failure. */
    explicit cancel_flag(client &client) : cancel_flag(make(client).value()) {
    }
#endif
    /** Moves. */
    cancel_flag(cancel_flag &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), owner_(std::move(other.owner_)) {
    }
    /** Moves. */
    cancel_flag &operator=(cancel_flag &&other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(owner_, other.owner_);
        return *this;
    }
    /** Frees it. */
    ~cancel_flag() {
        redlock_cancel_free(handle_);
    }
    /** redlock_cancel_set(); nothing after the close of the client. */
    void set() const noexcept {
        if (handle_ && owner_.get()) {
            redlock_cancel_set(handle_);
        }
    }
    /** redlock_cancel_clear() */
    void clear() const noexcept {
        if (handle_) {
            redlock_cancel_clear(handle_);
        }
    }
    /** redlock_cancel_is_set() */
    bool is_set() const noexcept {
        return handle_ && redlock_cancel_is_set(handle_);
    }
    /** The C handle, or null. */
    redlock_cancel *get() const noexcept {
        return handle_;
    }

  private:
    cancel_flag(redlock_cancel *handle, const detail::link<redlock_client> &owner) noexcept
        : handle_(handle), owner_(owner) {
    }

    redlock_cancel *handle_ = nullptr;
    detail::link<redlock_client> owner_;
};

/**
 * A lock of a redlock::client, released by the destructor. It can be moved. A lease that is
 * reentrant has an object for each time it was acquired. If its owner is a thread, it must end on
 * that thread; otherwise it stays until the close of the client. Do not end a lease in on_lost or
 * on_expiring.
 */
class lease : public basic_lease<redlock_client> {
  public:
    /** None. */
    lease() noexcept = default;
#ifdef REDLOCK_CPP_EXCEPTIONS
    /** As client::acquire(). Throws redlock::failure. */
    lease(client &client, text resource, const acquire_options &options = {})
        : lease(client.acquire(resource, options).value()) {
    }
#endif
    /** Moves. */
    lease(lease &&other) noexcept = default;
    /** Releases, then moves. */
    lease &operator=(lease &&other) noexcept {
        if (this != &other) {
            end();
            basic_lease::operator=(std::move(other));
            reentrant_owner_ = other.reentrant_owner_;
        }
        return *this;
    }
    /** As release(). */
    ~lease() {
        end();
    }
    /** redlock_client_extend() */
    expected<void> extend(milliseconds ttl) {
        redlock_result *given = nullptr;
        const int code = owner_.call(redlock_client_extend, handle_, ttl.count(), &given);
        return error(static_cast<errc>(code), result(given));
    }
    /** redlock_client_downgrade() */
    expected<void> downgrade() {
        redlock_result *given = nullptr;
        const int code = owner_.call(redlock_client_downgrade, handle_, &given);
        return error(static_cast<errc>(code), result(given));
    }
    /**
     * redlock_client_release(). The lease is empty then, unless the code is errc::invalid,
     * errc::forked or errc::not_owner. The code is errc::ok if the lock was ours until now.
     */
    expected<void> release() {
        if (owner_.get() && !handle_) {
            return error(errc::invalid, {}, "the lease is empty");
        }
        redlock_result *given = nullptr;
        const errc code = end(&given);
        return error(code, result(given));
    }
    /** redlock_client_forget(): leaves the keys to their ttl. */
    expected<void> forget() {
        const int code = owner_.call(redlock_client_forget, handle_);
        ended(static_cast<errc>(code));
        return detail::failed(code);
    }

  private:
    friend client;
    lease(redlock_lease *handle, const detail::link<redlock_client> &owner, std::uint64_t reentrant_owner) noexcept
        : basic_lease(handle, owner), reentrant_owner_(reentrant_owner) {
    }
    errc ended(errc code) noexcept {
        if (code != errc::invalid && code != errc::forked && code != errc::not_owner && code != errc::busy) {
            handle_ = nullptr;
        }
        return code;
    }
    errc end(redlock_result **given = nullptr) noexcept {
        if (!owner_.get()) {
            return ended(errc::closed);
        }
        if (!handle_) {
            return errc::invalid;
        }
        return ended(static_cast<errc>(redlock_client_release_as(owner_.get(), handle_, reentrant_owner_, given)));
    }

    std::uint64_t reentrant_owner_ = 0;
};

/**
 * redlock_client_election: a candidate. Any number of threads may use it. The destructor ends it.
 * The memory of the handle stays until the close of the client, so do not make one for each term:
 * campaign() begins the next one.
 */
class election {
  public:
    /** None: every call gives errc::closed. */
    election() noexcept = default;
#ifdef REDLOCK_CPP_EXCEPTIONS
    /** As client::elect(). Throws redlock::failure. */
    election(client &client, text name, const election_options &options = {})
        : election(client.elect(name, options).value()) {
    }
#endif
    /** Moves. No other thread may use either. */
    election(election &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), owner_(std::move(other.owner_)) {
    }
    /** Ends it, then moves. */
    election &operator=(election &&other) noexcept {
        if (this != &other) {
            finish();
            handle_ = std::exchange(other.handle_, nullptr);
            owner_ = std::move(other.owner_);
        }
        return *this;
    }
    /** As end(). No other thread may use it. */
    ~election() {
        finish();
    }
    /** redlock_client_election_next(). What the event refers to is valid until the next call. */
    expected<election_event> next(milliseconds timeout = forever) {
        redlock_election_event event{};
        event.size = sizeof event;
        const int code = get() ? redlock_client_election_next(get(), timeout.count(), &event) : REDLOCK_ERR_CLOSED;
        if (code != REDLOCK_OK) {
            return detail::failed(code);
        }
        return election_event(&event);
    }
    /** redlock_client_election_resign() */
    expected<void> resign() {
        return leave(redlock_client_election_resign);
    }
    /** redlock_client_election_campaign() */
    expected<void> campaign() {
        return detail::failed(get() ? redlock_client_election_campaign(get()) : REDLOCK_ERR_CLOSED);
    }
    /** redlock_client_election_end() */
    expected<void> end() {
        return leave(redlock_client_election_end);
    }
    /** redlock_client_election_validity_ms(): how much longer we lead in this term. */
    milliseconds validity(std::uint64_t term) const noexcept {
        return milliseconds(get() ? redlock_client_election_validity_ms(get(), term) : 0);
    }
    /** The C handle, or null. */
    redlock_client_election *get() const noexcept {
        return owner_.get() ? handle_ : nullptr;
    }

  private:
    friend client;
    election(redlock_client_election *handle, const detail::link<redlock_client> &owner) noexcept
        : handle_(handle), owner_(owner) {
    }
    expected<void> leave(int (*function)(redlock_client_election *, redlock_result **)) {
        redlock_result *given = nullptr;
        const int code = get() ? function(get(), &given) : REDLOCK_ERR_CLOSED;
        return given ? error(static_cast<errc>(code), result(given)) : detail::failed(code);
    }
    void finish() noexcept {
        if (get()) {
            (void)redlock_client_election_end(get(), nullptr);
        }
    }

    redlock_client_election *handle_ = nullptr;
    detail::link<redlock_client> owner_;
};

inline expected<client> client::open(const manager_options &options) {
    detail::link<redlock_client> link(nullptr);
    if (!link) {
        return error(errc::no_memory);
    }
    const detail::c_manager_options from(options);
    redlock_client *handle = nullptr;
    char sentence[256] = "";
    const int code = redlock_client_open(&from.c, &handle, sentence, sizeof sentence);
    if (code != REDLOCK_OK) {
        return error(static_cast<errc>(code), {}, sentence);
    }
    link.set(handle);
    return client(std::move(link));
}

template <class Begin> expected<lease> client::ask(const acquire_options &options, Begin begin) {
    redlock_client_acquire_options to;
    redlock_client_acquire_options_default(&to);
    to.lock = detail::to_c(options);
    to.lock.cancel = options.cancel ? options.cancel->get() : nullptr;
    to.reentrant = options.reentrant;
    to.owner = options.owner;
    redlock_lease *handle = nullptr;
    redlock_result *given = nullptr;
    const int code = link_.call(begin, &to, &handle, &given);
    if (code != REDLOCK_OK) {
        return error(static_cast<errc>(code), result(given));
    }
    return {lease(handle, link_, options.reentrant ? options.owner : 0), result(given)};
}

inline expected<lease> client::acquire(text resource, const acquire_options &options) {
    return ask(options, [&](redlock_client *handle, const redlock_client_acquire_options *to, redlock_lease **lease,
                            redlock_result **given) {
        return redlock_client_acquire(handle, resource.c_str(), to, lease, given);
    });
}

inline expected<lease> client::acquire_all(const std::vector<item> &items, const acquire_options &options) {
    const std::vector<redlock_item> all = detail::to_c(items);
    return ask(options, [&](redlock_client *handle, const redlock_client_acquire_options *to, redlock_lease **lease,
                            redlock_result **given) {
        return redlock_client_acquire_all(handle, all.data(), all.size(), to, lease, given);
    });
}

inline expected<lease> client::adopt_all(const std::vector<item> &items, const acquire_options &options) {
    const std::vector<redlock_item> all = detail::to_c(items);
    const redlock_acquire_options to = detail::to_c(options);
    redlock_lease *handle = nullptr;
    const int code = link_.call(redlock_client_adopt_all, all.data(), all.size(), &to, &handle);
    if (code != REDLOCK_OK) {
        return detail::failed(code);
    }
    return lease(handle, link_, 0);
}

inline expected<lease> client::adopt(text resource, text token, const acquire_options &options) {
    const redlock_acquire_options to = detail::to_c(options);
    redlock_lease *handle = nullptr;
    const int code = link_.call(redlock_client_adopt, resource.c_str(), token.c_str(), &to, &handle);
    if (code != REDLOCK_OK) {
        return detail::failed(code);
    }
    return lease(handle, link_, 0);
}

inline expected<void> client::inspect(text resource) {
    redlock_result *given = nullptr;
    const int code = link_.call(redlock_client_inspect, resource.c_str(), &given);
    return error(static_cast<errc>(code), result(given));
}

template <class Each> expected<void> client::list(const list_options &options, Each &&each) {
    using callable = std::decay_t<Each>;
    callable run(std::forward<Each>(each));
    redlock_list_options to = detail::to_c(options);
    to.cancel = options.cancel ? options.cancel->get() : nullptr;
    const redlock_list_callback on_lock = [](const redlock_listed *lock, void *data) noexcept -> bool {
        return (*static_cast<callable *>(data))(listed(lock));
    };
    redlock_result *given = nullptr;
    const int code = link_.call(redlock_client_list, &to, on_lock, &run, &given);
    return error(static_cast<errc>(code), result(given));
}

inline expected<redlock_statistics> client::statistics() {
    redlock_statistics counted{};
    counted.size = sizeof counted;
    const int code = link_.call(redlock_client_statistics, &counted);
    if (code != REDLOCK_OK) {
        return detail::failed(code);
    }
    return counted;
}

inline expected<owned_node> client::node(std::size_t index) {
    redlock_node_info info{};
    info.size = sizeof info;
    const int code = link_.call(redlock_client_node, index, &info);
    if (code != REDLOCK_OK) {
        return detail::failed(code);
    }
    return owned_node(info);
}

inline expected<void> client::set_credentials(std::size_t node, text user, text password) {
    return detail::failed(link_.call(redlock_client_set_credentials, node, user.c_str(), password.c_str()));
}

inline expected<election> client::elect(text name, const election_options &options) {
    const redlock_election_options to = detail::to_c(options);
    redlock_client_election *handle = nullptr;
    const int code = link_.call(redlock_client_elect, name.c_str(), &to, &handle);
    if (code != REDLOCK_OK) {
        return detail::failed(code);
    }
    return election(handle, link_);
}

template <class Acquire, class Work> auto client::hold(const acquire_options &options, Acquire acquire, Work &&work) {
    using value_type = std::invoke_result_t<Work, lease &>;
    static_assert(!std::is_reference_v<value_type>, "let the work return an object or nothing");
    acquire_options renewed = options;
    renewed.auto_extend = !options.no_auto_extend;
    expected<lease> acquired = acquire(renewed);
    if (!acquired) {
        return expected<value_type>(std::move(acquired).error());
    }
    lease held = *std::move(acquired);
    if constexpr (std::is_void_v<value_type>) {
        std::forward<Work>(work)(held);
        return held.release();
    } else {
        value_type value = std::forward<Work>(work)(held);
        expected<void> released = held.release();
        return released ? expected<value_type>(std::move(value)) : expected<value_type>(std::move(released).error());
    }
}

template <class Work> auto client::with(text resource, const acquire_options &options, Work &&work) {
    return hold(
        options, [&](const acquire_options &renewed) { return acquire(resource, renewed); }, std::forward<Work>(work));
}

template <class Work>
auto client::with_all(const std::vector<item> &items, const acquire_options &options, Work &&work) {
    return hold(
        options, [&](const acquire_options &renewed) { return acquire_all(items, renewed); }, std::forward<Work>(work));
}

template <class Work> auto client::with(text resource, Work &&work) {
    return with(resource, acquire_options(), std::forward<Work>(work));
}

} // namespace redlock

#endif
