/* What is the same table, and the same key: the texts of keys. */
#include "sinks/dynamodb/dynamodb_private.h"

#include "base/arn.h"
#include "base/json.h"
#include "base/json_walk.h"

#define KEY_TEXT_BYTES (32 * 1024)

bool sl_dynamodb_is_table(struct sl_span said, struct sl_span table)
{
    struct sl_span name = sl_arn_part(table, 5);
    return sl_json_text_is(said, table) || (sl_span_starts(name, SL_LIT("table/")) &&
                                            sl_json_text_is(said, sl_span_from(name, strlen("table/"))));
}

enum sl_status sl_dynamodb_key_text(struct sl_arena *arena, struct sl_span table, struct sl_span key,
                                    struct sl_span *out, struct sl_error *error)
{
    struct sl_buffer text;
    sl_buffer_init(&text, KEY_TEXT_BYTES);
    sl_buffer_add_span(&text, table);
    enum sl_status status = sl_table_key_text(key, &text, error);
    *out = sl_span(sl_arena_copy(arena, sl_buffer_span(&text)), text.len);
    sl_buffer_clean_up(&text);
    return status;
}

struct sl_span sl_dynamodb_key_of(struct sl_dynamodb_apply *apply, struct sl_span table, struct sl_span item,
                                  struct sl_span like)
{
    struct sl_json_walk walk = sl_json_walk(item), wanted;
    struct sl_span name, value, key_name, ignored, out = {NULL, 0};
    struct sl_buffer key;
    size_t left = 0;
    sl_buffer_init(&key, KEY_TEXT_BYTES);
    for (wanted = sl_json_walk(like); sl_json_walk_next(&wanted, &key_name, &ignored);)
        left++;
    while (left > 0 && sl_json_walk_next(&walk, &name, &value))
        for (wanted = sl_json_walk(like); sl_json_walk_next(&wanted, &key_name, &ignored);)
            if (sl_json_same(name, key_name)) {
                sl_buffer_add_str(&key, key.len ? ",\"" : "{\"");
                sl_buffer_add_span(&key, name);
                sl_buffer_add_str(&key, "\":");
                sl_buffer_add_span(&key, value);
                left--;
            }
    sl_buffer_add_char(&key, '}');
    if (sl_dynamodb_key_text(apply->scratch, table, sl_buffer_span(&key), &out, NULL) != SL_OK)
        out = sl_span(NULL, 0);
    sl_buffer_clean_up(&key);
    return out;
}

bool sl_dynamodb_is_item_of(struct sl_dynamodb_apply *apply, const struct sl_dynamodb_op *op,
                            struct sl_span refusal)
{
    struct sl_span item = sl_json_walk_member(refusal, SL_LIT("Item"));
    if (!item.ptr)
        return true;
    struct sl_span key = sl_dynamodb_key_of(apply, op->table, item, op->op->key);
    return key.ptr && sl_span_eq(key, op->key_text);
}
