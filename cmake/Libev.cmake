# libev has no pkg-config file on most systems.
find_path(LIBEV_INCLUDE_DIR ev.h PATH_SUFFIXES libev)
find_library(LIBEV_LIBRARY ev)
if(NOT LIBEV_INCLUDE_DIR OR NOT LIBEV_LIBRARY)
  message(FATAL_ERROR "libev not found: install libev-dev (Debian, Ubuntu) or libev-devel (Fedora)")
endif()
add_library(redlock_libev INTERFACE)
target_include_directories(redlock_libev SYSTEM INTERFACE ${LIBEV_INCLUDE_DIR})
target_link_libraries(redlock_libev INTERFACE ${LIBEV_LIBRARY})
