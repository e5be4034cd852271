# The page's style sheet and script, compiled into chaos_report.
set(report ${CMAKE_CURRENT_SOURCE_DIR}/report)
set(assets ${CMAKE_CURRENT_BINARY_DIR}/report_assets.c)
add_custom_command(
  OUTPUT ${assets}
  COMMAND ${CMAKE_COMMAND} -DOUT=${assets} -DCSS=${report}/report_page.css
          -DJS=${report}/report_page.js -P ${report}/report_embed.cmake
  DEPENDS ${report}/report_page.css ${report}/report_page.js ${report}/report_embed.cmake
  VERBATIM)
target_sources(chaos_report PRIVATE ${assets})
# It asks what judges for names and healthy spans, and what plans for the kinds of faults.
target_link_libraries(chaos_report PUBLIC chaos_checks chaos_faults)
