# Embeds Lua scripts as a C table, with the SHA1 that identifies each on a server.

# redlock_read_script(OUT PATH) reads a script. `-- include parts/holder.lua` inserts that file of
# src/wire/scripts.
function(redlock_read_script out path)
  set(folder ${PROJECT_SOURCE_DIR}/src/wire/scripts)
  file(READ ${path} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  while(text MATCHES "-- include ([a-z_/]+[.]lua)")
    file(READ ${folder}/${CMAKE_MATCH_1} part)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${CMAKE_MATCH_1})
    string(REPLACE "${CMAKE_MATCH_0}" "${part}" text "${text}")
  endwhile()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# redlock_embed_scripts(OUT TABLE HEADER PREFIX PATH...) writes OUT, which defines TABLE: an array
# of PREFIX_COUNT struct redlock_script, declared in HEADER. The script of fence.lua is at index
# PREFIX_FENCE. Comments, indentation, and blanks around operators are removed, because nodes get
# the scripts over the network.
function(redlock_embed_scripts out table header prefix)
  set(rows "")
  foreach(path IN LISTS ARGN)
    redlock_read_script(text ${path})
    string(REGEX REPLACE "\n[ ]*--[^\n]*" "" text "\n${text}")
    string(REGEX REPLACE " *(,|[+=~<>]+|[.][.]) *" "\\1" text "${text}")
    string(REGEX REPLACE "[ \n]*\n[ \n]*" "\n" text "${text}")
    string(STRIP "${text}" text)
    if(text MATCHES "--|\"|\\\\")
      message(FATAL_ERROR "${path}: put comments on lines of their own, and strings in single quotes without escapes")
    endif()
    string(SHA1 sha1 "${text}")
    string(LENGTH "${text}" size)
    string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
    get_filename_component(name ${path} NAME_WE)
    string(TOUPPER ${prefix}_${name} index)
    string(APPEND rows "    [${index}] =\n    {\"${text}\",\n     ${size}, \"${sha1}\"},\n")
  endforeach()
  set(head "/* Made of Lua by cmake/Scripts.cmake. */\n#include \"${header}\"\n\n")
  # C11 asks for 4095 characters at least. Our compilers have no limit.
  string(APPEND head "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n")
  file(CONFIGURE OUTPUT ${out} @ONLY
    CONTENT "${head}const struct redlock_script ${table}[${prefix}_COUNT] = {\n${rows}};\n")
endfunction()
