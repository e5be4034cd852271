# The command line, and the conductor in the hands of a stranger.
if(TARGET redlock_chaos)
  add_test(NAME chaos_cli COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/test_cli.sh $<TARGET_FILE:redlock_chaos>)
  set_tests_properties(chaos_cli PROPERTIES TIMEOUT 300 LABELS "chaos;waiting" SKIP_RETURN_CODE 77)
endif()
