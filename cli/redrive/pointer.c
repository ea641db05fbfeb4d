/* Reads the records that a failure record points to. */
#include "cli/redrive/pointer.h"

#include "base/buffer.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "live/source/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGION_BYTES 64
/* Of one batch: an event has 6 MB at most, and escapes make it longer. */
#define EVENT_BYTES ((size_t)64 * 1024 * 1024)
/* A shard may have empty pages in between; so many in a row have nothing behind them. */
#define EMPTY_PAGES 1000

struct sl_pointer {
    const struct sl_pointer_options *options;
    struct sl_live *live; /* of `region`; NULL: none yet */
    char region[REGION_BYTES];
};

struct fetching {
    const struct sl_dead_letter *letter;
    struct sl_buffer text;
    size_t n;
    bool has_first, is_whole;
};

struct sl_pointer *sl_pointer_new(const struct sl_pointer_options *options)
{
    struct sl_pointer *p = calloc(1, sizeof(*p));
    if (!p)
        sl_die("out of memory: a reader of streams");
    p->options = options;
    return p;
}

void sl_pointer_destroy(struct sl_pointer *p)
{
    if (!p)
        return;
    sl_live_close(p->live);
    free(p);
}

/* Of one stream after another, the client of the last Region is kept. */
static enum sl_status open_live(struct sl_pointer *p, const char *arn, struct sl_error *error)
{
    const char *at = arn; /* "arn:aws:dynamodb:REGION:...": sl_dead_letter_is_arn says so */
    char region[REGION_BYTES];
    for (int i = 0; i < 3; i++)
        at += strcspn(at, ":") + 1;
    snprintf(region, sizeof(region), "%.*s", (int)strcspn(at, ":"), at);
    if (p->live && (p->options->region || strcmp(region, p->region) == 0))
        return SL_OK;
    sl_live_close(p->live);
    p->live = NULL;
    memcpy(p->region, region, sizeof(region));
    const struct sl_live_options options = {
        p->options->vars, p->options->region ? p->options->region : p->region, p->options->endpoint};
    enum sl_status status = sl_live_open(&options, &p->live, error);
    if (status != SL_OK) {
        sl_live_close(p->live);
        p->live = NULL;
    }
    return status;
}

/* By value: decimal digits without leading zeros. */
static int compare(struct sl_span a, const char *b)
{
    size_t n = strlen(b);
    return a.len != n ? (a.len < n ? -1 : 1) : memcmp(a.ptr, b, n);
}

/* Adds the records of a GetRecords answer, up to the last one of the letter. */
static void add_records(struct fetching *f, struct sl_span answer)
{
    struct sl_json_walk walk = sl_json_walk(sl_json_find(answer, "Records"));
    struct sl_span record;
    while (!f->is_whole && sl_json_walk_next(&walk, NULL, &record)) {
        struct sl_span id = sl_json_find(record, "dynamodb.SequenceNumber"); /* a text: sl_live_is_page */
        id = sl_span(id.ptr + 1, id.len - 2);
        int order = compare(id, f->letter->last);
        f->is_whole = order >= 0;
        if (order > 0 || compare(id, f->letter->first) < 0)
            continue;
        f->has_first |= compare(id, f->letter->first) == 0;
        sl_buffer_add_str(&f->text, f->n++ ? "," : "");
        sl_buffer_add_span(&f->text, record);
    }
}

/* Everything from the first record to the last, or to the end of what there is. */
static enum sl_status read_pages(struct sl_pointer *p, struct fetching *f, struct sl_error *why)
{
    const struct sl_dead_letter *letter = f->letter;
    const struct sl_live_position first = {letter->stream_arn, letter->shard, "AT_SEQUENCE_NUMBER",
                                           letter->first};
    const char *iterator = NULL;
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    enum sl_status status = sl_live_get_iterator(p->live, &first, arena, &iterator, why);
    for (unsigned empty = 0; status == SL_OK && iterator && !f->is_whole && empty < EMPTY_PAGES;) {
        struct sl_live_page page;
        size_t before = f->n;
        char *at = strdup(iterator);
        if (!at)
            sl_die("out of memory: an iterator");
        sl_arena_reset(arena);
        status = sl_live_get_records(p->live, at, arena, &page, why);
        free(at);
        if (status != SL_OK)
            break;
        add_records(f, page.text);
        iterator = page.next_iterator;
        empty = f->n > before ? 0 : empty + 1;
        if (*p->options->stop && !f->is_whole)
            status = sl_fail(why, SL_RETRY, "Interrupted", "the run was interrupted");
    }
    sl_arena_destroy(arena);
    return status;
}

static enum sl_status explain(const struct sl_dead_letter *m, const struct sl_error *why,
                              struct sl_error *error)
{
    bool is_gone = strcmp(why->code, "TrimmedDataAccessException") == 0 ||
                   strcmp(why->code, "ResourceNotFoundException") == 0;
    if (is_gone)
        return sl_fail(
            error, SL_REJECT, why->code,
            "the records %s to %s are gone from the stream, which keeps them 24 hours; take their items from "
            "the table (%s)",
            m->first, m->last, why->code);
    return sl_fail(error, why->status, why->code, "%s", why->text);
}

/* A letter that is done may be deleted: so exactly its records, or none. */
static enum sl_status check(const struct fetching *f, struct sl_error *error)
{
    const struct sl_dead_letter *m = f->letter;
    if (f->text.failed)
        return sl_fail(error, SL_REJECT, "TooLarge", "the records %s to %s have more than %zu bytes",
                       m->first, m->last, EVENT_BYTES);
    if (!f->has_first || !f->is_whole || (m->records && f->n < m->records))
        return sl_fail(error, SL_REJECT, "RecordsGone",
                       "the stream has %zu of the %zu records from %s to %s; take their items from the table",
                       f->n, m->records, m->first, m->last);
    if (m->records && f->n > m->records)
        return sl_fail(
            error, SL_REJECT, "MoreRecords",
            "the message names %zu records, and the stream has %zu from %s to %s: the mapping's "
            "FilterCriteria left some out, and nobody can tell which. Take the items from the table",
            m->records, f->n, m->first, m->last);
    return SL_OK;
}

enum sl_status sl_pointer_fetch(struct sl_pointer *p, const struct sl_dead_letter *letter,
                                struct sl_arena *arena, struct sl_span *event, struct sl_error *error)
{
    struct fetching f = {.letter = letter};
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = open_live(p, letter->stream_arn, error);
    if (status != SL_OK)
        return status;
    sl_buffer_init(&f.text, EVENT_BYTES);
    sl_buffer_add_str(&f.text, "{\"Records\":[");
    status = read_pages(p, &f, &why);
    sl_buffer_add_str(&f.text, "]}");
    if (status != SL_OK)
        status = explain(letter, &why, error);
    else
        status = check(&f, error);
    if (status == SL_OK)
        *event = sl_span(sl_arena_copy(arena, sl_buffer_span(&f.text)), f.text.len);
    sl_buffer_clean_up(&f.text);
    return status;
}
