/* Archive routes, one after the other. */
#include "cli/verify/archives.h"

#include "base/json_write.h"
#include "handlers/pipeline/route.h"

#include <inttypes.h>
#include <stdio.h>

#define LINE_BYTES ((size_t)16 * 1024)

/* Why the archive proves nothing; NULL: it does. */
static const char *reason_of(const struct sl_route *route)
{
    if (!sl_span_is(sl_options_text(&route->options, "format"), "record"))
        return "only format record keeps what a change was before";
    if (route->when)
        return "its \"when\" leaves out changes, so gaps are normal";
    return NULL;
}

static void on_found(void *arg, struct sl_span line)
{
    sl_report_line(arg, line);
}

static void add_counts(struct sl_buffer *b, const struct sl_chain_counts *n)
{
    sl_json_add_integer(b, "objects", (int64_t)n->objects);
    sl_json_add_integer(b, "records", (int64_t)n->records);
    sl_json_add_integer(b, "items", (int64_t)n->items);
    sl_json_add_integer(b, "erased", (int64_t)n->erased);
    sl_json_add_integer(b, "gaps", (int64_t)n->gaps);
    sl_json_add_integer(b, "damaged", (int64_t)n->damaged);
    sl_json_add_integer(b, "unreadable", (int64_t)n->unreadable);
    sl_json_add_integer(b, "doubles", (int64_t)n->doubles);
    sl_json_add_integer(b, "unknown_before", (int64_t)n->unknown_before);
    sl_json_add_integer(b, "without_images", (int64_t)n->without_images);
}

static void print_json(const char *route, const struct sl_chain_counts *n)
{
    struct sl_buffer b;
    sl_buffer_init(&b, LINE_BYTES);
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, "result", SL_LIT("archive"));
    sl_json_add_member(&b, "route", sl_span_str(route));
    add_counts(&b, n);
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

enum sl_status sl_archives_verify(const struct sl_archives_options *o, struct sl_report *report,
                                  struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < o->pipeline->n && status == SL_OK && !o->is_stopped(o->arg); i++) {
        struct sl_route *route = &o->pipeline->routes[i];
        const struct sl_option_value *to = sl_options_get(&route->options, "to");
        struct sl_chain_counts counts = {.objects = 0};
        if ((o->is_chosen && !o->is_chosen[i]) || sl_route_makes(route) != SL_MAKES_OBJECTS)
            continue;
        if (reason_of(route)) {
            fprintf(stderr, "sluice verify: %s: the archive proves nothing: %s\n", route->config->name,
                    reason_of(route));
            report->archives.without_images++;
            continue;
        }
        if (!to->objects->list || !to->objects->read) {
            fprintf(stderr, "sluice verify: %s: %.*s is not there, or it cannot be listed and read\n",
                    route->config->name, SL_ARG(to->text));
            report->archives.unreadable++;
            continue;
        }
        const struct sl_chain_options chain = {.port = to->objects,
                                               .clock = o->clock,
                                               .route = route->config->name,
                                               .temp = o->temp,
                                               .found = on_found,
                                               .is_stopped = o->is_stopped,
                                               .arg = report,
                                               .stop_arg = o->arg};
        status = sl_chain_verify(&chain, &counts, error);
        sl_error_context(error, "%s", route->config->name);
        if (status == SL_OK && counts.objects == 0) {
            fprintf(stderr, "sluice verify: %s: there are no objects in %.*s, so nothing is proven\n",
                    route->config->name, SL_ARG(to->text));
            report->archives.without_images++;
        }
        print(report, route->config->name, &counts);
        add(&report->archives, &counts);
    }
    return status;
}
