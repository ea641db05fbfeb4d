/* Any bytes as an AWS answer: errors, tags and members are found within them or not at all. */
#include "base/json.h"
#include "sinks/aws/answer.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static bool is_within(struct sl_span part, struct sl_span whole)
{
    return !part.ptr || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

static void walk_over(struct sl_span json)
{
    struct sl_span name, value;
    struct sl_answer_walk walk = sl_answer_walk(json), same = walk;
    while (sl_answer_step(&walk, &name, &value))
        FUZZ_CHECK(is_within(value, json) && is_within(name, json) && value.len > 0 && walk.is_object);
    while (sl_answer_step(&same, NULL, &value))
        FUZZ_CHECK(is_within(value, json) && value.len > 0 && !same.is_object);
    FUZZ_CHECK(is_within(sl_answer_member(json, SL_LIT("Items")), json));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_http_exchange exchange;
    struct sl_answer_error error;
    sl_http_exchange_init(&exchange);
    exchange.status = 400;
    sl_buffer_add(&exchange.body, data, size);
    sl_buffer_add_char(&exchange.body, '\0');
    exchange.body.len--;
    sl_buffer_add(&exchange.head, data, size < 200 ? size : 200);
    struct sl_span body = sl_buffer_span(&exchange.body);
    sl_answer_read_error(&exchange, &error);
    FUZZ_CHECK(error.code[0] != '\0' && strlen(error.code) < sizeof(error.code));
    FUZZ_CHECK(strlen(error.message) < sizeof(error.message));
    sl_answer_mask(error.message, &body, 1);
    FUZZ_CHECK(strlen(error.message) < sizeof(error.message));
    FUZZ_CHECK(is_within(sl_answer_tag(body, "member"), body));
    FUZZ_CHECK(is_within(sl_http_header(&exchange, "date"), sl_buffer_span(&exchange.head)));
    if (sl_json_check(body, NULL) == SL_OK)
        walk_over(body);
    sl_http_exchange_clean_up(&exchange);
    return 0;
}
