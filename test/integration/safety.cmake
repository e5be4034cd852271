# Fencing tokens, guards, healing and lock delay.
foreach(theme fencing restart_guard heal lock_delay)
  redlock_integration_test(test_${theme} SOURCES test_${theme}.c)
endforeach()
if(TARGET redlock_chaos_clock)
  redlock_integration_test(test_clock_guard SOURCES test_clock_guard.c
    ${PROJECT_SOURCE_DIR}/tools/chaos/backends/clock.c)
  target_include_directories(test_clock_guard PRIVATE ${PROJECT_SOURCE_DIR}/tools/chaos)
  target_compile_definitions(test_clock_guard PRIVATE CLOCK_SHIM="$<TARGET_FILE:redlock_chaos_clock>")
  add_dependencies(test_clock_guard redlock_chaos_clock)
endif()
