# The I/O edge without a server: bytes, replies, addresses, queues, the loop, a node over a socket.
redlock_test_archive(redlock_test_io core base loop wire server node)
target_link_libraries(redlock_test_io PUBLIC redlock_libev redlock_tls PkgConfig::HIREDIS redlock_test
  Threads::Threads)

foreach(name text argument cause wire read slots page push reply script address info handshake proof inflight outbox
  connection random siphash linked resolve loop poll)
  add_executable(test_${name} test_${name}.c)
  target_link_libraries(test_${name} PRIVATE redlock_test_io)
  add_test(NAME unit_${name} COMMAND test_${name})
  set_tests_properties(unit_${name} PROPERTIES LABELS "unit;valgrind_ok" TIMEOUT 300)
endforeach()

target_sources(test_handshake PRIVATE handshake_kit.c)
target_sources(test_proof PRIVATE handshake_kit.c)

target_link_libraries(test_inflight PRIVATE redlock_scarce_memory)

if(REDLOCK_WITH_TLS)
  foreach(name tls_failure connection_tls)
    add_executable(test_${name} test_${name}.c)
    target_link_libraries(test_${name} PRIVATE redlock_test_io)
    add_test(NAME unit_${name} COMMAND test_${name})
    set_tests_properties(unit_${name} PROPERTIES LABELS "unit;valgrind_ok" TIMEOUT 300)
  endforeach()
  set_tests_properties(unit_connection_tls PROPERTIES LABELS unit TIMEOUT 300)
  target_link_libraries(test_connection_tls PRIVATE redlock_test_certificates redlock_scarce_memory)
endif()

# Clocks of a machine that was suspended, by the linker's hand.
target_link_options(test_loop PRIVATE -Wl,--wrap=clock_gettime,--wrap=timerfd_create,--wrap=timerfd_settime)
# The same by the kernel: a time namespace with CLOCK_BOOTTIME ten days ahead of CLOCK_MONOTONIC.
add_test(NAME unit_loop_suspended COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/suspended.sh $<TARGET_FILE:test_loop>)
set_tests_properties(unit_loop_suspended PROPERTIES LABELS "unit" TIMEOUT 300 SKIP_RETURN_CODE 77)

add_library(redlock_test_peer STATIC EXCLUDE_FROM_ALL peer.c peer_clock.c)
target_link_libraries(redlock_test_peer PUBLIC redlock_test_io)
target_link_options(redlock_test_peer PUBLIC -Wl,--wrap=clock_gettime,--wrap=timerfd_settime)
foreach(name node_guarded node_holder_query)
  add_executable(test_${name} test_${name}.c)
  target_link_libraries(test_${name} PRIVATE redlock_test_peer)
  add_test(NAME unit_${name} COMMAND test_${name})
  set_tests_properties(unit_${name} PROPERTIES LABELS "unit;waiting" TIMEOUT 300)
endforeach()
foreach(name node node_end node_far spare subscription subscription_end subscription_channels subscription_asleep
    credentials spare_credentials)
  add_executable(test_${name} test_${name}.c subscriber.c)
  target_link_libraries(test_${name} PRIVATE redlock_test_peer)
  add_test(NAME unit_${name} COMMAND test_${name})
  set_tests_properties(unit_${name} PROPERTIES LABELS "unit;waiting" TIMEOUT 300)
endforeach()
target_sources(test_credentials PRIVATE credentials_kit.c)
target_sources(test_spare_credentials PRIVATE credentials_kit.c)
target_link_libraries(test_subscription_channels PRIVATE redlock_scarce_memory)
target_link_libraries(test_subscription_end PRIVATE redlock_scarce_memory)
