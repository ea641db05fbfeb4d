/* What the leak checker (LEAKS in the Makefile) asks a program. */
#include "tests/support/leaks.h"

static bool are_meant;

int __lsan_is_turned_off(void);
const char *__lsan_default_options(void);

void leaks_are_meant(void)
{
    are_meant = true;
}

__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
    return are_meant;
}

/* Crashes are the tests' own matter. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0";
}
