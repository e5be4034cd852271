# Events written, joined, and read.
if(TARGET chaos_history)
  foreach(theme history history_hard merge)
    chaos_test(test_${theme} LIBS chaos_history LABELS unit)
  endforeach()
  # Memory that runs out.
  target_link_options(test_history_hard PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup)
  target_link_options(test_merge PRIVATE -Wl,--wrap=realloc)
endif()
