/**
 * @file result.hpp
 * C++: what came of a call. Codes, votes, results, and values that may be missing.
 */
#ifndef REDLOCK_CPP_RESULT_HPP
#define REDLOCK_CPP_RESULT_HPP

#include <redlock/redlock.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#if defined(__cpp_exceptions)
/** Defined where the compiler has exceptions: constructors and value() throw. */
#define REDLOCK_CPP_EXCEPTIONS 1
#include <stdexcept>
#endif

/** The library in C++. */
namespace redlock {

using std::chrono::milliseconds;

/** The codes of redlock_error. */
enum class errc : int {
    ok = REDLOCK_OK,                   /**< Done. */
    contended = REDLOCK_ERR_CONTENDED, /**< Held by others. */
    no_quorum = REDLOCK_ERR_NO_QUORUM, /**< Too few nodes answered. */
    too_slow = REDLOCK_ERR_TOO_SLOW,   /**< No validity is left of the ttl. */
    lost = REDLOCK_ERR_LOST,           /**< The lease expired or was taken. */
    cancelled = REDLOCK_ERR_CANCELLED, /**< Cancelled. */
    closed = REDLOCK_ERR_CLOSED,       /**< The manager or the client is closed. */
    invalid = REDLOCK_ERR_INVALID,     /**< Invalid argument. */
    no_memory = REDLOCK_ERR_NO_MEMORY, /**< Out of memory. */
    busy = REDLOCK_ERR_BUSY,           /**< Another operation is under way. */
    forked = REDLOCK_ERR_FORKED,       /**< Created before a fork. */
    random = REDLOCK_ERR_RANDOM,       /**< The kernel gave no random bytes. */
    system = REDLOCK_ERR_SYSTEM,       /**< A system call failed. */
    not_owner = REDLOCK_ERR_NOT_OWNER, /**< The owner does not hold the reentrant lease. */
    limit = REDLOCK_ERR_LIMIT,         /**< A bound of the library is reached. */
    upgrade = REDLOCK_ERR_UPGRADE      /**< The owner reads; it must release before it writes. */
};

/** redlock_strerror(). */
inline const char *describe(errc code) noexcept {
    return redlock_strerror(static_cast<int>(code));
}

/** redlock_error_name(): "OK", "CONTENDED", … */
inline const char *name(errc code) noexcept {
    return redlock_error_name(static_cast<int>(code));
}

/** redlock_version(). */
inline const char *version() noexcept {
    return redlock_version();
}

/**
 * A text as an argument: a literal, a `const char *` or a `std::string`. It is not copied. A
 * `std::string` with a NUL inside counts as no text, so that no call takes a part of it for the
 * whole.
 */
class text {
  public:
    /** NUL-terminated; null is no text. */
    text(const char *bytes) noexcept : bytes_(bytes) {
    }
    /** Must live until the call returns. */
    text(const std::string &string) noexcept
        : bytes_(string.find('\0') == std::string::npos ? string.c_str() : nullptr) {
    }
    /** The text, or null. */
    const char *c_str() const noexcept {
        return bytes_;
    }

  private:
    const char *bytes_;
};

namespace detail {
/* An older library leaves newer members at null. */
inline std::string_view view(const char *bytes) noexcept {
    return bytes ? bytes : "";
}
} // namespace detail

/** redlock_token_holder(): the holder's text in a token. It points into the token. */
inline std::string_view token_holder(text token) noexcept {
    return detail::view(redlock_token_holder(token.c_str()));
}

/** The kinds of redlock_vote_kind. */
enum class vote_kind : int {
    pending = REDLOCK_VOTE_PENDING,    /**< No answer yet. */
    granted = REDLOCK_VOTE_GRANTED,    /**< The node did what was asked. */
    denied = REDLOCK_VOTE_DENIED,      /**< The node refused. */
    failed = REDLOCK_VOTE_FAILED,      /**< Not applied. */
    unknown = REDLOCK_VOTE_UNKNOWN,    /**< Perhaps applied. */
    abstained = REDLOCK_VOTE_ABSTAINED /**< The node was not asked. */
};

/** redlock_vote_name(): "GRANTED", "DENIED", … */
inline const char *name(vote_kind kind) noexcept {
    return redlock_vote_name(static_cast<redlock_vote_kind>(kind));
}

/** One node's vote, as redlock_vote. The texts live as long as the result. */
struct vote {
    std::string_view node;               /**< The node's name. */
    vote_kind kind = vote_kind::pending; /**< The vote. */
    std::string_view error;              /**< What went wrong; "" for nothing. */
    /** Until the vote; none without a request. */
    std::optional<std::chrono::microseconds> latency;
    std::string_view holder; /**< inspect(): the value of the key. */
    /** inspect(): how long the key will live; none if it has no ttl. */
    std::optional<milliseconds> holder_ttl;
    std::string_view holder_text; /**< Who has the lock at this node, if known. */
};

/** A result that somebody else owns, or none: then each member is 0 or "". */
class result_view {
  public:
    /** Owns nothing; null is no result. */
    explicit result_view(const redlock_result *handle = nullptr) noexcept : handle_(handle) {
    }
    /** Whether there is a result. */
    explicit operator bool() const noexcept {
        return handle_ != nullptr;
    }
    /** redlock_result_code() */
    errc code() const noexcept {
        return static_cast<errc>(handle_ ? redlock_result_code(handle_) : REDLOCK_OK);
    }
    /** redlock_result_resource() */
    std::string_view resource() const noexcept {
        return handle_ ? redlock_result_resource(handle_) : "";
    }
    /** redlock_result_attempts() */
    std::uint64_t attempts() const noexcept {
        return handle_ ? redlock_result_attempts(handle_) : 0;
    }
    /** redlock_result_passed_over() */
    std::uint64_t passed_over() const noexcept {
        return handle_ ? redlock_result_passed_over(handle_) : 0;
    }
    /** redlock_result_waiters(): none if it is not known. */
    std::optional<std::int64_t> waiters() const noexcept {
        const std::int64_t count = handle_ ? redlock_result_waiters(handle_) : -1;
        return count < 0 ? std::nullopt : std::optional(count);
    }
    /** redlock_result_waited_ms(): none if nobody waits or it is not known. */
    std::optional<milliseconds> waited() const noexcept {
        const std::int64_t ms = handle_ ? redlock_result_waited_ms(handle_) : -1;
        return ms < 0 ? std::nullopt : std::optional(milliseconds(ms));
    }
    /** redlock_result_readers(): none if it is not known. */
    std::optional<std::int64_t> readers() const noexcept {
        const std::int64_t count = handle_ ? redlock_result_readers(handle_) : -1;
        return count < 0 ? std::nullopt : std::optional(count);
    }
    /** The number of nodes. */
    std::size_t size() const noexcept {
        return handle_ ? redlock_result_vote_count(handle_) : 0;
    }
    /** The vote of a node; index must be below size(). */
    redlock::vote operator[](std::size_t index) const noexcept {
        redlock_vote from{};
        from.size = sizeof from;
        redlock::vote to;
        if (handle_ && redlock_result_vote(handle_, index, &from) == REDLOCK_OK) {
            to.node = detail::view(from.node);
            to.kind = static_cast<vote_kind>(from.kind);
            to.error = detail::view(from.error);
            to.holder = detail::view(from.holder);
            to.holder_text = detail::view(from.holder_text);
            if (from.latency_us >= 0) {
                to.latency = std::chrono::microseconds(from.latency_us);
            }
            if (from.holder_ttl_ms >= 0) {
                to.holder_ttl = milliseconds(from.holder_ttl_ms);
            }
        }
        return to;
    }
    /** Goes through the votes. */
    class iterator {
      public:
        /** At a vote. */
        iterator(const result_view *votes, std::size_t index) noexcept : votes_(votes), index_(index) {
        }
        /** The vote. */
        redlock::vote operator*() const noexcept {
            return (*votes_)[index_];
        }
        /** The next one. */
        iterator &operator++() noexcept {
            index_++;
            return *this;
        }
        /** Whether it is another vote. */
        bool operator!=(const iterator &other) const noexcept {
            return index_ != other.index_;
        }

      private:
        const result_view *votes_;
        std::size_t index_;
    };
    /** `for (redlock::vote vote : result)` */
    iterator begin() const noexcept {
        return {this, 0};
    }
    /** Behind the last vote. */
    iterator end() const noexcept {
        return {this, size()};
    }
    /** redlock_result_message(), without an allocation. */
    std::size_t message(char *buffer, std::size_t size) const noexcept {
        return redlock_result_message(handle_, buffer, size);
    }
    /** redlock_result_message() */
    std::string message() const {
        std::string sentence(message(nullptr, 0), '\0');
        message(sentence.data(), sentence.size() + 1);
        return sentence;
    }
    /** The C handle; null is no result. */
    const redlock_result *get() const noexcept {
        return handle_;
    }

  protected:
    /** What this looks at. */
    const redlock_result *handle_;
};

/** A result that we own. It can be moved. */
class result : public result_view {
  public:
    /** No result. */
    result() noexcept = default;
    /** Owns it, and frees it. */
    explicit result(redlock_result *handle) noexcept : result_view(handle) {
    }
    /** A copy that outlives a callback; no result if there is no memory. */
    explicit result(result_view other) noexcept : result_view(other ? redlock_result_copy(other.get()) : nullptr) {
    }
    /** Moves. */
    result(result &&other) noexcept : result_view(std::exchange(other.handle_, nullptr)) {
    }
    /** Moves. */
    result &operator=(result &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    /** Frees it. */
    ~result() {
        redlock_result_free(const_cast<redlock_result *>(handle_));
    }
};

#ifdef REDLOCK_CPP_EXCEPTIONS
/** What throwing functions throw. what() is the sentence of error::message(). */
class failure : public std::runtime_error {
  public:
    /** With a code and a sentence. */
    failure(errc code, const std::string &sentence) : std::runtime_error(sentence), code_(code) {
    }
    /** The code. */
    errc code() const noexcept {
        return code_;
    }

  private:
    errc code_;
};
#endif

/** Why a call failed: a code, and the votes of the nodes if they were asked. */
class error {
  public:
    /** With a code, and a result or a sentence where there is one. */
    explicit error(errc code, redlock::result result = {}, std::string sentence = {}) noexcept
        : code_(code), result_(std::move(result)), sentence_(std::move(sentence)) {
    }
    /** The code; errc::ok for a success. */
    errc code() const noexcept {
        return code_;
    }
    /** What the nodes said; none if no node was asked. */
    const redlock::result &result() const noexcept {
        return result_;
    }
    /** A sentence for people: what was tried, what came of it, and what to do. */
    std::string message() const {
        return result_ ? result_.message() : sentence_.empty() ? describe(code_) : sentence_;
    }
#ifdef REDLOCK_CPP_EXCEPTIONS
    /** Throws it as a redlock::failure. */
    [[noreturn]] void raise() const {
        throw failure(code_, message());
    }
#endif

  private:
    errc code_;
    redlock::result result_;
    std::string sentence_;
};

/** What came of a call: what an expected says besides its value. */
class outcome {
  public:
    /** errc::ok after a success. */
    errc code() const noexcept {
        return error_.code();
    }
    /** What the nodes said, also after a success; none if no node was asked. */
    const redlock::result &result() const noexcept {
        return error_.result();
    }
    /** The error; with the code errc::ok after a success. */
    const redlock::error &error() const &noexcept {
        return error_;
    }
    /** The error, to move. */
    redlock::error &&error() &&noexcept {
        return std::move(error_);
    }
    /** error().message() */
    std::string message() const {
        return error_.message();
    }

  protected:
    /** With the error, or a success with its result. */
    explicit outcome(redlock::error error) noexcept : error_(std::move(error)) {
    }
    /** Has the code errc::ok after a success. */
    redlock::error error_;
};

/** A value, or an error: as std::expected of C++23, with the result of the call beside it. */
template <class T> class [[nodiscard]] expected : public outcome {
  public:
    /** A value, and what the nodes said. */
    expected(T value, redlock::result result = {}) noexcept
        : outcome(redlock::error(errc::ok, std::move(result))), value_(std::move(value)) {
    }
    /** An error. */
    expected(redlock::error error) noexcept : outcome(std::move(error)) {
    }
    /** Whether there is a value. */
    bool has_value() const noexcept {
        return value_.has_value();
    }
    /** Whether there is a value. */
    explicit operator bool() const noexcept {
        return has_value();
    }
    /** The value; there must be one. */
    T &operator*() &noexcept {
        return *value_;
    }
    /** The value; there must be one. */
    const T &operator*() const &noexcept {
        return *value_;
    }
    /** The value, to move; there must be one. */
    T &&operator*() &&noexcept {
        return *std::move(value_);
    }
    /** A member of the value; there must be one. */
    T *operator->() noexcept {
        return &*value_;
    }
    /** A member of the value; there must be one. */
    const T *operator->() const noexcept {
        return &*value_;
    }
#ifdef REDLOCK_CPP_EXCEPTIONS
    /** The value. Throws redlock::failure if there is none. */
    T &value() & {
        return has_value() ? *value_ : (error_.raise(), *value_);
    }
    /** The value, moved. Throws redlock::failure if there is none. */
    T value() && {
        return std::move(value());
    }
#endif

  private:
    std::optional<T> value_;
};

/** Success, or an error. */
template <> class [[nodiscard]] expected<void> : public outcome {
  public:
    /** A success if the code is errc::ok. */
    expected(redlock::error error) noexcept : outcome(std::move(error)) {
    }
    /** Without votes. */
    explicit expected(errc code) noexcept : outcome(redlock::error(code)) {
    }
    /** Whether it was a success. */
    bool has_value() const noexcept {
        return code() == errc::ok;
    }
    /** Whether it was a success. */
    explicit operator bool() const noexcept {
        return has_value();
    }
#ifdef REDLOCK_CPP_EXCEPTIONS
    /** Throws redlock::failure after an error. */
    void value() const {
        if (!has_value()) {
            error_.raise();
        }
    }
#endif
};

} // namespace redlock

#endif
