/* The words of a verification. */
#include "cli/verify/report.h"
#include "data/verify/summary.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/disk.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROGRESS_MS 5000
#define LINE_BYTES  ((size_t)16 * 1024 * 1024) /* some 400 bytes a route */

/* ---- findings ---- */

static const char *result_of(const struct sl_finding *f)
{
    static const char *const words[] = {[SL_FINDING_DIFFERENT] = "",
                                        [SL_FINDING_PENDING] = "pending, ",
                                        [SL_FINDING_UNSETTLED] = "unsettled, ",
                                        [SL_FINDING_NOT_COMPARABLE] = "not comparable: "};
    return words[f->result];
}

/* Names may hold newlines, and what terminals obey. */
static void print_names(const struct sl_judge *judge)
{
    struct sl_buffer b;
    sl_buffer_init(&b, LINE_BYTES);
    for (size_t i = 0; i < judge->n_names && i < 10; i++) {
        sl_buffer_add_str(&b, i ? ", " : " in ");
        sl_json_add_exact(&b, judge->names[i]);
    }
    fwrite(b.ptr, 1, b.len, stdout);
    sl_buffer_clean_up(&b);
}

static void print_words(const struct sl_finding *f)
{
    printf("%s: %s", f->route, result_of(f));
    if (f->judge)
        printf("%s", sl_finding_kind(f->judge->verdict));
    if (f->result == SL_FINDING_NOT_COMPARABLE)
        printf("%s", f->why ? f->why : f->code);
    if (f->source_key.ptr)
        printf(" %.*s", SL_ARG(f->source_key));
    if (f->judge && f->judge->n_names)
        print_names(f->judge);
    if (f->judge && sl_finding_has_time(f->judge))
        printf("; written %" PRId64 " s ago", (f->seen_ms - f->judge->written_ms) / 1000);
    putchar('\n');
}

void sl_report_found(struct sl_report *r, const struct sl_finding *f, struct sl_span line)
{
    if (r->is_json) {
        fwrite(line.ptr, 1, line.len, stdout);
        fflush(stdout);
    } else if (r->printed < SL_REPORT_LINES) {
        r->printed++;
        print_words(f);
        fflush(stdout);
    } else {
        r->left++;
    }
}

/* A member's text as it stands in the line, a text without its quotes; "" when there is none. */
static struct sl_span member(struct sl_span line, const char *name)
{
    struct sl_span value = sl_json_find(line, name);
    bool is_text = value.len >= 2 && *value.ptr == '"';
    return !value.ptr ? SL_LIT("") : is_text ? sl_span(value.ptr + 1, value.len - 2) : value;
}

static void print_sum(struct sl_span line)
{
    struct sl_span target = member(line, "target"), key = member(line, "key"),
                   attribute = member(line, "attribute"), total = member(line, "total"),
                   ledger = member(line, "ledger"), difference = member(line, "difference"),
                   low = member(line, "low"), high = member(line, "high");
    printf("%.*s: ", SL_ARG(target));
    if (difference.len)
        printf("sum %.*s, %.*s: the total is %.*s, its ledger says %.*s: %.*s off\n", SL_ARG(key),
               SL_ARG(attribute), SL_ARG(total), SL_ARG(ledger), SL_ARG(difference));
    else
        printf("unsettled, sum %.*s, %.*s: between %.*s and %.*s off: the ledger changed during every scan\n",
               SL_ARG(key), SL_ARG(attribute), SL_ARG(low), SL_ARG(high));
}

/* Rows of values or members that are not those which the ledgers name. */
static void print_rows(struct sl_span line)
{
    struct sl_span kind = member(line, "kind"), attribute = member(line, "attribute");
    bool is_settled = sl_span_is(member(line, "result"), "different");
    printf("%.*s: %s%.*s of %.*s%s%.*s: %s\n", SL_ARG(member(line, "target")),
           is_settled ? "" : "unsettled, ", SL_ARG(kind), SL_ARG(sl_json_find(line, "key")),
           attribute.len ? ", " : "", SL_ARG(attribute),
           is_settled ? "their rows are not those that the ledgers name"
                      : "the ledger changed during every scan");
}

/* A finding of an archive: its route, what it is, and all that the line says of it. */
static void print_archive(struct sl_span line)
{
    struct sl_json_walk walk = sl_json_walk(line);
    struct sl_span name, value, route = member(line, "route"), kind = member(line, "kind");
    printf("%.*s: archive: %.*s", SL_ARG(route), SL_ARG(kind));
    while (sl_json_walk_next(&walk, &name, &value)) {
        static const char *const said[] = {"result", "kind", "handler", "route", "target"};
        bool is_said = false;
        for (size_t i = 0; i < SL_COUNT(said); i++)
            is_said = is_said || sl_span_is(name, said[i]);
        bool is_text = value.len >= 2 && *value.ptr == '"';
        if (!is_said)
            printf(", %.*s %.*s", SL_ARG(name), (int)(value.len - 2 * is_text), value.ptr + is_text);
    }
    putchar('\n');
}

void sl_report_line(struct sl_report *r, struct sl_span line)
{
    if (!r->is_json && r->printed >= SL_REPORT_LINES) {
        r->left++;
        return;
    }
    r->printed++;
    if (r->is_json)
        fwrite(line.ptr, 1, line.len, stdout);
    else if (sl_span_is(member(line, "kind"), "sum"))
        print_sum(line);
    else if (sl_span_is(member(line, "kind"), "values") || sl_span_is(member(line, "kind"), "members"))
        print_rows(line);
    else
        print_archive(line);
    fflush(stdout);
}

void sl_report_letters(struct sl_report *r, const char *route, int64_t letters, const char *why)
{
    struct sl_buffer b;
    if (!r->is_json) {
        printf("%s: pending (set aside): ", route);
        if (letters > 0)
            printf("%" PRId64
                   " letters wait in its queue, or are dead: nothing is proven until they are applied\n",
                   letters);
        else
            printf("nobody can say whether letters wait in its queue%s%s\n", why[0] ? ": " : "", why);
        fflush(stdout);
        return;
    }
    sl_buffer_init(&b, LINE_BYTES);
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, "result", SL_LIT("set_aside"));
    sl_json_add_member(&b, "route", sl_span_str(route));
    if (letters > 0)
        sl_json_add_integer(&b, "letters", letters);
    if (why[0])
        sl_json_add_member(&b, "why", sl_span_str(why));
    sl_buffer_add_str(&b, "}\n");
    fwrite(b.ptr, 1, b.len, stdout);
    sl_buffer_clean_up(&b);
}

/* ---- progress ---- */

void sl_report_progress(struct sl_report *r, const struct sl_verify *work, int64_t now_ms)
{
    if (r->began_ms == 0)
        r->began_ms = r->told_ms = now_ms;
    if (r->is_quiet || now_ms - r->told_ms < PROGRESS_MS)
        return;
    struct sl_verify_progress p = sl_verify_progress(work);
    uint64_t n = p.items + p.rows, different = 0;
    double rate = (double)(n - r->told_items) * 1000 / (double)(now_ms - r->told_ms);
    for (size_t i = 0; i < sl_verify_routes(work); i++)
        different += sl_verify_route(work, i)->different;
    fprintf(stderr, "sluice %s: %s: ", r->verb, p.what);
    if (p.is_scan)
        fprintf(stderr, "%u of %u segments, ", p.segments_done, p.segments);
    fprintf(stderr,
            "%" PRIu64 " items, %" PRIu64 " rows, %.0f a second; %" PRIu64 " differences, %zu suspects",
            p.items, p.rows, rate, different, p.suspects);
    if (p.is_scan && p.segments_done > 0 && p.segments_done < p.segments)
        fprintf(stderr, ", %.0f minutes left of this table",
                (double)(now_ms - r->began_ms) / 60000 * (p.segments - p.segments_done) / p.segments_done);
    fputc('\n', stderr);
    r->told_ms = now_ms;
    r->told_items = n;
}

/* ---- the result ---- */

/* `sums`: of those that differ, totals; `archived`: of an archive. */
static void print_counts(const struct sl_verify_route *r, uint64_t sums, uint64_t archived)
{
    const struct {
        uint64_t n;
        const char *what;
    } more[] = {{sums, "in totals"}, {archived, "in archives"}};
    printf("%s: %" PRIu64 " equal, %" PRIu64 " different", r->name, r->equal, r->different);
    bool is_first = true;
    for (int k = SL_VERDICT_MISSING; k < SL_VERDICT_NOT_JUDGED; k++) {
        if (r->kinds[k] == 0)
            continue;
        printf("%s%" PRIu64 " %s", is_first ? " (" : ", ", r->kinds[k], sl_finding_kind((enum sl_verdict)k));
        is_first = false;
    }
    for (size_t i = 0; i < 2; i++) {
        if (more[i].n)
            printf("%s%" PRIu64 " %s", is_first ? " (" : ", ", more[i].n, more[i].what);
        is_first = is_first && !more[i].n;
    }
    printf("%s, %" PRIu64 " pending, %" PRIu64 " unsettled, %" PRIu64 " not comparable\n",
           is_first ? "" : ")", r->pending, r->unsettled, r->not_comparable);
}

static void print_route(const struct sl_verify_route *r)
{
    if (r->reason)
        printf("%s: not comparable: %s\n", r->name, r->reason);
    else
        print_counts(r, 0, 0);
}

static void add_json_totals(struct sl_buffer *b, const struct sl_totals_counts *t)
{
    sl_json_add_raw(b, "totals", SL_LIT("{"));
    sl_json_add_integer(b, "equal", (int64_t)t->equal);
    sl_json_add_integer(b, "different", (int64_t)t->different);
    sl_json_add_integer(b, "unsettled", (int64_t)t->unsettled);
    sl_json_add_integer(b, "not_judged", (int64_t)t->not_judged);
    sl_buffer_add_char(b, '}');
}

static void print_totals(const struct sl_totals_counts *t)
{
    printf("totals: %" PRIu64 " equal, %" PRIu64 " different, %" PRIu64 " unsettled", t->equal, t->different,
           t->unsettled);
    if (t->not_judged)
        printf("; %" PRIu64 " attributes are not judged, because a route without a ledger adds to them, too",
               t->not_judged);
    putchar('\n');
}

static void print_json(const struct sl_report *r, const struct sl_verify *work,
                       const struct sl_verify_route *sum)
{
    struct sl_buffer b;
    struct sl_verify_progress p = sl_verify_progress(work);
    sl_buffer_init(&b, LINE_BYTES);
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, "result", SL_LIT("summary"));
    sl_json_add_raw(&b, "done", p.is_done ? SL_LIT("true") : SL_LIT("false"));
    sl_json_add_integer(&b, "items", (int64_t)p.items);
    sl_json_add_integer(&b, "rows", (int64_t)p.rows);
    sl_verify_add_counts(&b, sum);
    if (r->totals.targets)
        add_json_totals(&b, &r->totals);
    sl_verify_add_routes(&b, work);
    sl_buffer_add_str(&b, "}\n");
    fwrite(b.ptr, 1, b.len, stdout);
    sl_buffer_clean_up(&b);
}

void sl_report_end(struct sl_report *r, const struct sl_verify *work)
{
    struct sl_verify_route sum = {.name = "result"};
    sl_verify_sum(work, &sum);
    if (r->is_json) {
        print_json(r, work, &sum);
        return;
    }
    if (r->left)
        printf("and %" PRIu64 " more findings: --json prints all of them\n", r->left);
    for (size_t i = 0; i < sl_verify_routes(work); i++)
        print_route(sl_verify_route(work, i));
    if (r->totals.targets)
        print_totals(&r->totals);
    uint64_t archived = r->archives.gaps + r->archives.damaged;
    sum.equal += r->totals.equal;
    sum.different += r->totals.different + archived;
    sum.unsettled += r->totals.unsettled;
    print_counts(&sum, r->totals.different, archived);
}

/* ---- when it was last proven ---- */

static bool is_proven(const struct sl_verify_route *r)
{
    return !r->reason && r->different + r->pending + r->unsettled + r->not_comparable == 0;
}

static void metric(struct sl_log *log, const char *route, const char *text)
{
    int64_t ns, step_ns;
    if (!text || !sl_time_parse(sl_span_str(text), &ns, &step_ns))
        return;
    log->route = route;
    sl_log_metric(log, "verify", "SecondsSinceVerified",
                  (double)((log->clock->wall_ns(log->clock) - ns) / 1000000000), "Seconds");
    log->route = NULL;
}

enum sl_status sl_report_verified(const char *path, const struct sl_verify *work, bool covers,
                                  struct sl_log *log, struct sl_error *error)
{
    json_error_t why;
    char now[SL_TIME_BYTES];
    const char *name;
    json_t *value, *root = access(path, F_OK) == 0 ? json_load_file(path, 0, &why) : json_object();
    if (!json_is_object(root)) {
        json_decref(root);
        return sl_fail(error, SL_REJECT, "BadFile", "--verified %s: it is not a JSON object", path);
    }
    sl_time_text(log->clock->wall_ns(log->clock), now);
    for (size_t i = 0; i < sl_verify_routes(work) && covers; i++)
        if (is_proven(sl_verify_route(work, i)))
            json_object_set_new(root, sl_verify_route(work, i)->name, json_string(now));
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS);
    int err = sl_disk_replace_path(path, sl_span_str(text));
    free(text);
    json_object_foreach(root, name, value) metric(log, name, json_string_value(value));
    json_decref(root);
    return err ? sl_fail(error, SL_FATAL, "CannotWrite", "--verified %s: cannot be written: %s", path,
                         strerror(err))
               : SL_OK;
}
