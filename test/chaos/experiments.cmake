# Whole experiments, short: each named one, and the library's planted bugs, which must be found.
if(NOT TARGET redlock_chaos)
  return()
endif()

# Alone on the machine: what is judged is a system under faults, not one that other tests starve.
function(chaos_experiment name)
  add_test(NAME chaos_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/experiment.sh ${ARGN})
  set_tests_properties(chaos_${name} PROPERTIES TIMEOUT 180 LABELS "chaos;experiment" RUN_SERIAL ON SKIP_RETURN_CODE 77)
endfunction()

set(chaos $<TARGET_FILE:redlock_chaos>)
if(REDLOCK_SANITIZE OR REDLOCK_COVERAGE)
  # All code, under sanitizers; what the others show does not depend on the build.
  chaos_experiment(everything ${chaos} clean --refusals -- everything --seconds 20 --seed 1)
  return()
endif()
chaos_experiment(minority_down ${chaos} clean --availability 1.0 -- minority-down --seconds 12 --seed 1)
chaos_experiment(rolling_restart ${chaos} clean --availability 1.0 -- rolling-restart --seconds 12 --seed 1)
chaos_experiment(majority_pause ${chaos} clean -- majority-pause --seconds 12 --seed 1)
chaos_experiment(split ${chaos} clean -- split --seconds 12 --seed 1)
chaos_experiment(slow_node ${chaos} clean --availability 1.0 -- slow-node --seconds 10 --seed 1)
chaos_experiment(everything ${chaos} clean --refusals -- everything --seconds 20 --seed 1)
chaos_experiment(clock_jump ${chaos} violations --kinds outlived -- clock-jump --seconds 12 --seed 1)
chaos_experiment(memoryless_restarts ${chaos} violations --kinds outlived -- memoryless-restarts --seconds 12 --seed 1)

# The library once more, with its planted bugs.
set(planted_sources)
foreach(layer CORE MANAGER WIRE NODE LOOP ROOT BLOCKING)
  get_directory_property(sources DIRECTORY ${PROJECT_SOURCE_DIR}/src DEFINITION REDLOCK_${layer}_SOURCES)
  list(APPEND planted_sources ${sources})
endforeach()
list(TRANSFORM planted_sources PREPEND ${PROJECT_SOURCE_DIR}/src/)
get_directory_property(conductor DIRECTORY ${PROJECT_SOURCE_DIR}/tools/chaos DEFINITION CHAOS_CONDUCTOR)
get_directory_property(parts DIRECTORY ${PROJECT_SOURCE_DIR}/tools/chaos DEFINITION CHAOS_PARTS)
list(TRANSFORM conductor PREPEND ${PROJECT_SOURCE_DIR}/tools/chaos/)
add_executable(redlock_chaos_planted ${conductor} ${planted_sources} planted.c)
target_compile_definitions(redlock_chaos_planted PRIVATE REDLOCK_PLANTED_BUGS)
if(REDLOCK_HIREDIS_ARRAY_SIZE_T)
  target_compile_definitions(redlock_chaos_planted PRIVATE REDLOCK_HIREDIS_ARRAY_SIZE_T)
endif()
target_include_directories(redlock_chaos_planted PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(redlock_chaos_planted PRIVATE redlock_flags ${parts} redlock_libev PkgConfig::HIREDIS Threads::Threads)

function(chaos_planted name bug)
  chaos_experiment(${name} $<TARGET_FILE:redlock_chaos_planted> ${ARGN})
  set_tests_properties(chaos_${name} PROPERTIES ENVIRONMENT
    "REDLOCK_PLANT=${bug};REDLOCK_CHAOS_SHIM=$<TARGET_FILE:redlock_chaos_clock>")
endfunction()
# A delayed release that compares no token ends the next owner's lock.
set(late --schedule ${CMAKE_CURRENT_SOURCE_DIR}/late-releases.txt --seconds 10 --seed 1)
chaos_planted(planted_none none clean -- ${late})
chaos_planted(planted_release release-any-token violations --kinds outlived -- ${late})
# Clocks that run 0.9 % fast: less than the drift allows for.
set(fast --schedule ${CMAKE_CURRENT_SOURCE_DIR}/fast-clocks.txt --seconds 8 --seed 1 --clients 6 --hold 1500ms)
chaos_planted(planted_none_fast none clean -- ${fast})
chaos_planted(planted_drift no-drift violations --kinds outlived -- ${fast})
