# hiredis 0.14.1 to 1.3, told apart by what it has and not by its version: redisReader's array callback took an int before 1.0.
find_package(PkgConfig REQUIRED)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::HIREDIS)
set(CMAKE_REQUIRED_FLAGS "-Werror")
check_c_source_compiles("
#include <hiredis/hiredis.h>
static void *array(const redisReadTask *t, size_t n) { (void)t; (void)n; return 0; }
int main(void) { redisReplyObjectFunctions f = {0}; f.createArray = array; return f.createArray == 0; }
" REDLOCK_HIREDIS_ARRAY_SIZE_T)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_FLAGS)
