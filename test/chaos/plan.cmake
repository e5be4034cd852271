# Faults, schedules, named experiments: pure. (test_schedule is the library's.)
if(TARGET chaos_faults)
  foreach(theme fault fault_schedule experiments)
    chaos_test(test_${theme} LIBS chaos_faults LABELS unit)
  endforeach()
  # Memory that runs out.
  target_link_options(test_fault_schedule PRIVATE -Wl,--wrap=malloc,--wrap=realloc)
  target_link_options(test_experiments PRIVATE -Wl,--wrap=realloc)
endif()
