/* Any bytes as an AWS answer: errors, tags and members are found within them or not at all. */
#include "base/json.h"
#include "aws/refusal.h"
#include "tests/fuzz/fuzz.h"
#include "base/json_walk.h"
#include "aws/xml.h"

#include <string.h>

static bool is_within(struct sl_span part, struct sl_span whole)
{
    return !part.ptr || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

static void walk_over(struct sl_span json)
{
    struct sl_span name, value;
    struct sl_json_walk walk = sl_json_walk(json), same = walk;
    while (sl_json_walk_next(&walk, &name, &value))
        FUZZ_CHECK(is_within(value, json) && is_within(name, json) && value.len > 0 && walk.is_object);
    while (sl_json_walk_next(&same, NULL, &value))
        FUZZ_CHECK(is_within(value, json) && value.len > 0 && !same.is_object);
    FUZZ_CHECK(is_within(sl_json_walk_member(json, SL_LIT("Items")), json));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_http_exchange exchange;
    struct sl_refusal error;
    sl_http_exchange_init(&exchange);
    exchange.status = 400;
    sl_buffer_add(&exchange.body, data, size);
    sl_buffer_add_char(&exchange.body, '\0');
    exchange.body.len--;
    sl_buffer_add(&exchange.head, data, size < 200 ? size : 200);
    struct sl_span body = sl_buffer_span(&exchange.body);
    sl_refusal_read(&exchange, &error);
    FUZZ_CHECK(error.code[0] != '\0' && strlen(error.code) < sizeof(error.code));
    FUZZ_CHECK(strlen(error.message) < sizeof(error.message));
    FUZZ_CHECK(sl_refusal_is_code(sl_span_str(error.code)));
    struct sl_mask mask = {.carried = &body, .n_carried = 1, .path = sl_buffer_span(&exchange.head)};
    char shown[SL_MASK_SHOWN_BYTES];
    sl_mask_secret(&mask, body);
    FUZZ_CHECK(sl_mask_show(&mask, sl_span_str(error.message), shown, sizeof(shown)) == strlen(shown));
    FUZZ_CHECK(sl_mask_show(&mask, body, shown, sizeof(shown)) == strlen(shown));
    FUZZ_CHECK(is_within(sl_xml_tag(body, "member"), body));
    FUZZ_CHECK(!sl_xml_is_document(body, "a") || sl_xml_tag(body, "a").ptr);
    FUZZ_CHECK(is_within(sl_http_header(&exchange, "date"), sl_buffer_span(&exchange.head)));
    if (sl_json_check_loose(body, NULL) == SL_OK)
        walk_over(body);
    sl_http_exchange_clean_up(&exchange);
    return 0;
}
