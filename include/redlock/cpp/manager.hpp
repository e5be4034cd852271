/**
 * @file manager.hpp
 * C++: a manager, which locks on an event loop. One thread: that of the loop.
 *
 * A callback of a request is any callable. It runs once, if the call gave errc::ok. A callable that
 * does not fit into a pointer costs an allocation; without memory the call gives errc::no_memory.
 */
#ifndef REDLOCK_CPP_MANAGER_HPP
#define REDLOCK_CPP_MANAGER_HPP

#include <redlock/cpp/async.hpp>
#include <redlock/cpp/node.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock {

/** redlock_manager: a set of nodes, on the caller's loop. Its address does not matter to C. */
class manager {
  public:
    /** None: every call gives errc::closed. */
    manager() noexcept = default;
    /** redlock_manager_create(), on libev. */
    static expected<manager> create(struct ev_loop *loop, const manager_options &options) {
        return create_by(options,
                         [loop](const redlock_manager_options *c, redlock_manager **handle, char *sentence,
                                std::size_t size) { return redlock_manager_create(loop, c, handle, sentence, size); });
    }
    /**
     * On any loop, by the C function that creates a manager there.
     * @param function  `int(const redlock_manager_options *, redlock_manager **, char *error,
     *                  size_t)`
     */
    template <class Function> static expected<manager> create_by(const manager_options &options, Function &&function) {
        detail::link<redlock_manager> link(nullptr);
        if (!link) {
            return error(errc::no_memory);
        }
        const detail::c_manager_options from(options);
        redlock_manager *handle = nullptr;
        char sentence[256] = "";
        const int code = function(&from.c, &handle, sentence, sizeof sentence);
        if (code != REDLOCK_OK) {
            return error(static_cast<errc>(code), {}, sentence);
        }
        link.set(handle);
        return manager(std::move(link));
    }
#ifdef REDLOCK_CPP_EXCEPTIONS
    /** As create(). Throws redlock::failure. */
    manager(struct ev_loop *loop, const manager_options &options) : manager(create(loop, options).value()) {
    }
#endif
    /** Moves. Its leases stay. */
    manager(manager &&other) noexcept = default;
    /** Closes, then moves. */
    manager &operator=(manager &&other) noexcept {
        if (this != &other) {
            end();
            link_ = std::move(other.link_);
        }
        return *this;
    }
    /** As close(); in a child process after fork(), as abandon(). */
    ~manager() {
        end();
    }

    /** redlock_manager_connect(). @param done  `void(result_view)` */
    template <class F> errc connect(milliseconds timeout, F &&done) {
        return request(std::forward<F>(done), [&](redlock_manager *handle, redlock_callback cb, void *data) {
            return redlock_manager_connect(handle, timeout.count(), cb, data);
        });
    }
    /**
     * redlock_manager_close(): the leases are empty from now on. The loop must run until `done` has
     * run, or, without a callback, until nothing is left for it to do.
     * @param done  `void()`
     */
    template <class F> errc close(F &&done) {
        using packed = detail::once<std::decay_t<F>>;
        void *data;
        if (!get()) {
            return errc::closed;
        }
        if (!packed::pack(std::forward<F>(done), data)) {
            return errc::no_memory;
        }
        const errc code = close(packed::on_closed, data);
        if (code != errc::ok) {
            packed::drop(data);
        }
        return code;
    }
    /** The same without a callback. */
    errc close() noexcept {
        return get() ? close(nullptr, nullptr) : errc::closed;
    }
    /** redlock_manager_abandon(), for a child process. What pending callbacks own is not freed. */
    void abandon() noexcept {
        if (get()) {
            redlock_manager_abandon(get());
            link_.set(nullptr);
        }
    }

    /**
     * redlock_acquire(). This costs an allocation in any case.
     * @param done     `void(result_view, async_lease)`; the lease is empty after a failure
     * @param request  to cancel it; may be null
     */
    template <class F>
    errc acquire(text resource, const acquire_options &options, F &&done, async_request *request = nullptr) {
        return ask(options, std::forward<F>(done), request,
                   [&](const redlock_acquire_options *to, redlock_request **handle, redlock_callback cb, void *data) {
                       return redlock_acquire(get(), resource.c_str(), to, handle, cb, data);
                   });
    }
    /** redlock_acquire_all(): several resources in one lease. As acquire() otherwise. */
    template <class F>
    errc acquire_all(const std::vector<item> &items, const acquire_options &options, F &&done,
                     async_request *request = nullptr) {
        const std::vector<redlock_item> all = detail::to_c(items);
        return ask(options, std::forward<F>(done), request,
                   [&](const redlock_acquire_options *to, redlock_request **handle, redlock_callback cb, void *data) {
                       return redlock_acquire_all(get(), all.data(), all.size(), to, handle, cb, data);
                   });
    }
    /** redlock_adopt() */
    expected<async_lease> adopt(text resource, text token, const acquire_options &options = {}) {
        const redlock_acquire_options to = detail::to_c(options);
        redlock_lease *handle = nullptr;
        const int code = link_.call(redlock_adopt, resource.c_str(), token.c_str(), &to, &handle);
        if (code != REDLOCK_OK) {
            return failed(code);
        }
        return async_lease(handle, link_);
    }
    /** redlock_adopt_all(): the token of each item is needed. */
    expected<async_lease> adopt_all(const std::vector<item> &items, const acquire_options &options = {}) {
        const std::vector<redlock_item> all = detail::to_c(items);
        const redlock_acquire_options to = detail::to_c(options);
        redlock_lease *handle = nullptr;
        const int code = link_.call(redlock_adopt_all, all.data(), all.size(), &to, &handle);
        if (code != REDLOCK_OK) {
            return failed(code);
        }
        return async_lease(handle, link_);
    }
    /** redlock_inspect(). @param done  `void(result_view)` */
    template <class F> errc inspect(text resource, F &&done) {
        return request(std::forward<F>(done), [&](redlock_manager *handle, redlock_callback cb, void *data) {
            return redlock_inspect(handle, resource.c_str(), cb, data);
        });
    }
    /**
     * redlock_list(). This costs an allocation.
     * @param each  `bool(const listed &)`: whether to go on
     * @param done  `void(result_view)`
     */
    template <class Each, class Done> errc list(const list_options &options, Each &&each, Done &&done) {
        using state = listing<std::decay_t<Each>, std::decay_t<Done>>;
        if (!get()) {
            return errc::closed;
        }
        if (options.cancel) {
            return errc::invalid; // only a client can
        }
        std::unique_ptr<state> made(new (std::nothrow) state{std::forward<Each>(each), std::forward<Done>(done)});
        if (!made) {
            return errc::no_memory;
        }
        const redlock_list_options to = detail::to_c(options);
        const int code = redlock_list(get(), &to, state::on_lock, state::on_result, made.get());
        if (code == REDLOCK_OK) {
            (void)made.release();
        }
        return static_cast<errc>(code);
    }
    /** redlock_observe() */
    expected<observer> observe(text resource, leader_callback on_leader) {
        redlock_observer *handle = nullptr;
        const int code = link_.call(redlock_observe, resource.c_str(), on_leader.function(), on_leader.data(), &handle);
        if (code != REDLOCK_OK) {
            return failed(code);
        }
        return observer(handle, link_);
    }
    /** redlock_elect() */
    expected<async_election> elect(text name, const election_options &options, election_callback on_event) {
        using state = async_election::state;
        if (!get() || !on_event) {
            return error(get() ? errc::invalid : errc::closed);
        }
        std::unique_ptr<state> made(new (std::nothrow) state{on_event, link_, nullptr, false});
        if (!made) {
            return error(errc::no_memory);
        }
        const redlock_election_options to = detail::to_c(options);
        const int code = redlock_elect(get(), name.c_str(), &to, state::run, made.get(), &made->handle);
        if (code != REDLOCK_OK) {
            return failed(code);
        }
        return async_election(made.release());
    }

    /**
     * redlock_manager_set_credentials()
     * @param node  an index, or #all_nodes
     * @param user  null is the default user
     */
    expected<void> set_credentials(std::size_t node, text user, text password) {
        return failed(link_.call(redlock_manager_set_credentials, node, user.c_str(), password.c_str()));
    }
    /** redlock_manager_invalid(): why the last call gave errc::invalid. */
    std::string_view invalid() const noexcept {
        return get() ? redlock_manager_invalid(get()) : "";
    }
    /** redlock_manager_node_count() */
    std::size_t node_count() const noexcept {
        return get() ? redlock_manager_node_count(get()) : 0;
    }
    /** redlock_manager_quorum() */
    std::size_t quorum() const noexcept {
        return get() ? redlock_manager_quorum(get()) : 0;
    }
    /** redlock_manager_node(); none for an index out of range. */
    std::optional<node_info> node(std::size_t index) const noexcept {
        redlock_node_info info{};
        info.size = sizeof info;
        if (!get() || redlock_manager_node(get(), index, &info) != REDLOCK_OK) {
            return std::nullopt;
        }
        return node_info(info);
    }
    /** redlock_manager_statistics(); all 0 after the close. */
    redlock_statistics statistics() const noexcept {
        redlock_statistics counted{};
        counted.size = sizeof counted;
        if (get()) {
            (void)redlock_manager_statistics(get(), &counted);
        }
        return counted;
    }
    /** redlock_manager_telemetry(): fills in the snapshot, whose size it sets. */
    errc telemetry(redlock_telemetry &snapshot) const noexcept {
        snapshot.size = sizeof snapshot;
        return static_cast<errc>(link_.call(redlock_manager_telemetry, &snapshot));
    }
    /** The C handle; null after the close. */
    redlock_manager *get() const noexcept {
        return link_.get();
    }

  private:
    template <class F> struct acquiring {
        F callable;
        detail::link<redlock_manager> owner;
        async_request *request;

        static void on_result(const redlock_result *result, void *data) noexcept {
            const std::unique_ptr<acquiring> self(static_cast<acquiring *>(data));
            if (self->request) {
                self->request->handle_ = nullptr;
            }
            self->callable(result_view(result), async_lease(redlock_result_lease(result), self->owner));
        }
    };

    template <class Each, class Done> struct listing {
        Each each;
        Done done;

        static bool on_lock(const redlock_listed *lock, void *data) noexcept {
            return static_cast<listing *>(data)->each(listed(lock));
        }
        static void on_result(const redlock_result *result, void *data) noexcept {
            const std::unique_ptr<listing> self(static_cast<listing *>(data));
            self->done(result_view(result));
        }
    };

    explicit manager(detail::link<redlock_manager> &&link) noexcept : link_(std::move(link)) {
    }
    /* Makes an acquire: begin(options, request, callback, data). */
    template <class F, class Begin>
    errc ask(const acquire_options &options, F &&done, async_request *request, Begin begin) {
        using state = acquiring<std::decay_t<F>>;
        if (!get()) {
            return errc::closed;
        }
        if (options.reentrant || options.cancel) {
            return errc::invalid; // only a client can
        }
        std::unique_ptr<state> made(new (std::nothrow) state{std::forward<F>(done), link_, request});
        if (!made) {
            return errc::no_memory;
        }
        const redlock_acquire_options to = detail::to_c(options);
        redlock_request *handle = nullptr;
        const int code = begin(&to, &handle, state::on_result, made.get());
        if (code == REDLOCK_OK) {
            (void)made.release();
            if (request) {
                request->handle_ = handle;
            }
        }
        return static_cast<errc>(code);
    }
    template <class F, class Begin> errc request(F &&callable, Begin begin) {
        redlock_manager *handle = get();
        return handle ? detail::request(std::forward<F>(callable),
                                        [&](redlock_callback cb, void *data) { return begin(handle, cb, data); })
                      : errc::closed;
    }
    error failed(int code) const {
        return error(static_cast<errc>(code), {}, code == REDLOCK_ERR_INVALID ? std::string(invalid()) : std::string());
    }
    errc close(redlock_closed_callback cb, void *data) noexcept {
        const errc code = static_cast<errc>(redlock_manager_close(get(), cb, data));
        if (code == errc::ok) {
            link_.set(nullptr);
        }
        return code;
    }
    void end() noexcept {
        if (close() == errc::forked) {
            abandon();
        }
    }

    detail::link<redlock_manager> link_;
};

} // namespace redlock

#endif
