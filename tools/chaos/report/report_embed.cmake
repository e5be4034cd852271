# cmake -DOUT=report_assets.c -DCSS=report_page.css -DJS=report_page.js -P report_embed.cmake: files as C arrays.
set(text "/* Made from report_page.css and report_page.js by report_embed.cmake. */\n#include \"report/report_assets.h\"\n")
foreach(kind IN ITEMS CSS JS)
  string(TOLOWER ${kind} name)
  file(READ ${${kind}} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND text "\nconst unsigned char chaos_page_${name}[] = {${bytes}};\nconst size_t chaos_page_${name}_size = sizeof chaos_page_${name};\n")
endforeach()
file(WRITE ${OUT} "${text}")
