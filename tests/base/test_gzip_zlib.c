/* The tests of gzip on zlib's encoder, whatever the build has: its functions here stand before the library's.
 */
#undef SL_HAVE_LIBDEFLATE
#include "base/gzip.c"
#include "tests/base/test_gzip.c"
