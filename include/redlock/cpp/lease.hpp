/**
 * @file lease.hpp
 * C++: what all leases have, and how they learn that their client or manager has ended.
 */
#ifndef REDLOCK_CPP_LEASE_HPP
#define REDLOCK_CPP_LEASE_HPP

#include <redlock/cpp/result.hpp>
#include <redlock/redlock.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock {

/** A lease that somebody else owns. It must be valid while one of these members is used. */
class lease_view {
  public:
    /** Owns nothing; null is no lease. */
    explicit lease_view(redlock_lease *handle = nullptr) noexcept : handle_(handle) {
    }
    /** Whether there is no handle. Ask validity() whether the lock is still ours. */
    bool empty() const noexcept {
        return handle_ == nullptr;
    }
    /** redlock_lease_validity_ms(): 0 means stop work; 0 without a lease. */
    milliseconds validity() const noexcept {
        return milliseconds(handle_ ? redlock_lease_validity_ms(handle_) : 0);
    }
    /** redlock_lease_fence(): the fencing token, or 0. */
    std::uint64_t fence() const noexcept {
        return handle_ ? redlock_lease_fence(handle_) : 0;
    }
    /** redlock_lease_slots(): the slots of its permits. */
    std::vector<std::uint32_t> slots() const {
        std::vector<std::uint32_t> slots(handle_ ? redlock_lease_slots(handle_, nullptr, 0) : 0);
        if (!slots.empty()) {
            redlock_lease_slots(handle_, slots.data(), slots.size());
        }
        return slots;
    }
    /** redlock_lease_token(); a NUL follows it. */
    std::string_view token() const noexcept {
        return handle_ ? redlock_lease_token(handle_) : "";
    }
    /** redlock_lease_resource(); a NUL follows it. */
    std::string_view resource() const noexcept {
        return handle_ ? redlock_lease_resource(handle_) : "";
    }
    /** redlock_lease_item_count(): the members above tell of item 0; 0 without a lease. */
    std::size_t item_count() const noexcept {
        return handle_ ? redlock_lease_item_count(handle_) : 0;
    }
    /** redlock_lease_item_fence(); 0 without such an item. */
    std::uint64_t fence(std::size_t item) const noexcept {
        return handle_ ? redlock_lease_item_fence(handle_, item) : 0;
    }
    /** redlock_lease_item_token(); "" without such an item. */
    std::string_view token(std::size_t item) const noexcept {
        return detail::view(handle_ ? redlock_lease_item_token(handle_, item) : nullptr);
    }
    /** redlock_lease_item_resource(); "" without such an item. */
    std::string_view resource(std::size_t item) const noexcept {
        return detail::view(handle_ ? redlock_lease_item_resource(handle_, item) : nullptr);
    }
    /** The C handle, or null. */
    redlock_lease *get() const noexcept {
        return handle_;
    }

  private:
    redlock_lease *handle_;
};

namespace detail {

/* A counted reference to a handle that ends while others still refer to it. The close of a client
 * or a manager ends all handles of its leases; afterwards a lease must not touch its own. */
template <class Handle> class link {
  public:
    link() noexcept = default;
    /* Empty if there is no memory. */
    explicit link(Handle *handle) noexcept : block_(new (std::nothrow) block{1, handle}) {
    }
    link(const link &other) noexcept : block_(other.block_) {
        if (block_) {
            block_->users.fetch_add(1, std::memory_order_relaxed);
        }
    }
    link(link &&other) noexcept : block_(std::exchange(other.block_, nullptr)) {
    }
    link &operator=(link other) noexcept {
        std::swap(block_, other.block_);
        return *this;
    }
    ~link() {
        if (block_ && block_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete block_;
        }
    }
    explicit operator bool() const noexcept {
        return block_ != nullptr;
    }
    Handle *get() const noexcept {
        return block_ ? block_->handle.load(std::memory_order_acquire) : nullptr;
    }
    void set(Handle *handle) const noexcept {
        block_->handle.store(handle, std::memory_order_release);
    }
    /* The code of a C function that gets the handle first. */
    template <class Function, class... Rest> int call(Function function, Rest... rest) const {
        Handle *handle = get();
        return handle ? function(handle, rest...) : REDLOCK_ERR_CLOSED;
    }

  private:
    struct block {
        std::atomic<std::size_t> users;
        std::atomic<Handle *> handle;
    };
    block *block_ = nullptr;
};

} // namespace detail

/** What redlock::lease and redlock::async_lease have in common. Empty after a move, a release, or
 * the close of the client or the manager. */
template <class Owner> class basic_lease {
  public:
    /** Whether there is no handle. Ask validity() whether the lock is still ours. */
    bool empty() const noexcept {
        return view().empty();
    }
    /** The time that is left; 0 means stop work. Ask before each step that the lock protects. */
    milliseconds validity() const noexcept {
        return view().validity();
    }
    /** The fencing token, or 0. */
    std::uint64_t fence() const noexcept {
        return view().fence();
    }
    /** The slots of its permits; empty for a lock. */
    std::vector<std::uint32_t> slots() const {
        return view().slots();
    }
    /** The key's value, for an adopt; a NUL follows it. */
    std::string_view token() const noexcept {
        return view().token();
    }
    /** The resource; a NUL follows it. */
    std::string_view resource() const noexcept {
        return view().resource();
    }
    /** How many resources it has; the members above tell of item 0. */
    std::size_t item_count() const noexcept {
        return view().item_count();
    }
    /** The fencing token of an item, or 0. */
    std::uint64_t fence(std::size_t item) const noexcept {
        return view().fence(item);
    }
    /** The token of an item, or "". */
    std::string_view token(std::size_t item) const noexcept {
        return view().token(item);
    }
    /** The resource of an item, or "". */
    std::string_view resource(std::size_t item) const noexcept {
        return view().resource(item);
    }
    /** The C handle, or null. */
    redlock_lease *get() const noexcept {
        return owner_.get() ? handle_ : nullptr;
    }
    /** The same without the duty to release it. */
    lease_view view() const noexcept {
        return lease_view(get());
    }

  protected:
    /** None. */
    basic_lease() noexcept = default;
    /** Takes over a handle. */
    basic_lease(redlock_lease *handle, const detail::link<Owner> &owner) noexcept : handle_(handle), owner_(owner) {
    }
    /** Moves. */
    basic_lease(basic_lease &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), owner_(std::move(other.owner_)) {
    }
    /** Moves; the lease that was here must have ended. */
    basic_lease &operator=(basic_lease &&other) noexcept {
        handle_ = std::exchange(other.handle_, nullptr);
        owner_ = std::move(other.owner_);
        return *this;
    }
    /** Does not release it. */
    ~basic_lease() = default;

    /** The C handle, valid while owner_ has one. */
    redlock_lease *handle_ = nullptr;
    /** The client or the manager. */
    detail::link<Owner> owner_;
};

} // namespace redlock

#endif
