# Events written, joined, and read.
if(TARGET chaos_history)
  chaos_test(test_history LIBS chaos_history LABELS unit SOURCES history_lines.c)
  chaos_test(test_history_hard LIBS chaos_history LABELS unit SOURCES history_lines.c short_memory.c)
  chaos_test(test_merge LIBS chaos_history LABELS unit SOURCES short_memory.c)
  # Memory that runs out.
  target_link_options(test_history_hard PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
  target_link_options(test_merge PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
endif()
