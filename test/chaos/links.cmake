# The links through the fault proxy, between sockets of the test's own.
if(TARGET chaos_links)
  chaos_test(test_links LIBS chaos_links redlock_test_support LABELS unit waiting TIMEOUT 300 SOURCES ends.c)
  chaos_test(test_links_process LIBS chaos_links redlock_test_support LABELS unit waiting TIMEOUT 300 SOURCES ends.c)
  chaos_test(test_links_random LIBS chaos_links redlock_test_support LABELS unit waiting TIMEOUT 300 SOURCES ends.c)
endif()
