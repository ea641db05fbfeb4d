/* Which run it is: inputs, function, settings, and what each route did. */
#include "replay/output/report/html.h"
#include "replay/output/report/picture_private.h"

#include "base/span.h"
#include "base/time.h"

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
                    const struct sl_summary *summary)
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
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        sl_buffer_printf(b, "<th role=columnheader scope=col>%s</th>", heads[i]);
    sl_buffer_add_str(b, "</tr></thead><tbody role=rowgroup>\n");
    for (size_t i = 0; i < sl_runner_routes(runner); i++)
        add_route(b, sl_runner_route(runner, i));
    sl_buffer_add_str(b, "</tbody></table></section>\n");
}

/* The summary as the command prints it. */
static void add_summary(struct sl_buffer *b, const struct sl_summary *summary)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);
    if (!memory)
        return;
    sl_summary_print(summary, memory);
    fclose(memory);
    sl_buffer_add_str(b, "<h3 id=h-summary>The summary as it was printed</h3>"
                         "<pre tabindex=0 role=region aria-labelledby=h-summary>");
    struct sl_span rest = {text, n};
    while (rest.len) {
        const char *line_end = memchr(rest.ptr, '\n', rest.len);
        size_t line = line_end ? (size_t)(line_end - rest.ptr) : rest.len;
        sl_html_add(b, sl_span(rest.ptr, line));
        sl_buffer_add_char(b, '\n');
        rest = sl_span_from(rest, line + 1);
    }
    sl_buffer_add_str(b, "</pre>\n");
    free(text);
}

void sl_page_add_facts(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_run *run,
                       const struct sl_summary *summary)
{
    add_routes(b, summary->runner);
    sl_buffer_add_str(b, "<section aria-labelledby=h-run><h2 id=h-run>This run</h2>\n");
    add_run(b, p->settings, run, summary);
    add_settings(b, p->settings, run);
    add_summary(b, summary);
    sl_buffer_add_str(b, "</section>\n");
}
