/**
 * @file async.hpp
 * C++: leases, elections and observers on an event loop. One thread: that of the loop.
 */
#ifndef REDLOCK_CPP_ASYNC_HPP
#define REDLOCK_CPP_ASYNC_HPP

#include <redlock/cpp/options.hpp>
#include <redlock/election.h>

#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace redlock {

namespace detail {

/* A callable that runs once, as the data of a C callback: in the pointer itself, or behind it. */
template <class F> struct once {
    static constexpr bool fits = sizeof(F) <= sizeof(void *) && alignof(F) <= alignof(void *) &&
                                 std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>;

    template <class G> static bool pack(G &&callable, void *&data) {
        if constexpr (fits) {
            data = nullptr;
            ::new (static_cast<void *>(&data)) F(std::forward<G>(callable));
            return true;
        } else {
            data = new (std::nothrow) F(std::forward<G>(callable));
            return data != nullptr;
        }
    }
    template <class... A> static void run(void *data, A &&...arguments) {
        if constexpr (fits) {
            (*std::launder(reinterpret_cast<F *>(&data)))(std::forward<A>(arguments)...);
        } else {
            const std::unique_ptr<F> callable(static_cast<F *>(data));
            (*callable)(std::forward<A>(arguments)...);
        }
    }
    static void drop(void *data) noexcept {
        if constexpr (!fits) {
            delete static_cast<F *>(data);
        }
    }
    static void on_result(const redlock_result *result, void *data) noexcept {
        run(data, result_view(result));
    }
    static void on_closed(void *data) noexcept {
        run(data);
    }
};

/* Makes a request: begin(callback, data). */
template <class F, class Begin> errc request(F &&callable, Begin begin) {
    using packed = once<std::decay_t<F>>;
    void *data;
    if (!packed::pack(std::forward<F>(callable), data)) {
        return errc::no_memory;
    }
    const errc code = static_cast<errc>(begin(packed::on_result, data));
    if (code != errc::ok) {
        packed::drop(data);
    }
    return code;
}

} // namespace detail

/**
 * A lock of a redlock::manager, released by the destructor. It can be moved. The close of the
 * manager ends it.
 */
class async_lease : public basic_lease<redlock_manager> {
  public:
    /** None. */
    async_lease() noexcept = default;
    /** Takes over a handle of that manager. */
    async_lease(redlock_lease *handle, const detail::link<redlock_manager> &owner) noexcept
        : basic_lease(handle, owner) {
    }
    /** Moves. */
    async_lease(async_lease &&other) noexcept = default;
    /** Releases, then moves. */
    async_lease &operator=(async_lease &&other) noexcept {
        if (this != &other) {
            (void)release();
            basic_lease::operator=(std::move(other));
        }
        return *this;
    }
    /** As release(). */
    ~async_lease() {
        (void)release();
    }
    /** redlock_extend(). @param done  `void(result_view)` */
    template <class F> errc extend(milliseconds ttl, F &&done) {
        if (!owner_.get()) {
            return errc::closed;
        }
        if (!handle_) {
            return errc::invalid;
        }
        return detail::request(std::forward<F>(done), [&](redlock_callback cb, void *data) {
            return redlock_extend(handle_, ttl.count(), cb, data);
        });
    }
    /** redlock_downgrade(). @param done  `void(result_view)` */
    template <class F> errc downgrade(F &&done) {
        if (!owner_.get()) {
            return errc::closed;
        }
        if (!handle_) {
            return errc::invalid;
        }
        return detail::request(std::forward<F>(done),
                               [&](redlock_callback cb, void *data) { return redlock_downgrade(handle_, cb, data); });
    }
    /** redlock_release(); it is empty then, unless the code is errc::forked. @param done
     * `void(result_view)` */
    template <class F> errc release(F &&done) {
        if (!owner_.get() || !handle_) {
            return owner_.get() ? errc::invalid : errc::closed;
        }
        const errc code = detail::request(std::forward<F>(done), [this](redlock_callback cb, void *data) {
            return redlock_release(handle_, cb, data);
        });
        handle_ = code == errc::ok ? nullptr : handle_;
        return code;
    }
    /** The same without a callback. */
    errc release() noexcept {
        if (!owner_.get() || !handle_) {
            return owner_.get() ? errc::invalid : errc::closed;
        }
        const errc code = static_cast<errc>(redlock_release(handle_, nullptr, nullptr));
        handle_ = code == errc::ok ? nullptr : handle_;
        return code;
    }
    /** redlock_lease_forget(): leaves the keys to their ttl. */
    void forget() noexcept {
        if (get()) {
            redlock_lease_forget(handle_);
        }
        handle_ = nullptr;
    }
};

/** A pending acquire, to cancel it. It stays where it is, and outlives the acquire's callback. */
class async_request {
  public:
    /** None. */
    async_request() noexcept = default;
    async_request(const async_request &) = delete;
    async_request &operator=(const async_request &) = delete;
    /** Whether the acquire has not completed. */
    bool pending() const noexcept {
        return handle_ != nullptr;
    }
    /** redlock_request_cancel(), if it is pending. */
    void cancel() noexcept {
        if (handle_) {
            redlock_request_cancel(handle_);
        }
    }
    /** The C handle, or null. */
    redlock_request *get() const noexcept {
        return handle_;
    }

  private:
    friend class manager;
    redlock_request *handle_ = nullptr;
};

/** redlock_observer. The destructor ends it; no callback runs after that. */
class observer {
  public:
    /** None. */
    observer() noexcept = default;
    /** Moves. */
    observer(observer &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), owner_(std::move(other.owner_)) {
    }
    /** Ends it, then moves. */
    observer &operator=(observer &&other) noexcept {
        if (this != &other) {
            end();
            handle_ = std::exchange(other.handle_, nullptr);
            owner_ = std::move(other.owner_);
        }
        return *this;
    }
    /** As end(). */
    ~observer() {
        end();
    }
    /** redlock_observer_end() */
    void end() noexcept {
        if (owner_.get()) {
            redlock_observer_end(handle_);
        }
        handle_ = nullptr;
    }

  private:
    friend class manager;
    observer(redlock_observer *handle, const detail::link<redlock_manager> &owner) noexcept
        : handle_(handle), owner_(owner) {
    }

    redlock_observer *handle_ = nullptr;
    detail::link<redlock_manager> owner_;
};

/** redlock_election: a candidate. The destructor ends it; no callback runs after that. */
class async_election {
  public:
    /** None: every call gives errc::closed. */
    async_election() noexcept = default;
    /** Moves. */
    async_election(async_election &&other) noexcept : state_(std::exchange(other.state_, nullptr)) {
    }
    /** Ends it, then moves. */
    async_election &operator=(async_election &&other) noexcept {
        if (this != &other) {
            leave();
            state_ = std::exchange(other.state_, nullptr);
        }
        return *this;
    }
    /** Ends it without a callback. */
    ~async_election() {
        leave();
    }
    /** redlock_election_resign() */
    errc resign() noexcept {
        return static_cast<errc>(get() ? redlock_election_resign(get()) : REDLOCK_ERR_CLOSED);
    }
    /** redlock_election_campaign() */
    errc campaign() noexcept {
        return static_cast<errc>(get() ? redlock_election_campaign(get()) : REDLOCK_ERR_CLOSED);
    }
    /** redlock_election_end(): the event ended follows. */
    errc end() noexcept {
        return static_cast<errc>(get() ? redlock_election_end(get()) : REDLOCK_ERR_CLOSED);
    }
    /** redlock_election_validity_ms(): how much longer we lead in this term. */
    milliseconds validity(std::uint64_t term) const noexcept {
        return milliseconds(get() ? redlock_election_validity_ms(get(), term) : 0);
    }
    /** The C handle; null after the event ended, and after the close of the manager. */
    redlock_election *get() const noexcept {
        return state_ && state_->owner.get() ? state_->handle : nullptr;
    }

  private:
    friend class manager;
    /* Shared with the library, which uses it until the last event. */
    struct state {
        election_callback on_event;
        detail::link<redlock_manager> owner;
        redlock_election *handle; /* null after the last event */
        bool left;                /* the object has gone */

        static void run(const redlock_election_event *event, void *data) noexcept {
            state *self = static_cast<state *>(data);
            if (!self->left) {
                self->on_event(event);
            }
            if (event->kind == REDLOCK_ELECTION_ENDED) {
                self->handle = nullptr;
                if (self->left) {
                    delete self;
                }
            }
        }
    };
    explicit async_election(state *shared) noexcept : state_(shared) {
    }
    void leave() noexcept {
        if (!state_) {
            return;
        }
        (void)end();
        if (state_->handle) {
            state_->left = true; /* its last event frees it */
        } else {
            delete state_;
        }
        state_ = nullptr;
    }

    state *state_ = nullptr;
};

} // namespace redlock

#endif
