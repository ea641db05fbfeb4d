/* gzip on what archives hold: lines of stream records as DynamoDB has them, seeded. One JSON line a figure.
 */
#include "base/clock.h"
#include "base/gzip.h"

#include <stdio.h>
#include <time.h>

/* One slice's worth of records. */
#define TEXT_BYTES ((size_t)5 << 20)

static void make_lines(struct sl_buffer *b)
{
    uint64_t seed = 20261120;
    while (b->len < TEXT_BYTES) {
        unsigned long long r = sl_random_step(&seed), q = sl_random_step(&seed);
        sl_buffer_printf(
            b,
            "{\"eventID\":\"%016llx%016llx\",\"eventName\":\"MODIFY\",\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":"
            "\"CUSTOMER#%llu\"},\"SK\":{\"S\":\"ORDER#%08llu\"}},\"NewImage\":{\"status\":{\"S\":\"%s\"},"
            "\"total\":{\"N\":\"%llu.%02llu\"}},\"SequenceNumber\":\"%llu\",\"SizeBytes\":%llu}}\n",
            r, q, r % 5000, q % 100000000, q & 1 ? "SHIPPED" : "PLACED", r % 900, q % 100, r, q % 400);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void figure(const char *name, double value, const char *unit)
{
    printf("{\"figure\":\"%s\",\"value\":%.2f,\"unit\":\"%s\"}\n", name, value, unit);
}

static void measure(struct sl_span text, int level)
{
    struct sl_buffer packed, back;
    char name[64];
    sl_buffer_init(&packed, SIZE_MAX / 2);
    sl_buffer_init(&back, SIZE_MAX / 2);
    double best = 1e9, again = 1e9;
    for (int i = 0; i < 5; i++) {
        sl_buffer_reset(&packed);
        double began = seconds();
        sl_gzip_add(&packed, &text, 1, level);
        double half = seconds();
        sl_buffer_reset(&back);
        if (sl_gzip_expand(sl_buffer_span(&packed), &back, NULL) != SL_OK)
            sl_die("bench_gzip: the own output does not expand");
        double end = seconds();
        best = half - began < best ? half - began : best;
        again = end - half < again ? end - half : again;
    }
    snprintf(name, sizeof(name), "gzip level %d, compress", level);
    figure(name, (double)text.len / best / 1e6, "MB/s");
    snprintf(name, sizeof(name), "gzip level %d, ratio", level);
    figure(name, (double)text.len / (double)packed.len, "x");
    snprintf(name, sizeof(name), "gzip level %d, expand", level);
    figure(name, (double)text.len / again / 1e6, "MB/s");
    sl_buffer_clean_up(&packed);
    sl_buffer_clean_up(&back);
}

int main(void)
{
    struct sl_buffer lines;
    sl_buffer_init(&lines, 2 * TEXT_BYTES);
    make_lines(&lines);
    measure(sl_buffer_span(&lines), 1);
    measure(sl_buffer_span(&lines), 6);
    double began = seconds();
    uint32_t crc = sl_crc32(0, sl_buffer_span(&lines));
    double took = seconds() - began;
    figure(crc ? "crc-32" : "crc-32 of zero", (double)lines.len / took / 1e6, "MB/s");
    sl_buffer_clean_up(&lines);
    return 0;
}
