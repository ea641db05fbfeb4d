/* The host table: every function that a handler may call. */
#include "handlers/pipeline/host.h"

#include "base/buffer.h"
#include "base/decimal.h"
#include "base/gzip.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/number.h"
#include "base/span.h"
#include "handlers/pipeline/route.h"
#include "streams/names.h"
#include "streams/record.h"
#include "streams/trace_context.h"
#include "streams/template/template.h"
#include "streams/when/when.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- host_plain.c: value_plain ---- */

/* ---- a walk over what differs between the two images of a record ---- */

static struct sl_diff nothing(void)
{
    return (struct sl_diff){.image = SL_KEYS};
}

static struct sl_diff host_record_diff(const struct sl_record *r, struct sl_arena *arena)
{
    enum sl_event event = sl_record_event(r);
    struct sl_value after = sl_record_image(r, SL_NEW_IMAGE), before = sl_record_image(r, SL_OLD_IMAGE);
    struct sl_diff diff = {.record = r, .arena = arena};
    /* As in record_changed: without an image that is needed nothing differs. */
    if (event == SL_REMOVE ? before.type == SL_NONE : after.type == SL_NONE)
        return nothing();
    if (event == SL_MODIFY && before.type == SL_NONE)
        return nothing();
    diff.image = event == SL_REMOVE ? SL_OLD_IMAGE : SL_NEW_IMAGE;
    diff.iter = sl_value_iter(event == SL_REMOVE ? before : after);
    return diff;
}

static struct sl_span name_of(const struct sl_diff *diff, struct sl_span inner)
{
    bool is_escaped = inner.len && memchr(inner.ptr, '\\', inner.len);
    return is_escaped ? sl_json_unescape(inner, diff->arena) : inner;
}

/* The new image's attributes, then those that only the old one has. An INSERT has nothing before and a REMOVE
 * nothing after, even if it brings that image. */
static bool host_diff_next(struct sl_diff *diff, struct sl_span *name, struct sl_value *before,
                           struct sl_value *after)
{
    const struct sl_value none = {.type = SL_NONE};
    struct sl_span inner;
    struct sl_value here;
    while (diff->image != SL_KEYS) {
        enum sl_event event = sl_record_event(diff->record);
        bool is_new = diff->image == SL_NEW_IMAGE;
        if (!sl_value_next(&diff->iter, &inner, &here)) {
            bool goes_on = is_new && event == SL_MODIFY;
            diff->image = goes_on ? SL_OLD_IMAGE : SL_KEYS;
            if (goes_on)
                diff->iter = sl_value_iter(sl_record_image(diff->record, SL_OLD_IMAGE));
            continue;
        }
        *name = name_of(diff, inner);
        enum sl_image other = is_new ? SL_OLD_IMAGE : SL_NEW_IMAGE;
        struct sl_value there = event == SL_MODIFY ? sl_record_attribute(diff->record, other, *name) : none;
        *before = is_new ? there : here;
        *after = is_new ? here : there;
        if (is_new ? !sl_value_equal(here, there) : there.type == SL_NONE)
            return true;
    }
    return false;
}

/* ---- a value as plain JSON: {"a":1,"b":["x"]} ---- */

static void add_number(struct sl_buffer *out, struct sl_span text)
{
    struct sl_number number;
    char normal[SL_NUMBER_TEXT];
    if (sl_number_parse(text, &number))
        sl_buffer_add_str(out, "null");
    else
        sl_buffer_add(out, normal, sl_number_text(&number, normal));
}

static void add_quoted(struct sl_buffer *out, struct sl_span escaped)
{
    sl_buffer_add_char(out, '"');
    sl_buffer_add_span(out, escaped);
    sl_buffer_add_char(out, '"');
}

/* The recursion ends: a record with more levels than DynamoDB's 32 is refused when it is decoded. */
static void add_plain(struct sl_buffer *out, struct sl_value v);

static void add_elements(struct sl_buffer *out, struct sl_value v)
{
    struct sl_iter iter = sl_value_iter(v);
    struct sl_span name;
    struct sl_value element;
    sl_buffer_add_char(out, v.type == SL_M ? '{' : '[');
    for (bool first = true; sl_value_next(&iter, &name, &element); first = false) {
        if (!first)
            sl_buffer_add_char(out, ',');
        if (v.type == SL_M) {
            add_quoted(out, name);
            sl_buffer_add_char(out, ':');
        }
        add_plain(out, element);
    }
    sl_buffer_add_char(out, v.type == SL_M ? '}' : ']');
}

static void add_plain(struct sl_buffer *out, struct sl_value v)
{
    switch (v.type) {
    case SL_S:
        add_quoted(out, v.raw);
        break;
    case SL_B: /* differs from every string */
        sl_buffer_add_str(out, "{\"base64\":");
        add_quoted(out, v.raw);
        sl_buffer_add_char(out, '}');
        break;
    case SL_N:
        add_number(out, v.raw);
        break;
    case SL_BOOL:
        sl_buffer_add_span(out, v.raw);
        break;
    case SL_NULL:
    case SL_NONE:
        sl_buffer_add_str(out, "null");
        break;
    default:
        add_elements(out, v);
    }
}

static struct sl_span host_value_plain(struct sl_value v, struct sl_arena *arena)
{
    struct sl_buffer buffer;
    /* A number grows most: "1e-130" becomes 132 bytes. */
    sl_buffer_init_in(&buffer, arena, 32 * v.raw.len + SL_NUMBER_TEXT);
    add_plain(&buffer, v);
    return sl_buffer_span(&buffer);
}

/* ---- marks ---- */

static void host_mark(struct sl_slice *slice, size_t i, enum sl_status status, const struct sl_error *error)
{
    struct sl_slice_call *call = (struct sl_slice_call *)slice;
    if (i >= slice->n || (unsigned)status > SL_FATAL) {
        if (!call->is_misused) {
            call->misused_at = i;
            call->misused_status = status;
        }
        call->is_misused = true;
        return;
    }
    struct sl_error *why = NULL;
    if (error && error->status != SL_OK && status != SL_OK) {
        why = sl_arena_alloc(slice->arena, sizeof(*why));
        *why = *error;
        sl_error_seal(why);
    }
    call->marks[i] = (struct sl_mark){true, status, why, call->marks[i].note};
}

static void host_note(struct sl_slice *slice, size_t i, enum sl_effect note)
{
    if (i < slice->n && (unsigned)note <= SL_EFFECT_LEFT_OUT)
        ((struct sl_slice_call *)slice)->marks[i].note = note;
}

static SL_PRINTF(4, 5) enum sl_status
    host_fail(struct sl_error *error, enum sl_status status, const char *code, const char *format, ...)
{
    char text[SL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return sl_fail(error, status, code, "%s", text);
}

static void host_mark_result(struct sl_slice *slice, size_t i, const struct sl_result *result)
{
    struct sl_error why = SL_NO_ERROR;
    if (result->status != SL_OK)
        sl_fail(&why, result->status, result->code ? result->code : "Unspecified", "%s",
                result->text ? result->text : "the sink gave no reason");
    host_mark(slice, i, result->status, &why);
}

/* ---- memory, time, log ---- */

static struct sl_arena *host_route_arena(struct sl_route *route)
{
    return route->pipeline->arena;
}

static struct sl_clock *clock_of(struct sl_route *route)
{
    return route->pipeline->options.clock;
}

static int64_t host_now_ms(struct sl_route *route)
{
    return clock_of(route)->now_ms(clock_of(route));
}

static int64_t host_wall_ns(struct sl_route *route)
{
    return clock_of(route)->wall_ns(clock_of(route));
}

static uint64_t host_random(struct sl_route *route)
{
    return clock_of(route)->random(clock_of(route));
}

static bool host_sleep(struct sl_route *route, const struct sl_slice *slice, int64_t ms)
{
    if (ms < 0 || slice->deadline_ms - host_now_ms(route) <= ms)
        return false;
    clock_of(route)->sleep_ms(clock_of(route), ms);
    return true;
}

static bool host_log_enabled(struct sl_route *route, enum sl_level level)
{
    return level < SL_OFF && level >= route->pipeline->options.log->level;
}

static SL_PRINTF(3, 4) void host_log(struct sl_route *route, enum sl_level level, const char *format, ...)
{
    char text[4096];
    if (!host_log_enabled(route, level))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    sl_log_write(route->pipeline->options.log, level, "%s", text);
}

static void host_metric(struct sl_route *route, const char *name, double value, const char *unit)
{
    sl_log_metric(route->pipeline->options.log, route->pipeline->options.function_name, name, value, unit);
}

/* ---- options ---- */

static const struct sl_option_value *option(const struct sl_route *route, const char *name)
{
    static const struct sl_option_value absent;
    const struct sl_option_value *value = sl_options_get(&route->options, name);
    return value ? value : &absent;
}

static const char *host_route_name(struct sl_route *route)
{
    return route->config->name;
}

static unsigned host_route_events(struct sl_route *route)
{
    return route->events;
}

static struct sl_span host_option_text(struct sl_route *route, const char *name)
{
    return option(route, name)->text;
}

static int64_t host_option_integer(struct sl_route *route, const char *name)
{
    return option(route, name)->integer;
}

static bool host_option_bool(struct sl_route *route, const char *name)
{
    return option(route, name)->boolean;
}

static const struct sl_template *host_option_template(struct sl_route *route, const char *name)
{
    return option(route, name)->template;
}

static const struct sl_when *host_option_when(struct sl_route *route, const char *name)
{
    return option(route, name)->when;
}

static struct sl_object_port *host_option_objects(struct sl_route *route, const char *name)
{
    return option(route, name)->objects;
}

static struct sl_table_port *host_option_table(struct sl_route *route, const char *name)
{
    return option(route, name)->table;
}

static struct sl_queue_port *host_option_queue(struct sl_route *route, const char *name)
{
    return option(route, name)->queue;
}

/* ---- records ---- */

static json_t *host_record_to_json(const struct sl_record *r)
{
    struct sl_span raw = sl_record_text(r, SL_FIELD_RAW);
    return json_loadb(raw.ptr, raw.len, JSON_ALLOW_NUL, NULL);
}

/* ---- values ---- */

static struct sl_span host_value_json(struct sl_value v, struct sl_arena *arena)
{
    return v.type == SL_NONE ? sl_span(NULL, 0) : sl_value_json(v, arena);
}

/* What is not a number is below every number. */
static int host_number_compare(struct sl_span a, struct sl_span b)
{
    struct sl_number x, y;
    const char *bad_a = sl_number_parse(a, &x), *bad_b = sl_number_parse(b, &y);
    return bad_a || bad_b ? (bad_b != NULL) - (bad_a != NULL) : sl_number_compare(&x, &y);
}

/* ---- templates, conditions ---- */

static enum sl_status host_template_compile(struct sl_arena *arena, struct sl_span text,
                                            struct sl_template **out, struct sl_error *error)
{
    return sl_template_compile(text, sl_route_vars(), arena, out, error);
}

/* The most that a rendered text may have: an item (400 KB) several times. */
#define RENDERED_BYTES (8 * 1024 * 1024)

/* A text of no bytes is empty, not absent. */
static struct sl_span take_text(struct sl_buffer *buffer)
{
    sl_buffer_reserve(buffer, 1);
    return sl_buffer_span(buffer);
}

static enum sl_status host_template_render_image(const struct sl_template *t, const struct sl_record *r,
                                                 enum sl_image image, enum sl_escape escape,
                                                 struct sl_arena *arena, struct sl_span *out,
                                                 struct sl_error *error)
{
    struct sl_buffer buffer;
    sl_buffer_init_in(&buffer, arena, RENDERED_BYTES);
    const struct sl_rendering how = {.record = r, .image = image, .escape = escape, .scratch = arena};
    enum sl_status status = sl_template_render(t, &how, &buffer, error);
    *out = take_text(&buffer);
    return status;
}

static enum sl_status host_template_render(const struct sl_template *t, const struct sl_record *r,
                                           enum sl_escape escape, struct sl_arena *arena, struct sl_span *out,
                                           struct sl_error *error)
{
    return host_template_render_image(t, r, SL_ANY_IMAGE, escape, arena, out, error);
}

static struct sl_span host_template_render_or(const struct sl_template *t, const struct sl_record *r,
                                              enum sl_image image, enum sl_escape escape,
                                              struct sl_arena *arena, struct sl_span otherwise)
{
    struct sl_buffer buffer;
    sl_buffer_init_in(&buffer, arena, RENDERED_BYTES);
    const struct sl_rendering how = {.record = r, .image = image, .escape = escape, .scratch = arena};
    sl_template_render_or(t, &how, otherwise, &buffer);
    return buffer.failed ? sl_span(NULL, 0) : take_text(&buffer);
}

/* Of an item that is the record's own, the record knows where the attributes are. */
static struct sl_value host_template_item(const struct sl_template *t, const struct sl_record *r,
                                          struct sl_value item, struct sl_arena *arena,
                                          struct sl_error *error)
{
    struct sl_rendering how = {.record = r, .image = SL_NEW_IMAGE, .scratch = arena};
    struct sl_value made = {.type = SL_NONE};
    struct sl_error why = SL_NO_ERROR;
    if (item.raw.ptr != sl_record_image(r, SL_NEW_IMAGE).raw.ptr)
        how.item = item;
    if (sl_template_make(t, &how, RENDERED_BYTES, &made, &why) != SL_OK) {
        made.type = SL_NONE;
        if (strcmp(why.code, "MissingAttribute") != 0 && error)
            *error = why;
    }
    return made;
}

static enum sl_status host_pattern_compile(struct sl_arena *arena, struct sl_span json, struct sl_when **out,
                                           struct sl_error *error)
{
    return sl_pattern_compile(json, arena, out, error);
}

static enum sl_status host_when_compile(struct sl_arena *arena, struct sl_span json, struct sl_when **out,
                                        struct sl_error *error)
{
    return sl_when_compile(json, arena, out, error);
}

static enum sl_status host_where_compile(struct sl_arena *arena, struct sl_span json, struct sl_when **out,
                                         struct sl_error *error)
{
    return sl_where_compile(json, arena, out, error);
}

/* ---- decimals, text, bytes ---- */

static struct sl_span host_join(struct sl_arena *arena, const struct sl_span *parts, size_t n)
{
    size_t len = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    char *text = sl_arena_alloc(arena, len + 1);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].len)
            memcpy(text + at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    text[len] = '\0';
    return sl_span(text, len);
}

static struct sl_span host_json_quote(struct sl_arena *arena, struct sl_span text)
{
    struct sl_buffer buffer;
    sl_buffer_init_in(&buffer, arena, SIZE_MAX / 4);
    sl_json_add_string(&buffer, text);
    return take_text(&buffer);
}

static struct sl_span host_json_unquote(struct sl_arena *arena, struct sl_span inner)
{
    return sl_json_unescape(inner, arena);
}

static struct sl_span host_json_compact(struct sl_arena *arena, struct sl_span json)
{
    struct sl_buffer buffer;
    sl_buffer_init_in(&buffer, arena, json.len + 1);
    sl_buffer_reserve(&buffer, json.len + 1);
    sl_json_add_compact(&buffer, json);
    return take_text(&buffer);
}

static struct sl_span host_escape(struct sl_arena *arena, struct sl_span text, enum sl_escape escape)
{
    struct sl_buffer buffer;
    sl_buffer_init_in(&buffer, arena, SIZE_MAX / 4);
    sl_escape_text(text, escape, &buffer);
    return take_text(&buffer);
}

static struct sl_span host_gzip(struct sl_arena *arena, const struct sl_span *parts, size_t n, int level)
{
    struct sl_buffer buffer;
    sl_buffer_init_in(&buffer, arena, SIZE_MAX / 4);
    sl_gzip_add(&buffer, parts, n, level);
    return take_text(&buffer);
}

/* SHA256() looks its implementation up at each call, which takes longer than a short text. Pipelines may be
 * at work on several threads: each has a context of its own, freed when its thread ends. */
static pthread_once_t sha_once = PTHREAD_ONCE_INIT;
static pthread_key_t sha_key;
static EVP_MD *sha_md;

static void free_sha(void *work)
{
    EVP_MD_CTX_free(work);
}

static void find_sha(void)
{
    sha_md = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (pthread_key_create(&sha_key, free_sha) != 0)
        sl_die("no thread-specific memory for SHA-256");
}

static EVP_MD_CTX *sha_context(void)
{
    pthread_once(&sha_once, find_sha);
    EVP_MD_CTX *work = pthread_getspecific(sha_key);
    if (work)
        return work;
    work = EVP_MD_CTX_new();
    (void)pthread_setspecific(sha_key, work);
    return work;
}

static void host_sha256(struct sl_span bytes, unsigned char out[32])
{
    EVP_MD_CTX *work = sha_context();
    const EVP_MD *md = sha_md;
    if (!md || !work || !EVP_DigestInit_ex2(work, md, NULL) ||
        !EVP_DigestUpdate(work, bytes.ptr, bytes.len) || !EVP_DigestFinal_ex(work, out, NULL))
        sl_die("libcrypto: SHA-256 failed; is the installed OpenSSL whole?");
}

static void host_value_sha256(struct sl_value v, unsigned char out[32])
{
    struct sl_buffer text;
    sl_buffer_init(&text, SL_CANONICAL_BYTES);
    sl_buffer_reserve(&text, v.raw.len + SL_VALUE_JSON_BYTES + 1);
    sl_value_canonical(v, &text);
    host_sha256(sl_buffer_span(&text), out);
    sl_buffer_clean_up(&text);
}

static bool host_record_trace(struct sl_route *route, const struct sl_record *r, struct sl_trace_context *out)
{
    return sl_record_trace(r, &route->pipeline->config.trace, out);
}

const struct sl_host sl_host_table = {
    .abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_host)},
    .mark = host_mark,
    .mark_result = host_mark_result,
    .fail = host_fail,
    .alloc = sl_arena_alloc,
    .route_arena = host_route_arena,
    .now_ms = host_now_ms,
    .wall_ns = host_wall_ns,
    .random = host_random,
    .sleep = host_sleep,
    .log_enabled = host_log_enabled,
    .log = host_log,
    .metric = host_metric,
    .route_name = host_route_name,
    .route_events = host_route_events,
    .option_text = host_option_text,
    .option_integer = host_option_integer,
    .option_bool = host_option_bool,
    .option_template = host_option_template,
    .option_when = host_option_when,
    .option_objects = host_option_objects,
    .option_table = host_option_table,
    .option_queue = host_option_queue,
    .record_event = sl_record_event,
    .record_view = sl_record_view,
    .record_ttl = sl_record_ttl,
    .record_created_ns = sl_record_created_ns,
    .record_computed_bytes = sl_record_computed_bytes,
    .record_text = sl_record_text,
    .record_order = sl_record_order,
    .record_item_key = sl_record_item_key,
    .record_image = sl_record_image,
    .record_attribute = sl_record_attribute,
    .record_path = sl_record_path,
    .record_changed = sl_record_changed,
    .record_diff = host_record_diff,
    .diff_next = host_diff_next,
    .record_to_json = host_record_to_json,
    .value_text = sl_value_text,
    .value_bytes = sl_value_bytes,
    .value_int64 = sl_value_int64,
    .value_is_true = sl_value_is_true,
    .value_member = sl_value_member,
    .value_iter = sl_value_iter,
    .value_next = sl_value_next,
    .value_equal = sl_value_equal,
    .value_json = host_value_json,
    .value_plain = host_value_plain,
    .item_bytes = sl_value_item_bytes,
    .template_compile = host_template_compile,
    .template_render = host_template_render,
    .template_render_image = host_template_render_image,
    .template_render_or = host_template_render_or,
    .template_value = sl_template_value,
    .when_compile = host_when_compile,
    .when_match = sl_when_match,
    .pattern_compile = host_pattern_compile,
    .pattern_match = sl_pattern_match,
    .decimal_new = sl_decimal_new,
    .decimal_add = sl_decimal_add,
    .decimal_text = sl_decimal_text,
    .decimal_is_zero = sl_decimal_is_zero,
    .number_compare = host_number_compare,
    .join = host_join,
    .json_quote = host_json_quote,
    .json_unquote = host_json_unquote,
    .escape = host_escape,
    .gzip = host_gzip,
    .sha256 = host_sha256,
    .event_name = sl_event_name,
    .view_name = sl_view_name,
    .ttl_name = sl_ttl_name,
    .value_put = sl_value_put,
    .json_compact = host_json_compact,
    .value_sha256 = host_value_sha256,
    .note = host_note,
    .template_uses = sl_template_uses,
    .template_type = sl_template_type,
    .template_item = host_template_item,
    .where_compile = host_where_compile,
    .where_match = sl_where_match,
    .when_lacks = sl_when_lacks,
    .template_place = sl_template_place,
    .record_trace = host_record_trace,
};
