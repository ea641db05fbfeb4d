/* Seeded events for benchmarks: orders of a shop as DynamoDB Streams has them, NEW_AND_OLD_IMAGES. */
#ifndef SL_BENCH_SUPPORT_EVENTS_H
#define SL_BENCH_SUPPORT_EVENTS_H

#include "base/buffer.h"

/* Appends one Lambda event of `n` records, about 1,060 bytes each. The same seed makes the same event. */
void bench_event(struct sl_buffer *out, size_t n, uint64_t seed);

/* Seconds on a steady clock. */
double bench_seconds(void);

/* One line: {"figure":...,"value":...,"unit":...}. */
/* How often or how much: `usual`, or `least` with BENCH_SHORT=1, which shows that everything runs and what it
 * prints. Its figures mean nothing. */
size_t bench_size(size_t usual, size_t least);

void bench_figure(const char *name, double value, const char *unit);

#endif
