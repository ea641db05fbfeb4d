/* Keys become the records of removals, so they are checked and made canonical as the archive's are. */
#include "cli/keys.h"

#include "base/array.h"
#include "base/json.h"
#include "base/map.h"
#include "streams/shorthand.h"
#include "data/recall/recall.h"
#include "data/verify/items.h"
#include "live/source/input.h"
#include "streams/record.h"

#define KEY_BYTES ((size_t)64 * 1024)

struct reading {
    struct sl_arena *arena;
    struct sl_named_keys *keys;
    size_t digests_room, texts_room, n_texts;
    struct sl_map seen;
};

static enum sl_status decode(const struct reading *in, struct sl_span key, struct sl_batch *batch,
                             struct sl_error *error)
{
    struct sl_items_entry entry = {.key = key};
    const struct sl_items_keys names = {.n = 0};
    enum sl_status status =
        sl_items_decode(&entry, 1, &names, SL_LIT(SL_REPLAYED_ARN), in->arena, batch, error);
    if (status != SL_OK)
        return status;
    size_t n = 0;
    bool is_good = true;
    struct sl_iter iter = sl_value_iter(sl_record_image(sl_batch_record(batch, 0), SL_KEYS));
    struct sl_value value;
    for (; sl_value_next(&iter, NULL, &value); n++)
        is_good &= value.type == SL_S || value.type == SL_N || value.type == SL_B;
    return is_good && n >= 1 && n <= 2 ? SL_OK
                                       : sl_fail(error, SL_REJECT, "BadKey",
                                                 "a key has one attribute or two, each an S, an N or a B");
}

static enum sl_status take(struct reading *in, struct sl_span json, struct sl_error *error)
{
    struct sl_buffer text;
    struct sl_batch batch;
    unsigned char digest[SL_SHA256_BYTES];
    sl_buffer_init_in(&text, in->arena, KEY_BYTES);
    enum sl_status status = sl_json_check_loose(json, error);
    if (status == SL_OK && sl_json_find(json, "").ptr[0] != '{')
        status = sl_fail(error, SL_REJECT, "BadKey", "a key is a JSON object");
    if (status != SL_OK)
        return status;
    sl_shorthand_add_item(&text, sl_json_find(json, ""));
    struct sl_span key = sl_buffer_span(&text);
    status = decode(in, key, &batch, error);
    if (status != SL_OK)
        return status;
    sl_recall_digest(sl_record_item_key(sl_batch_record(&batch, 0), in->arena), digest);
    uint32_t n = in->seen.n;
    if (sl_map_keep(&in->seen, sl_span((const char *)digest, sizeof(digest))) < n)
        return SL_OK;
    struct sl_named_keys *keys = in->keys;
    keys->digests =
        sl_array_fit_in(in->arena, keys->digests, keys->n + 1, &in->digests_room, sizeof(*keys->digests));
    memcpy(keys->digests[keys->n++], digest, sizeof(digest));
    SL_PUSH_IN(in->arena, keys->texts, in->n_texts, in->texts_room) = key;
    return SL_OK;
}

static enum sl_status take_flag(struct reading *in, const char *text, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    if (take(in, sl_span_str(text), &why) == SL_OK)
        return SL_OK;
    return sl_fail(error, SL_REJECT, why.code,
                   "--key %s: %s; write the item's whole key, as {\"PK\":\"a\"} or {\"PK\":{\"S\":\"a\"}}",
                   text, why.text);
}

static enum sl_status take_lines(struct reading *in, const char *name, struct sl_span text,
                                 struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (size_t line = 1; status == SL_OK && text.len; line++) {
        const struct sl_span one = sl_span_cut(&text, '\n');
        struct sl_error why = SL_NO_ERROR;
        bool is_blank = true;
        for (size_t i = 0; i < one.len; i++)
            is_blank &= one.ptr[i] == ' ' || one.ptr[i] == '\t' || one.ptr[i] == '\r';
        if (!is_blank && take(in, one, &why) != SL_OK)
            status = sl_fail(error, SL_REJECT, why.code,
                             "%s: line %zu: %s; a line is an item's whole key, as {\"PK\":\"a\"}", name, line,
                             why.text);
    }
    return status;
}

static enum sl_status take_file(struct reading *in, const char *name, struct sl_error *error)
{
    struct sl_span text;
    enum sl_status status = sl_input_load(name, in->arena, &text, error);
    return status == SL_OK ? take_lines(in, name, text, error) : status;
}

enum sl_status sl_keys_read(const struct sl_flag_list *list, const char *file, struct sl_span more,
                            struct sl_arena *arena, struct sl_named_keys *out, struct sl_error *error)
{
    struct reading in = {.arena = arena, .keys = out};
    enum sl_status status = SL_OK;
    *out = (struct sl_named_keys){.n = 0};
    sl_map_init(&in.seen, arena, 64);
    for (size_t i = 0; i < list->n && status == SL_OK; i++)
        status = take_flag(&in, list->values[i], error);
    if (status == SL_OK && file)
        status = take_file(&in, file, error);
    if (status == SL_OK)
        status = take_lines(&in, "what matches", more, error);
    if (status == SL_OK && out->n == 0)
        status = sl_fail(error, SL_REJECT, "NoKeys",
                         file ? "%s: has no key in it" : "name the item: --key KEY, or --keys FILE", file);
    return status;
}
