# The checker.
if(TARGET chaos_checks)
  chaos_test(test_check LIBS chaos_checks chaos_record LABELS unit SOURCES check_kit.c kit.c)
  chaos_test(test_check_fence LIBS chaos_checks chaos_record LABELS unit SOURCES check_kit.c kit.c)
  chaos_test(test_check_readers LIBS chaos_checks chaos_record LABELS unit SOURCES check_kit.c kit.c)
  chaos_test(test_porcupine LIBS chaos_checks chaos_record LABELS unit SOURCES check_kit.c kit.c)
  chaos_test(test_check_order LIBS chaos_checks chaos_record LABELS unit SOURCES check_kit.c kit.c)
  chaos_test(test_check_record LIBS chaos_checks chaos_record LABELS unit SOURCES check_kit.c kit.c)
  chaos_test(test_check_random LIBS chaos_checks chaos_record LABELS unit SOURCES check_corrupt.c check_world.c kit.c)
  chaos_test(test_check_figures LIBS chaos_checks chaos_record redlock_scarce_memory LABELS unit
    SOURCES check_world.c short_memory.c kit.c)
endif()
