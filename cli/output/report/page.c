/* The report's page: what stands above its parts, and the files that every page carries. */
#include "base/array.h"

#include "base/base64.h"
#include "base/embed.h"
#include "base/span.h"
#include "base/time.h"
#include "cli/output/report/html.h"
#include "cli/output/report/picture_private.h"
#include "streams/record.h"

#include <openssl/evp.h>

/* The data that page.js draws: one array per invocation, in shards, and their texts. */

/* Numbers of texts that only the page needs: sequence numbers go through the same list. */
static void add_id(struct sl_buffer *b, const struct sl_picture_row *row, size_t position)
{
    if (row->n)
        sl_html_add_json(b, row->shard->records[position].id);
    else
        sl_buffer_add_str(b, "\"\"");
}

/* [time, lane, first, last, records, cut, attempt, kind, final, answer, route, reason, first id, last id] */
static void add_row(struct sl_buffer *b, const struct sl_picture_row *row)
{
    sl_buffer_printf(b, "[%lld,%u,%zu,%zu,%zu,%zu,%lld,%u,%d,%u,%u,%u,", (long long)row->time_ms, row->lane,
                     row->first, row->last, row->n, row->cut, (long long)row->attempt, row->kind,
                     row->is_final, row->answer, row->route, row->reason);
    add_id(b, row, row->first);
    sl_buffer_add_char(b, ',');
    add_id(b, row, row->last);
    sl_buffer_add_char(b, ']');
}

static void add_shard(struct sl_buffer *b, const struct sl_picture *p, const struct sl_esm_shard *shard)
{
    bool is_first = true;
    sl_buffer_add_str(b, "{\"id\":");
    sl_html_add_json(b, sl_span_str(shard->id));
    sl_buffer_printf(b, ",\"n\":%zu,\"rows\":[", shard->n);
    for (size_t i = 0; i < p->n; i++) {
        if (p->rows[i].shard != shard)
            continue;
        sl_buffer_add_str(b, is_first ? "\n" : ",\n");
        add_row(b, &p->rows[i]);
        is_first = false;
    }
    sl_buffer_add_str(b, "]}");
}

static void page_add_data(struct sl_buffer *b, const struct sl_picture *p,
                          const struct sl_run_summary *summary)
{
    sl_buffer_printf(b, "{\"lanes\":%lld,\"shards\":[", (long long)p->settings->parallelization);
    for (size_t i = 0; i < summary->recording->n_shards; i++) {
        if (i)
            sl_buffer_add_char(b, ',');
        add_shard(b, p, &summary->recording->shards[i]);
    }
    sl_buffer_add_str(b, "],\"texts\":[");
    for (size_t i = 0; i < p->texts.n; i++) {
        if (i)
            sl_buffer_add_char(b, ',');
        sl_html_add_json(b, p->texts.entries[i].text);
    }
    sl_buffer_add_str(b, "]}");
}

/* ---- which run it is: inputs, function, settings, and what each route did ---- */

typedef unsigned long long ull;

static void begin(struct sl_buffer *b, const char *name)
{
    sl_buffer_printf(b, "<div><dt>%s</dt><dd>", name);
}

static void end(struct sl_buffer *b)
{
    sl_buffer_add_str(b, "</dd></div>\n");
}

static void add_fact(struct sl_buffer *b, const char *name, const char *value)
{
    begin(b, name);
    sl_html_add_foreign(b, sl_span_str(value));
    end(b);
}

static void add_facts(struct sl_buffer *b, const char *name, const char *const *values, size_t n)
{
    if (n == 0)
        return;
    begin(b, name);
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(b, i ? "<br>" : "");
        sl_html_add_foreign(b, sl_span_str(values[i]));
    }
    end(b);
}

static void add_number(struct sl_buffer *b, const char *name, int64_t value, const char *unit)
{
    begin(b, name);
    sl_buffer_printf(b, "%lld%s", (long long)value, unit);
    end(b);
}

/* A setting of which one value means that there is none. */
static void add_limit(struct sl_buffer *b, const char *name, int64_t value, int64_t none, const char *unit,
                      const char *none_text)
{
    if (value == none)
        add_fact(b, name, none_text);
    else
        add_number(b, name, value, unit);
}

static void add_time(struct sl_buffer *b, const char *name, int64_t ms)
{
    char text[SL_TIME_BYTES];
    sl_time_text(ms * 1000000, text);
    add_fact(b, name, text);
}

static void add_run(struct sl_buffer *b, const struct sl_esm_settings *s, const struct sl_picture_run *run,
                    const struct sl_run_summary *summary)
{
    sl_buffer_add_str(b, "<dl class=facts>\n");
    add_facts(b, run->n_inputs == 1 ? "Input" : "Inputs", run->inputs, run->n_inputs);
    add_fact(b, run->command ? "Function (another runtime)" : "Function (bootstrap with)",
             run->command ? run->command : run->config);
    add_fact(b, "Function ARN", s->function_arn ? s->function_arn : "none");
    add_fact(b, "Stream", s->stream_arn ? s->stream_arn : "none");
    add_time(b, "Replayed", run->wall_ms);
    add_time(b, "Virtual time began", summary->recording->start_ms);
    add_fact(b, "Records become available", run->is_live ? "each at its own time" : "all at the beginning");
    sl_buffer_add_str(b, "</dl>\n");
}

static void add_settings(struct sl_buffer *b, const struct sl_esm_settings *s,
                         const struct sl_picture_run *run)
{
    sl_buffer_add_str(b, "<h3>Settings of the event source mapping</h3><dl class=facts>\n");
    add_number(b, "BatchSize", s->batch_size, "");
    add_number(b, "MaximumBatchingWindowInSeconds", s->window_s, " s");
    add_number(b, "ParallelizationFactor", s->parallelization, "");
    add_limit(b, "MaximumRetryAttempts", s->max_retries, -1, "", "no limit");
    add_limit(b, "MaximumRecordAgeInSeconds", s->max_age_s, -1, " s", "no limit");
    add_limit(b, "TumblingWindowInSeconds", s->tumbling_s, 0, " s", "none");
    add_fact(b, "BisectBatchOnFunctionError", s->bisect ? "on" : "off");
    add_fact(b, "ReportBatchItemFailures", s->report_failures ? "on" : "off");
    add_facts(b, "FilterCriteria", run->filters, run->n_filters);
    sl_buffer_add_str(b, "</dl><h3>Settings of the simulation</h3><dl class=facts>\n");
    add_limit(b, "ReservedConcurrentExecutions", s->concurrency, 0, "", "no limit");
    add_number(b, "Timeout of an invocation", run->timeout_s, " s");
    add_number(b, "Virtual duration of an invocation", s->invocation_ms, " ms");
    add_number(b, "Seed", run->seed, "");
    add_facts(b, "Planned faults", run->faults, run->n_faults);
    sl_buffer_add_str(b, "</dl>\n");
}

static void add_cell(struct sl_buffer *b, const char *name, ull value)
{
    sl_buffer_printf(b, "<td role=cell data-name=\"%s\">%llu</td>", name, value);
}

static void add_route(struct sl_buffer *b, const struct sl_runner_route *r)
{
    sl_buffer_add_str(b, "<tr role=row><th role=rowheader scope=row>");
    sl_html_add_foreign(b, sl_span_str(r->name));
    sl_buffer_add_str(b, "</th><td role=cell data-name=Handler>");
    sl_html_add_foreign(b, sl_span_str(r->handler));
    sl_buffer_add_str(b, "</td>");
    add_cell(b, "Matched", (ull)r->matched);
    add_cell(b, "Applied", (ull)r->applied);
    add_cell(b, "Parked", (ull)r->parked);
    add_cell(b, "Failed", (ull)r->failed);
    add_cell(b, "Calls", (ull)r->calls);
    sl_buffer_add_str(b, "<td role=cell data-name=To>");
    sl_html_add_foreign(b, sl_span_str(r->target));
    sl_buffer_add_str(b, "</td></tr>\n");
}

static void add_routes(struct sl_buffer *b, const struct sl_runner *runner)
{
    static const char *const heads[] = {"Route",  "Handler", "Matched", "Applied",
                                        "Parked", "Failed",  "Calls",   "To"};
    if (sl_runner_routes(runner) == 0)
        return;
    sl_buffer_add_str(
        b, "<section aria-labelledby=h-routes><h2 id=h-routes>Routes</h2><table class=routes role=table "
           "aria-labelledby=h-routes>"
           "<thead role=rowgroup><tr role=row>");
    for (size_t i = 0; i < SL_COUNT(heads); i++)
        sl_buffer_printf(b, "<th role=columnheader scope=col>%s</th>", heads[i]);
    sl_buffer_add_str(b, "</tr></thead><tbody role=rowgroup>\n");
    for (size_t i = 0; i < sl_runner_routes(runner); i++)
        add_route(b, sl_runner_route(runner, i));
    sl_buffer_add_str(b, "</tbody></table></section>\n");
}

/* The summary as the command prints it. */
static void add_summary(struct sl_buffer *b, const struct sl_run_summary *summary)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);
    if (!memory)
        return;
    sl_run_summary_print(summary, memory);
    fclose(memory);
    sl_buffer_add_str(b, "<h3 id=h-summary>The summary as it was printed</h3>"
                         "<pre tabindex=0 role=region aria-labelledby=h-summary>");
    struct sl_span rest = {text, n};
    while (rest.len) {
        sl_html_add(b, sl_span_cut(&rest, '\n'));
        sl_buffer_add_char(b, '\n');
    }
    sl_buffer_add_str(b, "</pre>\n");
    free(text);
}

/* Each adds its part of the page. */
static void page_add_facts(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_run *run,
                           const struct sl_run_summary *summary)
{
    add_routes(b, summary->runner);
    sl_buffer_add_str(b, "<section aria-labelledby=h-run><h2 id=h-run>This run</h2>\n");
    add_run(b, p->settings, run, summary);
    add_settings(b, p->settings, run);
    add_summary(b, summary);
    sl_buffer_add_str(b, "</section>\n");
}

/* ---- the table of the records that were given up or parked ---- */

#define KEY_BYTES 200 /* of one attribute: keys have 2,048 bytes at most */

static void add_value(struct sl_buffer *b, struct sl_value value, struct sl_arena *arena)
{
    struct sl_span text = sl_value_text(value, arena);
    bool is_cut = text.len > KEY_BYTES;
    sl_html_add_foreign(b, sl_html_shorten(text, KEY_BYTES));
    sl_buffer_add_str(b, is_cut ? "&hellip;" : "");
}

static void add_key(struct sl_buffer *b, const struct sl_record *record, struct sl_arena *arena)
{
    struct sl_value keys = record ? sl_record_image(record, SL_KEYS) : (struct sl_value){0}, value;
    struct sl_iter iter = sl_value_iter(keys);
    struct sl_span name;
    bool is_first = true;
    while (keys.type == SL_M && sl_value_next(&iter, &name, &value)) {
        /* (The name is a string without its quotes, as S is.) */
        struct sl_value text = {.type = SL_S, .escaped = true, .raw = name};
        sl_buffer_add_str(b, is_first ? "" : "<br>");
        sl_buffer_add_str(b, "<span class=quiet>");
        add_value(b, text, arena);
        sl_buffer_add_str(b, " =</span> ");
        add_value(b, value, arena);
        is_first = false;
    }
    if (is_first)
        sl_buffer_add_str(b, "<span class=quiet>none</span>");
}

static const char *condition_text(enum sl_esm_condition condition)
{
    return condition == SL_ESM_RETRIES_EXHAUSTED ? "Out of attempts"
           : condition == SL_ESM_AGE_EXCEEDED    ? "Too old"
                                                 : "Gone from the stream";
}

static void add_times(struct sl_buffer *b, const struct sl_picture_loss *loss)
{
    if (loss->is_parked && loss->times > 1)
        sl_buffer_printf(b, "Parked %lld times. ", (long long)loss->times);
    if (loss->is_parked)
        return;
    sl_buffer_add_str(b, condition_text(loss->condition));
    if (loss->row == SL_PICTURE_NO_ROW && loss->reason == 0)
        sl_buffer_add_str(b, " before it was delivered");
    else
        sl_buffer_printf(b, " after %lld deliver%s", (long long)loss->times, loss->times == 1 ? "y" : "ies");
    if (loss->beside)
        sl_buffer_printf(b, ", with %zu other%s of its batch", loss->beside, loss->beside == 1 ? "" : "s");
    sl_buffer_add_str(b, ". ");
}

static size_t shard_place(const struct sl_picture *p, const struct sl_picture_loss *loss)
{
    size_t place = 0;
    for (size_t i = 0; i < loss->row; i++)
        place += p->rows[i].shard == loss->shard;
    return place;
}

static void add_link(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_loss *loss,
                     const struct sl_esm_shard *first)
{
    if (loss->row == SL_PICTURE_NO_ROW) {
        sl_buffer_add_str(b, "<span class=quiet>not drawn</span>");
        return;
    }
    size_t place = shard_place(p, loss);
    sl_buffer_printf(b, "<a href=\"#i-%zu-%zu\">invocation&nbsp;%zu<span class=hidden> of sequence number ",
                     (size_t)(loss->shard - first), place, place + 1);
    sl_html_add(b, loss->record->id);
    sl_buffer_add_str(b, "</span></a>");
}

static void add_loss(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_loss *loss,
                     const struct sl_esm_shard *first, struct sl_arena *arena)
{
    sl_buffer_printf(b,
                     "<tr role=row><td role=cell data-name=What class=what><svg class=\"glyph k-%s\" "
                     "aria-hidden=true><use href=\"#g-%s\"/></svg>%s</td>"
                     "<th role=rowheader scope=row data-name=\"Sequence number\">",
                     loss->is_parked ? "parked" : "discard", loss->is_parked ? "parked" : "discard",
                     loss->is_parked ? "parked" : "given up");
    sl_html_add_foreign(b, loss->record->id);
    sl_buffer_add_str(b, "</th><td role=cell data-name=Key>");
    add_key(b, loss->record->record, arena);
    sl_buffer_add_str(b, "</td><td role=cell data-name=Reason>");
    add_times(b, loss);
    if (loss->culprit) {
        sl_buffer_add_str(b, "Record ");
        sl_html_add_foreign(b, p->texts.entries[loss->culprit].text);
        sl_buffer_add_str(b, " failed first: ");
    }
    if (loss->reason)
        sl_html_add_foreign(b, p->texts.entries[loss->reason].text);
    sl_buffer_add_str(b, "</td><td role=cell data-name=Route>");
    if (loss->route)
        sl_html_add_foreign(b, p->texts.entries[loss->route].text);
    else
        sl_buffer_add_str(b, "<span class=quiet>not known</span>");
    sl_buffer_add_str(b, "</td><td role=cell data-name=Picture>");
    add_link(b, p, loss, first);
    sl_buffer_add_str(b, "</td></tr>\n");
}

static void page_add_losses(struct sl_buffer *b, const struct sl_picture *p,
                            const struct sl_run_summary *summary)
{
    static const char *const heads[] = {"What", "Sequence number", "Key", "Reason", "Route", "Picture"};
    size_t all = p->given_up + p->parked;
    if (all == 0)
        return;
    sl_buffer_add_str(b, "<section aria-labelledby=h-lost><h2 id=h-lost>Given up or parked</h2>"
                         "<table role=table aria-labelledby=h-lost><thead role=rowgroup><tr role=row>");
    for (size_t i = 0; i < SL_COUNT(heads); i++)
        sl_buffer_printf(b, "<th role=columnheader scope=col>%s</th>", heads[i]);
    sl_buffer_add_str(b, "</tr></thead><tbody role=rowgroup>\n");
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    for (size_t i = 0; i < p->n_losses; i++) {
        add_loss(b, p, &p->losses[i], summary->recording->shards, arena);
        sl_arena_reset(arena);
    }
    sl_arena_destroy(arena);
    sl_buffer_add_str(b, "</tbody></table>\n");
    if (all > p->n_losses)
        sl_buffer_printf(b,
                         "<p>%zu more are not listed. <code>--on-failure</code> writes every record that is "
                         "given up.</p>\n",
                         all - p->n_losses);
    sl_buffer_add_str(b, "</section>\n");
}

/* ---- the page ---- */

SL_EMBED(sl_text_page_css, "cli/output/report/page.css");
SL_EMBED(sl_text_page_js, "cli/output/report/page.js");
SL_EMBED(sl_text_page_svg, "cli/output/report/page.svg");

/* ---- what the browser may do ---- */

static void add_hash(struct sl_buffer *b, const char *text)
{
    unsigned char digest[32];
    char base64[48];
    EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL);
    size_t n = sl_base64_encode_to(sl_span((const char *)digest, sizeof(digest)), base64);
    sl_buffer_printf(b, "'sha256-%.*s'", (int)n, base64);
}

/* No network, and no script or style but the two of this page, whatever the text of others holds. */
static void add_policy(struct sl_buffer *b)
{
    sl_buffer_add_str(b,
                      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; img-src data:; "
                      "base-uri 'none'; form-action 'none'; script-src ");
    add_hash(b, sl_text_page_js);
    sl_buffer_add_str(b, "; style-src ");
    add_hash(b, sl_text_page_css);
    sl_buffer_add_str(b, "\">\n");
}

/* ---- the first sentence ---- */

static void add_verdict(struct sl_buffer *b, const struct sl_picture *p, const struct sl_run_summary *summary)
{
    const struct sl_esm_stats *m = &summary->mapping;
    size_t lost = (size_t)(m->discarded + m->trimmed), all = summary->recording->n;
    bool is_whole = m->done == all;
    if (p->parked) {
        sl_html_add_count(b, p->parked);
        sl_buffer_add_str(b, " parked, ");
    }
    sl_buffer_add_str(b, !is_whole ? "" : p->parked ? "all " : "All ");
    if (!is_whole) {
        sl_html_add_count(b, lost ? lost : (size_t)m->done);
        sl_buffer_add_str(b, " of ");
    }
    sl_html_add_count(b, all);
    sl_buffer_printf(b, " records %s %s", lost == 1 ? "was" : "were", lost ? "given up" : "handled");
}

static void add_tile(struct sl_buffer *b, const char *name, uint64_t value)
{
    sl_buffer_printf(b, "<div><dt>%s</dt><dd>", name);
    sl_html_add_count(b, (size_t)value);
    sl_buffer_add_str(b, "</dd></div>\n");
}

static void add_duration(struct sl_buffer *b, int64_t ms)
{
    sl_buffer_add_str(b, "<div><dt>virtual time</dt><dd>");
    if (ms < 120000)
        sl_buffer_printf(b, "%.1f s", (double)ms / 1000);
    else if (ms < 2 * 3600 * 1000)
        sl_buffer_printf(b, "%.1f min", (double)ms / 60000);
    else
        sl_buffer_printf(b, "%.1f h", (double)ms / 3600000);
    sl_buffer_add_str(b, "</dd></div>\n");
}

static void add_tiles(struct sl_buffer *b, const struct sl_picture *p, const struct sl_run_summary *summary)
{
    const struct sl_esm_stats *m = &summary->mapping;
    sl_buffer_add_str(b, "<dl class=tiles>\n");
    add_tile(b, "records in", summary->recording->n);
    add_tile(b, "handled", m->done);
    if (p->parked)
        add_tile(b, "parked", p->parked);
    add_tile(b, "filtered out", m->filtered);
    add_tile(b, "given up", (m->discarded + m->trimmed));
    if (m->beside)
        add_tile(b, "given up beside others", m->beside);
    add_tile(b, "invocations", m->invocations);
    add_tile(b, "retries", m->retries);
    add_tile(b, "splits", m->splits);
    add_tile(b, "throttled", m->throttles);
    add_duration(b, m->elapsed_ms);
    sl_buffer_add_str(b, "</dl>\n");
    if (m->ignored_answers)
        sl_buffer_printf(b,
                         "<p>Answers that named failures and were ignored, because ReportBatchItemFailures "
                         "is off: %llu.</p>\n",
                         (unsigned long long)m->ignored_answers);
}

static void add_head(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_run *run,
                     const struct sl_run_summary *summary)
{
    sl_buffer_add_str(b, "<!doctype html>\n<html lang=en>\n<head><meta charset=utf-8>\n");
    add_policy(b);
    sl_buffer_add_str(b, "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
                         "<link rel=icon href=\"data:,\"><title>");
    add_verdict(b, p, summary);
    sl_buffer_printf(b, " - sluice %s</title>\n<style>", run->verb);
    sl_buffer_add_str(b, sl_text_page_css);
    sl_buffer_add_str(b, "</style></head>\n<body>\n");
    sl_buffer_add_str(b, sl_text_page_svg);
    sl_buffer_printf(b, "<header><p class=quiet>sluice %s</p><h1>", run->verb);
    add_verdict(b, p, summary);
    sl_buffer_add_str(b, "</h1><p class=inputs>");
    for (size_t i = 0; i < run->n_inputs && i < 3; i++) {
        sl_buffer_add_str(b, i ? ", " : "");
        sl_html_add_foreign(b, sl_span_str(run->inputs[i]));
    }
    if (run->n_inputs > 3)
        sl_buffer_printf(b, " and %zu more", run->n_inputs - 3);
    sl_buffer_add_str(b, "</p></header>\n<main>\n");
}

/* ---- the picture ---- */

static void add_picture(struct sl_buffer *b, const struct sl_picture *p)
{
    static const struct {
        const char *name, *text;
    } key[] = {{"advance", "done"},
               {"checkpoint", "partly done: up to the failed record"},
               {"retry", "retry: delivered again"},
               {"bisect", "cut in two"},
               {"discard", "given up"},
               {"throttled", "throttled: the function did not run"},
               {"final", "final call of a window, without records"}};
    sl_buffer_add_str(b,
                      "<section aria-labelledby=h-picture><h2 id=h-picture>Invocations</h2>\n<ul class=key>");
    for (size_t i = 0; i < SL_COUNT(key); i++)
        sl_buffer_printf(b,
                         "<li><svg class=\"glyph k-%s\" aria-hidden=true><use href=\"#g-%s\"/></svg>%s</li>",
                         key[i].name, key[i].name, key[i].text);
    sl_buffer_add_str(
        b,
        "</ul>\n<div id=picture><p>This part is drawn by a script, which this viewer does not run. Open the "
        "file in a browser.</p></div>\n");
    if (p->left_out)
        sl_buffer_printf(b, "<p>%zu later invocations are not drawn.</p>\n", p->left_out);
    sl_buffer_add_str(b, "</section>\n");
}

void sl_page_write(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_run *run,
                   const struct sl_run_summary *summary)
{
    add_head(b, p, run, summary);
    add_tiles(b, p, summary);
    page_add_losses(b, p, summary);
    add_picture(b, p);
    page_add_facts(b, p, run, summary);
    sl_buffer_add_str(b, "</main>\n<script type=\"application/json\" id=data>");
    page_add_data(b, p, summary);
    sl_buffer_add_str(b, "</script>\n<script>");
    sl_buffer_add_str(b, sl_text_page_js);
    sl_buffer_add_str(b, "</script>\n</body></html>\n");
}
