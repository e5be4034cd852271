# Finds libev, which has no pkg-config file on most systems. Installed beside redlockConfig.cmake
# for users of redlock::static.
find_path(LIBEV_INCLUDE_DIR ev.h PATH_SUFFIXES libev)
find_library(LIBEV_LIBRARY ev)
mark_as_advanced(LIBEV_INCLUDE_DIR LIBEV_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libev REQUIRED_VARS LIBEV_LIBRARY LIBEV_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libev-dev (Debian, Ubuntu) or libev-devel (Fedora)")

if(Libev_FOUND AND NOT TARGET Libev::Libev)
  add_library(Libev::Libev UNKNOWN IMPORTED)
  set_target_properties(Libev::Libev PROPERTIES IMPORTED_LOCATION "${LIBEV_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LIBEV_INCLUDE_DIR}")
  # A static libev does not say that it needs floor(), which compilers often inline.
  if(LIBEV_LIBRARY MATCHES "\\${CMAKE_STATIC_LIBRARY_SUFFIX}$")
    set_target_properties(Libev::Libev PROPERTIES INTERFACE_LINK_LIBRARIES m)
  endif()
endif()
