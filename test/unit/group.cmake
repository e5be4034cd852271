# The group over a fake env: exactly-once completion, callbacks, memory. No libev, no sockets.
redlock_sources(GROUP_UNDER_TEST CORE BASE RESULT GROUP ELECTION)
add_library(redlock_test_group STATIC ${GROUP_UNDER_TEST} fake_env.c group_kit.c queue_kit.c)
target_include_directories(redlock_test_group PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(redlock_test_group PUBLIC redlock_flags cmocka)
foreach(name group group_life group_fence group_guards group_queue group_pushes group_queue_end group_sights
    group_observer holder line owed schedule result election)
  add_executable(test_${name} test_${name}.c)
  target_link_libraries(test_${name} PRIVATE redlock_test_group)
  add_test(NAME unit_${name} COMMAND test_${name})
  set_tests_properties(unit_${name} PROPERTIES LABELS "unit;valgrind_ok" TIMEOUT 60)
endforeach()
target_link_options(test_group_observer PRIVATE -Wl,--wrap=malloc,--wrap=realloc)
foreach(name group_queue_end line)
  target_link_options(test_${name} PRIVATE -Wl,--wrap=realloc)
endforeach()
# The test is the observer.
target_link_options(test_election PRIVATE
  -Wl,--wrap=redlock_group_observe,--wrap=redlock_observer_end,--wrap=malloc,--wrap=calloc,--wrap=realloc)
