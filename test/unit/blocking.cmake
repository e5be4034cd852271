# The blocking client's parts that need no node: the mailbox, the eventcount, unread events, and the
# table of reentrant holds with leases of its own.
function(redlock_blocking_test name)
  add_executable(${name} ${name}.c ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE redlock_flags redlock_test Threads::Threads)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS "unit;blocking")
endfunction()

redlock_blocking_test(test_mailbox ${PROJECT_SOURCE_DIR}/src/blocking/mailbox.c)
redlock_blocking_test(test_eventcount ${PROJECT_SOURCE_DIR}/src/blocking/eventcount.c
  ${PROJECT_SOURCE_DIR}/src/blocking/mailbox.c)
redlock_blocking_test(test_reentrant ${PROJECT_SOURCE_DIR}/src/blocking/reentrant.c)
redlock_blocking_test(test_events ${PROJECT_SOURCE_DIR}/src/blocking/events.c)
target_link_options(test_reentrant PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=clock_gettime)
