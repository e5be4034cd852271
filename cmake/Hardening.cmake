# Flags that harden what is built, and flags that make two builds of the same source the same bytes.
include(CheckCCompilerFlag)
include(CheckPIESupported)

# No path of the build machine in the debug information, and names that do not depend on it.
target_compile_options(redlock_flags INTERFACE -ffile-prefix-map=${PROJECT_BINARY_DIR}=build
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
# Where gcc makes link-time code, the assembler has a path of its own.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(redlock_flags INTERFACE -Wa,--debug-prefix-map=${PROJECT_BINARY_DIR}=build)
endif()

if(NOT REDLOCK_HARDENING)
  return()
endif()
if(PROJECT_IS_TOP_LEVEL)
  check_pie_supported() # leaves its findings in the cache
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_c_compiler_flag("-Werror -fstack-protector" REDLOCK_HAS_STACK_PROTECTOR)
if(REDLOCK_HAS_STACK_PROTECTOR)
  target_compile_options(redlock_flags INTERFACE -fstack-protector --param=ssp-buffer-size=4)
endif()
# FORTIFY needs an optimized build. Sanitizers check the same functions. A distribution's flags may
# define it already.
if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$" AND NOT REDLOCK_SANITIZE AND NOT REDLOCK_COVERAGE
    AND NOT "${CMAKE_C_FLAGS} $ENV{CFLAGS} $ENV{CPPFLAGS}" MATCHES "_FORTIFY_SOURCE")
  target_compile_definitions(redlock_flags INTERFACE _FORTIFY_SOURCE=2)
endif()
# All symbols are bound at the start, and the tables of pointers are read-only from then on.
target_link_options(redlock_flags INTERFACE LINKER:-z,relro,-z,now)
