# cmake -DOUT=FILE.c -DSOURCE=FILE -DNAME=NAME [-DSCRIPTS=page_*.js…] -P embed.cmake: a text as a C
# array; a page with the style sheet and the scripts beside it.
file(READ ${SOURCE} text)
get_filename_component(folder ${SOURCE} DIRECTORY)
if(SCRIPTS)
  file(READ ${folder}/page.css css)
  set(js "")
  foreach(script IN LISTS SCRIPTS)
    file(READ ${folder}/${script} one)
    string(APPEND js "${one}")
  endforeach()
  string(REPLACE "{{css}}" "${css}" text "${text}")
  string(REPLACE "{{js}}" "${js}" text "${text}")
endif()
string(HEX "${text}" bytes)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "/* Made by embed.cmake. */
extern const unsigned char ${NAME}[];
const unsigned char ${NAME}[] = {${bytes}0};
")
