# The same test on each event loop. One that is not installed is skipped.
include(Loops)
set(wrapped "")
foreach(name clock_gettime timerfd_create timerfd_settime send)
  list(APPEND wrapped -Wl,--wrap=${name})
endforeach()

foreach(loop libev libuv libevent glib poll own)
  string(TOUPPER ${loop} LOOP)
  set(kind loops/${loop}.c)
  if(loop MATCHES "^(poll|own)$")
    list(APPEND kind loops/polled.c)
  endif()
  if(DEFINED ${LOOP}_DEBIAN AND NOT TARGET PkgConfig::${LOOP})
    add_test(NAME test_loop_${loop} COMMAND sh -c "echo \"skipped: no ${loop} (Debian: ${${LOOP}_DEBIAN})\"; exit 77")
    set_tests_properties(test_loop_${loop} PROPERTIES LABELS "integration;waiting" SKIP_RETURN_CODE 77)
    continue()
  endif()
  # The loop stands before libev, which has functions of libevent's names.
  redlock_integration_test(test_loop_${loop} SOURCES loops/test_loops.c loops/kit.c ${kind}
    LIBRARIES $<TARGET_NAME_IF_EXISTS:PkgConfig::${LOOP}>)
  target_include_directories(test_loop_${loop} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/loops)
  target_link_options(test_loop_${loop} PRIVATE ${wrapped})
  if(REDLOCK_WITH_TLS)
    redlock_integration_test(test_loop_tls_${loop} SOURCES loops/test_loops_tls.c ${kind}
      LIBRARIES $<TARGET_NAME_IF_EXISTS:PkgConfig::${LOOP}>)
    target_include_directories(test_loop_tls_${loop} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/loops)
    target_link_libraries(test_loop_tls_${loop} PRIVATE redlock_test_pki)
    set_tests_properties(test_loop_tls_${loop} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endforeach()

redlock_integration_test(test_create_on SOURCES loops/test_create_on.c)
