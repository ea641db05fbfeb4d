/* gzip on what archives hold: stream records as they came. */
#include "base/gzip.h"
#include "bench/support/events.h"

#include <stdio.h>

#define RECORDS 5000

static void measure(struct sl_span text, int level)
{
    struct sl_buffer packed, back;
    char name[64];
    sl_buffer_init(&packed, SIZE_MAX / 2);
    sl_buffer_init(&back, SIZE_MAX / 2);
    double best = 1e9, again = 1e9;
    for (int i = 0; i < 5; i++) {
        sl_buffer_reset(&packed);
        double began = bench_seconds();
        sl_gzip_add(&packed, &text, 1, level);
        double half = bench_seconds();
        sl_buffer_reset(&back);
        if (sl_gzip_expand(sl_buffer_span(&packed), &back, NULL) != SL_OK)
            sl_die("bench_gzip: the own output does not expand");
        double end = bench_seconds();
        best = half - began < best ? half - began : best;
        again = end - half < again ? end - half : again;
    }
    snprintf(name, sizeof(name), "gzip level %d, compress", level);
    bench_figure(name, (double)text.len / best / 1e6, "MB/s");
    snprintf(name, sizeof(name), "gzip level %d, ratio", level);
    bench_figure(name, (double)text.len / (double)packed.len, "x");
    snprintf(name, sizeof(name), "gzip level %d, expand", level);
    bench_figure(name, (double)text.len / again / 1e6, "MB/s");
    sl_buffer_clean_up(&packed);
    sl_buffer_clean_up(&back);
}

int main(void)
{
    struct sl_buffer event;
    sl_buffer_init(&event, SIZE_MAX / 2);
    bench_event(&event, RECORDS, 1);
    measure(sl_buffer_span(&event), 1);
    measure(sl_buffer_span(&event), 6);
    double began = bench_seconds();
    uint32_t crc = sl_crc32(0, sl_buffer_span(&event));
    double took = bench_seconds() - began;
    bench_figure(crc ? "crc-32" : "crc-32 of zero", (double)event.len / took / 1e6, "MB/s");
    sl_buffer_clean_up(&event);
    return 0;
}
