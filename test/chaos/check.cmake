# The checker.
if(TARGET chaos_check)
  chaos_test(test_check_random LIBS chaos_check LABELS unit SOURCES check_world.c kit.c)
endif()
