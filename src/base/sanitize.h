/* Whether the build is one for AddressSanitizer or ThreadSanitizer: gcc and clang say it
 * differently. */
#ifndef REDLOCK_BASE_SANITIZE_H
#define REDLOCK_BASE_SANITIZE_H

#ifdef __has_feature
#define REDLOCK_HAS_FEATURE(name) __has_feature(name)
#else
#define REDLOCK_HAS_FEATURE(name) 0
#endif

#if defined __SANITIZE_ADDRESS__ || REDLOCK_HAS_FEATURE(address_sanitizer)
#define REDLOCK_UNDER_ASAN 1
#else
#define REDLOCK_UNDER_ASAN 0
#endif

#if defined __SANITIZE_THREAD__ || REDLOCK_HAS_FEATURE(thread_sanitizer)
#define REDLOCK_UNDER_TSAN 1
#else
#define REDLOCK_UNDER_TSAN 0
#endif

#endif
