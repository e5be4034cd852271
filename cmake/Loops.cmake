# The event loops of the adapters, for tests only: the targets PkgConfig::LIBUV, PkgConfig::LIBEVENT
# and PkgConfig::GLIB, where they are installed. The library needs none of them.
find_package(PkgConfig REQUIRED)
foreach(loop libuv libevent glib)
  string(TOUPPER ${loop} LOOP)
  string(REGEX REPLACE "^libevent$" "libevent_core" package ${loop})
  string(REGEX REPLACE "^glib$" "glib-2.0" package ${package})
  if(NOT TARGET PkgConfig::${LOOP})
    pkg_check_modules(${LOOP} QUIET IMPORTED_TARGET ${package})
  endif()
endforeach()
set(LIBUV_DEBIAN libuv1-dev)
set(LIBEVENT_DEBIAN libevent-dev)
set(GLIB_DEBIAN libglib2.0-dev)
