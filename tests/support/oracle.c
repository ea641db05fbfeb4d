#include "tests/support/oracle.h"

#include "base/json.h"

#include <stdlib.h>

static const char *const tags[] = {"", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"};

static json_t *text_json(struct sl_value v)
{
    struct sl_arena *arena = sl_arena_new(256);
    struct sl_span text = sl_value_text(v, arena);
    json_t *json = json_stringn(text.ptr, text.len);
    sl_arena_destroy(arena);
    return json;
}

static void set_member(json_t *object, struct sl_span name, json_t *value)
{
    struct sl_arena *arena = sl_arena_new(256);
    struct sl_span text = sl_json_unescape(name, arena);
    json_object_setn_new(object, text.ptr, text.len, value);
    sl_arena_destroy(arena);
}

static json_t *content_json(struct sl_value v)
{
    bool is_map = v.type == SL_M, is_list = v.type == SL_L;
    if (v.type == SL_BOOL || v.type == SL_NULL)
        return json_boolean(v.type == SL_NULL || sl_value_is_true(v));
    if (v.type < SL_SS)
        return text_json(v);
    json_t *json = is_map ? json_object() : json_array();
    struct sl_iter iter = sl_value_iter(v);
    struct sl_span name;
    struct sl_value element;
    while (sl_value_next(&iter, &name, &element)) {
        if (is_map)
            set_member(json, name, test_value_json(element, false));
        else
            json_array_append_new(json, is_list ? test_value_json(element, false) : text_json(element));
    }
    return json;
}

json_t *test_value_json(struct sl_value v, bool is_image)
{
    if (v.type == SL_NONE)
        return NULL;
    return is_image ? content_json(v) : json_pack("{so}", tags[v.type], content_json(v));
}

static bool same(json_t *ours, const json_t *theirs)
{
    bool is_null = !theirs || json_is_null(theirs);
    bool equal = ours ? json_equal(ours, theirs) : is_null;
    json_decref(ours);
    return equal;
}

static json_t *span_json(struct sl_span span)
{
    return span.ptr ? json_stringn(span.ptr, span.len) : NULL;
}

const char *test_record_differs(const struct sl_record *r, json_t *record)
{
    struct sl_span raw = sl_record_text(r, SL_FIELD_RAW);
    json_t *change = json_object_get(record, "dynamodb");
    if (!same(json_loadb(raw.ptr, raw.len, JSON_ALLOW_NUL, NULL), record))
        return "the record's text";
    if (!same(test_value_json(sl_record_image(r, SL_KEYS), true), json_object_get(change, "Keys")))
        return "Keys";
    if (!same(test_value_json(sl_record_image(r, SL_NEW_IMAGE), true), json_object_get(change, "NewImage")))
        return "NewImage";
    if (!same(test_value_json(sl_record_image(r, SL_OLD_IMAGE), true), json_object_get(change, "OldImage")))
        return "OldImage";
    if (!same(span_json(sl_record_text(r, SL_FIELD_EVENT_ID)), json_object_get(record, "eventID")))
        return "eventID";
    if (!same(span_json(sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER)),
              json_object_get(change, "SequenceNumber")))
        return "SequenceNumber";
    if (!same(span_json(sl_record_text(r, SL_FIELD_SOURCE_ARN)), json_object_get(record, "eventSourceARN")))
        return "eventSourceARN";
    if (!same(span_json(sl_record_text(r, SL_FIELD_REGION)), json_object_get(record, "awsRegion")))
        return "awsRegion";
    return NULL;
}
