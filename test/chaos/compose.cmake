# docker-compose.yml and its backend, if Docker can run. docker.sh finds or starts a daemon, or says
# why it cannot.
set(docker ${PROJECT_SOURCE_DIR}/test/compose/docker.sh)

# One after the other, so they come first of all tests. Images are built and containers started,
# which is work: no comparison of experiments runs beside that on two processors.
function(chaos_compose_test name)
  set(environment REDLOCK_TOOL=$<TARGET_FILE:redlock_tool> REDLOCK_COMPOSE_FILE=${PROJECT_SOURCE_DIR}/docker-compose.yml
    REDLOCK_CHAOS_SHIM=$<TARGET_FILE:redlock_chaos_clock>)
  add_test(NAME ${name} COMMAND ${docker} ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 COST 200 PROCESSORS 3 LABELS "chaos;compose;waiting"
    RESOURCE_LOCK docker SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
endfunction()

chaos_compose_test(compose ${PROJECT_SOURCE_DIR}/test/compose/compose.sh)
if(TARGET chaos_backends AND TARGET redlock_chaos_clock)
  add_executable(test_backend_compose test_backend_compose.c node_kit.c)
  target_link_libraries(test_backend_compose PRIVATE redlock_flags chaos_backends redlock_test_support redlock_test
    PkgConfig::HIREDIS)
  chaos_compose_test(test_backend_compose $<TARGET_FILE:test_backend_compose>)
endif()
# Whole experiments in containers.
if(TARGET redlock_chaos)
  chaos_compose_test(chaos_compose_minority_down ${CMAKE_CURRENT_SOURCE_DIR}/experiment.sh $<TARGET_FILE:redlock_chaos>
    clean --availability 1.0 -- minority-down --backend compose --compose-file ${PROJECT_SOURCE_DIR}/docker-compose.yml
    --seconds 12 --seed 1)
  chaos_compose_test(chaos_compose_drop ${CMAKE_CURRENT_SOURCE_DIR}/experiment.sh $<TARGET_FILE:redlock_chaos> clean
    --availability 1.0 --iptables -- --schedule ${CMAKE_CURRENT_SOURCE_DIR}/lost-packets.txt --backend compose
    --compose-file ${PROJECT_SOURCE_DIR}/docker-compose.yml --seconds 9 --seed 1)
  # Containers start beside them, which is work; see chaos_comparison.
  set_tests_properties(chaos_compose_minority_down chaos_compose_drop PROPERTIES PROCESSORS 5
    LABELS "chaos;compose;experiment;waiting")
endif()
