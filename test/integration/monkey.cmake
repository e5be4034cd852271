# The hostile monkey: fixed seeds, and one that is drawn and printed.
add_executable(monkey monkey/main.c monkey/acts.c monkey/faults.c monkey/ledger.c)
target_include_directories(monkey PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/monkey ${PROJECT_SOURCE_DIR}/test/sim)
target_link_libraries(monkey PRIVATE redlock_test_support redlock_test_pki)
foreach(mode hostile honest)
  add_test(NAME monkey_${mode} COMMAND monkey --mode ${mode} --seed 1 --seconds 8)
  add_test(NAME monkey_${mode}_drawn COMMAND monkey --mode ${mode} --seconds 4)
  set_tests_properties(monkey_${mode} monkey_${mode}_drawn PROPERTIES TIMEOUT 300 LABELS "integration;waiting")
endforeach()
# Below TLS the faults hit records. TLS finds forged bytes by itself, so only honest nodes.
if(REDLOCK_WITH_TLS)
  add_test(NAME monkey_tls COMMAND monkey --mode honest --tls --seed 1 --seconds 8)
  set_tests_properties(monkey_tls PROPERTIES TIMEOUT 300 LABELS "integration;waiting" SKIP_RETURN_CODE 77)
endif()
