#ifndef SL_TESTS_SUPPORT_LEAKS_H
#define SL_TESTS_SUPPORT_LEAKS_H

#include <stdbool.h>

/* This process may end in the middle of anything (a fork that runs a verb, or handlers which call exit): the
 * leak checker does not look at it. */
void leaks_are_meant(void);

#endif
