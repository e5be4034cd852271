# The blocking client's parts that need no node: the mailbox, the eventcount, unread events, and the
# table of reentrant holds with leases of its own.
redlock_test_archive(redlock_test_blocking blocking)
foreach(name drive mailbox eventcount reentrant events)
  add_executable(test_${name} test_${name}.c)
  target_link_libraries(test_${name} PRIVATE redlock_test_blocking redlock_test Threads::Threads)
  add_test(NAME test_${name} COMMAND test_${name})
  set_tests_properties(test_${name} PROPERTIES TIMEOUT 300 LABELS "unit;blocking")
endforeach()
target_link_options(test_reentrant PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=clock_gettime)
