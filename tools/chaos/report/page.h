/* The page as the build has put it together from page.html, page.css and page_*.js. */
#ifndef CHAOS_REPORT_PAGE_H
#define CHAOS_REPORT_PAGE_H

/* Terminated. {{title}}, {{body}} and {{data}} stand in it, in this order, once each. */
extern const unsigned char chaos_page[];

#endif
