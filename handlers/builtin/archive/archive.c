/* The archive handler: matching records to an object store, one object per slice and prefix. */
#include "handlers/builtin/archive/archive_private.h"

#include "handlers/builtin/toolkit/apply.h"
#include "handlers/builtin/toolkit/keymap.h"
#include "handlers/builtin/toolkit/outcome.h"

/* The records of a slice that go into one object. */
struct group {
    struct sl_span prefix;
    uint32_t n;     /* records */
    uint32_t first; /* where they begin in the slice's order by group */
};

/* A slice on its way into objects. All arrays are in the slice's arena. */
struct plan {
    const struct archive *a;
    struct sl_slice *slice;
    struct sl_outcome outcome;
    struct sl_keymap prefixes; /* their numbers are those of the groups */
    struct group *groups;
    size_t n_groups;
    uint32_t *group_of; /* record -> group, NONE when it is not archived */
    uint32_t *order;    /* records by group, in stream order within each */
    int64_t unit;       /* of the last record whose prefix was made, and its group */
    uint32_t unit_group;
    struct sl_span unit_table, unit_region;
};

#define NONE UINT32_MAX

/* ---- which record goes into which object ---- */

static void plan_init(struct plan *p, const struct archive *a, struct sl_slice *slice)
{
    const struct sl_host *host = a->host;
    *p = (struct plan){.a = a, .slice = slice, .unit_group = NONE};
    sl_outcome_init(&p->outcome, host, slice);
    sl_keymap_init(&p->prefixes, host, slice->arena, a->key_unit_ns ? 4 : slice->n);
    p->group_of = host->alloc(slice->arena, slice->n * sizeof(*p->group_of));
    p->order = host->alloc(slice->arena, slice->n * sizeof(*p->order));
}

/* Records of one table in one unit of time share their prefix: it is made once. */
static bool same_unit(struct plan *p, const struct sl_record *r)
{
    const struct archive *a = p->a;
    if (a->key_unit_ns == 0)
        return false;
    int64_t created_ns = a->host->record_created_ns(r);
    int64_t unit = created_ns > 0 ? created_ns / a->key_unit_ns : -1;
    struct sl_span table = a->host->record_text(r, SL_FIELD_TABLE);
    struct sl_span region = a->host->record_text(r, SL_FIELD_REGION);
    bool same = p->unit_group != NONE && unit == p->unit && sl_span_eq(table, p->unit_table) &&
                sl_span_eq(region, p->unit_region);
    p->unit = unit;
    p->unit_table = table;
    p->unit_region = region;
    return same;
}

static void record_place(struct plan *p, size_t i)
{
    const struct archive *a = p->a;
    const struct sl_record *r = p->slice->records[i];
    if (same_unit(p, r)) {
        p->group_of[i] = p->unit_group;
        return;
    }
    struct sl_span prefix;
    struct sl_error error = SL_NO_ERROR;
    p->group_of[i] = p->unit_group = NONE;
    enum sl_status status = archive_key_prefix(a, r, p->slice->arena, &prefix, &error);
    if (status == SL_OK)
        p->group_of[i] = p->unit_group = sl_keymap_index(&p->prefixes, prefix);
    else if (!sl_render_is_skipped(a->missing, &error))
        sl_outcome_fail(&p->outcome, i, &error);
}

static void order_by_group(struct plan *p)
{
    p->n_groups = p->prefixes.n;
    p->groups = p->a->host->alloc(p->slice->arena, p->n_groups * sizeof(*p->groups));
    for (size_t g = 0; g < p->n_groups; g++)
        p->groups[g] = (struct group){.prefix = p->prefixes.entries[g].text};
    for (size_t i = 0; i < p->slice->n; i++)
        if (p->group_of[i] != NONE)
            p->groups[p->group_of[i]].n++;
    for (size_t g = 1; g < p->n_groups; g++)
        p->groups[g].first = p->groups[g - 1].first + p->groups[g - 1].n;
    for (size_t g = 0; g < p->n_groups; g++)
        p->groups[g].n = 0;
    for (size_t i = 0; i < p->slice->n; i++) {
        if (p->group_of[i] == NONE)
            continue;
        struct group *g = &p->groups[p->group_of[i]];
        p->order[g->first + g->n++] = (uint32_t)i;
    }
}

/* ---- one object ---- */

static struct sl_span body_of(const struct archive *a, const struct sl_span *parts, size_t n,
                              struct sl_arena *arena)
{
    return a->level ? a->host->gzip(arena, parts, n, a->level) : a->host->join(arena, parts, n);
}

/* Makes the group's object of the records that have a line. The others are marked and leave the group. */
static void object_make(struct plan *p, struct group *g, struct sl_object *object)
{
    const struct archive *a = p->a;
    struct sl_arena *arena = p->slice->arena;
    struct sl_span *parts = a->host->alloc(arena, g->n * ARCHIVE_LINE_PARTS * sizeof(*parts));
    const struct sl_record **records = a->host->alloc(arena, g->n * sizeof(const struct sl_record *));
    size_t n_parts = 0, kept = 0;
    for (size_t k = 0; k < g->n; k++) {
        uint32_t i = p->order[g->first + k];
        struct archive_line line = {.parts = parts + n_parts};
        struct sl_error why = SL_NO_ERROR;
        if (archive_line(a, p->slice->records[i], arena, &line, &why) != SL_OK) {
            sl_outcome_fail(&p->outcome, i, &why);
            continue;
        }
        n_parts += line.n;
        p->order[g->first + kept] = i;
        records[kept++] = p->slice->records[i];
    }
    g->n = kept;
    if (kept == 0)
        return;
    *object = (struct sl_object){.key = archive_key_name(a, g->prefix, records, kept, arena),
                                 .body = body_of(a, parts, n_parts, arena),
                                 .content_type = "application/x-ndjson",
                                 .content_encoding = a->level ? "gzip" : NULL,
                                 .content_named = true};
}

/* The object's failure is shared by its records. */
static void object_result(struct plan *p, const struct group *g, const struct sl_result *result)
{
    if (result->status == SL_OK)
        return;
    struct sl_error error = SL_NO_ERROR;
    sl_outcome_error(p->a->host, result, &error);
    for (size_t k = 0; k < g->n; k++)
        sl_outcome_shared(&p->outcome, p->order[g->first + k], &error);
}

/* ---- the slice ---- */

static enum sl_status objects_write(struct plan *p, struct sl_error *error)
{
    const struct archive *a = p->a;
    struct sl_object *objects = a->host->alloc(p->slice->arena, p->n_groups * sizeof(*objects));
    size_t n = 0;
    for (size_t g = 0; g < p->n_groups; g++) {
        object_make(p, &p->groups[g], &objects[n]);
        if (p->groups[g].n > 0)
            p->groups[n++] = p->groups[g];
    }
    p->n_groups = n;
    const struct sl_result *results = sl_apply_objects(a->host, p->slice, a->port, objects, n);
    for (size_t g = 0; g < n; g++)
        object_result(p, &p->groups[g], &results[g]);
    return sl_outcome_end(&p->outcome, error);
}

static enum sl_status handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct plan plan;
    plan_init(&plan, self, slice);
    for (size_t i = 0; i < slice->n; i++)
        record_place(&plan, i);
    order_by_group(&plan);
    return objects_write(&plan, error);
}

static enum sl_status accepts(void *self, enum sl_view view, struct sl_error *error)
{
    return archive_accepts(self, view, error);
}

/* ---- opening ---- */

static const struct sl_option options[] = {
    {"to", SL_OPTION_OBJECTS, SL_OPTION_REQUIRED, 0, 0, NULL, NULL,
     "object store: s3://bucket/prefix, file:folder"},
    {"format", SL_OPTION_ENUM, 0, 0, 0, "record|item|export|json", "record",
     "lines: record (lossless, replayable), item ({\"Item\":...}), export (incremental export), json "
     "(plain)"},
    {"key", SL_OPTION_TEMPLATE, 0, 0, 0, NULL, "{table}/dt={yyyy}-{mm}-{dd}/hour={hh}/",
     "the part of an object's key before its name"},
    {"missing", SL_OPTION_ENUM, 0, 0, 0, SL_MISSING_VALUES, "reject",
     "a record that lacks what `key` names: reject it, leave it out (skip), or put nothing in the place "
     "(empty)"},
    {"compression", SL_OPTION_ENUM, 0, 0, 0, "gzip|none", "gzip", "of the objects"},
    {"level", SL_OPTION_INTEGER, 0, 1, 9, NULL, "6", "of gzip: 1 is fast, 9 is small"},
    {.type = SL_OPTION_END},
};

static enum sl_status open_archive(const struct sl_host *host, struct sl_route *route, void **self,
                                   struct sl_error *error)
{
    static const char *const formats[] = {"record", "item", "export", "json", NULL};
    struct archive *a = host->alloc(host->route_arena(route), sizeof(*a));
    *a = (struct archive){.host = host,
                          .route = route,
                          .port = host->option_objects(route, "to"),
                          .key = host->option_template(route, "key"),
                          .events = host->route_events(route)};
    a->format = (enum archive_format)sl_text_index(host->option_text(route, "format"), formats);
    a->missing = sl_render_missing(host, route);
    if (sl_span_is(host->option_text(route, "compression"), "gzip"))
        a->level = (int)host->option_integer(route, "level");
    *self = a;
    return archive_key_check(a, host->option_text(route, "key"), error);
}

static enum sl_status per_item(void *self, struct sl_per_item *out, struct sl_error *error)
{
    const struct archive *a = self;
    (void)out;
    return a->host->fail(error, SL_REJECT, "NotPerItem",
                         "an archive holds changes, by the time of each; an item is not a change");
}

static enum sl_status price(void *self, struct sl_price *price, struct sl_error *error)
{
    (void)self;
    (void)error;
    price->formula = "one object for each \"key\" that the batch touches, of all its records";
    return SL_OK;
}

const struct sl_handler sl_archive_handler = {
    .abi = SL_HANDLER_ABI,
    .name = "archive",
    .summary = "matching records to an object store, as compressed lines",
    .options = options,
    .open = open_archive,
    .handle = handle,
    .accepts = accepts,
    .per_item = per_item,
    .price = price,
};
