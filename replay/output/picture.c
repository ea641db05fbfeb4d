/* Draws a replay as an HTML page. */
#include "replay/output/picture.h"

#include "base/json_write.h"
#include "replay/output/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A browser scrolls through so many lines with ease. More are left out; the page says how many. */
#define MAX_ROWS    20000
#define ANSWER_TEXT 200
#define PICTURE     900 /* width of a shard's records, in units */
#define PATH_BYTES  4096
#define ROW         8 /* height of an invocation, in units */

struct row {
    const struct sl_esm_shard *shard;
    size_t first, last, n; /* positions in the shard */
    size_t done;           /* records at the beginning that the answer made done */
    int64_t time_ms, attempt;
    enum sl_esm_verb verb;
    enum sl_esm_outcome outcome;
    char answer[ANSWER_TEXT + 1];
};

struct sl_picture {
    struct row *rows;
    size_t n, room, left_out;
};

struct sl_picture *sl_picture_new(void)
{
    struct sl_picture *r = calloc(1, sizeof(*r));
    if (!r)
        sl_die("out of memory: the report");
    return r;
}

void sl_picture_destroy(struct sl_picture *r)
{
    if (r)
        free(r->rows);
    free(r);
}

static void grow(struct sl_picture *r)
{
    r->room = r->room ? r->room * 2 : 256;
    r->rows = realloc(r->rows, r->room * sizeof(*r->rows));
    if (!r->rows)
        sl_die("out of memory: the report");
}

void sl_picture_add(struct sl_picture *r, const struct sl_esm_invocation *inv,
                    const struct sl_esm_result *result, const struct sl_esm_decision *decision)
{
    if (r->n == MAX_ROWS) {
        r->left_out++;
        return;
    }
    if (r->n == r->room)
        grow(r);
    struct row *row = &r->rows[r->n++];
    *row = (struct row){.shard = inv->shard,
                        .n = inv->n,
                        .time_ms = inv->time_ms,
                        .attempt = inv->attempt,
                        .verb = decision->verb,
                        .done = decision->verb == SL_ESM_CHECKPOINT ? decision->failed : 0,
                        .outcome = result->outcome};
    if (inv->n) {
        row->first = (size_t)(inv->records[0] - inv->shard->records);
        row->last = (size_t)(inv->records[inv->n - 1] - inv->shard->records);
    }
    size_t n = result->body.len < ANSWER_TEXT ? result->body.len : ANSWER_TEXT;
    if (n)
        memcpy(row->answer, result->body.ptr, n);
}

/* ---- HTML ---- */

static void add_text(struct sl_buffer *b, struct sl_span text)
{
    struct sl_buffer clean;
    sl_buffer_init(&clean, 64 * 1024);
    sl_json_add_escaped(&clean, text); /* valid UTF-8 without control bytes */
    for (size_t i = 0; i < clean.len; i++) {
        char c = clean.ptr[i];
        const char *name = c == '<'   ? "&lt;"
                           : c == '>' ? "&gt;"
                           : c == '&' ? "&amp;"
                           : c == '"' ? "&quot;"
                                      : NULL;
        if (name)
            sl_buffer_add_str(b, name);
        else
            sl_buffer_add_char(b, c);
    }
    sl_buffer_clean_up(&clean);
}

static const char head[] =
    "<!doctype html><html lang=en><meta charset=utf-8><title>sluice replay</title><style>"
    ":root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:2rem;max-width:75rem}"
    "svg{width:100%;background:color-mix(in srgb,CanvasText 4%,Canvas);border-radius:4px}"
    "pre{overflow-x:auto}h2{font-size:1rem;margin:2rem 0 .3rem}"
    ".advance{fill:#2f9e6b}.checkpoint{fill:#2f86c4}.retry{fill:#e0a021}.bisect{fill:#9457c9}"
    ".discard{fill:#d63b3b}.done{fill:#2f9e6b}.key span{display:inline-block;margin-right:1.2em}"
    ".key svg{width:.8em;height:.8em;margin-right:.4em;background:none}"
    "rect:hover{stroke:CanvasText;stroke-width:1}text{font-size:9px;fill:CanvasText}</style>"
    "<h1>sluice replay</h1><p class=key>";

static void add_key(struct sl_buffer *b)
{
    static const char *const said[] = {"done", "done up to the failed record", "retried", "cut in two",
                                       "given up"};
    for (enum sl_esm_verb verb = SL_ESM_ADVANCE; verb <= SL_ESM_DISCARD; verb++)
        sl_buffer_printf(
            b, "<span><svg viewBox=\"0 0 10 10\"><rect class=%s width=10 height=10 /></svg>%s: %s</span>",
            sl_trace_verb_name(verb), sl_trace_verb_name(verb), said[verb]);
    sl_buffer_add_str(b,
                      "</p><p>Top to bottom: invocations, in time. Left to right: the shard's records.</p>");
}

static void add_bar(struct sl_buffer *b, const struct row *row, size_t line)
{
    double unit = (double)PICTURE / (double)(row->shard->n ? row->shard->n : 1);
    double x = (double)row->first * unit, width = (double)(row->last - row->first + 1) * unit;
    if (row->n == 0)
        width = 2;
    sl_buffer_printf(b, "<g><title>%s, attempt %lld at %.1f s, %zu records: ", sl_trace_verb_name(row->verb),
                     (long long)row->attempt, (double)row->time_ms / 1000, row->n);
    add_text(b, sl_span_str(row->answer));
    sl_buffer_printf(b, "</title><rect class=%s x=%.2f y=%zu width=%.2f height=%d />",
                     sl_trace_verb_name(row->verb), x, line * ROW, width < 2 ? 2 : width, ROW - 1);
    if (row->done)
        sl_buffer_printf(b, "<rect class=done x=%.2f y=%zu width=%.2f height=%d />", x, line * ROW,
                         (double)row->done * unit, ROW - 1);
    sl_buffer_add_str(b, "</g>\n");
}

static void add_shard(struct sl_buffer *b, const struct sl_picture *r, const struct sl_esm_shard *shard)
{
    size_t lines = 0, line = 0;
    for (size_t i = 0; i < r->n; i++)
        lines += r->rows[i].shard == shard;
    sl_buffer_add_str(b, "<h2>");
    add_text(b, sl_span_str(shard->id));
    sl_buffer_printf(b, ": %zu records, %zu invocations</h2><svg viewBox=\"0 0 %d %zu\">\n", shard->n, lines,
                     PICTURE, lines * ROW + 1);
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].shard == shard)
            add_bar(b, &r->rows[i], line++);
    sl_buffer_add_str(b, "</svg>\n");
}

static void add_table(struct sl_buffer *b, const struct sl_summary *summary)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);
    if (!memory)
        return;
    sl_summary_print(summary, memory);
    fclose(memory);
    sl_buffer_add_str(b, "<pre>");
    struct sl_span rest = {text, n};
    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t line = end ? (size_t)(end - rest.ptr) : rest.len;
        add_text(b, sl_span(rest.ptr, line));
        sl_buffer_add_char(b, '\n');
        rest = sl_span_from(rest, line + 1);
    }
    sl_buffer_add_str(b, "</pre>\n");
    free(text);
}

/* A device, a pipe or a link is written directly: a rename would replace it. */
static bool is_file(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) != 0 || S_ISREG(facts.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static void aside_name(const char *path, char out[PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s%s", path, is_file(path) ? ".part" : "");
}

bool sl_picture_can_write(const char *path)
{
    char aside[PATH_BYTES];
    if (is_folder(path)) {
        errno = EISDIR;
        return false;
    }
    if (!is_file(path))
        return access(path, W_OK) == 0;
    aside_name(path, aside);
    FILE *file = fopen(aside, "we");
    if (file)
        fclose(file);
    return file != NULL;
}

static bool write_file(const char *path, struct sl_span text)
{
    FILE *file = fopen(path, "we");
    bool ok = file && fwrite(text.ptr, 1, text.len, file) == text.len;
    if (file)
        ok = fclose(file) == 0 && ok;
    return ok;
}

enum sl_status sl_picture_write(const struct sl_picture *r, const char *path,
                                const struct sl_summary *summary, struct sl_error *error)
{
    struct sl_buffer b;
    char aside[PATH_BYTES];
    sl_buffer_init(&b, 256u * 1024 * 1024);
    sl_buffer_add_str(&b, head);
    add_key(&b);
    add_table(&b, summary);
    for (size_t i = 0; i < summary->recording->n_shards; i++)
        add_shard(&b, r, &summary->recording->shards[i]);
    if (r->left_out)
        sl_buffer_printf(&b, "<p>%zu later invocations are not shown.</p>\n", r->left_out);
    aside_name(path, aside);
    bool ok = write_file(aside, sl_buffer_span(&b));
    ok = ok && (strcmp(aside, path) == 0 || rename(aside, path) == 0);
    if (!ok)
        sl_fail(error, SL_REJECT, "CannotWrite", "--report %s: cannot be written: %s", path, strerror(errno));
    sl_buffer_clean_up(&b);
    return ok ? SL_OK : SL_REJECT;
}
