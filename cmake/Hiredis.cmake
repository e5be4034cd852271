# Accepts hiredis 0.14.1 to 1.3. Tests its features, not its version: redisReader's array callback
# took an int before 1.0.
find_package(PkgConfig REQUIRED)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
# We include <hiredis/hiredis.h>. The pkg-config file of some versions names that directory, of
# others its parent.
find_path(REDLOCK_HIREDIS_INCLUDE_DIR hiredis/hiredis.h NO_CACHE
  HINTS ${HIREDIS_INCLUDE_DIRS} ${HIREDIS_STATIC_INCLUDE_DIRS} PATH_SUFFIXES ..)
if(NOT REDLOCK_HIREDIS_INCLUDE_DIR)
  message(FATAL_ERROR "hiredis/hiredis.h not found: install libhiredis-dev (Debian, Ubuntu) or hiredis-devel (Fedora)")
endif()
get_filename_component(REDLOCK_HIREDIS_INCLUDE_DIR "${REDLOCK_HIREDIS_INCLUDE_DIR}" ABSOLUTE)
set_property(TARGET PkgConfig::HIREDIS APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${REDLOCK_HIREDIS_INCLUDE_DIR}")
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::HIREDIS)
set(CMAKE_REQUIRED_FLAGS "-Werror")
foreach(type size_t int)
  string(TOUPPER REDLOCK_HIREDIS_ARRAY_${type} feature)
  check_c_source_compiles("
    #include <hiredis/hiredis.h>
    static void *array(const redisReadTask *t, ${type} n) { (void)t; (void)n; return 0; }
    int main(void) { redisReplyObjectFunctions f = {0}; f.createArray = array; return f.createArray == 0; }
    " ${feature})
endforeach()
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT REDLOCK_HIREDIS_ARRAY_SIZE_T AND NOT REDLOCK_HIREDIS_ARRAY_INT)
  message(FATAL_ERROR
    "hiredis ${HIREDIS_VERSION} cannot be used: its redisReader is none that we know; 0.14.1 to 1.3 will do")
endif()
if(REDLOCK_HIREDIS_ARRAY_SIZE_T)
  target_compile_definitions(redlock_flags INTERFACE REDLOCK_HIREDIS_ARRAY_SIZE_T)
endif()
