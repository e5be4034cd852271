# The group over a fake env: exactly-once completion, callbacks, memory. No libev, no sockets.
redlock_test_archive(redlock_test_group core base result group election wire/page wire/holder_query wire/error
  wire/rights wire/slots wire/resp)
target_sources(redlock_test_group PRIVATE fake_env.c group_kit.c queue_kit.c told_kit.c)
target_link_libraries(redlock_test_group PUBLIC redlock_test)
foreach(name group group_life group_list group_fence group_guards group_queue group_pushes group_overtaken
    group_queue_end group_left group_shared group_bundle group_permits group_sights group_tickets group_observer
    group_observer_end group_campaign group_events group_expiring group_telemetry handle holder line
    seal owed schedule spares result election election_end)
  add_executable(test_${name} test_${name}.c)
  target_link_libraries(test_${name} PRIVATE redlock_test_group)
  add_test(NAME unit_${name} COMMAND test_${name})
  set_tests_properties(unit_${name} PROPERTIES LABELS "unit;valgrind_ok" TIMEOUT 300)
endforeach()
foreach(name group_observer group_observer_end)
  target_sources(test_${name} PRIVATE observer_kit.c)
endforeach()
foreach(name group_queue_end line)
  target_link_options(test_${name} PRIVATE -Wl,--wrap=realloc)
endforeach()
# The test is the observer.
foreach(name election election_end)
  target_sources(test_${name} PRIVATE election_kit.c)
  target_link_options(test_${name} PRIVATE
    -Wl,--wrap=redlock_group_observe,--wrap=redlock_observer_end,--wrap=redlock_observer_lead)
endforeach()
foreach(name group_list group_observer_end election_end)
  target_link_libraries(test_${name} PRIVATE redlock_scarce_memory)
endforeach()
