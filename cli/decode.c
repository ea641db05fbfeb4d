/* `sluice decode`: prints the records of any input, one JSON line each, piece by piece. */
#include "base/block.h"
#include "base/disk.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "cli/flags.h"
#include "live/source/behind.h"
#include "live/source/inputs.h"
#include "live/source/lambda_form.h"
#include "cli/verbs.h"
#include "streams/names.h"
#include "streams/record.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Lines are written so many bytes at a time. The last one before that is a record, which is at most as long
 * as a document, and what we add to it. */
#define OUTPUT_BYTES ((size_t)1 << 20)
#define MOST_BYTES   (OUTPUT_BYTES + SL_INPUTS_DOCUMENT_BYTES + (1 << 16))

struct decode {
    const char *ttl_attribute;
    bool keep_going;
    struct sl_inputs inputs;
    struct sl_buffer out;  /* lines that are not written yet */
    struct sl_buffer file; /* what each line of the input has: its name */
    size_t n_bad;          /* records that were left out */
    int err;               /* of standard output */
    struct sl_behind *printer;
    struct sl_arena *arenas[2]; /* of the piece that is read, and of the one that is printed */
};

/* ---- a line ---- */

static void add_number(struct sl_buffer *out, uint64_t n)
{
    char digits[20], *p = digits + sizeof(digits);
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    sl_buffer_add(out, p, (size_t)(digits + sizeof(digits) - p));
}

static void add_verdict(struct decode *d, size_t index, const struct sl_record *r)
{
    struct sl_buffer *out = &d->out;
    sl_buffer_add_span(out, sl_buffer_span(&d->file));
    add_number(out, index);
    sl_buffer_add_str(out, ",\"ttl\":\"");
    sl_buffer_add_str(out, sl_ttl_name(sl_record_ttl(r)));
    sl_buffer_add_str(out, "\",\"bytes\":");
    add_number(out, sl_record_computed_bytes(r));
    sl_buffer_add_str(out, "}}\n");
}

/* Whether the text may have a member "sluice". Two letters of it are looked for at sixteen places at a time.
 */
static bool may_be_decoded(struct sl_span text)
{
    const char *p = text.ptr, *end = sl_span_end(text);
    for (; end - p >= SL_BLOCK + 8; p += SL_BLOCK) {
        const unsigned char *at = (const unsigned char *)p;
        uint64_t both = sl_block_eq(at + 1, 's') & sl_block_eq(at + 5, 'c');
        if (both && memmem(p, SL_BLOCK + 8, "\"sluice\"", 8))
            return true;
    }
    return memmem(p, (size_t)(end - p), "\"sluice\"", 8);
}

/* Every member as it was received but the one that an earlier decode added, without whitespace. */
static void add_members(struct sl_buffer *out, struct sl_span raw)
{
    struct sl_json_walk walk = sl_json_walk(raw);
    struct sl_span name, value;
    sl_buffer_add_char(out, '{');
    while (sl_json_walk_next(&walk, &name, &value)) {
        if (sl_span_is(name, "sluice"))
            continue;
        sl_buffer_add_char(out, '"');
        sl_buffer_add_span(out, name);
        sl_buffer_add_str(out, "\":");
        sl_json_add_compact(out, value);
        sl_buffer_add_char(out, ',');
    }
}

/* What came compact is written as it is. */
static void add_line(struct decode *d, size_t index, const struct sl_record *r)
{
    struct sl_span raw = sl_record_text(r, SL_FIELD_RAW);
    if (raw.len > 2 && sl_lambda_form_is_compact(raw) && !may_be_decoded(raw)) {
        sl_buffer_add(&d->out, raw.ptr, raw.len - 1);
        sl_buffer_add_char(&d->out, ',');
    } else {
        add_members(&d->out, raw);
    }
    add_verdict(d, index, r);
}

/* ---- standard output ---- */

static bool flush(struct decode *d)
{
    if (!d->err && d->out.len)
        d->err = sl_disk_write(STDOUT_FILENO, sl_buffer_span(&d->out));
    sl_buffer_reset(&d->out);
    return !d->err;
}

/* A reader that went away, as `head` does, is told nothing. */
static int cannot_write(const struct decode *d)
{
    if (d->err != EPIPE)
        fprintf(stderr, "sluice decode: standard output cannot be written: %s\n", strerror(d->err));
    return SL_EXIT_FAILED;
}

/* In its own thread, while the next piece is decoded. */
static bool print_records(void *self, const struct sl_source_piece *piece)
{
    struct decode *d = self;
    for (size_t i = 0; i < piece->batch.n && !d->err; i++) {
        add_line(d, (size_t)piece->from.record + i, sl_batch_record(&piece->batch, i));
        if (d->out.len >= OUTPUT_BYTES)
            (void)flush(d);
    }
    return !d->err;
}

/* ---- the inputs ---- */

/* Most errors name the byte already. */
static void say_bad(const struct sl_error *error)
{
    if (strstr(error->text, " byte "))
        fprintf(stderr, "%s\n", error->text);
    else
        fprintf(stderr, "%s (byte %zu)\n", error->text, error->offset);
}

/* The good records before a bad one are out before anything is said about it. True: the source goes on after
 * the bad one. */
static bool go_on(struct decode *d, struct sl_source *source, const struct sl_call *call,
                  const struct sl_error *error)
{
    bool goes_on = false;
    struct sl_error why = SL_NO_ERROR;
    if (!sl_behind_wait(d->printer) || !flush(d))
        return false;
    if (d->keep_going && sl_source_skip_bad(source, call, &goes_on, &why) != SL_OK)
        fprintf(stderr, "%s\n", why.text);
    if (goes_on)
        say_bad(error);
    else
        fprintf(stderr, "%s\n", error->text);
    d->n_bad += goes_on;
    return goes_on;
}

static void begin_input(struct decode *d, const char *name)
{
    sl_buffer_reset(&d->file);
    sl_buffer_add_str(&d->file, "\"sluice\":{");
    sl_json_add_member(&d->file, "file", sl_span_str(name));
    sl_buffer_add_str(&d->file, ",\"index\":");
}

/* Reads a piece, and has it printed. Of a document that is bad nothing is printed, unless what is good is
 * wanted. False: it was the last one, or nothing more is to be read. */
static bool decode_piece(struct decode *d, struct sl_source *source, enum sl_status *status)
{
    const struct sl_call call = {.arena = d->arenas[0], .deadline_ms = INT64_MAX};
    struct sl_source_piece piece = {.is_last = false};
    struct sl_error error = SL_NO_ERROR;
    sl_arena_reset(call.arena);
    *status = sl_source_pull(source, SL_BEHIND_PIECE_BYTES, &call, &piece, &error);
    bool is_printed = *status == SL_OK || d->keep_going;
    if (is_printed && !sl_behind_give(d->printer, &piece))
        return false;
    d->arenas[0] = d->arenas[1];
    d->arenas[1] = call.arena;
    return *status == SL_OK ? !piece.is_last : go_on(d, source, &call, &error);
}

/* False: it was not read to its end, or not all of it was good. */
static bool decode_input(struct decode *d, size_t i)
{
    struct sl_inputs one = {.names = d->inputs.names + i, .n = 1};
    struct sl_error error = SL_NO_ERROR;
    struct sl_source *source = NULL;
    size_t n_bad = d->n_bad;
    begin_input(d, one.names[0]);
    enum sl_status status = sl_inputs_open(&one, d->ttl_attribute, &source, &error);
    while (status == SL_OK && decode_piece(d, source, &status))
        status = SL_OK;
    (void)sl_behind_wait(d->printer);
    sl_source_close(source);
    return status == SL_OK && d->n_bad == n_bad;
}

static int decode_all(struct decode *d)
{
    bool is_good = true;
    for (int i = 0; i < 2; i++)
        d->arenas[i] = sl_arena_new(1 << 20);
    d->printer = sl_behind_new(print_records, d);
    for (size_t i = 0; i < d->inputs.n && !d->err && (is_good || d->keep_going); i++)
        is_good &= decode_input(d, i);
    sl_behind_destroy(d->printer);
    for (int i = 0; i < 2; i++)
        sl_arena_destroy(d->arenas[i]);
    if (!flush(d))
        return cannot_write(d);
    if (d->n_bad)
        fprintf(stderr, "sluice decode: %zu bad record%s left out\n", d->n_bad,
                d->n_bad == 1 ? " was" : "s were");
    return is_good ? SL_EXIT_OK : SL_EXIT_BAD;
}

int sl_verb_decode(int argc, char **argv)
{
    struct decode d = {.keep_going = false};
    const struct sl_flag flags[] = {
        {"ttl-attribute", SL_FLAG_TEXT, &d.ttl_attribute, "NAME",
         "the table's TTL attribute: lets removals without a userIdentity be inferred"},
        {"keep-going", SL_FLAG_BOOL, &d.keep_going, NULL,
         "say what is bad, leave it out and go on: at the next line, or after a document at the next input"},
        {.type = SL_FLAG_END},
    };
    const struct sl_usage usage = {
        .line = "decode [flags] INPUT...",
        .summary =
            "Prints every record of the inputs as received, one JSON line each, with its TTL verdict and its "
            "size. INPUT is a file, plain or gzip, or - for standard input, in any shape of stream records: "
            "Lambda event, GetRecords, Pipes, Kinesis, one record a line, archive, table export.",
        .example = "sluice decode --ttl-attribute expires_at events.jsonl.gz",
        .flags = flags,
        .operand = "INPUT",
        .least = 1,
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    d.inputs = (struct sl_inputs){.names = (const char *const *)argv + 1, .n = (size_t)n};
    struct sl_error error = SL_NO_ERROR;
    if (!d.keep_going && sl_inputs_check(&d.inputs, &error) != SL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return SL_EXIT_BAD;
    }
    sl_buffer_init(&d.out, MOST_BYTES);
    sl_buffer_init(&d.file, 8 * PATH_MAX);
    result = decode_all(&d);
    sl_buffer_clean_up(&d.out);
    sl_buffer_clean_up(&d.file);
    return result;
}
