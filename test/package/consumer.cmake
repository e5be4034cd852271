# A user's project: the same program against both targets of the installed package.
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(redlock ${WANTED_VERSION} REQUIRED COMPONENTS shared static)
foreach(kind shared static)
  add_executable(program_${kind} program.c)
  target_link_libraries(program_${kind} PRIVATE redlock::${kind})
endforeach()
