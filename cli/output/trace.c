/* Writes the trace: one line per invocation. */
#include "cli/output/trace.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/json_write.h"
#include "live/sandbox/output.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

/* "advance", "checkpoint", "retry", "bisect", "discard". */
static const char *verb_name(enum sl_esm_verb verb)
{
    static const char *const names[] = {"advance", "checkpoint", "retry", "bisect", "discard"};
    return names[verb];
}

static bool is_one_line(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < 0x20)
            return false;
    return true;
}

static void add_answer(struct sl_buffer *out, struct sl_span body)
{
    json_t *root = body.len ? json_loadb(body.ptr, body.len, JSON_DECODE_ANY, NULL) : NULL;
    if (!root) {
        sl_json_add_member(out, "answer", body.ptr ? body : SL_LIT(""));
    } else if (is_one_line(body)) {
        sl_json_add_raw(out, "answer", body);
    } else {
        char *text = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY);
        sl_json_add_raw(out, "answer", sl_span_str(text ? text : "null"));
        free(text);
    }
    json_decref(root);
}

static void add_id(struct sl_buffer *out, const char *name, struct sl_span id)
{
    if (id.ptr)
        sl_json_add_member(out, name, id);
    else
        sl_json_add_raw(out, name, SL_LIT("null"));
}

static void add_ids(struct sl_buffer *out, const struct sl_esm_invocation *inv)
{
    sl_buffer_add_str(out, ",\"ids\":[");
    for (size_t i = 0; i < inv->n; i++) {
        if (i)
            sl_buffer_add_char(out, ',');
        sl_json_add_string(out, inv->records[i]->id);
    }
    sl_buffer_add_char(out, ']');
}

static void add_line(const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                     const struct sl_esm_decision *decision, bool with_ids, struct sl_buffer *out)
{
    static const struct sl_span absent = {NULL, 0};
    sl_buffer_add_char(out, '{');
    sl_json_add_integer(out, "time_ms", inv->time_ms);
    sl_json_add_member(out, "shard", sl_span_str(inv->shard->id));
    add_id(out, "first", inv->n ? inv->records[0]->id : absent);
    add_id(out, "last", inv->n ? inv->records[inv->n - 1]->id : absent);
    sl_json_add_integer(out, "records", (int64_t)inv->n);
    sl_json_add_integer(out, "bytes", (int64_t)inv->payload.len);
    sl_json_add_integer(out, "attempt", inv->attempt);
    add_answer(out, result->body);
    sl_json_add_member(out, "decision", sl_span_str(verb_name(decision->verb)));
    add_id(out, "checkpoint", decision->checkpoint);
    if (with_ids)
        add_ids(out, inv);
    sl_buffer_add_str(out, "}\n");
}

/* ---- rows of retries ---- */

#define LINE_BYTES (64u * 1024 * 1024) /* an answer of 6 MB, escaped, and 10,000 ids */

/* Of one lane: the row of equal retries that it is in. */
struct row {
    const struct sl_esm_shard *shard;
    unsigned lane;
    uint64_t hash;         /* of the batch, its answer and its checkpoint */
    uint64_t n_held;       /* lines that were not written, `last` among them */
    struct sl_buffer last; /* the last one's line */
};

struct sl_trace_file {
    FILE *file;
    struct sl_trace_options options;
    struct sl_buffer line;
    struct row *rows;
    size_t n, room;
    int failure; /* the first write's error */
};

struct sl_trace_file *sl_trace_new(FILE *file, struct sl_trace_options options)
{
    struct sl_trace_file *t = calloc(1, sizeof(*t));
    if (!t)
        sl_die("out of memory: the trace");
    *t = (struct sl_trace_file){.file = file, .options = options};
    sl_buffer_init(&t->line, LINE_BYTES);
    return t;
}

static struct row *row_of(struct sl_trace_file *t, const struct sl_esm_invocation *inv)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].shard == inv->shard && t->rows[i].lane == inv->lane)
            return &t->rows[i];
    struct row *row = &SL_PUSH(t->rows, t->n, t->room, "rows of the trace");
    *row = (struct row){.shard = inv->shard, .lane = inv->lane};
    sl_buffer_init(&row->last, LINE_BYTES);
    return row;
}

static uint64_t hash_of(const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                        const struct sl_esm_decision *decision)
{
    const uint64_t parts[] = {inv->n ? sl_hash(inv->records[0]->id) : 0, inv->n, sl_output_hash(result->body),
                              decision->checkpoint.ptr ? sl_hash(decision->checkpoint) : 0};
    return sl_hash(sl_span((const char *)parts, sizeof(parts)));
}

static void write_line(struct sl_trace_file *t, const struct sl_buffer *line)
{
    if (fwrite(line->ptr, 1, line->len, t->file) != line->len && !t->failure)
        t->failure = errno;
}

static void write_row(struct sl_trace_file *t, struct row *row)
{
    if (row->n_held > 1) {
        row->last.len -= 2; /* "}\n" */
        sl_json_add_integer(&row->last, "repeats", (int64_t)row->n_held - 1);
        sl_buffer_add_str(&row->last, "}\n");
    }
    if (row->n_held)
        write_line(t, &row->last);
    row->n_held = 0;
}

/* Whether the line in t->line is held back, as one of a row. The row before it, if it ends here, is written.
 */
static bool is_held(struct sl_trace_file *t, const struct sl_esm_invocation *inv, uint64_t hash,
                    bool is_late_retry)
{
    struct row *row = row_of(t, inv);
    if (!is_late_retry || hash != row->hash)
        write_row(t, row);
    row->hash = hash;
    if (!is_late_retry)
        return false;
    struct sl_buffer line = row->last;
    row->last = t->line;
    t->line = line;
    row->n_held++;
    return true;
}

void sl_trace_add(struct sl_trace_file *t, const struct sl_esm_invocation *inv,
                  const struct sl_esm_result *result, const struct sl_esm_decision *decision)
{
    bool is_late_retry = decision->verb == SL_ESM_RETRY && inv->attempt > SL_TRACE_ATTEMPTS;
    sl_buffer_reset(&t->line);
    add_line(inv, result, decision, t->options.with_ids, &t->line);
    if (!t->options.folds || !is_held(t, inv, hash_of(inv, result, decision), is_late_retry))
        write_line(t, &t->line);
}

int sl_trace_close(struct sl_trace_file *t)
{
    for (size_t i = 0; i < t->n; i++) {
        write_row(t, &t->rows[i]);
        sl_buffer_clean_up(&t->rows[i].last);
    }
    int failure = t->failure;
    sl_buffer_clean_up(&t->line);
    free(t->rows);
    free(t);
    return failure;
}
