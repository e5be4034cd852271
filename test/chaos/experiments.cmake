# Whole experiments, short: each named one, and the library's planted bugs, which must be found.
if(NOT TARGET redlock_chaos)
  return()
endif()

# They mostly wait, so they run beside each other and beside other tests.
function(chaos_experiment name)
  add_test(NAME chaos_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/experiment.sh ${ARGN})
  set_tests_properties(chaos_${name} PROPERTIES TIMEOUT 300 COST 20 LABELS "chaos;experiment;waiting"
    SKIP_RETURN_CODE 77 ENVIRONMENT "REDLOCK_PORCUPINE=${REDLOCK_PORCUPINE}")
endfunction()

set(chaos $<TARGET_FILE:redlock_chaos>)
if(REDLOCK_SANITIZE OR REDLOCK_COVERAGE)
  # All code, under sanitizers; what the others show does not depend on the build.
  chaos_experiment(everything ${chaos} clean --refusals -- everything --readers 50 --seconds 20 --seed 1)
  if(REDLOCK_WITH_TLS)
    chaos_experiment(everything_tls ${chaos} clean --refusals -- everything --tls --clients 6 --seconds 15 --seed 1)
  endif()
  return()
endif()
chaos_experiment(minority_down ${chaos} clean --availability 1.0 -- minority-down --seconds 12 --seed 1)
chaos_experiment(rolling_restart ${chaos} clean --availability 1.0 -- rolling-restart --seconds 12 --seed 1)
chaos_experiment(majority_pause ${chaos} clean -- majority-pause --seconds 12 --seed 1)
chaos_experiment(split ${chaos} clean -- split --seconds 12 --seed 1)
chaos_experiment(slow_node ${chaos} clean --availability 1.0 -- slow-node --seconds 10 --seed 1)
# No acquire may fail, so no crowd may slow the nodes down.
set_tests_properties(chaos_minority_down chaos_rolling_restart chaos_slow_node PROPERTIES COST 90 PROCESSORS 8)
chaos_experiment(queue ${chaos} clean -- queue --seconds 20 --seed 1)
chaos_experiment(queue_protected ${chaos} clean -- queue --protect --seconds 12 --seed 1)
chaos_experiment(readers ${chaos} clean -- readers --seconds 20 --seed 1)
chaos_experiment(readers_protected ${chaos} clean -- readers --protect --seconds 12 --seed 1)
# Nodes whose clocks jump forget who reads: somebody writes, or comes to read beside a writer.
chaos_experiment(readers_clock_jump ${chaos} violations --kinds overlap -- clock-jump --readers 75 --seconds 10 --seed 1
  --clients 40 --resources 10)
chaos_experiment(change ${chaos} clean --refusals --steps 4 -- change --seconds 24 --seed 1)
chaos_experiment(change_protected ${chaos} clean --refusals --steps 4 -- change --protect --seconds 24 --seed 1)
# Without the step in the middle two clients hold one lock, and the checker must see it.
chaos_experiment(change_at_once ${chaos} violations --kinds overlap -- change-at-once --seconds 10 --seed 1)
chaos_experiment(everything ${chaos} clean --refusals -- everything --seconds 20 --seed 1)
if(REDLOCK_WITH_TLS)
  chaos_experiment(everything_tls ${chaos} clean --refusals -- everything --tls --clients 6 --seconds 15 --seed 1)
endif()
chaos_experiment(everything_protected ${chaos} clean --refusals -- everything --protect --seconds 12 --seed 1)
# The guards keep nodes from voting that come back without locks and queues, while all wait.
chaos_experiment(queue_forgetful ${chaos} clean -- --schedule ${CMAKE_CURRENT_SOURCE_DIR}/forgetful-queue.txt
  --persistence none --protect --resources 1 --hold 10ms --seconds 12 --seed 1)
# Faults that break Redlock's assumptions: violations without protection, none with it. More clients
# and resources than by default make violations likely in a short run, and so do several bursts of
# restarts: on a loaded machine the first may come before the clients hold much.
function(chaos_comparison name)
  add_test(NAME chaos_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/comparison.sh ${chaos} ${ARGN} --seed 1 --clients 40
    --resources 20)
  # The longest come first, so that nothing has to wait for them in the end. 40 clients, five
  # servers and their links need the processors of a small machine: beside 20 busy processes no
  # request is answered within the node timeout, and nobody gets a lock.
  set_tests_properties(chaos_${name} PROPERTIES TIMEOUT 300 COST 100 PROCESSORS 8 LABELS "chaos;experiment;waiting"
    SKIP_RETURN_CODE 77 ENVIRONMENT "REDLOCK_PORCUPINE=${REDLOCK_PORCUPINE}")
endfunction()
chaos_comparison(clock_jump --refusals clock-jump --seconds 12)
chaos_comparison(memoryless_restarts memoryless-restarts --seconds 12)

# The library once more, with its planted bugs.
redlock_planted_objects(objects core base loop wire result server node group election manager blocking)
get_directory_property(conductor DIRECTORY ${PROJECT_SOURCE_DIR}/tools/chaos DEFINITION CHAOS_CONDUCTOR)
get_directory_property(parts DIRECTORY ${PROJECT_SOURCE_DIR}/tools/chaos DEFINITION CHAOS_PARTS)
list(TRANSFORM conductor PREPEND ${PROJECT_SOURCE_DIR}/tools/chaos/)
add_executable(redlock_chaos_planted ${conductor} ${objects} planted.c)
target_link_libraries(redlock_chaos_planted PRIVATE planted_core planted_group redlock_flags ${parts} redlock_libev
  redlock_tls PkgConfig::HIREDIS Threads::Threads)

target_link_options(redlock_chaos_planted PRIVATE -Wl,--wrap=redlock_waiting_place,--wrap=chaos_resource_write)

function(chaos_planted name bug)
  chaos_experiment(${name} $<TARGET_FILE:redlock_chaos_planted> ${ARGN})
  set_tests_properties(chaos_${name} PROPERTIES ENVIRONMENT
    "REDLOCK_PLANT=${bug};REDLOCK_CHAOS_SHIM=$<TARGET_FILE:redlock_chaos_clock>;REDLOCK_PORCUPINE=${REDLOCK_PORCUPINE}")
endfunction()
# A delayed release that compares no token ends the next owner's lock.
set(late --schedule ${CMAKE_CURRENT_SOURCE_DIR}/late-releases.txt --seconds 10 --seed 1)
chaos_planted(planted_none none clean -- ${late})
chaos_planted(planted_release release-any-token violations --kinds outlived -- ${late})
# Clocks that run 0.9 % fast: less than the drift allows for.
# Long holds make few operations a client. Many clients make enough, however loaded the machine is.
set(fast --schedule ${CMAKE_CURRENT_SOURCE_DIR}/fast-clocks.txt --seconds 8 --seed 1 --clients 24 --resources 24 --hold
  1500ms)
chaos_planted(planted_none_fast none clean -- ${fast})
chaos_planted(planted_drift no-drift violations --kinds outlived -- ${fast})
# Nodes that forgot everything vote again before what they had granted is over.
set(forgetful --schedule ${CMAKE_CURRENT_SOURCE_DIR}/forgetful-restarts.txt --persistence none --protect --seconds 14
  --seed 1
  --clients 40 --resources 12 --ttl 6s --hold 5900ms --think 20ms)
chaos_planted(planted_none_forgetful none clean -- ${forgetful})
chaos_planted(planted_quarantine quarantine-short violations --kinds overlap -- ${forgetful})
# Beside many others, 40 clients get too few locks for the bugs to show.
set_tests_properties(chaos_planted_none_forgetful chaos_planted_quarantine chaos_planted_drift chaos_change_at_once
  chaos_readers_clock_jump PROPERTIES COST 90 PROCESSORS 8)
# A release lets a writer in while others read.
chaos_planted(planted_readers shared-writer-joins violations --kinds "overlap:,to read,changed:" --
  --schedule ${CMAKE_CURRENT_SOURCE_DIR}/calm.txt --readers 75 --resources 1 --hold 50ms --seconds 4 --seed 1)
# Each node counts by itself: two quorums may come to one number.
set(fenced minority-down --fencing --seconds 8 --seed 1)
chaos_planted(planted_none_fenced none clean -- ${fenced})
chaos_planted(planted_fence fence-incr violations --kinds "fencing token" -- ${fenced})
# Clients that work on after their lease has ended.
set(working --schedule ${CMAKE_CURRENT_SOURCE_DIR}/calm.txt --ttl 1s --seconds 10 --seed 1)
chaos_planted(planted_none_working none clean -- ${working})
chaos_planted(planted_works_on works-on violations --kinds "past its lease" -- ${working})
# Queues that serve who came last. Without faults, nearly all of the order can be judged.
set(line --schedule ${CMAKE_CURRENT_SOURCE_DIR}/calm.txt --resources 1 --hold 10ms --seconds 10 --seed 1)
chaos_planted(planted_none_line none clean -- ${line})
chaos_planted(planted_line last-comes-first violations --kinds order: -- ${line})
