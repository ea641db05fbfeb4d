/* Range by range, all of them of the object that was begun. */
#include "data/source/whole.h"

#include "base/error.h"
#include "base/gzip.h"

#define READ_BYTES ((size_t)8 * 1024 * 1024)
#define READ_MS    60000

enum sl_status sl_whole_unpack(struct sl_span bytes, struct sl_arena *arena, struct sl_whole *out,
                               struct sl_error *error)
{
    struct sl_buffer text;
    out->text = bytes;
    out->was_packed = sl_gzip_is(bytes);
    if (!out->was_packed)
        return SL_OK;
    sl_buffer_init_in(&text, arena, SL_WHOLE_BYTES);
    enum sl_status status = sl_gzip_expand(bytes, &text, error);
    out->text = sl_buffer_span(&text);
    return status;
}

enum sl_status sl_whole_read(struct sl_object_port *port, struct sl_clock *clock, struct sl_span key,
                             struct sl_arena *arena, struct sl_whole *out, struct sl_error *error)
{
    struct sl_buffer raw;
    struct sl_object_piece piece = {.bytes = {NULL, 0}};
    *out = (struct sl_whole){.was_packed = false};
    sl_buffer_init_in(&raw, arena, SL_WHOLE_BYTES);
    do {
        const struct sl_call call = {.arena = arena, .deadline_ms = clock->now_ms(clock) + READ_MS};
        const struct sl_object_read read = {
            .key = key, .from = raw.len, .max_bytes = READ_BYTES, .etag = out->etag};
        piece = (struct sl_object_piece){.bytes = {NULL, 0}};
        port->read(port, &read, 1, &piece, &call);
        if (piece.result.status != SL_OK)
            return sl_fail(error, piece.result.status, piece.result.code, "%s", piece.result.text);
        sl_buffer_add_span(&raw, piece.bytes);
        out->etag = piece.etag.len ? piece.etag : out->etag;
    } while (piece.bytes.len == READ_BYTES && !raw.failed);
    if (raw.failed)
        return sl_fail(error, SL_REJECT, "TooLarge", "it is larger than an archive's objects are");
    return sl_whole_unpack(sl_buffer_span(&raw), arena, out, error);
}
