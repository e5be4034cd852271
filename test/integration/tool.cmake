# Tests of the tool: its parts with cmocka, the whole with shell scripts and their own
# redis-servers.
add_executable(tool_parts tool_parts.c)
target_link_libraries(tool_parts PRIVATE redlock_flags redlock_values redlock_static redlock_test Threads::Threads)
set(TOOL_SOURCE_DIR ${PROJECT_SOURCE_DIR}/tools/redlock)
target_include_directories(tool_parts PRIVATE ${TOOL_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_sources(tool_parts PRIVATE ${TOOL_SOURCE_DIR}/text.c ${TOOL_SOURCE_DIR}/json.c
  ${TOOL_SOURCE_DIR}/words.c ${TOOL_SOURCE_DIR}/thread.c ${TOOL_SOURCE_DIR}/locks.c
  ${TOOL_SOURCE_DIR}/userinfo.c)
add_test(NAME tool_parts COMMAND tool_parts)
set_tests_properties(tool_parts PROPERTIES TIMEOUT 300 LABELS "unit;tool")

add_executable(tool_sentry tool_sentry.c ${TOOL_SOURCE_DIR}/sentry.c)
target_link_libraries(tool_sentry PRIVATE redlock_flags redlock_values redlock_test)
target_include_directories(tool_sentry PRIVATE ${TOOL_SOURCE_DIR})
add_test(NAME tool_sentry COMMAND tool_sentry)
set_tests_properties(tool_sentry PROPERTIES TIMEOUT 300 LABELS "unit;tool")

# A terminal for a program that wants one.
add_executable(tool_terminal tool_terminal.c)
target_link_libraries(tool_terminal PRIVATE redlock_flags)

# An exec that takes as long as the test wants.
add_library(slow_exec MODULE slow_exec.c)
target_link_libraries(slow_exec PRIVATE redlock_flags ${CMAKE_DL_LIBS})

# A command that ignores SIGTERM, and says how long it lived.
add_executable(beat beat.c)
target_link_libraries(beat PRIVATE redlock_flags)

set(tool_environment REDLOCK_TOOL=$<TARGET_FILE:redlock_tool> TOOL_TERMINAL=$<TARGET_FILE:tool_terminal>
  SLOW_EXEC=$<TARGET_FILE:slow_exec> REDLOCK_PROXY=$<TARGET_FILE:redlock_proxy_program> BEAT=$<TARGET_FILE:beat>)
foreach(name usage options locks holder change list list_many metrics far clear keep shared bundles permits
    nodes_file reload completion systemd kubernetes run elect loss reach takeover silent blocked faults fence guard
    fencing terminal tls rights writes)
  add_test(NAME tool_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tool_${name}.sh)
  set_tests_properties(tool_${name} PROPERTIES TIMEOUT 300 LABELS "integration;tool;waiting" SKIP_RETURN_CODE 77
    ENVIRONMENT "${tool_environment}")
endforeach()

# It makes a million keys.
set_tests_properties(tool_list_many PROPERTIES TIMEOUT 600)
# The longest. Ten takeovers at a time have a busy process beside them, which is enough of a crowd.
set_tests_properties(tool_elect tool_loss tool_reload PROPERTIES COST 50)
set_tests_properties(tool_takeover PROPERTIES COST 60 PROCESSORS 5)

# A command that is stopped, or not yet forked, while its lease ends. The command also loads the
# preloaded module, so no sanitizers.
add_library(slow_kill MODULE slow_kill.c)
target_compile_definitions(slow_kill PRIVATE _GNU_SOURCE)
target_compile_options(slow_kill PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
add_library(slow_fork MODULE slow_fork.c)
target_compile_definitions(slow_fork PRIVATE _GNU_SOURCE)
target_compile_options(slow_fork PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
target_link_libraries(slow_fork PRIVATE ${CMAKE_DL_LIBS})
add_test(NAME tool_stopped COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tool_stopped.sh)
set_tests_properties(tool_stopped PROPERTIES TIMEOUT 300 LABELS "integration;tool;waiting"
  ENVIRONMENT "${tool_environment};SLOW_KILL=$<TARGET_FILE:slow_kill>;SLOW_FORK=$<TARGET_FILE:slow_fork>")

add_test(NAME demo COMMAND ${PROJECT_SOURCE_DIR}/scripts/demo.sh --no-install --tool $<TARGET_FILE:redlock_tool>)
set_tests_properties(demo PROPERTIES TIMEOUT 300 LABELS "integration;tool;waiting")
