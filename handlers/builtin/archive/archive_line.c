/* One line of an archive: the four formats. Images go in as the bytes they came in. */
#include "handlers/builtin/archive/archive_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

enum sl_status archive_accepts(const struct archive *a, enum sl_view view, struct sl_error *error)
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
                             "format export: the record has no ApproximateCreationDateTime");
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

enum sl_status archive_line(const struct archive *a, const struct sl_record *r, struct sl_arena *arena,
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
