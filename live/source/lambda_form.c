/* Writes stream records as Lambda would deliver them. */
#include "base/array.h"
#include "live/source/lambda_form_private.h"

#include "base/block.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "streams/names.h"
#include "streams/record.h"

/* ---- the model ---- */

enum kind { TEXT = '"', NUMBER = '0', OBJECT = '{' };

struct member {
    const char *name;
    enum kind kind;
    bool is_optional;
};

/* In the order in which Lambda writes them. */
enum { EVENT_ID, EVENT_NAME, EVENT_VERSION, EVENT_SOURCE, REGION, CHANGE, IDENTITY, ARN, N_RECORD };
static const struct member record_model[N_RECORD] = {
    {"eventID", TEXT, false},       {"eventName", TEXT, false},      {"eventVersion", TEXT, false},
    {"eventSource", TEXT, false},   {"awsRegion", TEXT, false},      {"dynamodb", OBJECT, false},
    {"userIdentity", OBJECT, true}, {"eventSourceARN", TEXT, false},
};

enum { CREATED, KEYS, NEW_IMAGE, OLD_IMAGE, SEQUENCE, SIZE, VIEW, N_CHANGE };
static const struct member change_model[N_CHANGE] = {
    {"ApproximateCreationDateTime", NUMBER, false},
    {"Keys", OBJECT, false},
    {"NewImage", OBJECT, true},
    {"OldImage", OBJECT, true},
    {"SequenceNumber", TEXT, false},
    {"SizeBytes", NUMBER, false},
    {"StreamViewType", TEXT, false},
};

enum { TYPE, PRINCIPAL, N_IDENTITY };
static const struct member identity_model[N_IDENTITY] = {{"type", TEXT, false}, {"principalId", TEXT, false}};

/* Members of other forms: Kinesis' data, exports, `sluice decode`. Lambda sends none of them. */
static const char *const foreign_names[] = {
    "recordFormat", "tableName", "ApproximateCreationDateTimePrecision",
    "Item",         "Metadata",  "Keys",
    "NewImage",     "OldImage",  "sluice"};

static enum kind kind_of(struct sl_span json)
{
    return *json.ptr == '-' || (*json.ptr >= '0' && *json.ptr <= '9') ? NUMBER : (enum kind) * json.ptr;
}

/* Most names have no escape, and are then what they say. */
static size_t find_member(const struct member *model, size_t n, struct sl_span name)
{
    size_t i = 0;
    if (memchr(name.ptr, '\\', name.len)) {
        while (i < n && !sl_json_text_is(name, sl_span_str(model[i].name)))
            i++;
        return i;
    }
    while (i < n && (model[i].name[0] != name.ptr[0] || strncmp(model[i].name, name.ptr, name.len) != 0 ||
                     model[i].name[name.len]))
        i++;
    return i;
}

static bool is_foreign(struct sl_span name)
{
    for (size_t i = 0; i < SL_COUNT(foreign_names); i++)
        if (sl_json_text_is(name, sl_span_str(foreign_names[i])))
            return true;
    return false;
}

/* The values of the model's members, absent where one is missing or of another kind; `*others`: it has
 * others, too. True: the object is as Lambda writes it. */
static bool read_object(struct sl_span object, const struct member *model, size_t n, struct sl_span *values,
                        bool *others)
{
    bool is_good = true;
    memset(values, 0, n * sizeof(*values));
    struct sl_json_walk walk = sl_json_walk(object.ptr ? object : SL_LIT("{}"));
    struct sl_span name, value;
    while (sl_json_walk_next(&walk, &name, &value)) {
        size_t i = find_member(model, n, name);
        if (i == n) {
            *others = true;
            is_good &= !is_foreign(name);
            continue;
        }
        is_good &= kind_of(value) == model[i].kind && !values[i].ptr;
        values[i] = kind_of(value) == model[i].kind ? value : sl_span(NULL, 0);
    }
    for (size_t i = 0; i < n; i++)
        is_good &= values[i].ptr || model[i].is_optional;
    return is_good;
}

struct parts {
    struct sl_span record[N_RECORD], change[N_CHANGE], identity[N_IDENTITY];
    bool record_others, change_others; /* members that the model does not have */
};

static bool is_compact_exactly(struct sl_span json)
{
    const char *p = json.ptr, *end = sl_span_end(json);
    bool escaped;
    for (; p < end; p++) {
        if (*p == '"')
            p = sl_json_string_end(p + 1, end, &escaped);
        else if ((unsigned char)*p <= ' ')
            return false;
    }
    return true;
}

/* What a byte beside a space may be, if the space stands between two tokens. */
enum {
    OPENS = 1, /* a value or a closing bracket comes after it */
    ENDS = 2,  /* a comma, a colon or a closing bracket comes after it */
    STARTS = 4,
    FOLLOWS = 8
};

static const unsigned char beside_space[256] = {
    ['{'] = OPENS | STARTS,
    ['['] = OPENS | STARTS,
    [','] = OPENS | FOLLOWS,
    [':'] = OPENS | FOLLOWS,
    ['}'] = ENDS | STARTS | FOLLOWS,
    [']'] = ENDS | STARTS | FOLLOWS,
    ['"'] = ENDS | STARTS,
    ['0'] = ENDS | STARTS,
    ['1'] = ENDS | STARTS,
    ['2'] = ENDS | STARTS,
    ['3'] = ENDS | STARTS,
    ['4'] = ENDS | STARTS,
    ['5'] = ENDS | STARTS,
    ['6'] = ENDS | STARTS,
    ['7'] = ENDS | STARTS,
    ['8'] = ENDS | STARTS,
    ['9'] = ENDS | STARTS,
    ['-'] = STARTS,
    ['t'] = STARTS,
    ['f'] = STARTS,
    ['n'] = STARTS,
    ['e'] = ENDS,
    ['l'] = ENDS,
    [' '] = OPENS | ENDS | STARTS | FOLLOWS,
};

static bool may_part_tokens(unsigned char before, unsigned char after)
{
    unsigned b = beside_space[before], a = beside_space[after];
    return ((b & OPENS) && (a & STARTS)) || ((b & ENDS) && (a & FOLLOWS));
}

/* Whether it is sure that each of the spaces is in a string. */
static bool are_in_strings(const char *p, uint64_t spaces, const char *begin, const char *end)
{
    for (; spaces; spaces = sl_mask_without(spaces, sl_mask_first(spaces))) {
        const char *at = p + sl_mask_first(spaces);
        if (at == begin || at + 1 == end || may_part_tokens((unsigned char)at[-1], (unsigned char)at[1]))
            return false;
    }
    return true;
}

/* A string in checked text has no tab, no newline, and mostly no space that might stand elsewhere. */
bool sl_lambda_form_is_compact(struct sl_span json)
{
    const char *p = json.ptr, *end = sl_span_end(json);
    for (; end - p >= SL_BLOCK; p += SL_BLOCK) {
        uint64_t spaces = sl_block_eq((const unsigned char *)p, ' ');
        if (sl_block_bytes(p, '\n', '\t') || sl_block_eq((const unsigned char *)p, '\r'))
            return false;
        if (spaces && !are_in_strings(p, spaces, json.ptr, end))
            return is_compact_exactly(json);
    }
    for (; p < end; p++)
        if ((unsigned char)*p <= ' ')
            return is_compact_exactly(json);
    return true;
}

/* Whether the number states seconds, and not milliseconds or microseconds. */
static bool is_in_seconds(const struct sl_record *r, struct sl_span number)
{
    struct sl_number value;
    int64_t seconds;
    bool exact;
    return number.ptr && !sl_number_parse(number, &value) && sl_number_int64(&value, 0, &seconds, &exact) &&
           seconds == sl_record_created_ns(r) / 1000000000;
}

/* Takes the record apart. True: its text is as Lambda would deliver it. */
static bool read_record(const struct sl_record *r, struct parts *parts)
{
    struct sl_span raw = sl_record_text(r, SL_FIELD_RAW);
    bool ignored = false;
    bool is_good = read_object(raw, record_model, N_RECORD, parts->record, &parts->record_others);
    is_good &=
        read_object(parts->record[CHANGE], change_model, N_CHANGE, parts->change, &parts->change_others);
    if (parts->record[IDENTITY].ptr)
        is_good &=
            read_object(parts->record[IDENTITY], identity_model, N_IDENTITY, parts->identity, &ignored);
    return is_good && is_in_seconds(r, parts->change[CREATED]);
}

/* ---- what a record does not say ---- */

/* Field `i` of "arn:partition:service:region:account:...". */
static struct sl_span arn_field(struct sl_span arn, int i)
{
    for (; i > 0 && arn.len; i--) {
        const char *colon = memchr(arn.ptr, ':', arn.len);
        arn = colon ? sl_span_from(arn, (size_t)(colon - arn.ptr) + 1) : sl_span(NULL, 0);
    }
    const char *colon = arn.len ? memchr(arn.ptr, ':', arn.len) : NULL;
    return colon ? sl_span(arn.ptr, (size_t)(colon - arn.ptr)) : arn;
}

static const char *partition_of(struct sl_span region)
{
    return sl_span_starts(region, SL_LIT("cn-"))       ? "aws-cn"
           : sl_span_starts(region, SL_LIT("us-gov-")) ? "aws-us-gov"
                                                       : "aws";
}

/* The one view type that an event of this kind with these images has; the fuller one where several have it.
 * An incremental export that says only what was removed has no old images. */
static enum sl_view view_of(const struct sl_record *r, bool is_line)
{
    bool has_new = sl_record_image(r, SL_NEW_IMAGE).type != SL_NONE;
    bool has_old = sl_record_image(r, SL_OLD_IMAGE).type != SL_NONE;
    enum sl_event event = sl_record_event(r);
    if (!has_new && !has_old)
        return is_line || event == SL_REMOVE ? SL_VIEW_NEW_IMAGE : SL_VIEW_KEYS_ONLY;
    if (event == SL_MODIFY && has_new != has_old)
        return has_new ? SL_VIEW_NEW_IMAGE : SL_VIEW_OLD_IMAGE;
    return SL_VIEW_NEW_AND_OLD_IMAGES;
}

/* A place in the stream: below any sequence number of AWS's, which have 21 digits or more, so that a stream
 * is newer than an export. */
static const char *made_sequence(const struct sl_record *r, size_t index, struct sl_arena *arena)
{
    struct sl_span order = sl_record_order(r, arena);
    return order.ptr ? sl_arena_printf(arena, "%.*s%04zu", SL_ARG(order), index % 10000)
                     : sl_arena_printf(arena, "%021zu", index + 1);
}

/* ---- writing ---- */

struct writer {
    const struct sl_lambda_form *form;
    struct sl_arena *arena;
    struct sl_buffer *out;
    const struct sl_record *r;
    struct parts parts;
    size_t index; /* in the stream */
};

static void add_name(struct writer *w, const char *name)
{
    struct sl_buffer *out = w->out;
    sl_buffer_add_str(out, out->ptr[out->len - 1] == '{' ? "\"" : ",\"");
    sl_buffer_add_str(out, name);
    sl_buffer_add_str(out, "\":");
}

/* The member as it came, else with this text. */
static void add_text(struct writer *w, const struct member *member, struct sl_span raw, const char *made)
{
    if (!raw.ptr) {
        sl_json_add_member(w->out, member->name, sl_span_str(made));
        return;
    }
    add_name(w, member->name);
    sl_buffer_add_span(w->out, raw);
}

/* A number of seconds stays as it is written. A date keeps its fraction, if it has one. Milliseconds and
 * microseconds become the whole seconds that DynamoDB Streams gives. */
static void add_created(struct writer *w)
{
    struct sl_span number = w->parts.change[CREATED];
    int64_t ns = sl_record_created_ns(w->r);
    add_name(w, "ApproximateCreationDateTime");
    if (is_in_seconds(w->r, number)) {
        sl_buffer_add_span(w->out, number);
        return;
    }
    sl_buffer_printf(w->out, "%lld", (long long)(ns ? ns / 1000000000 : w->form->created_s));
    bool is_date = w->parts.record[CHANGE].ptr && !number.ptr;
    if (!is_date || ns % 1000000000 == 0)
        return;
    sl_buffer_printf(w->out, ".%09lld", (long long)(ns % 1000000000));
    while (w->out->ptr[w->out->len - 1] == '0')
        w->out->len--;
}

/* The key attribute `name` of an item, which does not say that it is one. */
static bool add_key(struct writer *w, struct sl_value item, struct sl_span name)
{
    struct sl_iter iter = sl_value_iter(item);
    struct sl_span spelt;
    struct sl_value value;
    while (sl_value_next(&iter, &spelt, &value))
        if (sl_json_text_is(spelt, name) &&
            (value.type == SL_S || value.type == SL_N || value.type == SL_B)) {
            struct sl_span json = sl_value_json(value, w->arena);
            sl_buffer_printf(w->out, "%s\"%.*s\":%.*s", w->out->ptr[w->out->len - 1] == '{' ? "" : ",",
                             SL_ARG(spelt), SL_ARG(json));
            return true;
        }
    return false;
}

static bool add_keys_of_item(struct writer *w)
{
    struct sl_span rest = sl_span_str(w->form->keys ? w->form->keys : "");
    struct sl_value item = sl_record_image(w->r, SL_NEW_IMAGE);
    if (item.type == SL_NONE)
        item = sl_record_image(w->r, SL_OLD_IMAGE);
    if (!rest.len || item.type == SL_NONE)
        return false;
    sl_buffer_add_char(w->out, '{');
    while (rest.len) {
        if (!add_key(w, item, sl_span_cut(&rest, ',')))
            return false;
    }
    sl_buffer_add_char(w->out, '}');
    return true;
}

/* `*keys_bytes`: what keys that were taken out of an item add to SizeBytes. */
static bool add_keys(struct writer *w, uint64_t *keys_bytes)
{
    struct sl_value keys = sl_record_image(w->r, SL_KEYS);
    *keys_bytes = 0;
    add_name(w, "Keys");
    if (keys.type != SL_NONE) {
        sl_json_add_compact(w->out, keys.raw);
        return true;
    }
    size_t from = w->out->len;
    if (!add_keys_of_item(w))
        return false;
    struct sl_value taken = {.type = SL_M, .raw = sl_span(w->out->ptr + from, w->out->len - from)};
    *keys_bytes = sl_value_item_bytes(taken);
    return true;
}

static void add_image(struct writer *w, enum sl_image image, const char *name)
{
    struct sl_value value = sl_record_image(w->r, image);
    if (value.type == SL_NONE)
        return;
    add_name(w, name);
    sl_json_add_compact(w->out, value.raw);
}

/* Members that the model does not have and no other form has either: AWS may add some. */
static void add_others(struct writer *w, struct sl_span object, const struct member *model, size_t n)
{
    struct sl_json_walk walk = sl_json_walk(object.ptr ? object : SL_LIT("{}"));
    struct sl_span name, value;
    while (sl_json_walk_next(&walk, &name, &value)) {
        if (find_member(model, n, name) < n || is_foreign(name))
            continue;
        sl_buffer_printf(w->out, ",\"%.*s\":", SL_ARG(name));
        sl_json_add_compact(w->out, value);
    }
}

static bool add_change(struct writer *w, const char *sequence)
{
    const struct parts *p = &w->parts;
    uint64_t keys_bytes;
    sl_buffer_add_str(w->out, ",\"dynamodb\":{");
    add_created(w);
    if (!add_keys(w, &keys_bytes))
        return false;
    add_image(w, SL_NEW_IMAGE, "NewImage");
    add_image(w, SL_OLD_IMAGE, "OldImage");
    add_text(w, &change_model[SEQUENCE], p->change[SEQUENCE], sequence);
    if (p->change[SIZE].ptr)
        sl_json_add_raw(w->out, "SizeBytes", p->change[SIZE]);
    else
        sl_json_add_integer(w->out, "SizeBytes", (int64_t)(sl_record_computed_bytes(w->r) + keys_bytes));
    add_text(w, &change_model[VIEW], p->change[VIEW], sl_view_name(view_of(w->r, !p->record[CHANGE].ptr)));
    if (p->change_others)
        add_others(w, p->record[CHANGE], change_model, N_CHANGE);
    sl_buffer_add_char(w->out, '}');
    return true;
}

/* Streams' own spelling of the members begins with capitals. */
static void add_identity(struct writer *w)
{
    struct sl_span identity = w->parts.record[IDENTITY];
    if (!identity.ptr)
        return;
    struct sl_json_walk walk = sl_json_walk(identity);
    struct sl_span name, value;
    sl_buffer_add_str(w->out, ",\"userIdentity\":{");
    while (sl_json_walk_next(&walk, &name, &value)) {
        bool is_type = sl_json_text_is(name, SL_LIT("Type"));
        bool is_principal = sl_json_text_is(name, SL_LIT("PrincipalId"));
        sl_buffer_printf(w->out, "%s\"", w->out->ptr[w->out->len - 1] == '{' ? "" : ",");
        sl_buffer_add_span(w->out, is_type ? SL_LIT("type") : is_principal ? SL_LIT("principalId") : name);
        sl_buffer_add_str(w->out, "\":");
        sl_json_add_compact(w->out, value);
    }
    sl_buffer_add_char(w->out, '}');
}

/* The Region that the record names, else that of the stream's ARN. */
static const char *region_of(const struct writer *w)
{
    struct sl_span region = sl_record_text(w->r, SL_FIELD_REGION),
                   arn = sl_record_text(w->r, SL_FIELD_SOURCE_ARN);
    if (!region.len)
        region = arn_field(arn.ptr ? arn : sl_span_str(w->form->stream_arn), 3);
    return sl_arena_copy(w->arena, region);
}

/* The ARN of a stream that the record does not name. */
static const char *made_arn(const struct writer *w, const char *region)
{
    const char *whole = w->form->stream_arn;
    struct sl_span place = arn_field(sl_span_str(whole), 3);
    if (w->form->is_arn_certain || !place.ptr || sl_span_is(place, region))
        return whole;
    return sl_arena_printf(w->arena, "arn:%s:dynamodb:%s%s", partition_of(sl_span_str(region)), region,
                           sl_span_end(place));
}

/* False: the record is an item without its keys. */
static bool add_record(struct writer *w)
{
    const struct parts *p = &w->parts;
    const char *sequence = p->change[SEQUENCE].ptr ? "" : made_sequence(w->r, w->index, w->arena);
    const char *region = region_of(w);
    sl_buffer_add_char(w->out, '{');
    add_text(w, &record_model[EVENT_ID], p->record[EVENT_ID],
             p->record[EVENT_ID].ptr ? "" : sl_arena_printf(w->arena, "%032zu", w->index + 1));
    add_text(w, &record_model[EVENT_NAME], p->record[EVENT_NAME], sl_event_name(sl_record_event(w->r)));
    add_text(w, &record_model[EVENT_VERSION], p->record[EVENT_VERSION], "1.1");
    add_text(w, &record_model[EVENT_SOURCE], p->record[EVENT_SOURCE], "aws:dynamodb");
    add_text(w, &record_model[REGION], p->record[REGION], region);
    if (!add_change(w, sequence))
        return false;
    add_identity(w);
    add_text(w, &record_model[ARN], p->record[ARN], made_arn(w, region));
    if (p->record_others)
        add_others(w, sl_record_text(w->r, SL_FIELD_RAW), record_model, N_RECORD);
    sl_buffer_add_char(w->out, '}');
    return true;
}

/* ---- the record ---- */

bool sl_lambda_form_is(const struct sl_record *r)
{
    struct parts parts;
    return sl_lambda_form_is_compact(sl_record_text(r, SL_FIELD_RAW)) &&
           (sl_lambda_form_quick(r) || read_record(r, &parts));
}

bool sl_lambda_form_write(const struct sl_lambda_form *form, const struct sl_record *r, size_t index,
                          struct sl_arena *scratch, struct sl_buffer *out)
{
    struct writer w = {.form = form, .arena = scratch, .out = out, .r = r, .index = index};
    (void)read_record(r, &w.parts);
    return add_record(&w);
}
