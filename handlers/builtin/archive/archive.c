/* The archive handler: matching records to an object store, one object per slice and prefix. */

#include "base/span.h"
#include "base/array.h"
#include "base/map.h"
#include "handlers/builtin/toolkit/apply.h"
#include "handlers/builtin/toolkit/order.h"
#include "handlers/builtin/toolkit/outcome.h"
#include "handlers/builtin/toolkit/render.h"
#include "handlers/builtin/toolkit/text.h"

#include "handlers/builtin.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum archive_format { ARCHIVE_RECORD, ARCHIVE_ITEM, ARCHIVE_EXPORT, ARCHIVE_JSON };

struct archive {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_object_port *port;
    const struct sl_template *key;
    enum archive_format format;
    enum sl_missing missing;
    int level;           /* of gzip; 0: none */
    unsigned events;     /* that the route lets through, as bits 1 << SL_INSERT, ... */
    int64_t key_unit_ns; /* within one such unit of time the key of one table's records is the same; 0: the
                            key looks at items */
};

/* A line has at most so many parts. */
#define ARCHIVE_LINE_PARTS 9

/* A record's line, newline included, in parts that borrow the record or are in the arena. */
struct archive_line {
    struct sl_span *parts; /* room for ARCHIVE_LINE_PARTS, the caller's */
    size_t n;
};

/* Keys of archive objects: a prefix from the route's template, and a name made of what the object holds. */

/* S3 takes keys of 1,024 bytes, file systems names of 255. A longer segment keeps its beginning and gets a
 * digest; so does a longer prefix, which leaves the target's own prefix some 280 bytes. */
#define SEGMENT_BYTES      200
#define SEGMENT_KEPT_BYTES 120
#define PREFIX_BYTES       640
#define PREFIX_KEPT_BYTES  500
/* In escaped text '%' is always followed by two hexadecimal digits, so a cut text never equals a whole one.
 */
#define CUT_MARK "%%~" /* as a format */

/* ---- the template ---- */

static const struct {
    const char *name;
    int64_t unit_ns;
} constant_places[] = {{"table", 86400000000000}, {"region", 86400000000000}, {"yyyy", 86400000000000},
                       {"mm", 86400000000000},    {"dd", 86400000000000},     {"hh", 3600000000000},
                       {"mi", 60000000000},       {"ss", 1000000000}};

static int64_t place_unit(struct sl_span name)
{
    for (size_t i = 0; i < SL_COUNT(constant_places); i++)
        if (sl_span_is(name, constant_places[i].name))
            return constant_places[i].unit_ns;
    return 0;
}

/* The brace that closes the place at byte `i`: none within backquotes. The template was compiled, so there is
 * one. */
static size_t place_end(struct sl_span text, size_t i)
{
    bool is_quoted = false;
    for (; i < text.len && (is_quoted || text.ptr[i] != '}'); i++)
        is_quoted ^= text.ptr[i] == '`';
    return i;
}

/* Walks over the template's text. Each place counts as one 'x', and "{{" and "}}" as a brace. */
static size_t template_step(struct sl_span text, size_t i, char *c, struct sl_span *place)
{
    *place = (struct sl_span){NULL, 0};
    *c = text.ptr[i];
    bool doubled = i + 1 < text.len && text.ptr[i + 1] == *c;
    if ((*c == '{' || *c == '}') && doubled)
        return i + 2;
    if (*c != '{')
        return i + 1;
    size_t to = place_end(text, i);
    *place = (struct sl_span){text.ptr + i + 1, to - i - 1};
    *c = 'x';
    return to < text.len ? to + 1 : to;
}

static bool is_bad_segment(const char *segment, size_t len)
{
    return len == 0 || (len == 1 && segment[0] == '.') ||
           (len == 2 && segment[0] == '.' && segment[1] == '.');
}

/* What all keys of a route have in common: refuses a template whose own text would leave the prefix or make
 * empty segments, and finds `key_unit_ns`. */
static enum sl_status archive_key_check(struct archive *a, struct sl_span text, struct sl_error *error)
{
    char segment[2];
    size_t len = 0;
    a->key_unit_ns = 86400000000000;
    for (size_t i = 0; i < text.len;) {
        char c;
        struct sl_span place;
        i = template_step(text, i, &c, &place);
        if (place.ptr) {
            int64_t unit = place_unit(place);
            a->key_unit_ns = unit < a->key_unit_ns ? unit : a->key_unit_ns;
        } else if ((unsigned char)c < 0x20 || c == 0x7f) {
            return a->host->fail(error, SL_FATAL, "BadKey", "key: byte %zu is a control character", i - 1);
        }
        if (c != '/') {
            if (len < 2)
                segment[len] = c;
            len++;
        } else if (is_bad_segment(segment, len)) {
            return a->host->fail(error, SL_FATAL, "BadKey",
                                 "key: an empty, \".\" or \"..\" segment ends at byte %zu", i - 1);
        } else {
            len = 0;
        }
    }
    if (len > 0 && is_bad_segment(segment, len))
        return a->host->fail(error, SL_FATAL, "BadKey", "key: the last segment is \".\" or \"..\"");
    return SL_OK;
}

/* ---- the prefix ---- */

/* Where to cut so that no UTF-8 character is cut. */
static size_t whole_characters(const char *text, size_t n)
{
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* Appends the segment, its tail replaced by a digest when it is too long. */
static size_t segment_add(const struct archive *a, struct sl_span segment, char *out)
{
    if (segment.len <= SEGMENT_BYTES) {
        memcpy(out, segment.ptr, segment.len);
        return segment.len;
    }
    size_t kept = whole_characters(segment.ptr, SEGMENT_KEPT_BYTES);
    char digest[SL_TEXT_DIGEST_BYTES + 1];
    sl_text_digest(a->host, segment, digest);
    memcpy(out, segment.ptr, kept);
    return kept + (size_t)snprintf(out + kept, SEGMENT_BYTES - kept, CUT_MARK "%s", digest);
}

/* Shortens what is too long, and ends it with '/'. */
static struct sl_span prefix_fit(const struct archive *a, struct sl_span whole, struct sl_arena *arena)
{
    char *out = a->host->alloc(arena, whole.len + 2);
    size_t n = 0, last_end = 0;
    for (size_t i = 0; i < whole.len;) {
        const char *slash = memchr(whole.ptr + i, '/', whole.len - i);
        size_t to = slash ? (size_t)(slash - whole.ptr) : whole.len;
        n += segment_add(a, (struct sl_span){whole.ptr + i, to - i}, out + n);
        out[n++] = '/';
        if (n <= PREFIX_KEPT_BYTES)
            last_end = n;
        i = to + 1;
    }
    if (n > PREFIX_BYTES) {
        char digest[SL_TEXT_DIGEST_BYTES + 1];
        sl_text_digest(a->host, whole, digest);
        n = last_end + (size_t)snprintf(out + last_end, PREFIX_BYTES - last_end, CUT_MARK "%s/", digest);
    }
    return (struct sl_span){out, n};
}

/* The part of the object's key before its name: empty, or ending in '/'. In `arena`. */
static enum sl_status archive_key_prefix(const struct archive *a, const struct sl_record *r,
                                         struct sl_arena *arena, struct sl_span *out, struct sl_error *error)
{
    struct sl_render in = {.host = a->host,
                           .arena = arena,
                           .record = r,
                           .image = SL_ANY_IMAGE,
                           .missing = a->missing,
                           .escape = SL_ESCAPE_PATH};
    struct sl_span whole;
    enum sl_status status = sl_render_text(&in, a->key, &whole, error);
    if (status != SL_OK)
        return status;
    *out = prefix_fit(a, whole, arena);
    return SL_OK;
}

/* ---- the name ---- */

/* A longer identifier is not a sequence number. */
#define IDENTIFIER_BYTES (SL_ORDER_DIGITS + 24)

/* Objects of one prefix sort by the first sequence number they hold, where there is one. */
static void padded_sequence(const struct archive *a, const struct sl_record *r,
                            char out[IDENTIFIER_BYTES + 1])
{
    struct sl_span text = a->host->record_text(r, SL_FIELD_IDENTIFIER);
    if (!sl_span_is_digits(text) || text.len > IDENTIFIER_BYTES)
        text.len = 0;
    *sl_order_put(out, text) = '\0';
}

/* What identifies a record: where it comes from, its identifier there, and its event id. A line of an export
 * has neither identifier nor event id; its own text identifies it. */
static size_t identity(const struct archive *a, const struct sl_record *r, struct sl_span parts[3])
{
    parts[0] = a->host->record_text(r, SL_FIELD_SOURCE_ARN);
    parts[1] = a->host->record_text(r, SL_FIELD_IDENTIFIER);
    parts[2] = a->host->record_text(r, SL_FIELD_EVENT_ID);
    if (parts[1].len == 0 && parts[2].len == 0)
        parts[2] = a->host->record_text(r, SL_FIELD_RAW);
    return parts[0].len + parts[1].len + parts[2].len + 3;
}

/* The digest of the format's name and of every record's identity, each part closed with a newline. */
static void content_digest(const struct archive *a, const struct sl_record *const *records, size_t n,
                           struct sl_arena *arena, char out[SL_TEXT_DIGEST_BYTES + 1])
{
    struct sl_span parts[3], last_arn = {NULL, 0};
    size_t total = 1;
    for (size_t i = 0; i < n; i++)
        total += identity(a, records[i], parts);
    char *text = a->host->alloc(arena, total), *at = text;
    *at++ = (char)('0' + a->format);
    for (size_t i = 0; i < n; i++) {
        identity(a, records[i], parts);
        /* The source is written only where it changes. It is the same for nearly all records. */
        bool same = i > 0 && sl_span_eq(parts[0], last_arn);
        last_arn = parts[0];
        for (size_t k = same ? 1 : 0; k < 3; k++) {
            at = sl_text_put(at, parts[k]);
            *at++ = '\n';
        }
    }
    sl_text_digest(a->host, (struct sl_span){text, (size_t)(at - text)}, out);
}

/* The object's whole key: the prefix, and a name made of what the object holds. In `arena`. */
static struct sl_span archive_key_name(const struct archive *a, struct sl_span prefix,
                                       const struct sl_record *const *records, size_t n,
                                       struct sl_arena *arena)
{
    char sequence[IDENTIFIER_BYTES + 1], digest[SL_TEXT_DIGEST_BYTES + 1];
    padded_sequence(a, records[0], sequence);
    content_digest(a, records, n, arena, digest);
    size_t room = prefix.len + sizeof(sequence) + sizeof(digest) + 48;
    char *key = a->host->alloc(arena, room);
    sl_text_put(key, prefix);
    int len = snprintf(key + prefix.len, room - prefix.len, "%s-%zu-%s.%s%s", sequence, n, digest,
                       a->format == ARCHIVE_EXPORT ? "json" : "jsonl", a->level ? ".gz" : "");
    return (struct sl_span){key, prefix.len + (size_t)len};
}

/* One line of an archive: the four formats. Images go in as the bytes they came in. */

/* JSON text that came on several lines is put on one. */
static struct sl_span one_line(const struct archive *a, struct sl_span json, struct sl_arena *arena)
{
    if (!memchr(json.ptr, '\n', json.len) && !memchr(json.ptr, '\r', json.len))
        return json;
    return a->host->json_compact(arena, json);
}

static const char *format_name(enum archive_format format)
{
    static const char *const names[] = {"record", "item", "export", "json"};
    return names[format];
}

/* The image without which a record of that event has no line; SL_KEYS: none is needed. */
static enum sl_image image_needed(const struct archive *a, enum sl_event event)
{
    if (a->format == ARCHIVE_RECORD)
        return SL_KEYS;
    if (event != SL_REMOVE)
        return SL_NEW_IMAGE;
    return a->format == ARCHIVE_EXPORT ? SL_KEYS : SL_OLD_IMAGE;
}

static bool view_gives(enum sl_view view, enum sl_image image)
{
    if (view == SL_VIEW_UNKNOWN || view == SL_VIEW_NEW_AND_OLD_IMAGES || image == SL_KEYS)
        return true;
    return view == (image == SL_NEW_IMAGE ? SL_VIEW_NEW_IMAGE : SL_VIEW_OLD_IMAGE);
}

static enum sl_status refuse_view(const struct archive *a, enum sl_view view, enum sl_event event,
                                  struct sl_error *error)
{
    const char *image = event == SL_REMOVE ? "OldImage" : "NewImage", *name = a->host->event_name(event);
    return a->host->fail(error, SL_FATAL, "ViewType",
                         "format %s needs the %s of every %s, which a stream of view type %s does not carry: "
                         "enable the stream with NEW_AND_OLD_IMAGES, or leave %s out with \"when\"",
                         format_name(a->format), image, name, a->host->view_name(view), name);
}

/* Has a stream of that view type what the lines of all the route's events need? */
static enum sl_status archive_accepts(const struct archive *a, enum sl_view view, struct sl_error *error)
{
    for (int event = SL_INSERT; event <= SL_REMOVE; event++) {
        if ((a->events & 1u << event) && !view_gives(view, image_needed(a, (enum sl_event)event)))
            return refuse_view(a, view, (enum sl_event)event, error);
    }
    return SL_OK;
}

/* The stream is not to blame: its view type was accepted, or is not known. */
static enum sl_status image_missing(const struct archive *a, const struct sl_record *r,
                                    struct sl_error *error)
{
    enum sl_event event = a->host->record_event(r);
    return a->host->fail(error, SL_REJECT, "NoImage", "format %s: the %s has no %s", format_name(a->format),
                         a->host->event_name(event), event == SL_REMOVE ? "OldImage" : "NewImage");
}

/* Streams have whole seconds. The last six digits of the sequence number take the place of the microseconds:
 * they rise with the changes of a shard, except where they begin again, and are the same at every delivery.
 */
static int64_t write_micros(struct sl_span sequence, int64_t created_ns)
{
    int64_t micros = created_ns / 1000;
    if (created_ns % 1000000000 != 0 || !sl_span_is_digits(sequence))
        return micros;
    int64_t part = 0;
    for (size_t i = sequence.len > 6 ? sequence.len - 6 : 0; i < sequence.len; i++)
        part = part * 10 + (sequence.ptr[i] - '0');
    return micros + part;
}

static enum sl_status metadata(const struct archive *a, const struct sl_record *r, struct sl_arena *arena,
                               struct sl_span *out, struct sl_error *error)
{
    int64_t created_ns = a->host->record_created_ns(r);
    if (created_ns <= 0)
        return a->host->fail(error, SL_REJECT, "NoCreationTime",
                             "format export: the record has no ApproximateCreationDateTime");
    struct sl_span sequence = a->host->record_text(r, SL_FIELD_SEQUENCE_NUMBER);
    bool has_sequence = sl_span_is_digits(sequence);
    size_t room = 128 + (has_sequence ? sequence.len : 0);
    char *text = a->host->alloc(arena, room);
    int n = snprintf(
        text, room, "{\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"%" PRId64 "\"}%s%.*s%s},\"Keys\":",
        write_micros(sequence, created_ns), has_sequence ? ",\"SequenceNumber\":{\"S\":\"" : "",
        has_sequence ? (int)sequence.len : 0, has_sequence ? sequence.ptr : "", has_sequence ? "\"}" : "");
    *out = (struct sl_span){text, (size_t)n};
    return SL_OK;
}

static void add(struct archive_line *line, struct sl_span part)
{
    line->parts[line->n++] = part;
}

static enum sl_status add_export(const struct archive *a, const struct sl_record *r, struct sl_arena *arena,
                                 struct archive_line *line, struct sl_error *error)
{
    struct sl_span head = {NULL, 0};
    enum sl_status status = metadata(a, r, arena, &head, error);
    if (status != SL_OK)
        return status;
    struct sl_value after = a->host->record_image(r, SL_NEW_IMAGE);
    struct sl_value before = a->host->record_image(r, SL_OLD_IMAGE);
    add(line, head);
    add(line, one_line(a, a->host->record_image(r, SL_KEYS).raw, arena));
    if (after.type != SL_NONE) {
        add(line, SL_LIT(",\"NewImage\":"));
        add(line, one_line(a, after.raw, arena));
    }
    if (before.type != SL_NONE) {
        add(line, SL_LIT(",\"OldImage\":"));
        add(line, one_line(a, before.raw, arena));
    }
    add(line, SL_LIT("}\n"));
    return SL_OK;
}

/* Adds the record's parts to the line. SL_REJECT when the record lacks what the format needs. */
static enum sl_status archive_line(const struct archive *a, const struct sl_record *r, struct sl_arena *arena,
                                   struct archive_line *line, struct sl_error *error)
{
    struct sl_value image = a->host->record_image(r, image_needed(a, a->host->record_event(r)));
    if (a->format != ARCHIVE_RECORD && image.type == SL_NONE)
        return image_missing(a, r, error);
    switch (a->format) {
    case ARCHIVE_RECORD:
        add(line, one_line(a, a->host->record_text(r, SL_FIELD_RAW), arena));
        add(line, SL_LIT("\n"));
        break;
    case ARCHIVE_ITEM:
        add(line, SL_LIT("{\"Item\":"));
        add(line, one_line(a, image.raw, arena));
        add(line, SL_LIT("}\n"));
        break;
    case ARCHIVE_EXPORT:
        return add_export(a, r, arena, line, error);
    case ARCHIVE_JSON:
        add(line, a->host->value_plain(image, arena));
        add(line, SL_LIT("\n"));
    }
    return SL_OK;
}

/* ---- the handler ---- */

/* The records of a slice that go into one object. */
struct group {
    struct sl_span prefix;
    uint32_t n;     /* records */
    uint32_t first; /* where they begin in the slice's order by group */
};

/* A slice on its way into objects. All arrays are in the slice's arena. */
struct plan {
    const struct archive *a;
    struct sl_slice *slice;
    struct sl_outcome outcome;
    struct sl_map prefixes; /* their numbers are those of the groups */
    struct group *groups;
    size_t n_groups;
    uint32_t *group_of; /* record -> group, NONE when it is not archived */
    uint32_t *order;    /* records by group, in stream order within each */
    int64_t unit;       /* of the last record whose prefix was made, and its group */
    uint32_t unit_group;
    struct sl_span unit_table, unit_region;
};

#define NONE UINT32_MAX

/* ---- which record goes into which object ---- */

static void plan_init(struct plan *p, const struct archive *a, struct sl_slice *slice)
{
    const struct sl_host *host = a->host;
    *p = (struct plan){.a = a, .slice = slice, .unit_group = NONE};
    sl_outcome_init(&p->outcome, host, slice);
    sl_map_init(&p->prefixes, slice->arena, a->key_unit_ns ? 4 : slice->n);
    p->group_of = host->alloc(slice->arena, slice->n * sizeof(*p->group_of));
    p->order = host->alloc(slice->arena, slice->n * sizeof(*p->order));
}

/* Records of one table in one unit of time share their prefix: it is made once. */
static bool same_unit(struct plan *p, const struct sl_record *r)
{
    const struct archive *a = p->a;
    if (a->key_unit_ns == 0)
        return false;
    int64_t created_ns = a->host->record_created_ns(r);
    int64_t unit = created_ns > 0 ? created_ns / a->key_unit_ns : -1;
    struct sl_span table = a->host->record_text(r, SL_FIELD_TABLE);
    struct sl_span region = a->host->record_text(r, SL_FIELD_REGION);
    bool same = p->unit_group != NONE && unit == p->unit && sl_span_eq(table, p->unit_table) &&
                sl_span_eq(region, p->unit_region);
    p->unit = unit;
    p->unit_table = table;
    p->unit_region = region;
    return same;
}

static void record_place(struct plan *p, size_t i)
{
    const struct archive *a = p->a;
    const struct sl_record *r = p->slice->records[i];
    if (same_unit(p, r)) {
        p->group_of[i] = p->unit_group;
        return;
    }
    struct sl_span prefix;
    struct sl_error error = SL_NO_ERROR;
    p->group_of[i] = p->unit_group = NONE;
    enum sl_status status = archive_key_prefix(a, r, p->slice->arena, &prefix, &error);
    if (status == SL_OK)
        p->group_of[i] = p->unit_group = sl_map_index(&p->prefixes, prefix);
    else if (!sl_render_is_skipped(a->missing, &error))
        sl_outcome_fail(&p->outcome, i, &error);
}

static void order_by_group(struct plan *p)
{
    p->n_groups = p->prefixes.n;
    p->groups = p->a->host->alloc(p->slice->arena, p->n_groups * sizeof(*p->groups));
    for (size_t g = 0; g < p->n_groups; g++)
        p->groups[g] = (struct group){.prefix = p->prefixes.entries[g].text};
    for (size_t i = 0; i < p->slice->n; i++)
        if (p->group_of[i] != NONE)
            p->groups[p->group_of[i]].n++;
    for (size_t g = 1; g < p->n_groups; g++)
        p->groups[g].first = p->groups[g - 1].first + p->groups[g - 1].n;
    for (size_t g = 0; g < p->n_groups; g++)
        p->groups[g].n = 0;
    for (size_t i = 0; i < p->slice->n; i++) {
        if (p->group_of[i] == NONE)
            continue;
        struct group *g = &p->groups[p->group_of[i]];
        p->order[g->first + g->n++] = (uint32_t)i;
    }
}

/* ---- one object ---- */

static struct sl_span body_of(const struct archive *a, const struct sl_span *parts, size_t n,
                              struct sl_arena *arena)
{
    return a->level ? a->host->gzip(arena, parts, n, a->level) : a->host->join(arena, parts, n);
}

/* Makes the group's object of the records that have a line. The others are marked and leave the group. */
static void object_make(struct plan *p, struct group *g, struct sl_object *object)
{
    const struct archive *a = p->a;
    struct sl_arena *arena = p->slice->arena;
    struct sl_span *parts = a->host->alloc(arena, g->n * ARCHIVE_LINE_PARTS * sizeof(*parts));
    const struct sl_record **records = a->host->alloc(arena, g->n * sizeof(const struct sl_record *));
    size_t n_parts = 0, kept = 0;
    for (size_t k = 0; k < g->n; k++) {
        uint32_t i = p->order[g->first + k];
        struct archive_line line = {.parts = parts + n_parts};
        struct sl_error why = SL_NO_ERROR;
        if (archive_line(a, p->slice->records[i], arena, &line, &why) != SL_OK) {
            sl_outcome_fail(&p->outcome, i, &why);
            continue;
        }
        n_parts += line.n;
        p->order[g->first + kept] = i;
        records[kept++] = p->slice->records[i];
    }
    g->n = kept;
    if (kept == 0)
        return;
    *object = (struct sl_object){.key = archive_key_name(a, g->prefix, records, kept, arena),
                                 .body = body_of(a, parts, n_parts, arena),
                                 .content_type = "application/x-ndjson",
                                 .content_encoding = a->level ? "gzip" : NULL,
                                 .content_named = true};
}

/* The object's failure is shared by its records. */
static void object_result(struct plan *p, const struct group *g, const struct sl_result *result)
{
    if (result->status == SL_OK)
        return;
    struct sl_error error = SL_NO_ERROR;
    sl_outcome_error(p->a->host, result, &error);
    for (size_t k = 0; k < g->n; k++)
        sl_outcome_shared(&p->outcome, p->order[g->first + k], &error);
}

/* ---- the slice ---- */

static enum sl_status objects_write(struct plan *p, struct sl_error *error)
{
    const struct archive *a = p->a;
    struct sl_object *objects = a->host->alloc(p->slice->arena, p->n_groups * sizeof(*objects));
    size_t n = 0;
    for (size_t g = 0; g < p->n_groups; g++) {
        object_make(p, &p->groups[g], &objects[n]);
        if (p->groups[g].n > 0)
            p->groups[n++] = p->groups[g];
    }
    p->n_groups = n;
    const struct sl_result *results = sl_apply_objects(p->slice, a->port, objects, n);
    for (size_t g = 0; g < n; g++)
        object_result(p, &p->groups[g], &results[g]);
    return sl_outcome_end(&p->outcome, error);
}

static enum sl_status handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct plan plan;
    plan_init(&plan, self, slice);
    for (size_t i = 0; i < slice->n; i++)
        record_place(&plan, i);
    order_by_group(&plan);
    return objects_write(&plan, error);
}

static enum sl_status accepts(void *self, enum sl_view view, struct sl_error *error)
{
    return archive_accepts(self, view, error);
}

/* ---- opening ---- */

static const struct sl_option options[] = {
    {"to", SL_OPTION_OBJECTS, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "object store: s3://bucket/prefix, file:folder"},
    {"format", SL_OPTION_ENUM, 0, 0, 0, "record|item|export|json", "record",
     "lines: record (lossless, replayable), item ({\"Item\":...}), export (incremental export), json "
     "(plain)"},
    {"key", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, "{table}/dt={yyyy}-{mm}-{dd}/hour={hh}/",
     "the part of an object's key before its name"},
    {"missing", SL_OPTION_ENUM, 0, 0, 0, SL_MISSING_VALUES, "reject",
     "a record that lacks what `key` names: reject it, leave it out (skip), or put nothing in the place "
     "(empty)"},
    {"compression", SL_OPTION_ENUM, 0, 0, 0, "gzip|none", "gzip", "of the objects"},
    {"level", SL_OPTION_INTEGER, 0, 1, 9, NULL, "6", "of gzip: 1 is fast, 9 is small"},
    {.type = SL_OPTION_END},
};

const struct sl_option_use archive_uses[] = {
    {"level", 0, "compression", "none", true, "\"compression\" is \"none\""},
    {.option = NULL},
};

static enum sl_status open_archive(const struct sl_host *host, struct sl_route *route, void **self,
                                   struct sl_error *error)
{
    static const char *const formats[] = {"record", "item", "export", "json", NULL};
    struct archive *a = host->alloc(host->route_arena(route), sizeof(*a));
    *a = (struct archive){.host = host,
                          .route = route,
                          .port = host->option_objects(route, "to"),
                          .key = host->option_template(route, "key"),
                          .events = host->route_events(route)};
    a->format = (enum archive_format)sl_text_index(host->option_text(route, "format"), formats);
    a->missing = sl_render_missing(host, route);
    if (sl_span_is(host->option_text(route, "compression"), "gzip"))
        a->level = (int)host->option_integer(route, "level");
    *self = a;
    return archive_key_check(a, host->option_text(route, "key"), error);
}

static enum sl_status per_item(void *self, struct sl_per_item *out, struct sl_error *error)
{
    const struct archive *a = self;
    (void)out;
    return a->host->fail(error, SL_REJECT, "NotPerItem",
                         "an archive holds changes, by the time of each; an item is not a change");
}

static enum sl_status any_order(void *self, struct sl_any_order *out, struct sl_error *error)
{
    const struct archive *a = self;
    (void)out;
    return a->host->fail(error, SL_REJECT, "NotAnyOrder",
                         "an archive is read as complete up to a moment, by restore, manifest and verify");
}

static enum sl_status price(void *self, struct sl_price *price, struct sl_error *error)
{
    (void)self;
    (void)error;
    price->formula = "one object for each \"key\" that the batch touches, of all its records";
    return SL_OK;
}

const struct sl_handler sl_archive_handler = {
    .abi = SL_HANDLER_ABI,
    .name = "archive",
    .summary = "matching records to an object store, as compressed lines",
    .options = options,
    .open = open_archive,
    .handle = handle,
    .accepts = accepts,
    .per_item = per_item,
    .price = price,
    .any_order = any_order,
};
