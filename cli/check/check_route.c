/* `sluice check`, the part that describes a route. */
#include "cli/check/check_route.h"

#include "cli/check/check_aside.h"
#include "cli/config/filters.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "streams/names.h"
#include "streams/when/when.h"

#include <stdio.h>

static void print_json(const char *before, struct sl_span json)
{
    struct sl_buffer text;
    sl_buffer_init(&text, SL_CONFIG_BYTES);
    sl_json_add_compact(&text, json);
    printf("%s%.*s\n", before, SL_ARG(sl_buffer_span(&text)));
    sl_buffer_clean_up(&text);
}

static void print_events(const struct sl_route *route)
{
    printf("    takes    ");
    if ((route->events & 0xE) == 0xE)
        printf(" every event");
    for (int i = SL_INSERT; i <= SL_REMOVE && (route->events & 0xE) != 0xE; i++)
        if (route->events & (1u << i))
            printf(" %s", sl_event_name((enum sl_event)i));
    if (!route->config->when.ptr) {
        putchar('\n');
        return;
    }
    print_json(", when ", route->config->when);
}

/* The handler takes only these items of what comes; the mapping cannot keep the others back, as they have to
 * leave the target when they stop being such. */
static void print_where(const struct sl_route *route)
{
    struct sl_span where = sl_options_text(&route->options, "where");
    if (where.len)
        print_json("    of them   items where ", where);
}

/* What the mapping could keep back for this route: a pattern, or an array of some, and how near it is.
 * Nothing in `out`: it cannot keep any record back. */
static const char *nearest_filter(const struct sl_route *route, struct sl_buffer *out)
{
    if (!route->when)
        return "";
    enum sl_when_nearest nearest = sl_when_filter(route->when, out);
    if (nearest == SL_WHEN_FILTER_EXACT)
        return "of the mapping, for the same records";
    struct sl_span patterns = sl_json_find(route->config->when, "pattern");
    if (nearest == SL_WHEN_NO_FILTER && patterns.ptr) {
        sl_json_add_compact(out, patterns);
        return "of the mapping, one for each pattern";
    }
    return "of the mapping, the nearest that there is (lets through more)";
}

static void print_filter(const struct sl_route *route)
{
    struct sl_buffer text;
    if (!route->when)
        return;
    sl_buffer_init(&text, SL_CONFIG_BYTES);
    const char *how = nearest_filter(route, &text);
    if (text.len)
        printf("    filter    %s: %.*s\n", how, SL_ARG(sl_buffer_span(&text)));
    else
        printf("    filter    none: a mapping cannot say any of this\n");
    sl_buffer_clean_up(&text);
}

static bool add_filter(struct sl_span pattern, struct sl_buffer *out, size_t *n)
{
    sl_buffer_add_str(out, (*n)++ ? ",{\"Pattern\":" : "{\"Pattern\":");
    sl_json_add_string(out, pattern);
    sl_buffer_add_str(out, "}");
    return !sl_filters_is_too_long(pattern);
}

/* Adds the route's patterns to the array of filters; false: the mapping has to let everything through. */
static bool add_filters(const struct sl_route *route, struct sl_buffer *out, size_t *n)
{
    struct sl_buffer text;
    sl_buffer_init(&text, SL_CONFIG_BYTES);
    nearest_filter(route, &text);
    struct sl_span said = sl_buffer_span(&text), pattern;
    bool is_said = said.len > 0;
    struct sl_json_walk walk = sl_json_walk(said);
    if (walk.is_object)
        is_said = add_filter(said, out, n);
    else
        while (is_said && sl_json_walk_next(&walk, NULL, &pattern))
            is_said = add_filter(pattern, out, n);
    sl_buffer_clean_up(&text);
    return is_said;
}

void sl_check_filters(const struct sl_route *routes, size_t n)
{
    struct sl_buffer out;
    size_t filters = 0;
    bool is_said = n > 0;
    sl_buffer_init(&out, SL_CONFIG_BYTES);
    for (size_t i = 0; i < n && is_said; i++)
        is_said = add_filters(&routes[i], &out, &filters);
    is_said = is_said && filters <= SL_FILTERS_BY_DEFAULT;
    printf("{\"Filters\":[%.*s]}\n", is_said ? (int)out.len : 0, out.len ? out.ptr : "");
    sl_buffer_clean_up(&out);
}

/* Are the images there that `when` looks into? A pattern on one that is not there never matches. */
static bool is_seen(const struct sl_route *route, enum sl_view view)
{
    unsigned images = sl_when_images(route->when);
    bool has_new = view == SL_VIEW_NEW_IMAGE || view == SL_VIEW_NEW_AND_OLD_IMAGES;
    bool has_old = view == SL_VIEW_OLD_IMAGE || view == SL_VIEW_NEW_AND_OLD_IMAGES;
    return sl_when_accepts(route->when, view) && (has_new || !(images & (1u << SL_NEW_IMAGE))) &&
           (has_old || !(images & (1u << SL_OLD_IMAGE)));
}

static void print_views(struct sl_route *route)
{
    printf("    works with");
    unsigned n = 0;
    for (int view = SL_VIEW_KEYS_ONLY; view <= SL_VIEW_NEW_AND_OLD_IMAGES; view++)
        if (is_seen(route, (enum sl_view)view) &&
            sl_route_accepts(route, (enum sl_view)view, NULL) == SL_OK) {
            printf("%s %s", n ? "," : "", sl_view_name((enum sl_view)view));
            n++;
        }
    puts(n ? "" : " no view type");
}

static void print_failure(const struct sl_route *route)
{
    printf("    rejected  ");
    if (route->n_targets == 0)
        printf("reported to the event source mapping");
    for (size_t i = 0; i < route->n_targets; i++)
        printf("%s%.*s", i ? ", or if that is not possible " : "parked in ", SL_ARG(route->targets[i]->name));
    putchar('\n');
}

/* Of one kind of change: where all items share their rows of totals, and where each has its own. */
struct price {
    bool is_known;
    struct sl_price one, spread;
};

static struct price price_of(struct sl_route *route, const struct sl_check_batch *batch, enum sl_event event,
                             struct sl_arena *arena)
{
    const struct sl_handler *h = &route->loaded.handler;
    bool is_cut = route->max_records && route->max_records < batch->records;
    struct price p = {.one = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_price)},
                              .event = event,
                              .view = route->pipeline->config.view,
                              .records = is_cut ? route->max_records : batch->records,
                              .item_bytes = batch->item_bytes,
                              .arena = arena}};
    p.spread = p.one;
    p.spread.is_spread = true;
    sl_route_enter(route);
    p.is_known = h->price && (route->events & 1u << event) && h->price(route->self, &p.one, NULL) == SL_OK &&
                 h->price(route->self, &p.spread, NULL) == SL_OK && p.one.formula;
    sl_route_leave(route);
    return p;
}

static bool is_same_cost(const struct sl_price *a, const struct sl_price *b)
{
    return a->writes == b->writes && a->reads == b->reads && a->write_units == b->write_units &&
           a->read_units == b->read_units;
}

static bool is_same_price(const struct price *a, const struct price *b)
{
    return b->is_known && is_same_cost(&a->one, &b->one) && is_same_cost(&a->spread, &b->spread) &&
           strcmp(a->one.formula, b->one.formula) == 0;
}

static void print_cost(const struct sl_price *price, const char *where)
{
    printf("                %zu changes of %u bytes%s: %zu writes, %g write units", price->records,
           price->item_bytes, where, price->writes, price->write_units);
    if (price->reads)
        printf(", %zu reads, %g read units", price->reads, price->read_units);
    putchar('\n');
}

/* What a target without capacity units writes: "document", "row"; NULL for others. */
static const char *written_by(const struct sl_route *route)
{
    struct sl_span target = sl_span_str(route->stats.target);
    return sl_span_starts(target, SL_LIT("opensearch:")) ? "document"
           : sl_span_starts(target, SL_LIT("postgres:")) ? "row"
                                                         : NULL;
}

static void print_writes(const struct sl_price *price, const char *what)
{
    printf("    costs     %zu %ss written for %zu changes of %u bytes, many in a request\n", price->writes,
           what, price->records, price->item_bytes);
}

static void print_price(struct sl_route *route, const struct sl_check_batch *batch, struct sl_arena *arena)
{
    struct price prices[SL_REMOVE + 1] = {{.is_known = false}};
    const char *label = "costs   ";
    for (int event = SL_INSERT; event <= SL_REMOVE; event++)
        prices[event] = price_of(route, batch, (enum sl_event)event, arena);
    for (int event = SL_INSERT; event <= SL_REMOVE; event++) {
        const struct price p = prices[event];
        if (!p.is_known)
            continue;
        if (written_by(route)) {
            print_writes(&p.one, written_by(route));
            return;
        }
        printf("    %s  ", label);
        for (int other = event; other <= SL_REMOVE; other++)
            if (is_same_price(&p, &prices[other])) {
                printf("%s%s", other > event ? ", " : "", sl_event_name((enum sl_event)other));
                prices[other].is_known = false;
            }
        printf(": %s\n", p.one.formula);
        label = "        ";
        if (p.one.writes)
            print_cost(&p.one, is_same_cost(&p.one, &p.spread) ? "" : ", all in one group");
        if (!is_same_cost(&p.one, &p.spread))
            print_cost(&p.spread, ", each in a group of its own");
    }
}

void sl_check_route(struct sl_route *route, const struct sl_check_batch *batch, struct sl_arena *arena)
{
    const struct sl_handler *h = &route->loaded.handler;
    printf("\n  %s: %s%s%s\n", route->config->name, route->config->handler, h->summary ? ": " : "",
           h->summary ? h->summary : "");
    print_events(route);
    print_where(route);
    print_filter(route);
    if (route->stats.target && route->stats.target[0])
        printf("    to        %s\n", route->stats.target);
    print_views(route);
    print_failure(route);
    sl_check_aside_say(route, batch);
    print_price(route, batch, arena);
    if (sl_route_is_once_only(route))
        printf("    once only: after all other routes, and only records that the answer does not report as "
               "failed\n");
}
