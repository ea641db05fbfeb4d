/* The same without vector instructions: the scanner here stands before the library's. */
#define SL_PORTABLE
#include "base/json.c"
#include "tests/base/test_json_skip.c"
