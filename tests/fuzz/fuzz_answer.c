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
    struct sl_answer_walk walk = sl_answer_walk(json);
    struct sl_span name = {NULL, 0}, value;
    bool is_object = memchr("{", *(json.ptr + strspn(json.ptr, " \t\r\n")), 1) != NULL;
    while (sl_answer_step(&walk, is_object ? &name : NULL, &value))
        FUZZ_CHECK(is_within(value, json) && is_within(name, json) && value.len > 0);
    FUZZ_CHECK(is_within(sl_answer_member(json, SL_LIT("Items")), json) || !is_object);
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
    if (sl_json_check(body, NULL) == SL_OK && sl_answer_member(body, SL_LIT("")).len <= size)
        walk_over(body);
    sl_http_exchange_clean_up(&exchange);
    return 0;
}
