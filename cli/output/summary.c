/* Prints the table at the end of a replay. */
#include "cli/output/summary.h"

#include <string.h>

typedef unsigned long long ull;

static void print_records(const struct sl_recording *s, FILE *out)
{
    fprintf(out, "records in      %8zu   INSERT %zu, MODIFY %zu, REMOVE %zu\n", s->n, s->by_event[SL_INSERT],
            s->by_event[SL_MODIFY], s->by_event[SL_REMOVE]);
    fprintf(out, "removed by TTL  %8zu", s->removed_by[SL_TTL_EXPIRED]);
    if (s->by_event[SL_REMOVE])
        fprintf(out, "   inferred %zu, by users %zu, unknown %zu", s->removed_by[SL_TTL_INFERRED],
                s->removed_by[SL_TTL_USER], s->removed_by[SL_TTL_UNKNOWN]);
    fputc('\n', out);
}

static void print_time(int64_t ms, FILE *out)
{
    if (ms < 120000)
        fprintf(out, "%.1f s", (double)ms / 1000);
    else if (ms < 2 * 3600 * 1000)
        fprintf(out, "%.1f min", (double)ms / 60000);
    else
        fprintf(out, "%.1f h", (double)ms / 3600000);
}

/* What a user wants to know about records that were given up: whether they were the failed ones. */
static void print_discarded(const struct sl_esm_stats *m, FILE *out)
{
    fprintf(out, "discarded       %8llu", (ull)(m->discarded + m->trimmed));
    if (m->trimmed)
        fprintf(out, "   %llu of them gone from the stream, without a failure record", (ull)m->trimmed);
    fputc('\n', out);
    if (m->beside)
        fprintf(out, "  beside others %8llu   no answer named them, and none of them failed alone\n",
                (ull)m->beside);
}

static void print_mapping(const struct sl_run_summary *s, FILE *out)
{
    const struct sl_esm_stats *m = &s->mapping;
    fprintf(out, "invocations     %8llu   retries %llu, splits %llu, throttled %llu, in ",
            (ull)m->invocations, (ull)m->retries, (ull)m->splits, (ull)m->throttles);
    print_time(m->elapsed_ms, out);
    fputs(s->is_real_time ? "\n" : " of virtual time\n", out);
    if (m->failed_batches)
        fprintf(out, "failed batches  %8llu   with %llu distinct records\n", (ull)m->failed_batches,
                (ull)m->failed);
    fprintf(out, "handled         %8llu   filtered out %llu\n", (ull)m->done, (ull)m->filtered);
    if (m->ignored_answers)
        fprintf(out, "answers ignored %8llu   they named failures, but ReportBatchItemFailures is off\n",
                (ull)m->ignored_answers);
    print_discarded(m, out);
}

static void note(const char *what, ull n, FILE *out)
{
    if (n)
        fprintf(out, "%-15s %8llu\n", what, n);
}

/* What went wrong in the processes, and what a runtime must not do. */
static void print_troubles(const struct sl_run_summary *s, FILE *out)
{
    const struct sl_runner_stats *p = &s->processes;
    note("function errors", (ull)s->mapping.function_errors, out);
    note("partial answers", (ull)s->mapping.partial_answers, out);
    note("bad answers", (ull)s->mapping.malformed_answers, out);
    note("  not JSON", p->not_json, out);
    note("processes died", p->exits, out);
    note("timed out", p->timeouts, out);
    note("init errors", p->init_errors, out);
    note("answered twice", p->protocol.second_answers, out);
    note("wrong ids", p->protocol.wrong_ids, out);
    note("not answered", p->protocol.refetched, out);
    note("too large", p->protocol.too_large, out);
    note("unknown routes", p->protocol.unknown, out);
}

static size_t n_routes(const struct sl_run_summary *s)
{
    return s->runner ? sl_runner_routes(s->runner) : s->n_routes;
}

static const struct sl_runner_route *route_of(const struct sl_run_summary *s, size_t i)
{
    return s->runner ? sl_runner_route(s->runner, i) : &s->routes[i];
}

static int width_of(const struct sl_run_summary *s, bool is_handler)
{
    size_t width = is_handler ? 7 : 5;
    for (size_t i = 0; i < n_routes(s); i++) {
        const struct sl_runner_route *r = route_of(s, i);
        size_t n = strlen(is_handler ? r->handler : r->name);
        width = n > width ? n : width;
    }
    return (int)width;
}

static void print_routes(const struct sl_run_summary *s, FILE *out)
{
    int name = width_of(s, false), handler = width_of(s, true);
    if (n_routes(s) == 0)
        return;
    fprintf(out, "\n%-*s  %-*s  %8s  %8s  %7s  %7s  %7s  %s\n", name, "route", handler, "handler", "matched",
            "applied", "parked", "failed", "calls", "to");
    for (size_t i = 0; i < n_routes(s); i++) {
        const struct sl_runner_route *r = route_of(s, i);
        fprintf(out, "%-*s  %-*s  %8llu  %8llu  %7llu  %7llu  %7llu  %s\n", name, r->name, handler,
                r->handler, (ull)r->matched, (ull)r->applied, (ull)r->parked, (ull)r->failed, (ull)r->calls,
                r->target);
    }
    for (size_t i = 0; i < n_routes(s); i++)
        if (route_of(s, i)->set_aside)
            fprintf(out, "set aside       %8llu   of %s, whose target was down or which is paused\n",
                    (ull)route_of(s, i)->set_aside, route_of(s, i)->name);
}

void sl_run_summary_print(const struct sl_run_summary *s, FILE *out)
{
    print_records(s->recording, out);
    print_mapping(s, out);
    print_troubles(s, out);
    print_routes(s, out);
    if (s->letters)
        fputs(s->letters, out);
    if (s->parked)
        fputs(s->parked, out);
}
