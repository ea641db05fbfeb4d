/* Plans a verification of the table by its segments, and a repair by what was found. */
#include "runtime/work/plan_verify.h"

#include "base/array.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "data/verify/finding.h"
#include "data/verify/source.h"
#include "runtime/work/fields.h"
#include "runtime/work/list.h"
#include "runtime/work/results.h"
#include "runtime/work/verify.h"

#include <inttypes.h>

#define SUM_BYTES ((size_t)1024 * 1024)

/* ---- a verification ---- */

static void answer(struct sl_work_list *list, const struct sl_work_verification *v, bool repairs,
                   struct sl_work_item *item)
{
    struct sl_buffer *out = &item->answer->body;
    sl_work_list_answer_now(list, item);
    sl_json_add_integer(out, "bytes", (int64_t)v->ground.facts.bytes);
    sl_json_add_raw(out, "what",
                    v->piece.is_repair ? SL_LIT("{\"do\":\"repair\"") : SL_LIT("{\"do\":\"verify\""));
    sl_json_add_member(out, "run", v->piece.run);
    sl_json_add_integer(out, "max_lag", (int64_t)v->piece.max_lag_s);
    sl_json_add_integer(out, "wait", (int64_t)v->piece.wait_s);
    sl_work_add_text(out, "routes", v->piece.routes);
    if (repairs)
        sl_json_add_raw(out, "repair", SL_LIT("true"));
    sl_buffer_add_str(out, "}}");
}

/* Said here, and not by each piece. */
static enum sl_status check_routes(const struct sl_work_verification *v, struct sl_error *error)
{
    struct sl_verify *verify = NULL;
    size_t n = 0;
    enum sl_status status = sl_verify_open(&v->options, sl_span(NULL, 0), &verify, error);
    for (size_t i = 0; status == SL_OK && i < sl_verify_routes(verify); i++)
        n += sl_verify_route(verify, i)->reason == NULL;
    sl_verify_close(verify);
    return status == SL_OK && n == 0
               ? sl_fail(error, SL_REJECT, "NothingToVerify", "none of the routes can be compared")
               : status;
}

static void add_piece(struct sl_work_list *list, const struct sl_work_item *item,
                      struct sl_work_verify_piece piece, uint64_t of)
{
    const struct sl_work_config *config = &item->work->config;
    uint32_t workers = sl_work_list_workers(config, of);
    piece.piece = list->pieces;
    piece.read_units = config->read_units / workers;
    piece.write_units = config->write_units / workers;
    sl_work_verify_piece_write(&piece, sl_work_list_next(list));
}

static enum sl_status write_plan(struct sl_work_list *list, const struct sl_work_verification *v,
                                 bool repairs, struct sl_work_item *item, struct sl_error *error)
{
    const char *name = sl_arena_printf(item->call.arena, "%.*s%s", SL_ARG(v->piece.run),
                                       v->piece.is_repair ? ".repair" : "");
    enum sl_status status = sl_work_list_write(list, item, name, error);
    if (status == SL_OK)
        answer(list, v, repairs, item);
    return status;
}

enum sl_status sl_work_plan_verify(struct sl_work_item *item, struct sl_span run, struct sl_span given,
                                   struct sl_error *error)
{
    struct sl_work_verification v = {
        .piece = {.run = run, .of = item->work->config.segments, .wait_s = SL_VERIFY_WAIT_S}};
    struct sl_span what;
    bool repairs = false;
    const struct sl_work_field fields[] = {
        {"do", SL_WORK_TEXT, true, &what},
        {"max_lag", SL_WORK_COUNT, true, &v.piece.max_lag_s},
        {"wait", SL_WORK_COUNT, false, &v.piece.wait_s},
        {"routes", SL_WORK_TEXT, false, &v.piece.routes},
        {"repair", SL_WORK_BOOL, false, &repairs},
    };
    struct sl_work_list list;
    enum sl_status status =
        sl_work_fields_read(given, SL_WORK_INPUT, fields, SL_COUNT(fields), item->call.arena, error);
    if (status == SL_OK)
        status = sl_work_verify_piece_check(&v.piece, &item->work->config, error);
    if (status == SL_OK)
        status = sl_work_verification_open(&v, item, error);
    if (status == SL_OK)
        status = check_routes(&v, error);
    sl_work_list_init(&list);
    for (uint64_t i = 0; status == SL_OK && i < v.piece.of; i++) {
        struct sl_work_verify_piece piece = v.piece;
        piece.segment = i;
        add_piece(&list, item, piece, v.piece.of);
    }
    if (status == SL_OK)
        status = write_plan(&list, &v, repairs, item, error);
    sl_work_list_clean_up(&list);
    sl_work_verification_close(&v);
    return status;
}

/* ---- a repair ---- */

struct repair {
    struct sl_work_item *item;
    struct sl_work_verification v;
    struct sl_span of;  /* the verification's run */
    struct sl_span sum; /* what it counted */
    uint64_t max_deletes;
    struct sl_object_port *place;
    struct sl_work_list list;
};

static uint64_t count(struct sl_span object, const char *name)
{
    uint64_t n = 0;
    struct sl_span number = sl_json_walk_member(object, sl_span_str(name));
    return number.ptr && sl_work_count_read(number, &n) ? n : 0;
}

static enum sl_status read_sum(struct repair *r, struct sl_error *error)
{
    enum sl_status status = sl_work_place(r->item->work, &r->place, error);
    if (status != SL_OK)
        return status;
    status = sl_work_read_object(r->place, sl_work_sum_key(r->of, r->item->call.arena), SUM_BYTES,
                                 &r->item->call, &r->sum, error);
    if (status == SL_OK)
        status = sl_json_check(r->sum, error);
    sl_error_context(error, "the sum of the verification %.*s", SL_ARG(r->of));
    return status;
}

static enum sl_status read_repair(struct repair *r, struct sl_span given, struct sl_error *error)
{
    struct sl_span what;
    struct sl_work_verify_piece *piece = &r->v.piece;
    uint64_t max_lag_s = UINT64_MAX, wait_s = UINT64_MAX;
    const struct sl_work_field fields[] = {
        {"do", SL_WORK_TEXT, true, &what},
        {"of", SL_WORK_TEXT, true, &r->of},
        {"max_lag", SL_WORK_COUNT, false, &max_lag_s},
        {"wait", SL_WORK_COUNT, false, &wait_s},
        {"routes", SL_WORK_TEXT, false, &piece->routes},
        {"delete", SL_WORK_BOOL, false, &piece->may_delete},
        {"max_deletes", SL_WORK_COUNT, false, &r->max_deletes},
        {"save", SL_WORK_BOOL, false, &piece->saves},
    };
    enum sl_status status =
        sl_work_fields_read(given, SL_WORK_INPUT, fields, SL_COUNT(fields), r->item->call.arena, error);
    if (status == SL_OK && !sl_work_is_run(r->of))
        status = sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, SL_WORK_INPUT ": \"of\" is no execution's name");
    if (status == SL_OK)
        status = read_sum(r, error);
    if (status != SL_OK)
        return status;
    struct sl_span then = sl_json_walk_member(r->sum, SL_LIT("what"));
    piece->max_lag_s = max_lag_s != UINT64_MAX ? max_lag_s : count(then, "max_lag");
    piece->wait_s = wait_s != UINT64_MAX ? wait_s : count(then, "wait");
    return SL_OK;
}

/* What would be lost if the source were the wrong table, or the target another's. */
static enum sl_status check_sum(struct repair *r, struct sl_error *error)
{
    uint64_t removals = 0, items = count(r->sum, "items");
    struct sl_json_walk walk = sl_json_walk(sl_json_walk_member(r->sum, SL_LIT("routes")));
    struct sl_span name, route;
    while (sl_json_walk_next(&walk, &name, &route)) {
        struct sl_span kinds = sl_json_walk_member(route, SL_LIT("kinds"));
        struct sl_route *own = sl_route_find(r->item->work->options.pipeline, name);
        for (int k = 0; k < SL_VERDICT_NOT_JUDGED; k++)
            if (sl_finding_is_removal((enum sl_verdict)k))
                removals += count(kinds, sl_finding_kind((enum sl_verdict)k));
        if (own && count(route, "different") &&
            sl_verify_is_doubtful(own, items, count(route, "equal"), &r->item->call))
            return sl_fail(error, SL_REJECT, "NothingEqual",
                           "%.*s: %" PRIu64
                           " items of %.*s were read, and not one has an equal row: is it the "
                           "table that the route follows? If it is the right one, seed the target",
                           SL_ARG(name), items, SL_ARG(r->item->work->config.source));
    }
    if (r->v.piece.may_delete && removals > r->max_deletes)
        return sl_fail(error, SL_REJECT, "TooManyDeletes",
                       "%" PRIu64 " rows would be removed, and \"max_deletes\" is %" PRIu64
                       ": look at the findings, and give a larger one",
                       removals, r->max_deletes);
    return SL_OK;
}

static bool is_findings(struct sl_span key)
{
    return sl_span_ends(key, SL_LIT(".jsonl"));
}

static enum sl_status list_pieces(struct repair *r, struct sl_error *error)
{
    struct sl_arena *arena = r->item->call.arena;
    struct sl_object_list list = {
        .prefix = sl_span_str(sl_arena_printf(arena, SL_WORK_FINDINGS "%.*s/", SL_ARG(r->of)))};
    struct sl_object_page page;
    do {
        page = (struct sl_object_page){.n = 0};
        r->place->list(r->place, &list, &page, &r->item->call);
        if (page.result.status != SL_OK)
            return sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
        for (size_t i = 0; i < page.n; i++)
            if (is_findings(page.entries[i].key)) {
                struct sl_work_verify_piece piece = r->v.piece;
                piece.findings = page.entries[i].key;
                add_piece(&r->list, r->item, piece, r->item->work->config.concurrency);
            }
        list.after = page.next;
    } while (page.next.ptr && r->list.pieces <= SL_WORK_PIECES_MAX);
    return r->list.pieces <= SL_WORK_PIECES_MAX
               ? SL_OK
               : sl_fail(error, SL_REJECT, "TooManyPieces",
                         "the verification %.*s has more than %d objects of findings: seed the target anew",
                         SL_ARG(r->of), SL_WORK_PIECES_MAX);
}

enum sl_status sl_work_plan_repair(struct sl_work_item *item, struct sl_span run, struct sl_span given,
                                   struct sl_error *error)
{
    struct repair r = {
        .item = item, .max_deletes = SL_REPAIR_MAX_REMOVALS, .v.piece = {.is_repair = true, .run = run}};
    sl_work_list_init(&r.list);
    enum sl_status status = read_repair(&r, given, error);
    if (status == SL_OK)
        status = sl_work_verification_open(&r.v, item, error);
    if (status == SL_OK)
        status = check_sum(&r, error);
    if (status == SL_OK)
        status = sl_outstanding_refuse(r.v.outstanding, NULL, "\"routes\"", error);
    if (status == SL_OK)
        status = list_pieces(&r, error);
    if (status == SL_OK)
        status = write_plan(&r.list, &r.v, false, item, error);
    sl_work_list_clean_up(&r.list);
    sl_work_verification_close(&r.v);
    return status;
}
