/* Records made of items: one payload for a page, decoded once. */
#include "data/verify/items.h"

#include "base/json.h"
#include "base/json_write.h"
#include "streams/value.h"

/* A page of a scan has 1 MB of items, which is less than 6 MB of JSON; several are made into one payload. */
#define PAYLOAD_BYTES ((size_t)1 << 30)

/* The values of the key's attributes; false: one is missing. No item has an attribute twice. */
static bool find_key(struct sl_span item, const struct sl_items_keys *keys, struct sl_value values[2])
{
    struct sl_iter iter = sl_value_iter((struct sl_value){.type = SL_M, .raw = item});
    struct sl_span name;
    struct sl_value value;
    size_t found = 0;
    while (found < keys->n && sl_value_next(&iter, &name, &value))
        for (size_t i = 0; i < keys->n; i++)
            if (sl_json_text_is(name, keys->names[i])) {
                values[i] = value;
                found++;
            }
    return found == keys->n;
}

/* {"PK":...,"SK":...} of the item. */
static enum sl_status key_of_item(struct sl_items_entry *entry, const struct sl_items_keys *keys,
                                  struct sl_arena *arena, struct sl_error *error)
{
    struct sl_value values[2];
    struct sl_buffer text;
    if (!find_key(entry->item, keys, values))
        return sl_fail(error, SL_REJECT, "NoKey", "an item of the source has no attribute %.*s%s%.*s",
                       SL_ARG(keys->names[0]), keys->n > 1 ? ", or no " : "", SL_ARG(keys->names[1]));
    sl_buffer_init_in(&text, arena, PAYLOAD_BYTES);
    sl_buffer_reserve(&text, 96);
    for (size_t i = 0; i < keys->n; i++) {
        sl_buffer_add_str(&text, i ? ",\"" : "{\"");
        sl_json_add_exact(&text, keys->names[i]);
        sl_buffer_add_str(&text, "\":");
        char *at = sl_buffer_reserve(&text, values[i].raw.len + SL_VALUE_JSON_BYTES);
        text.len += (size_t)(sl_value_put(at, values[i]) - at);
    }
    sl_buffer_add_char(&text, '}');
    entry->key = sl_buffer_span(&text);
    return SL_OK;
}

static void add_record(struct sl_buffer *b, const struct sl_items_entry *entry, struct sl_span arn)
{
    sl_buffer_add_str(b, entry->item.ptr ? "{\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":"
                                         : "{\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":");
    sl_buffer_add_span(b, entry->key);
    if (entry->item.ptr) {
        sl_buffer_add_str(b, ",\"NewImage\":");
        sl_buffer_add_span(b, entry->item);
    }
    sl_buffer_add_str(b, "},\"eventSourceARN\":\"");
    sl_buffer_add_span(b, arn);
    sl_buffer_add_str(b, "\"}\n");
}

enum sl_status sl_items_decode(struct sl_items_entry *entries, size_t n, const struct sl_items_keys *keys,
                               struct sl_span arn, struct sl_arena *arena, struct sl_batch *out,
                               struct sl_error *error)
{
    const struct sl_decode_options options = {.any_shape = true};
    size_t bytes = 0;
    *out = (struct sl_batch){.arena = arena};
    if (n == 0)
        return SL_OK;
    for (size_t i = 0; i < n; i++) {
        enum sl_status status = entries[i].key.ptr ? SL_OK : key_of_item(&entries[i], keys, arena, error);
        if (status != SL_OK)
            return status;
        bytes += entries[i].item.len + entries[i].key.len + arn.len + 128;
    }
    struct sl_buffer payload;
    sl_buffer_init_in(&payload, arena, PAYLOAD_BYTES);
    sl_buffer_reserve(&payload, bytes);
    for (size_t i = 0; i < n; i++)
        add_record(&payload, &entries[i], arn);
    if (payload.failed)
        return sl_fail(error, SL_FATAL, "TooLarge", "the items of one page have more than 1 GiB of JSON");
    return sl_batch_decode(sl_buffer_span(&payload), arena, &options, out, error);
}
