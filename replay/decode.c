/* `sluice decode`: prints the records of any input, one JSON line each. */
#include "base/json_walk.h"
#include "base/json_write.h"
#include "replay/flags.h"
#include "replay/source/input.h"
#include "replay/verbs.h"
#include "streams/names.h"
#include "streams/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A line holds one record, which is at most as long as an input, and what we add to it. */
#define LINE_BYTES ((size_t)SL_INPUT_BYTES + (1 << 16))

struct decode {
    const char *ttl_attribute;
    bool keep_going;
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

static bool print_records(struct decode *d, const struct sl_input *input)
{
    for (size_t i = 0; i < input->batch.n; i++) {
        make_line(&d->line, input->name, i, sl_batch_record(&input->batch, i));
        if (fwrite(d->line.ptr, 1, d->line.len, stdout) != d->line.len)
            return false;
    }
    return true;
}

static int cannot_write(void)
{
    fprintf(stderr, "sluice decode: standard output cannot be written: %s\n", strerror(errno));
    return SL_EXIT_FAILED;
}

/* One input after the other, each up to its first bad record. */
static int decode_each(struct decode *d, const struct sl_decode_options *options, char **names, int n)
{
    int result = SL_EXIT_OK;
    for (int i = 0; i < n; i++) {
        struct sl_arena *arena = sl_arena_new(1 << 20);
        struct sl_input input;
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_input_read(names[i], options, arena, &input, &error);
        bool written = print_records(d, &input) && fflush(stdout) == 0;
        if (status != SL_OK) {
            fprintf(stderr, "%s\n", error.text);
            result = SL_EXIT_BAD;
        }
        sl_arena_destroy(arena);
        if (!written)
            return cannot_write();
    }
    return result;
}

/* All inputs are read and checked before the first line is printed. */
static int decode_all(struct decode *d, const struct sl_decode_options *options, char **names, int n)
{
    struct sl_arena *arena = sl_arena_new(1 << 20);
    struct sl_input *inputs = sl_arena_alloc(arena, (size_t)n * sizeof(*inputs));
    struct sl_error error = SL_NO_ERROR;
    int result = SL_EXIT_OK;
    for (int i = 0; i < n && result == SL_EXIT_OK; i++) {
        if (sl_input_read(names[i], options, arena, &inputs[i], &error) == SL_OK)
            continue;
        fprintf(stderr, "%s\n", error.text);
        result = SL_EXIT_BAD;
    }
    for (int i = 0; i < n && result == SL_EXIT_OK; i++)
        if (!print_records(d, &inputs[i]))
            result = cannot_write();
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
    const struct sl_decode_options options = {.ttl_attribute = sl_span_str(d.ttl_attribute),
                                              .any_shape = true};
    sl_buffer_init(&d.line, LINE_BYTES);
    result = d.keep_going ? decode_each(&d, &options, argv + 1, n) : decode_all(&d, &options, argv + 1, n);
    sl_buffer_clean_up(&d.line);
    return result;
}
