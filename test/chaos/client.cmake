# The conductor's own processes with real nodes on loopback. Their program links the library, so
# that a test can link one with planted bugs.
if(TARGET chaos_client AND TARGET chaos_history)
  chaos_test(test_resource LIBS chaos_client LABELS unit)
  foreach(theme client client_fence auditor crew)
    chaos_test(test_${theme} TIMEOUT 300 SOURCES client_kit.c client_reading.c
      LIBS chaos_client chaos_history redlock_test_support PkgConfig::JANSSON PkgConfig::HIREDIS)
    set_tests_properties(test_${theme} PROPERTIES LABELS "chaos;integration;waiting")
  endforeach()
endif()
