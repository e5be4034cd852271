# Nodes: their clocks alone, and servers that are really started, hit by faults, and ended.
if(TARGET chaos_backends AND TARGET redlock_chaos_clock)
  # Like a server it has the clock preloaded, so no sanitizer's flags.
  add_executable(clock_probe clock_probe.c)
  target_compile_definitions(clock_probe PRIVATE _GNU_SOURCE)
  target_link_libraries(clock_probe PRIVATE Threads::Threads)

  chaos_test(test_node_clock LIBS chaos_backends LABELS unit TIMEOUT 300)
  chaos_test(test_nodes LIBS chaos_backends redlock_test_support PkgConfig::HIREDIS LABELS waiting TIMEOUT 300
    SOURCES node_kit.c)
  chaos_test(test_admin LIBS chaos_backends redlock_test_support PkgConfig::HIREDIS LABELS waiting TIMEOUT 300
    SOURCES node_kit.c)
  foreach(test test_node_clock test_nodes test_admin)
    add_dependencies(${test} redlock_chaos_clock clock_probe)
    target_compile_definitions(${test} PRIVATE CLOCK_SHIM="$<TARGET_FILE:redlock_chaos_clock>"
      CLOCK_PROBE="$<TARGET_FILE:clock_probe>")
  endforeach()
endif()
