/* What a fuzz entry defines. libFuzzer calls it in `make fuzz`, driver.c in the ordinary test run. A wrong
 * result ends the process, as a crash does. */
#ifndef SL_TESTS_FUZZ_FUZZ_H
#define SL_TESTS_FUZZ_FUZZ_H

#include "base/span.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#endif
