# SETs that arrive late, with the planted bugs compiled into the library. Without each cure, the
# test must see the violation.
redlock_planted_objects(objects core base loop wire result server node group election manager blocking)
redlock_integration_test(test_late SOURCES test_late.c ${objects})
target_link_libraries(test_late PRIVATE planted_core planted_group redlock_libev redlock_tls PkgConfig::HIREDIS
  Threads::Threads)
