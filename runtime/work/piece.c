/* A piece of a plan as JSON, and as a source. */
#include "runtime/work/piece.h"

#include "base/array.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "runtime/work/fields.h"

#define OUTSIDE "OutsideSource"

/* ---- as JSON ---- */

static enum sl_status check(const struct sl_work_piece *p, const struct sl_work_config *config,
                            struct sl_error *error)
{
    if (config->is_scan) {
        if (p->file.ptr)
            return sl_fail(error, SL_REJECT, OUTSIDE,
                           "the piece is a file, and SLUICE_WORK_SOURCE is a table");
        if (p->of == 0 || p->of > SL_WORK_PIECES_MAX || p->segment >= p->of)
            return sl_fail(error, SL_REJECT, OUTSIDE, "the piece is no segment: \"segment\" is below \"of\"");
        return SL_OK;
    }
    if (!p->file.ptr || !p->md5.ptr)
        return sl_fail(error, SL_REJECT, OUTSIDE,
                       "the piece has no \"file\" and \"md5\", and SLUICE_WORK_SOURCE is an export");
    if (!sl_work_has_file(config, p->file))
        return sl_fail(error, SL_REJECT, OUTSIDE, "the file %.*s lies outside SLUICE_WORK_SOURCE (%.*s)",
                       SL_ARG(p->file), SL_ARG(config->source));
    return SL_OK;
}

enum sl_status sl_work_piece_read(struct sl_span text, const struct sl_work_config *config,
                                  struct sl_arena *arena, struct sl_work_piece *out, struct sl_error *error)
{
    *out = (struct sl_work_piece){0};
    struct sl_span what;
    const struct sl_work_field fields[] = {
        {"do", SL_WORK_TEXT, false, &what}, /* read before (runtime/work/work.c) */
        {"piece", SL_WORK_COUNT, false, &out->piece},
        {"file", SL_WORK_TEXT, false, &out->file},
        {"md5", SL_WORK_TEXT, false, &out->md5},
        {"items", SL_WORK_COUNT, false, &out->items},
        {"segment", SL_WORK_COUNT, false, &out->segment},
        {"of", SL_WORK_COUNT, false, &out->of},
        {"time", SL_WORK_COUNT, false, &out->time_ms},
        {"since", SL_WORK_COUNT, false, &out->since_ms},
        {"any_order", SL_WORK_BOOL, false, &out->any_order},
        {"arn", SL_WORK_TEXT, false, &out->arn},
        {"routes", SL_WORK_TEXT, false, &out->routes},
        {"write_units", SL_WORK_NUMBER, false, &out->write_units},
        {"read_units", SL_WORK_NUMBER, false, &out->read_units},
        {"state", SL_WORK_OBJECT, false, &out->state},
    };
    enum sl_status status =
        sl_work_fields_read(text, "sluice.backfill", fields, SL_COUNT(fields), arena, error);
    out->write_units = sl_work_share(out->write_units, config->write_units, config->concurrency);
    out->read_units = sl_work_share(out->read_units, config->read_units, config->concurrency);
    return status == SL_OK ? check(out, config, error) : status;
}

static void add_raw(struct sl_buffer *out, const char *name, struct sl_span json)
{
    if (json.ptr)
        sl_json_add_raw(out, name, json);
}

void sl_work_piece_write(const struct sl_work_piece *p, struct sl_buffer *out)
{
    sl_buffer_add_char(out, '{');
    sl_json_add_integer(out, "piece", (int64_t)p->piece);
    if (p->file.ptr) {
        sl_json_add_member(out, "file", p->file);
        sl_json_add_member(out, "md5", p->md5);
        sl_json_add_integer(out, "items", (int64_t)p->items);
    } else {
        sl_json_add_integer(out, "segment", (int64_t)p->segment);
        sl_json_add_integer(out, "of", (int64_t)p->of);
    }
    if (p->time_ms)
        sl_json_add_integer(out, "time", (int64_t)p->time_ms);
    if (p->since_ms)
        sl_json_add_integer(out, "since", (int64_t)p->since_ms);
    if (p->any_order)
        sl_json_add_raw(out, "any_order", SL_LIT("true"));
    sl_work_add_text(out, "arn", p->arn);
    sl_work_add_text(out, "routes", p->routes);
    sl_work_add_units(out, "write_units", p->write_units);
    sl_work_add_units(out, "read_units", p->read_units);
    add_raw(out, "state", p->state);
    sl_buffer_add_char(out, '}');
}

/* ---- as a source ---- */

static enum sl_status open_scan(const struct sl_work_config *config, const struct sl_work_piece *piece,
                                const struct sl_source_options *options, const struct sl_call *call,
                                struct sl_source **out, struct sl_error *error)
{
    const char *target = sl_arena_copy(call->arena, config->source);
    const struct sl_source_scan scan = {
        .target = target,
        .first = piece ? (uint32_t)piece->segment : 0,
        .n = 1,
        .of = piece ? (uint32_t)piece->of : config->segments,
        .read_units = piece ? piece->read_units : 0,
    };
    return sl_source_open_scan(options, &scan, call, out, error);
}

static enum sl_status open_export(const struct sl_work_config *config, const struct sl_work_piece *piece,
                                  const struct sl_source_options *options, const struct sl_call *call,
                                  struct sl_source **out, struct sl_error *error)
{
    struct sl_source_export export = {.place = sl_arena_copy(call->arena, config->source)};
    if (piece) {
        export.file = piece->file;
        export.md5 = piece->md5;
        export.items = piece->items;
    }
    return sl_source_open_export(options, &export, call, out, error);
}

enum sl_status sl_work_piece_open(const struct sl_work_config *config, const struct sl_work_piece *piece,
                                  struct sl_source_options *options, const struct sl_call *call,
                                  struct sl_source **out, struct sl_error *error)
{
    if (config->keys && sl_source_keys_read(config->keys, &options->keys, error) != SL_OK) {
        sl_error_context(error, "SLUICE_WORK_KEYS");
        return error->status;
    }
    if (piece) {
        options->arn = piece->arn;
        options->place = sl_json_walk_member(piece->state, SL_LIT("place"));
    }
    return config->is_scan ? open_scan(config, piece, options, call, out, error)
                           : open_export(config, piece, options, call, out, error);
}
