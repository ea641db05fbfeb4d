#include "tests/support/records.h"

#include "base/error.h"
#include "base/span.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

static void decode(struct test_batch *t, struct sl_span text, const struct sl_decode_options *options)
{
    *t = (struct test_batch){.arena = sl_arena_new(1 << 16), .memory = malloc(text.len ? text.len : 1)};
    sl_error_clear(&t->error);
    if (text.len)
        memcpy(t->memory, text.ptr, text.len);
    t->status = sl_batch_decode(sl_span(t->memory, text.len), t->arena, options, &t->batch, &t->error);
}

void test_decode(struct test_batch *t, struct sl_span text, const char *ttl)
{
    decode(t, text, &(struct sl_decode_options){.ttl_attribute = sl_span_str(ttl), .any_shape = true});
}

void test_decode_event(struct test_batch *t, struct sl_span text)
{
    decode(t, text, &(struct sl_decode_options){.any_shape = false});
}

void test_decode_lines(struct test_batch *t, struct sl_span text, size_t lines_before)
{
    decode(t, text, &(struct sl_decode_options){.any_shape = true, .lines_before = lines_before});
}

void test_batch_clean_up(struct test_batch *t)
{
    sl_arena_destroy(t->arena);
    free(t->memory);
}

const struct sl_record *test_record(struct test_batch *t, const char *event, const char *members,
                                    const char *others)
{
    char *text = NULL;
    if (asprintf(&text, "{'Records':[{'eventName':'%s','dynamodb':{%s}%s}]}", event, members, others) < 0)
        sl_die("out of memory");
    json_quote(text);
    test_decode(t, sl_span_str(text), "ttl");
    free(text);
    if (t->status != SL_OK)
        sl_die("test record: %s", t->error.text);
    return sl_batch_record(&t->batch, 0);
}
