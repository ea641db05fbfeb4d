#include "tests/support/oracle.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/number.h"

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

/* ---- the rules, on a tree ---- */

static struct sl_span text_of(const json_t *string)
{
    return sl_span(json_string_value(string), json_string_length(string));
}

static bool is_one_of(const json_t *string, const char *const *list)
{
    for (; *list; list++)
        if (json_is_string(string) && sl_span_is(text_of(string), *list))
            return true;
    return false;
}

static bool is_number(const json_t *string, struct sl_number *number)
{
    return json_is_string(string) && !sl_number_parse(text_of(string), number);
}

static bool is_good_set(const json_t *set, char kind)
{
    struct sl_number a, b;
    for (size_t i = 0; i < json_array_size(set); i++) {
        const json_t *element = json_array_get(set, i);
        if (!json_is_string(element) || (kind == 'B' && !sl_base64_is_valid(text_of(element))))
            return false;
        if (kind == 'N' && !is_number(element, &a))
            return false;
        for (size_t k = 0; kind == 'N' && k < i; k++)
            if (is_number(json_array_get(set, k), &b) && sl_number_compare(&a, &b) == 0)
                return false;
    }
    return json_is_array(set);
}

static bool is_good_map(const json_t *map, int depth);

static bool is_good_list(const json_t *list, int depth);

static bool is_good_value(const json_t *value, int depth)
{
    const char *tag = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)value));
    const json_t *content = json_object_iter_value(json_object_iter((json_t *)(uintptr_t)value));
    struct sl_number number;
    if (!json_is_object(value) || json_object_size(value) != 1)
        return false;
    if (strcmp(tag, "S") == 0)
        return json_is_string(content);
    if (strcmp(tag, "N") == 0)
        return is_number(content, &number);
    if (strcmp(tag, "B") == 0)
        return json_is_string(content) && sl_base64_is_valid(text_of(content));
    if (strcmp(tag, "BOOL") == 0)
        return json_is_boolean(content);
    if (strcmp(tag, "NULL") == 0)
        return json_is_true(content);
    if (strcmp(tag, "SS") == 0 || strcmp(tag, "NS") == 0 || strcmp(tag, "BS") == 0)
        return is_good_set(content, tag[0]);
    if (strcmp(tag, "L") == 0)
        return depth < 32 && is_good_list(content, depth + 1);
    return strcmp(tag, "M") == 0 && depth < 32 && is_good_map(content, depth + 1);
}

static bool is_good_list(const json_t *list, int depth)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!is_good_value(json_array_get(list, i), depth))
            return false;
    return json_is_array(list);
}

static bool is_good_map(const json_t *map, int depth)
{
    json_t *object = (json_t *)(uintptr_t)map;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
        if (!is_good_value(json_object_iter_value(i), depth))
            return false;
    return json_is_object(map);
}

/* Absent, null, or a string. */
static bool is_text(const json_t *object, const char *name)
{
    const json_t *text = json_object_get(object, name);
    return !text || json_is_null(text) || json_is_string(text);
}

static bool is_image(const json_t *object, const char *name)
{
    const json_t *image = json_object_get(object, name);
    return !image || json_is_null(image) || is_good_map(image, 0);
}

static bool is_sequence(const json_t *object, const char *name)
{
    const json_t *text = json_object_get(object, name);
    if (!text || json_is_null(text))
        return true;
    struct sl_span digits = text_of(text);
    for (size_t i = 0; i < digits.len; i++)
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
            return false;
    return json_is_string(text) && digits.len > 0;
}

static bool is_choice(const json_t *object, const char *name, const char *const *list)
{
    const json_t *text = json_object_get(object, name);
    return !text || json_is_null(text) || is_one_of(text, list);
}

static const char *change_fault(const json_t *change)
{
    static const char *const views[] = {"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", NULL};
    static const char *const precisions[] = {"MILLISECOND", "MICROSECOND", NULL};
    const json_t *time = json_object_get(change, "ApproximateCreationDateTime");
    const json_t *size = json_object_get(change, "SizeBytes");
    if (!json_is_object(change))
        return "dynamodb";
    if (!json_is_object(json_object_get(change, "Keys")) || !is_image(change, "Keys"))
        return "Keys";
    if (!is_image(change, "NewImage") || !is_image(change, "OldImage"))
        return "images";
    if (!is_sequence(change, "SequenceNumber"))
        return "SequenceNumber";
    if (!is_choice(change, "StreamViewType", views))
        return "StreamViewType";
    if (!is_choice(change, "ApproximateCreationDateTimePrecision", precisions))
        return "precision";
    if (time && !json_is_null(time) && !json_is_number(time) && !json_is_string(time))
        return "time";
    return size && !json_is_null(size) && !json_is_number(size) ? "SizeBytes" : NULL;
}

static const char *record_fault(const json_t *record)
{
    static const char *const events[] = {"INSERT", "MODIFY", "REMOVE", NULL};
    static const char *const ours[] = {"aws:dynamodb", NULL};
    const json_t *identity = json_object_get(record, "userIdentity");
    if (!json_is_object(record))
        return "no object";
    if (!is_one_of(json_object_get(record, "eventName"), events))
        return "eventName";
    if (!is_choice(record, "eventSource", ours))
        return "eventSource";
    if (!is_text(record, "eventID") || !is_text(record, "awsRegion") || !is_text(record, "eventSourceARN") ||
        !is_text(record, "tableName"))
        return "texts";
    if (identity && !json_is_null(identity) &&
        (!json_is_object(identity) || !is_text(identity, "type") || !is_text(identity, "principalId") ||
         !is_text(identity, "Type") || !is_text(identity, "PrincipalId")))
        return "userIdentity";
    return change_fault(json_object_get(record, "dynamodb"));
}

const char *test_event_fault(const json_t *event)
{
    const json_t *records = json_is_array(event) ? event : json_object_get(event, "Records");
    const char *why = json_is_array(records) ? NULL : "Records";
    for (size_t i = 0; i < json_array_size(records) && !why; i++)
        why = record_fault(json_array_get(records, i));
    return why;
}
