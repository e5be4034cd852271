/* The page's style sheet and script, compiled in by report.cmake. */
#ifndef CHAOS_REPORT_ASSETS_H
#define CHAOS_REPORT_ASSETS_H

#include <stddef.h>

extern const unsigned char chaos_page_css[];
extern const size_t chaos_page_css_size;
extern const unsigned char chaos_page_js[];
extern const size_t chaos_page_js_size;

#endif
