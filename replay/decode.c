/* `sluice decode`: prints the records of any input, one JSON line each. */
#include "base/json_walk.h"
#include "base/json_write.h"
#include "replay/flags.h"
#include "replay/source/inputs.h"
#include "replay/verbs.h"
#include "streams/names.h"
#include "streams/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A line holds one record, which is at most as long as a document, and what we add to it. */
#define LINE_BYTES (SL_INPUTS_DOCUMENT_BYTES + (1 << 16))

struct decode {
    const char *ttl_attribute;
    bool keep_going;
    struct sl_inputs inputs;
    struct sl_buffer line;
};

/* ---- a line ---- */

static void add_verdict(struct sl_buffer *line, const char *file, size_t index, const struct sl_record *r)
{
    sl_buffer_add_str(line, "\"sluice\":{");
    sl_json_add_member(line, "file", sl_span_str(file));
    sl_json_add_integer(line, "index", (int64_t)index);
    sl_json_add_member(line, "ttl", sl_span_str(sl_ttl_name(sl_record_ttl(r))));
    sl_json_add_integer(line, "bytes", (int64_t)sl_record_computed_bytes(r));
    sl_buffer_add_str(line, "}}\n");
}

/* Every member and digit as received, except a member that an earlier decode added; then ours. */
static void make_line(struct sl_buffer *line, const char *file, size_t index, const struct sl_record *r)
{
    struct sl_json_walk walk = sl_json_walk(sl_record_text(r, SL_FIELD_RAW));
    struct sl_span name, value;
    sl_buffer_reset(line);
    sl_buffer_add_char(line, '{');
    while (sl_json_walk_next(&walk, &name, &value)) {
        if (sl_span_is(name, "sluice"))
            continue;
        sl_buffer_printf(line, "\"%.*s\":", SL_ARG(name));
        sl_json_add_compact(line, value);
        sl_buffer_add_char(line, ',');
    }
    add_verdict(line, file, index, r);
}

/* ---- the inputs ---- */

static int cannot_write(void)
{
    fprintf(stderr, "sluice decode: standard output cannot be written: %s\n", strerror(errno));
    return SL_EXIT_FAILED;
}

/* What is done with each piece. False: standard output cannot be written. */
typedef bool (*piece_fn)(struct decode *d, const struct sl_source_piece *piece);

static bool pass(struct decode *d, const struct sl_source_piece *piece)
{
    (void)d;
    (void)piece;
    return true;
}

static bool print_records(struct decode *d, const struct sl_source_piece *piece)
{
    for (size_t i = 0; i < piece->batch.n; i++) {
        size_t index = (size_t)piece->from.record + i;
        make_line(&d->line, d->inputs.names[piece->file], index, sl_batch_record(&piece->batch, i));
        if (fwrite(d->line.ptr, 1, d->line.len, stdout) != d->line.len)
            return false;
    }
    return true;
}

/* Reads the inputs `from` to `to` - 1 piece by piece. A bad one ends it, after the good records before the
 * bad one. */
static int read_inputs(struct decode *d, size_t from, size_t to, piece_fn each)
{
    struct sl_arena *arena = sl_arena_new(1 << 20);
    const struct sl_call call = {.arena = arena, .deadline_ms = INT64_MAX};
    struct sl_inputs some = {.names = d->inputs.names + from, .n = to - from};
    struct sl_source_piece piece = {.is_last = false};
    struct sl_error error = SL_NO_ERROR;
    struct sl_source *source = NULL;
    bool is_written = true;
    some.kept = d->inputs.kept ? d->inputs.kept + from : NULL;
    enum sl_status status = sl_inputs_open(&some, d->ttl_attribute, &source, &error);
    while (status == SL_OK && !piece.is_last && is_written) {
        sl_arena_reset(arena);
        status = sl_source_pull(source, SL_SOURCE_PIECE_BYTES, &call, &piece, &error);
        piece.file += from;
        is_written = each(d, &piece);
    }
    sl_source_close(source);
    sl_arena_destroy(arena);
    if (!is_written)
        return cannot_write();
    if (status != SL_OK)
        fprintf(stderr, "%s\n", error.text);
    return status == SL_OK ? SL_EXIT_OK : SL_EXIT_BAD;
}

/* One input after the other, each up to its first bad record. */
static int decode_each(struct decode *d)
{
    int result = SL_EXIT_OK;
    for (size_t i = 0; i < d->inputs.n && result != SL_EXIT_FAILED; i++) {
        int one = read_inputs(d, i, i + 1, print_records);
        result = one != SL_EXIT_OK ? one : result;
        if (fflush(stdout) != 0 && result != SL_EXIT_FAILED)
            result = cannot_write();
    }
    return result;
}

/* All inputs are read twice, so that the first line is printed when all of them have been checked. */
static int decode_all(struct decode *d)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_error error = SL_NO_ERROR;
    int result = SL_EXIT_BAD;
    if (sl_inputs_keep(&d->inputs, arena, &error) != SL_OK)
        fprintf(stderr, "%s\n", error.text);
    else
        result = read_inputs(d, 0, d->inputs.n, pass);
    if (result == SL_EXIT_OK)
        result = read_inputs(d, 0, d->inputs.n, print_records);
    if (result == SL_EXIT_OK && fflush(stdout) != 0)
        result = cannot_write();
    sl_arena_destroy(arena);
    return result;
}

int sl_verb_decode(int argc, char **argv)
{
    struct decode d = {.keep_going = false};
    const struct sl_flag flags[] = {
        {"ttl-attribute", SL_FLAG_TEXT, &d.ttl_attribute, "NAME",
         "the table's TTL attribute: lets removals without a userIdentity be inferred"},
        {"keep-going", SL_FLAG_BOOL, &d.keep_going, NULL,
         "print the good records before a bad one, and continue with the next input"},
        {.type = SL_FLAG_END},
    };
    const struct sl_usage usage = {
        .line = "decode [flags] INPUT...",
        .summary =
            "Prints every record of the inputs as received, one JSON line each, with its TTL verdict and "
            "its\n"
            "size. INPUT is a file, plain or gzip, or - for standard input, in any shape of stream records:\n"
            "Lambda event, GetRecords, Pipes, Kinesis, one record a line, archive, table export.",
        .flags = flags,
        .operand = "INPUT",
        .least = 1,
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    d.inputs = (struct sl_inputs){.names = (const char *const *)argv + 1, .n = (size_t)n};
    sl_buffer_init(&d.line, LINE_BYTES);
    result = d.keep_going ? decode_each(&d) : decode_all(&d);
    sl_buffer_clean_up(&d.line);
    return result;
}
