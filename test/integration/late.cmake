# SETs that arrive late, with the planted bugs compiled into the library. Without each cure, the
# test must see the violation.
redlock_planted_sources(planted_sources CORE BASE LOOP WIRE RESULT NODE GROUP ELECTION MANAGER BLOCKING)
redlock_integration_test(test_late SOURCES test_late.c ${planted_sources})
# As src/blocking/with.c has it in the library.
target_compile_options(test_late PRIVATE -fexceptions)
target_compile_definitions(test_late PRIVATE REDLOCK_PLANTED_BUGS)
target_include_directories(test_late PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(test_late PRIVATE planted_core planted_group redlock_libev redlock_tls PkgConfig::HIREDIS
  Threads::Threads)
