# What `cmake --install` puts where: libraries, headers, programs, documentation, redlock.pc, the
# CMake package, man pages.
include(CMakePackageConfigHelpers)

foreach(kind IN LISTS REDLOCK_KINDS)
  string(SUBSTRING ${kind} 0 1 initial)
  string(TOUPPER ${initial} initial)
  string(SUBSTRING ${kind} 1 -1 rest)
  install(TARGETS redlock_${kind} EXPORT redlock_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT redlock_${kind} NAMESPACE redlock:: FILE redlock${initial}${rest}Targets.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/redlock)
endforeach()
install(DIRECTORY include/redlock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
  PATTERN "*.hpp")
foreach(program redlock_tool redlock_chaos)
  if(TARGET ${program})
    install(TARGETS ${program})
  endif()
endforeach()
if(TARGET redlock_chaos_clock)
  install(TARGETS redlock_chaos_clock LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/redlock)
endif()

# Installed documents have the same layout as the source tree, so links between them work. Only
# links to the headers must change.
set(doc ${CMAKE_INSTALL_DOCDIR})
if(NOT PROJECT_IS_TOP_LEVEL)
  set(doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/redlock)
endif()
get_filename_component(from ${doc} ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH headers ${from} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
file(READ README.md readme)
string(REPLACE "](include/" "](${headers}/" readme "${readme}")
file(WRITE ${PROJECT_BINARY_DIR}/install/README.md "${readme}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS README.md)
install(FILES ${PROJECT_BINARY_DIR}/install/README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION ${doc})
install(DIRECTORY docs/ DESTINATION ${doc}/docs FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png"
  PATTERN man EXCLUDE PATTERN examples EXCLUDE)
install(DIRECTORY docs/examples DESTINATION ${doc}/docs USE_SOURCE_PERMISSIONS)
install(DIRECTORY spec DESTINATION ${doc} USE_SOURCE_PERMISSIONS PATTERN *.jar EXCLUDE PATTERN states EXCLUDE)
foreach(file bench/README.md bench/instructions.txt bindings/python/README.md tools/chaos/README.md
  tools/proxy/README.md test/mutants/explained.txt test/porcupine/README.md test/sim/README.md)
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${file} DESTINATION ${doc}/${folder})
endforeach()

# pkg-config can relocate paths relative to its prefix. Absolute directories stay as they are.
foreach(dir LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(REDLOCK_PC_${dir} "${CMAKE_INSTALL_${dir}}")
  else()
    set(REDLOCK_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
# Without a shared library, every program needs what the static library needs.
if("shared" IN_LIST REDLOCK_KINDS)
  set(REDLOCK_PC_PRIVATE .private)
else()
  set(REDLOCK_PC_LIBS " -lev -lm -pthread")
endif()
if(REDLOCK_WITH_TLS)
  set(REDLOCK_PC_TLS ", openssl >= 1.1.1")
endif()
configure_file(cmake/redlock.pc.in ${PROJECT_BINARY_DIR}/redlock.pc @ONLY)
# `cmake --install --prefix` may change the prefix after this file was written.
install(CODE "
  file(READ \"${PROJECT_BINARY_DIR}/redlock.pc\" pc)
  string(REGEX REPLACE \"^prefix=[^\\n]*\" \"prefix=\${CMAKE_INSTALL_PREFIX}\" pc \"\${pc}\")
  file(WRITE \"${PROJECT_BINARY_DIR}/install/redlock.pc\" \"\${pc}\")")
install(FILES ${PROJECT_BINARY_DIR}/install/redlock.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

configure_package_config_file(cmake/redlockConfig.cmake.in ${PROJECT_BINARY_DIR}/redlockConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/redlock)
# Before 1.0, a minor version may break programs.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/redlockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/redlockConfig.cmake ${PROJECT_BINARY_DIR}/redlockConfigVersion.cmake
  cmake/FindLibev.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/redlock)

if(TARGET redlock_tool)
  install(FILES packaging/completions/redlock.bash RENAME redlock
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
  install(FILES packaging/completions/_redlock DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions)
  install(FILES packaging/completions/redlock.fish DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d)
endif()

foreach(section 1 3 7)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  if(NOT REDLOCK_WITH_CHAOS)
    list(FILTER pages EXCLUDE REGEX redlock-chaos)
  endif()
  if(pages)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endif()
endforeach()
