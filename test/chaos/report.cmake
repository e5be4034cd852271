# The page: what it says, that it is escaped and small, and how it behaves in a browser.
if(TARGET chaos_report)
  chaos_test(test_report LIBS chaos_report chaos_record PkgConfig::JANSSON redlock_scarce_memory LABELS unit
    SOURCES report_runs.c short_memory.c kit.c)
  chaos_test(test_report_parts LIBS chaos_report chaos_record PkgConfig::JANSSON LABELS unit SOURCES kit.c)
  chaos_test(test_comparison LIBS chaos_report chaos_record PkgConfig::JANSSON LABELS unit SOURCES trio.c kit.c)
  add_executable(report_pages report_pages.c report_runs.c trio.c kit.c)
  target_link_libraries(report_pages PRIVATE redlock_flags chaos_report chaos_record)
  # Whoever wrote the page, the browser is the same; test_report has the code under sanitizers.
  if(NOT REDLOCK_SANITIZE)
    add_test(NAME report_browser COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/report_browser.sh $<TARGET_FILE:report_pages>)
    set_tests_properties(report_browser PROPERTIES TIMEOUT 600 LABELS chaos SKIP_RETURN_CODE 77)
  endif()
endif()
