/* `sluice decode`: the records of any input, one JSON line each. */
#include "base/json.h"
#include "base/json_write.h"
#include "replay/flags.h"
#include "replay/input.h"
#include "replay/verbs.h"
#include "streams/names.h"
#include "streams/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A line holds one record: as long as an input at most, and what we add to it. */
#define LINE_BYTES ((size_t)SL_INPUT_BYTES + (1 << 16))

struct decode {
    const char *ttl_attribute;
    bool keep_going;
    struct sl_buffer line;
};

/* ---- a line ---- */

/* The member at `p`, but for one that an earlier decode added; gives what stands behind it. */
static const char *add_member(struct sl_buffer *line, const char *p, const char *end)
{
    bool escaped;
    const char *close = sl_json_string_end(p + 1, end, &escaped);
    const char *value = sl_json_space(sl_json_space(close + 1, end) + 1, end);
    const char *next = sl_json_value_end(value, end);
    if (!sl_span_eq(sl_span(p, (size_t)(close + 1 - p)), SL_LIT("\"sluice\""))) {
        sl_json_add_compact(line, sl_span(p, (size_t)(next - p)));
        sl_buffer_add_char(line, ',');
    }
    p = sl_json_space(next, end);
    return *p == ',' ? sl_json_space(p + 1, end) : p;
}

static void add_verdict(struct sl_buffer *line, const char *file, size_t index, const struct sl_record *r)
{
    sl_buffer_add_str(line, "\"sluice\":{");
    sl_json_add_member(line, "file", sl_span_str(file));
    sl_json_add_integer(line, "index", (int64_t)index);
    sl_json_add_member(line, "ttl", sl_span_str(sl_ttl_name(sl_record_ttl(r))));
    sl_json_add_integer(line, "bytes", (int64_t)sl_record_computed_bytes(r));
    sl_buffer_add_str(line, "}}\n");
}

/* Every member and digit as it came, and at the end ours. */
static void make_line(struct sl_buffer *line, const char *file, size_t index, const struct sl_record *r)
{
    struct sl_span raw = sl_record_text(r, SL_FIELD_RAW);
    const char *end = raw.ptr + raw.len, *p = sl_json_space(raw.ptr + 1, end);
    sl_buffer_reset(line);
    sl_buffer_add_char(line, '{');
    while (*p == '"')
        p = add_member(line, p, end);
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

/* One input after the other, each as far as it is good. */
static int decode_each(struct decode *d, const struct sl_decode_options *options, char **names, int n)
{
    int result = SL_EXIT_OK;
    for (int i = 0; i < n; i++) {
        struct sl_arena *arena = sl_arena_new(1 << 20);
        struct sl_input input;
        struct sl_error error = {.status = SL_OK};
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
    struct sl_error error = {.status = SL_OK};
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
         "the table's TTL attribute: removals without an identity can be inferred"},
        {"keep-going", SL_FLAG_BOOL, &d.keep_going, NULL,
         "print the good records before a bad one, and go on with the next input"},
        {.type = SL_FLAG_END},
    };
    const struct sl_usage usage = {
        .line = "decode [flags] INPUT...",
        .summary =
            "Prints every record of the inputs as it came, one JSON line each, with its TTL verdict and its\n"
            "size. An input is a file or - for standard input, plain or gzip, in any shape that records\n"
            "come in: Lambda event, GetRecords, Pipes, Kinesis, lines, archive, table export.",
        .flags = flags,
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    if (n == 0) {
        fputs("sluice decode: no input; name a file, or - for standard input\n", stderr);
        return SL_EXIT_BAD;
    }
    const struct sl_decode_options options = {.ttl_attribute = sl_span_str(d.ttl_attribute),
                                              .any_shape = true};
    sl_buffer_init(&d.line, LINE_BYTES);
    result = d.keep_going ? decode_each(&d, &options, argv + 1, n) : decode_all(&d, &options, argv + 1, n);
    sl_buffer_clean_up(&d.line);
    return result;
}
