# Events written, joined, and read.
if(TARGET chaos_history)
  chaos_test(test_history LIBS chaos_history LABELS unit SOURCES history_lines.c)
  chaos_test(test_history_hard LIBS chaos_history redlock_scarce_memory LABELS unit
    SOURCES history_lines.c short_memory.c)
  chaos_test(test_merge LIBS chaos_history redlock_scarce_memory LABELS unit SOURCES short_memory.c)
endif()
