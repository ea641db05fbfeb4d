/* Archive routes, one after the other. */
#include "cli/verify/archives.h"

#include "base/json_write.h"
#include "data/verify/archive/targets.h"

#include <inttypes.h>
#include <stdio.h>

#define LINE_BYTES ((size_t)16 * 1024)

static void on_found(void *arg, struct sl_span line)
{
    sl_report_line(arg, line);
}

static void print_json(const char *route, const struct sl_chain_counts *n)
{
    struct sl_buffer b;
    sl_buffer_init(&b, LINE_BYTES);
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, "result", SL_LIT("archive"));
    sl_json_add_member(&b, "route", sl_span_str(route));
    sl_chain_add_counts(n, &b);
    sl_buffer_add_str(&b, "}\n");
    fwrite(b.ptr, 1, b.len, stdout);
    sl_buffer_clean_up(&b);
}

static void print_words(const char *route, const struct sl_chain_counts *n)
{
    printf("%s: archive: %" PRIu64 " records of %" PRIu64 " items in %" PRIu64 " objects: %" PRIu64
           " gaps, %" PRIu64 " damaged, %" PRIu64 " unreadable; %" PRIu64 " doubles, %" PRIu64
           " unknown before",
           route, n->records, n->items, n->objects, n->gaps, n->damaged, n->unreadable, n->doubles,
           n->unknown_before);
    if (n->erased)
        printf(", %" PRIu64 " erased", n->erased);
    if (n->without_images)
        printf(", %" PRIu64 " without the images that prove it", n->without_images);
    putchar('\n');
}

static void print(const struct sl_report *report, const char *route, const struct sl_chain_counts *n)
{
    if (report->is_json)
        print_json(route, n);
    else
        print_words(route, n);
}

static void add(struct sl_chain_counts *sum, const struct sl_chain_counts *n)
{
    sum->gaps += n->gaps;
    sum->damaged += n->damaged;
    sum->unreadable += n->unreadable;
    sum->without_images += n->without_images;
}

static enum sl_status verify(const struct sl_archives_options *o, const struct sl_archive_target *t,
                             struct sl_report *report, struct sl_error *error)
{
    struct sl_chain_counts counts = {.objects = 0};
    const struct sl_chain_options chain = {.port = t->port,
                                           .clock = o->clock,
                                           .route = t->route,
                                           .temp = o->temp,
                                           .found = on_found,
                                           .is_stopped = o->is_stopped,
                                           .arg = report,
                                           .stop_arg = o->arg};
    enum sl_status status = sl_chain_verify(&chain, &counts, error);
    sl_error_context(error, "%s", t->route);
    if (status == SL_OK && counts.objects == 0) {
        fprintf(stderr, "sluice verify: %s: there are no objects in %.*s, so nothing is proven\n", t->route,
                SL_ARG(t->url));
        report->archives.without_images++;
    }
    print(report, t->route, &counts);
    add(&report->archives, &counts);
    return status;
}

enum sl_status sl_archives_verify(const struct sl_archives_options *o, struct sl_report *report,
                                  struct sl_error *error)
{
    struct sl_archive_target *targets;
    struct sl_arena *arena = sl_arena_new(LINE_BYTES);
    size_t n = sl_archives_find(o->pipeline, o->is_chosen, arena, &targets);
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < n && status == SL_OK && !o->is_stopped(o->arg); i++) {
        const struct sl_archive_target *t = &targets[i];
        if (t->why_not) {
            fprintf(stderr, "sluice verify: %s: the archive proves nothing: %s\n", t->route, t->why_not);
            report->archives.without_images++;
        } else if (!t->is_there) {
            fprintf(stderr, "sluice verify: %s: %.*s is not there, or it cannot be listed and read\n",
                    t->route, SL_ARG(t->url));
            report->archives.unreadable++;
        } else {
            status = verify(o, t, report, error);
        }
    }
    sl_arena_destroy(arena);
    return status;
}
