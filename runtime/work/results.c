/* Reads the result files of a Distributed Map, one child's entry at a time. */
#include "runtime/work/results.h"

#include "base/json.h"
#include "base/json_walk.h"

#define CODE "BadResults"

/* Read at a time. */
#define CHUNK_BYTES ((size_t)1024 * 1024)

/* A manifest names a file for some gigabytes of results each. */
#define MANIFEST_BYTES ((size_t)1024 * 1024)

/* ---- an object, in pieces ---- */

struct reader {
    struct sl_object_port *port;
    struct sl_span key, etag;
    uint64_t at, whole;       /* read so far; the object's size, known after the first piece */
    struct sl_arena *scratch; /* of one piece */
    struct sl_arena *arena;   /* of the reader */
    struct sl_buffer window;  /* what was read and not used */
    size_t used;              /* of the window */
    int64_t deadline_ms;
};

static void open_reader(struct reader *r, struct sl_object_port *port, struct sl_span key,
                        size_t window_bytes, const struct sl_call *call)
{
    *r = (struct reader){.port = port, .key = key, .deadline_ms = call->deadline_ms};
    r->scratch = sl_arena_new(CHUNK_BYTES / 4);
    r->arena = sl_arena_new(4096);
    sl_buffer_init(&r->window, window_bytes);
}

static void close_reader(struct reader *r)
{
    sl_buffer_clean_up(&r->window);
    sl_arena_destroy(r->scratch);
    sl_arena_destroy(r->arena);
}

static bool is_at_end(const struct reader *r)
{
    return r->etag.ptr && r->at >= r->whole;
}

/* Drops what was used, and appends the next piece. */
static enum sl_status read_more(struct reader *r, struct sl_error *error)
{
    const struct sl_call call = {.arena = r->scratch, .deadline_ms = r->deadline_ms};
    const struct sl_object_read read = {
        .key = r->key, .from = r->at, .max_bytes = CHUNK_BYTES, .etag = r->etag};
    struct sl_object_piece piece = {0};
    r->port->read(r->port, &read, 1, &piece, &call);
    if (piece.result.status != SL_OK) {
        sl_fail(error, piece.result.status, piece.result.code, "%s", piece.result.text);
        sl_arena_reset(r->scratch);
        return error->status;
    }
    if (!r->etag.ptr)
        r->etag = sl_span_str(sl_arena_copy(r->arena, piece.etag));
    r->whole = piece.object_bytes;
    r->at += piece.bytes.len;
    size_t left = r->window.len - r->used;
    if (r->used)
        memmove(r->window.ptr, r->window.ptr + r->used, left);
    r->window.len = left;
    r->used = 0;
    sl_buffer_add_span(&r->window, piece.bytes);
    bool is_short = !piece.bytes.len && r->at < r->whole;
    sl_arena_reset(r->scratch);
    if (r->window.failed)
        return sl_fail(error, SL_REJECT, CODE, "%.*s has an entry of more than %zu bytes", SL_ARG(r->key),
                       SL_WORK_RESULT_BYTES);
    return is_short ? sl_fail(error, SL_RETRY, CODE, "%.*s ended early", SL_ARG(r->key)) : SL_OK;
}

static struct sl_span rest_of(const struct reader *r)
{
    return sl_span_from(sl_buffer_span(&r->window), r->used);
}

enum sl_status sl_work_read_object(struct sl_object_port *port, struct sl_span key, size_t max_bytes,
                                   const struct sl_call *call, struct sl_span *out, struct sl_error *error)
{
    struct reader r;
    open_reader(&r, port, key, max_bytes + CHUNK_BYTES, call);
    enum sl_status status = SL_OK;
    while (status == SL_OK && !is_at_end(&r) && r.window.len < max_bytes)
        status = read_more(&r, error);
    if (status == SL_OK && !is_at_end(&r))
        status = sl_fail(error, SL_REJECT, CODE, "%.*s is longer than %zu bytes", SL_ARG(key), max_bytes);
    *out = sl_span(sl_arena_copy(call->arena, rest_of(&r)), rest_of(&r).len);
    close_reader(&r);
    return status;
}

/* ---- a result file ---- */

static enum sl_status take_entry(const struct sl_work_results *results, struct reader *r,
                                 struct sl_span entry, struct sl_error *error)
{
    struct sl_span output = sl_json_walk_member(entry, SL_LIT("Output"));
    if (output.len < 2 || output.ptr[0] != '"')
        return sl_fail(error, SL_REJECT, CODE, "%.*s has an entry without an Output", SL_ARG(r->key));
    output = sl_json_unescape(sl_span(output.ptr + 1, output.len - 2), r->scratch);
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = sl_json_check(output, &why);
    if (status != SL_OK)
        sl_fail(error, SL_REJECT, CODE, "%.*s has an Output that is not JSON: %s", SL_ARG(r->key), why.text);
    else
        status = results->each(results->context, output, error);
    sl_arena_reset(r->scratch);
    return status;
}

/* The next entry of the array that began, absent when it is not whole yet. `*is_last` after the closing
 * bracket. */
static struct sl_span next_entry(struct reader *r, bool *is_last)
{
    struct sl_span rest = rest_of(r);
    const char *end = sl_span_end(rest);
    const char *p = sl_json_space(rest.ptr, end);
    if (p < end && (*p == ',' || *p == '['))
        p = sl_json_space(p + 1, end);
    *is_last = p < end && *p == ']';
    struct sl_json_scan scan = {.end = end};
    const char *after = p < end && !*is_last ? sl_json_value(&scan, p) : NULL;
    if (!after)
        return sl_span(NULL, 0);
    r->used += (size_t)(after - rest.ptr);
    return sl_span(p, (size_t)(after - p));
}

static enum sl_status read_entries(const struct sl_work_results *results, struct reader *r,
                                   struct sl_error *error)
{
    for (;;) {
        bool is_last = false;
        struct sl_span entry = next_entry(r, &is_last);
        enum sl_status status = SL_OK;
        if (entry.ptr)
            status = take_entry(results, r, entry, error);
        else if (is_last)
            return SL_OK;
        else if (is_at_end(r))
            status = sl_fail(error, SL_REJECT, CODE, "%.*s is not a whole array of results", SL_ARG(r->key));
        else
            status = read_more(r, error);
        if (status != SL_OK)
            return status;
    }
}

/* Reads up to the first byte that is not whitespace: does it open an array? */
static enum sl_status begin_array(struct reader *r, struct sl_error *error)
{
    for (;;) {
        enum sl_status status = read_more(r, error);
        struct sl_span text = rest_of(r);
        const char *p = sl_json_space(text.ptr, sl_span_end(text));
        bool has_begun = p < sl_span_end(text);
        if (status != SL_OK || (has_begun && *p == '['))
            return status;
        if (has_begun || is_at_end(r))
            return sl_fail(error, SL_REJECT, CODE, "%.*s is not an array of results", SL_ARG(r->key));
    }
}

static enum sl_status read_file(const struct sl_work_results *results, struct sl_span key,
                                const struct sl_call *call, struct sl_error *error)
{
    struct reader r;
    open_reader(&r, results->port, key, SL_WORK_RESULT_BYTES + CHUNK_BYTES, call);
    enum sl_status status = begin_array(&r, error);
    if (status == SL_OK)
        status = read_entries(results, &r, error);
    close_reader(&r);
    return status;
}

/* ---- the manifest ---- */

static enum sl_status read_manifest(const struct sl_work_results *results, struct sl_span key,
                                    const struct sl_call *call, struct sl_span *out, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = sl_work_read_object(results->port, key, MANIFEST_BYTES, call, out, error);
    if (status == SL_OK && sl_json_check(*out, &why) != SL_OK)
        return sl_fail(error, SL_REJECT, CODE, "%.*s is not JSON: %s", SL_ARG(key), why.text);
    return status;
}

static struct sl_span text_of(struct sl_span json, const char *name, struct sl_arena *arena)
{
    struct sl_span value = sl_json_walk_member(json, sl_span_str(name));
    return value.len >= 2 && value.ptr[0] == '"'
               ? sl_json_unescape(sl_span(value.ptr + 1, value.len - 2), arena)
               : sl_span(NULL, 0);
}

static enum sl_status check_manifest(const struct sl_work_results *results, struct sl_span manifest,
                                     const struct sl_call *call, struct sl_error *error)
{
    struct sl_span bucket = text_of(manifest, "DestinationBucket", call->arena);
    struct sl_span files = sl_json_walk_member(manifest, SL_LIT("ResultFiles"));
    if (!files.ptr || !sl_span_eq(bucket, results->config->bucket))
        return sl_fail(error, SL_REJECT, CODE,
                       "the manifest is not one of results in the bucket of SLUICE_WORK_PLACE");
    static const char *const states[] = {"FAILED", "PENDING"};
    for (size_t i = 0; i < 2; i++) {
        struct sl_json_walk walk = sl_json_walk(sl_json_walk_member(files, sl_span_str(states[i])));
        struct sl_span file;
        if (sl_json_walk_next(&walk, NULL, &file))
            return sl_fail(error, SL_REJECT, "PiecesFailed",
                           "the manifest lists pieces that are %s: they are not in the target", states[i]);
    }
    return SL_OK;
}

enum sl_status sl_work_results_read(const struct sl_work_results *results, struct sl_span manifest,
                                    const struct sl_call *call, struct sl_error *error)
{
    struct sl_span text, file;
    enum sl_status status = read_manifest(results, manifest, call, &text, error);
    if (status == SL_OK)
        status = check_manifest(results, text, call, error);
    if (status != SL_OK)
        return status;
    struct sl_json_walk walk = sl_json_walk(sl_json_find(text, "ResultFiles.SUCCEEDED"));
    while (status == SL_OK && sl_json_walk_next(&walk, NULL, &file)) {
        struct sl_span key = text_of(file, "Key", call->arena);
        struct sl_span below = key.ptr ? sl_work_key_below(results->config, key) : key;
        if (!below.ptr)
            return sl_fail(error, SL_REJECT, CODE, "the manifest names a file outside SLUICE_WORK_PLACE");
        status = read_file(results, below, call, error);
    }
    return status;
}
