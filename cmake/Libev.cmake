# libev for the targets of this build, as redlock_libev.
find_package(Libev REQUIRED)
add_library(redlock_libev INTERFACE)
target_link_libraries(redlock_libev INTERFACE Libev::Libev)
