# cmake -DOUT=page.c -DSOURCE=DIRECTORY -DSCRIPTS=page_*.js… -P embed.cmake: the page as a C array.
file(READ ${SOURCE}/page.html page)
file(READ ${SOURCE}/page.css css)
set(js "")
foreach(script IN LISTS SCRIPTS)
  file(READ ${SOURCE}/${script} text)
  string(APPEND js "${text}")
endforeach()
string(REPLACE "{{css}}" "${css}" page "${page}")
string(REPLACE "{{js}}" "${js}" page "${page}")
string(HEX "${page}" bytes)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "/* Made by embed.cmake. */
#include \"report/parts.h\"

const unsigned char chaos_page[] = {${bytes}0};
")
