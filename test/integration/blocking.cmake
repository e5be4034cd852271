# The blocking client against five real servers.
foreach(part "" _drive _loops _reentrant _with _several _end _fork
  _election _election_threads _expiring _cancel _nodes _telemetry)
  redlock_integration_test(test_blocking${part} TIMEOUT 300 LABELS blocking SOURCES test_blocking${part}.c
    blocking_kit.c)
endforeach()
foreach(part election election_threads expiring)
  target_sources(test_blocking_${part} PRIVATE blocking_election_kit.c)
endforeach()
redlock_integration_test(test_rotation TIMEOUT 300 LABELS blocking SOURCES test_rotation.c blocking_kit.c)
# Failures that only a wrapper can bring about: of pthread_create(), and of each allocation in turn.
target_link_options(test_blocking_end PRIVATE
  -Wl,--wrap=pthread_create,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup)
target_include_directories(test_blocking_end PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(test_blocking_fork PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_options(test_blocking_election PRIVATE -Wl,--wrap=pthread_mutex_init,--wrap=pthread_condattr_init
  -Wl,--wrap=pthread_condattr_setclock,--wrap=pthread_cond_init,--wrap=calloc)
