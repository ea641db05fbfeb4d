/* One line of an archive: the four formats. Images go in as the bytes they came in. */
#include "handlers/archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* JSON text that came over several lines is put on one: between tokens whitespace goes, strings stay. */
static struct sl_span one_line(const struct archive *a, struct sl_span json, struct sl_arena *arena)
{
    if (!memchr(json.ptr, '\n', json.len) && !memchr(json.ptr, '\r', json.len))
        return json;
    char *out = a->host->alloc(arena, json.len);
    size_t n = 0;
    bool in_string = false;
    for (size_t i = 0; i < json.len; i++) {
        char c = json.ptr[i];
        if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r'))
            continue;
        out[n++] = c;
        if (c == '"')
            in_string = !in_string;
        else if (c == '\\' && i + 1 < json.len)
            out[n++] = json.ptr[++i];
    }
    return (struct sl_span){out, n};
}

static const char *view_name(enum sl_view view)
{
    static const char *const names[] = {"unknown", "KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE",
                                        "NEW_AND_OLD_IMAGES"};
    return names[view];
}

static const char *format_name(enum archive_format format)
{
    static const char *const names[] = {"record", "item", "export", "json"};
    return names[format];
}

static const char *event_name(enum sl_event event)
{
    return event == SL_INSERT ? "INSERT" : event == SL_MODIFY ? "MODIFY" : "REMOVE";
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
    const char *image = event == SL_REMOVE ? "OldImage" : "NewImage";
    return a->host->fail(error, SL_FATAL, "ViewType",
                         "format %s needs the %s of every %s, which a stream of view type %s does not carry: "
                         "enable the stream with NEW_AND_OLD_IMAGES, or leave %s out with \"when\"",
                         format_name(a->format), image, event_name(event), view_name(view),
                         event_name(event));
}

enum sl_status archive_accepts(const struct archive *a, enum sl_view view, struct sl_error *error)
{
    for (int event = SL_INSERT; event <= SL_REMOVE; event++) {
        if ((a->events & 1u << event) && !view_gives(view, image_needed(a, (enum sl_event)event)))
            return refuse_view(a, view, (enum sl_event)event, error);
    }
    return SL_OK;
}

/* A record of a known view type that lacks its image tells of the stream, one of an unknown type of itself.
 */
static enum sl_status image_missing(const struct archive *a, const struct sl_record *r,
                                    struct sl_error *error)
{
    enum sl_view view = a->host->record_view(r);
    enum sl_event event = a->host->record_event(r);
    if (!view_gives(view, image_needed(a, event)))
        return refuse_view(a, view, event, error);
    return a->host->fail(error, SL_REJECT, "NoImage", "format %s: the %s has no %s", format_name(a->format),
                         event_name(event), event == SL_REMOVE ? "OldImage" : "NewImage");
}

/* Streams tell whole seconds. The last six digits of the sequence number stand for the rest: they rise with
 * the changes of a shard but where they begin anew, and they are the same at every delivery. */
static int64_t write_micros(struct sl_span sequence, int64_t created_ns)
{
    int64_t micros = created_ns / 1000;
    if (created_ns % 1000000000 != 0 || !sl_text_is_digits(sequence))
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
                             "format export: the record does not tell when the change was made");
    struct sl_span sequence = a->host->record_text(r, SL_FIELD_SEQUENCE_NUMBER);
    bool has_sequence = sl_text_is_digits(sequence);
    size_t room = 128 + (has_sequence ? sequence.len : 0);
    char *text = a->host->alloc(arena, room);
    int n = snprintf(
        text, room, "{\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"%" PRId64 "\"}%s%.*s%s},\"Keys\":",
        write_micros(sequence, created_ns), has_sequence ? ",\"SequenceNumber\":{\"S\":\"" : "",
        has_sequence ? (int)sequence.len : 0, has_sequence ? sequence.ptr : "", has_sequence ? "\"}" : "");
    *out = (struct sl_span){text, (size_t)n};
    return SL_OK;
}

static enum sl_status export_line(const struct archive *a, const struct sl_record *r, struct sl_arena *arena,
                                  struct sl_span *parts, size_t *n, struct sl_error *error)
{
    static const struct {
        enum sl_image image;
        struct sl_span name;
    } images[] = {{SL_NEW_IMAGE, {",\"NewImage\":", 12}}, {SL_OLD_IMAGE, {",\"OldImage\":", 12}}};

    enum sl_status status = metadata(a, r, arena, &parts[0], error);
    if (status != SL_OK)
        return status;
    parts[1] = one_line(a, a->host->record_image(r, SL_KEYS).raw, arena);
    *n = 2;
    for (size_t i = 0; i < 2; i++) {
        struct sl_value image = a->host->record_image(r, images[i].image);
        if (image.type == SL_NONE)
            continue;
        parts[(*n)++] = images[i].name;
        parts[(*n)++] = one_line(a, image.raw, arena);
    }
    parts[(*n)++] = SL_TEXT("}\n");
    return SL_OK;
}

enum sl_status archive_line(const struct archive *a, const struct sl_record *r, struct sl_arena *arena,
                            struct sl_span parts[ARCHIVE_LINE_PARTS], size_t *n, struct sl_error *error)
{
    *n = 0;
    if (a->format == ARCHIVE_RECORD) {
        parts[(*n)++] = one_line(a, a->host->record_text(r, SL_FIELD_RAW), arena);
        parts[(*n)++] = SL_TEXT("\n");
        return SL_OK;
    }
    enum sl_image needed = image_needed(a, a->host->record_event(r));
    struct sl_value image = a->host->record_image(r, needed);
    if (image.type == SL_NONE)
        return image_missing(a, r, error);
    if (a->format == ARCHIVE_EXPORT)
        return export_line(a, r, arena, parts, n, error);
    if (a->format == ARCHIVE_JSON) {
        parts[(*n)++] = a->host->value_plain(image, arena);
        parts[(*n)++] = SL_TEXT("\n");
        return SL_OK;
    }
    parts[(*n)++] = SL_TEXT("{\"Item\":");
    parts[(*n)++] = one_line(a, image.raw, arena);
    parts[(*n)++] = SL_TEXT("}\n");
    return SL_OK;
}
