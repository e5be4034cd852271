# The link proxy: its pipe alone, and its process between sockets of the test's own.
if(TARGET chaos_links)
  chaos_test(test_proxy_pipe LIBS chaos_links redlock_libev LABELS unit TIMEOUT 60)
  chaos_test(test_links LIBS chaos_links redlock_libev LABELS unit TIMEOUT 180 SOURCES ends.c)
  chaos_test(test_links_process LIBS chaos_links redlock_libev LABELS unit TIMEOUT 180 SOURCES ends.c)
  chaos_test(test_links_random LIBS chaos_links redlock_libev LABELS unit TIMEOUT 120 SOURCES ends.c)
endif()
