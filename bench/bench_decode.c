/* The decoder on a full event, beside jansson and simdjson on the same bytes in the same run. */
#include "bench/support/events.h"
#include "streams/decode/batch.h"
#include "streams/record.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *bench_simdjson_new(void);
void bench_simdjson_destroy(void *parser);
bool bench_simdjson_dom(void *parser, const char *text, size_t n);
const char *bench_simdjson_kind(void);

#define RECORDS ((size_t)5000)
#define ROUNDS  ((int)bench_size(60, 1))
#define PADDING 64 /* bytes that simdjson needs after the text */

static void decode(struct sl_span text, struct sl_arena *arena, struct sl_batch *batch)
{
    struct sl_error error = {.status = SL_OK};
    if (sl_batch_decode(text, arena, &(struct sl_decode_options){.any_shape = false}, batch, &error) != SL_OK)
        sl_die("bench_decode: %s at byte %zu", error.text, error.offset);
}

static double ours(struct sl_span text, struct sl_arena *arena)
{
    struct sl_batch batch;
    double began = bench_seconds();
    sl_arena_reset(arena);
    decode(text, arena, &batch);
    return bench_seconds() - began;
}

static double of_jansson(struct sl_span text)
{
    double began = bench_seconds();
    json_t *json = json_loadb(text.ptr, text.len, 0, NULL);
    double took = bench_seconds() - began;
    if (!json)
        sl_die("bench_decode: jansson refuses the event");
    json_decref(json);
    return took;
}

static double of_simdjson(struct sl_span text, void *parser)
{
    double began = bench_seconds();
    if (!bench_simdjson_dom(parser, text.ptr, text.len))
        sl_die("bench_decode: simdjson refuses the event");
    return bench_seconds() - began;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* The three take turns, so that a busy neighbour slows all of them; the best round of each counts. */
static void compare_speed(struct sl_span text)
{
    struct sl_arena *arena = sl_arena_new(1 << 20);
    void *parser = bench_simdjson_new();
    double us = 1e9, jansson = 1e9, simdjson = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        us = least(us, ours(text, arena));
        simdjson = least(simdjson, of_simdjson(text, parser));
        if (i % 12 == 0)
            jansson = least(jansson, of_jansson(text));
    }
    bench_figure("decode, event", (double)text.len / 1e6, "MB");
    bench_figure("decode, event", us * 1e3, "ms");
    bench_figure("decode, speed", (double)text.len / us / 1e9, "GB/s");
    bench_figure("decode, jansson json_loadb", jansson * 1e3, "ms");
    bench_figure("decode, times jansson", jansson / us, "x");
    char name[96];
    snprintf(name, sizeof(name), "decode, simdjson DOM (%s)", bench_simdjson_kind());
    bench_figure(name, simdjson * 1e3, "ms");
    bench_figure("decode, times simdjson DOM", simdjson / us, "x");
    bench_simdjson_destroy(parser);
    sl_arena_destroy(arena);
}

static size_t visit(const struct sl_record *r, enum sl_image image)
{
    struct sl_iter iter = sl_value_iter(sl_record_image(r, image));
    struct sl_span name;
    struct sl_value value;
    size_t found = 0;
    while (sl_value_next(&iter, &name, &value))
        found += sl_record_attribute(r, image, name).type == value.type;
    return found;
}

static void memory(struct sl_span text)
{
    struct sl_arena *arena = sl_arena_new(1 << 20);
    struct sl_batch batch;
    decode(text, arena, &batch);
    size_t sum = 0;
    for (size_t i = 0; i < batch.n; i++)
        for (int k = SL_KEYS; k <= SL_OLD_IMAGE; k++)
            sum += sl_record_image(sl_batch_record(&batch, i), (enum sl_image)k).raw.len;
    bench_figure("decode, memory with raw images used", (double)sl_arena_used(arena) / (double)batch.n,
                 "bytes a record");
    for (size_t i = 0; i < batch.n; i++)
        for (int k = SL_KEYS; k <= SL_OLD_IMAGE; k++)
            sum += visit(sl_batch_record(&batch, i), (enum sl_image)k);
    bench_figure("decode, memory with every attribute visited",
                 (double)sl_arena_used(arena) / (double)text.len, "x payload");
    if (sum == 0)
        sl_die("bench_decode: no images");
    sl_arena_destroy(arena);
}

/* Every attribute of a mid-sized image by its name, in turn, over records that are all in the cache. */
static void lookups(struct sl_span text)
{
    static const char *const names[] = {"PK",   "SK",   "status", "total", "pieces",  "ttl", "customer",
                                        "paid", "note", "coupon", "tags",  "address", "none"};
    enum { NAMES = sizeof(names) / sizeof(names[0]), FEW = 100, TIMES = 200 };
    struct sl_arena *arena = sl_arena_new(1 << 20);
    struct sl_batch batch;
    struct sl_span spans[NAMES];
    decode(text, arena, &batch);
    for (int i = 0; i < NAMES; i++)
        spans[i] = sl_span(names[i], strlen(names[i]));
    size_t found = 0;
    double best = 1e9;
    for (int round = 0; round < TIMES; round++) {
        double began = bench_seconds();
        for (size_t i = 0; i < FEW; i++)
            for (int k = 0; k < NAMES; k++)
                found += sl_record_attribute(sl_batch_record(&batch, i), SL_NEW_IMAGE, spans[k]).raw.len;
        best = least(best, bench_seconds() - began);
    }
    if (found == 0)
        sl_die("bench_decode: no attributes");
    bench_figure("decode, attribute by name", best * 1e9 / (FEW * NAMES), "ns");
    sl_arena_destroy(arena);
}

int main(void)
{
    struct sl_buffer event;
    sl_buffer_init(&event, 1 << 28);
    bench_event(&event, RECORDS, 20261120);
    if (!sl_buffer_reserve(&event, PADDING))
        sl_die("bench_decode: the event is too large");
    compare_speed(sl_buffer_span(&event));
    memory(sl_buffer_span(&event));
    lookups(sl_buffer_span(&event));
    sl_buffer_clean_up(&event);
    return 0;
}
