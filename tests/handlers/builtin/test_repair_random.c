/* Random totals of which the source says something else: changes were lost, or came from elsewhere. Every row
 * of the ledger is judged as a plain comparison of the two items says; a repair sets right what it may; and
 * the totals, values, members and the ledger are then those of a table that was filled with these items. */
#include "base/buffer.h"
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"
#include "tests/support/history.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"
#include "data/verify/compare.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define ITEMS 9
#define ROUTE_OF(of_groups, more, members)                                                                   \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'t','handler':'aggregate',"  \
    "'to':'sqlite:${DIR}/db?table=totals','missing':'skip','counters':["                                     \
    "{'key':{'PK':'G#{g}','SK':'-'},'add':{'n':1,'sum':'{v}'},'distinct':{'people':'{c}'}" of_groups "},"    \
    "{'key':{'PK':'ALL','SK':'all'},'add':{'n':1},'when':{'g':{'S':['a','b']}}}" more "]" members "}]}"
#define BY  ",'members':{'by':'{v}'}"
#define SUM ",{'key':{'PK':'SUM','SK':'all'},'add':{'only':'{v}'}}"

static const char *const routes[] = {
    ROUTE_OF(BY, SUM, ""),
    ROUTE_OF(BY, "", ",'empty':'delete'"),
    ROUTE_OF(BY, SUM, ",'ledger':{'table':'rows'}"),
    ROUTE_OF(BY, SUM, ",'shards':3"),
    ROUTE_OF("", SUM, ",'expired':'keep'"),
    ROUTE_OF(BY, SUM, ",'epoch':2,'own_rows':'mark'"),
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

/* NULL: the item lacks it. */
struct item {
    bool is_there;
    const char *g, *v, *c;
};

struct course {
    uint64_t chance, seed;
    const char *route;
    size_t next_seq;
    struct item counted[ITEMS], source[ITEMS];
    struct stage *s;
};

static size_t draw(struct course *c, size_t n)
{
    return history_draw(&c->chance, n);
}

static struct item draw_item(struct course *c)
{
    static const char *const gs[] = {"a", "b", "c", NULL}, *const people[] = {"p", "q", NULL};
    static const char *const vs[] = {"1", "1.0", "2.5", "0", "-3", "0.00", "4", NULL};
    struct item item = {.is_there = draw(c, 5) > 0};
    if (item.is_there) {
        item.g = gs[draw(c, 4)];
        item.v = vs[draw(c, 8)];
        item.c = people[draw(c, 3)];
    }
    return item;
}

/* What the item adds: as it is spelled, or what it comes to. */
static void says(const struct course *c, const struct item *item, bool spelled, char out[64])
{
    double v = item->v ? strtod(item->v, NULL) : 0;
    char number[32] = "";
    out[0] = '\0';
    if (item->v && spelled)
        snprintf(number, sizeof(number), "%s", item->v);
    else if (item->v)
        snprintf(number, sizeof(number), "%g", v);
    if (item->g && item->v && item->c)
        snprintf(out, 64, "%s %s %s;", item->g, number, item->c);
    if (item->g && item->g[0] != 'c')
        snprintf(out + strlen(out), 64 - strlen(out), "all;");
    if (item->v && strstr(c->route, "only") && (spelled || v < 0 || v > 0))
        snprintf(out + strlen(out), 64 - strlen(out), "%s", number);
}

static bool says_nothing(const struct course *c, const struct item *item)
{
    char text[64];
    says(c, item, true, text);
    return !text[0];
}

static bool says_same(const struct course *c, const struct item *x, const struct item *y, bool spelled)
{
    char a[64], b[64];
    says(c, x, spelled, a);
    says(c, y, spelled, b);
    return strcmp(a, b) == 0;
}

/* ---- records ---- */

static void add_image(struct sl_buffer *out, const char *name, size_t i, const struct item *item)
{
    if (!item->is_there)
        return;
    sl_buffer_printf(out, ",\"%s\":{\"PK\":{\"S\":\"i%zu\"}", name, i);
    if (item->g)
        sl_buffer_printf(out, ",\"g\":{\"S\":\"%s\"}", item->g);
    if (item->v)
        sl_buffer_printf(out, ",\"v\":{\"N\":\"%s\"}", item->v);
    if (item->c)
        sl_buffer_printf(out, ",\"c\":{\"S\":\"%s\"}", item->c);
    sl_buffer_add_str(out, "}");
}

/* A change of the stream; nothing when there was no item and is none. */
static void add_change(struct course *c, struct sl_buffer *out, size_t i, const struct item *was,
                       const struct item *is)
{
    if (!was->is_there && !is->is_there)
        return;
    sl_buffer_printf(out,
                     "%s{\"eventID\":\"e%zu\",\"eventName\":\"%s\",\"eventSource\":\"aws:dynamodb\","
                     "\"dynamodb\":{\"ApproximateCreationDateTime\":1767265199,\"Keys\":{\"PK\":{\"S\":"
                     "\"i%zu\"}},\"SequenceNumber\":\"%zu\",\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"",
                     out->len > 12 ? "," : "", c->next_seq,
                     !was->is_there ? "INSERT"
                     : is->is_there ? "MODIFY"
                                    : "REMOVE",
                     i, c->next_seq);
    c->next_seq++;
    add_image(out, "NewImage", i, is);
    add_image(out, "OldImage", i, was);
    sl_buffer_add_str(out, "}}");
}

/* The items of `from` become those of `to`; those alone that are `chosen`, unless it is NULL. */
static void deliver(struct course *c, struct stage *s, const struct item *from, const struct item *to,
                    const bool *chosen)
{
    struct sl_buffer out;
    sl_buffer_init(&out, 1 << 16);
    sl_buffer_add_str(&out, "{\"Records\":[");
    for (size_t i = 0; i < ITEMS; i++)
        if (!chosen || chosen[i])
            add_change(c, &out, i, &from[i], &to[i]);
    bool any = out.len > 12;
    sl_buffer_add_str(&out, "]}");
    sl_buffer_add_char(&out, '\0');
    if (any)
        stage_deliver_all(s, out.ptr);
    sl_buffer_clean_up(&out);
}

/* The items as the source has them, as `sluice repair` hands them over. */
static void decode_source(const struct course *c, struct test_batch *t)
{
    struct sl_buffer out;
    sl_buffer_init(&out, 1 << 16);
    sl_buffer_add_str(&out, "{\"Records\":[");
    for (size_t i = 0; i < ITEMS; i++) {
        sl_buffer_printf(&out, "%s{\"eventName\":\"%s\",\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"i%zu\"}}",
                         i ? "," : "", c->source[i].is_there ? "INSERT" : "REMOVE", i);
        add_image(&out, "NewImage", i, &c->source[i]);
        sl_buffer_add_str(&out, "}}");
    }
    sl_buffer_add_str(&out, "]}");
    test_decode(t, sl_span(out.ptr, out.len), NULL);
    assert_int_equal(t->status, SL_OK);
    sl_buffer_clean_up(&out);
}

/* ---- tables ---- */

/* A row of totals: its numbers, without those that are 0. Sub-counters are one row. */
static void take_total(json_t *rows, const json_t *item, bool sharded)
{
    const char *name, *pk = json_string_value(json_object_get(json_object_get(item, "PK"), "S"));
    const char *end = sharded ? strrchr(pk, '#') : NULL;
    json_t *value;
    char key[96];
    json_object_foreach((json_t *)item, name, value)
    {
        double n =
            strtod(json_object_get(value, "N") ? json_string_value(json_object_get(value, "N")) : "0", NULL);
        snprintf(key, sizeof(key), "%.*s %s", end ? (int)(end - pk) : (int)strlen(pk), pk, name);
        n += json_real_value(json_object_get(rows, key));
        if (n < 0 || n > 0)
            json_object_set_new(rows, key, json_real(n));
        else
            json_object_del(rows, key);
    }
}

static void take_row(json_t *rows, const json_t *item, const char *route)
{
    const char *pk = json_string_value(json_object_get(json_object_get(item, "PK"), "S"));
    const json_t *sums = json_object_get(json_object_get(item, "sums"), "L"), *n = json_object_get(item, "n");
    const char *count = json_string_value(json_object_get(n, "N"));
    if (strncmp(pk, "sluice:ledger:", 14) == 0) {
        if (json_array_size(sums) > 0)
            json_object_set(rows, pk, (json_t *)sums);
    } else if (json_object_get(item, "item") || strncmp(pk, "sluice:distinct:", 16) == 0) {
        char *key = json_dumps(item, JSON_COMPACT | JSON_SORT_KEYS);
        json_object_set_new(rows, key, json_true());
        free(key);
    } else if (strncmp(pk, "sluice:", 7) != 0) {
        assert_false(strstr(route, "delete") && count && strcmp(count, "0") == 0);
        take_total(rows, item, strstr(route, "shards") != NULL);
    }
}

static json_t *tables_of(struct stage *s, const char *route)
{
    json_t *rows = json_object();
    const char *const sql[] = {"SELECT item FROM totals", "SELECT item FROM rows"};
    for (size_t i = 0; i < 2; i++) {
        char *is_there = stage_query(s, "db",
                                     i ? "SELECT count(*) FROM sqlite_master WHERE name = 'rows'"
                                       : "SELECT count(*) FROM sqlite_master WHERE name = 'totals'");
        char *text = is_there[0] == '1' ? stage_query(s, "db", sql[i]) : strdup("");
        for (char *row = text, *end; (end = strchr(row, '\n')); row = end + 1) {
            json_t *item = json_loadb(row, (size_t)(end - row), 0, NULL);
            take_row(rows, item, route);
            json_decref(item);
        }
        free(text);
        free(is_there);
    }
    return rows;
}

/* They are those of a table that was filled with these items. */
static void expect_tables(struct course *c, const struct item *items, const char *when)
{
    static const struct item none[ITEMS];
    struct stage *other = stage_new(c->route, NULL);
    deliver(c, other, none, items, NULL);
    json_t *got = tables_of(c->s, c->route), *wanted = tables_of(other, c->route);
    if (!json_equal(got, wanted))
        fail_msg("seed %llu, %s: %s\n%s\nand not\n%s", (unsigned long long)c->seed, when, c->route,
                 json_dumps(got, JSON_SORT_KEYS | JSON_INDENT(1)),
                 json_dumps(wanted, JSON_SORT_KEYS | JSON_INDENT(1)));
    json_decref(got);
    json_decref(wanted);
    stage_destroy(other);
}

/* The item's row in the ledger; the caller frees. NULL: there is none. */
static char *ledger_row(struct course *c, size_t i)
{
    char sql[160];
    snprintf(sql, sizeof(sql), "SELECT item FROM %s WHERE key LIKE '%%sluice:ledger:%%\"i%zu\\%%'",
             strstr(c->route, "'rows'") ? "rows" : "totals", i);
    char *text = stage_query(c->s, "db", sql);
    text[strcspn(text, "\n")] = '\0';
    if (*text)
        return text;
    free(text);
    return NULL;
}

/* ---- verdicts ---- */

static enum sl_verdict verdict_of(const struct course *c, size_t i)
{
    const struct item *is = &c->source[i], *was = &c->counted[i];
    if (says_same(c, is, was, false))
        return SL_VERDICT_EQUAL;
    if (says_nothing(c, is))
        return is->is_there || !strstr(c->route, "expired") ? SL_VERDICT_LEFT_OVER : SL_VERDICT_NOT_JUDGED;
    return says_nothing(c, was) ? SL_VERDICT_MISSING : SL_VERDICT_DIFFERENT;
}

/* A row leads back to its item, unless it counts nothing. */
static void expect_trace(struct course *c, size_t i, struct sl_span row, struct sl_arena *arena)
{
    struct sl_route *route = &c->s->p->routes[0];
    struct sl_trace trace = {.row = row, .arena = arena};
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(route->loaded.handler.trace(route->self, &trace, &error), SL_OK);
    if (says_nothing(c, &c->counted[i]))
        assert_null(trace.key.ptr);
    else
        assert_true(sl_span_eq(trace.key, sl_span_str(json_printf("{'PK':{'S':'i%zu'}}", i))));
}

static void expect_verdicts(struct course *c)
{
    struct test_batch t;
    const struct sl_record *records[ITEMS];
    struct sl_route *route = &c->s->p->routes[0];
    struct sl_error error = SL_NO_ERROR;
    decode_source(c, &t);
    for (size_t i = 0; i < ITEMS; i++)
        records[i] = sl_batch_record(&t.batch, i);
    struct sl_expect e = {.abi = SL_HANDLER_ABI, .records = records, .n = ITEMS, .arena = t.arena};
    const struct sl_compare compare = {.arena = t.arena};
    assert_int_equal(route->loaded.handler.expect(route->self, &e, &error), SL_OK);
    assert_int_equal(e.n_rows, ITEMS);
    for (size_t i = 0; i < ITEMS; i++) {
        char *row = ledger_row(c, i);
        struct sl_span text = row ? sl_span_str(row) : sl_span(NULL, 0);
        struct sl_judge j = {.record = records[i], .expected = &e.rows[i], .row = text, .arena = t.arena};
        assert_int_equal(e.rows[i].record, i);
        assert_true(e.rows[i].may_be_absent == says_nothing(c, &c->source[i]));
        assert_int_equal(route->loaded.handler.judge(route->self, &j, &error), SL_OK);
        if (j.verdict != verdict_of(c, i))
            fail_msg("seed %llu, i%zu: verdict %d instead of %d\n%s", (unsigned long long)c->seed, i,
                     (int)j.verdict, (int)verdict_of(c, i), c->route);
        assert_true(j.is_owned == (row != NULL) && (j.guard.ptr != NULL) == (row != NULL));
        assert_true(!row || j.written_ms == 1767265199000);
        if (row && sl_compare_is_right(&compare, &e.rows[i], text))
            assert_int_equal(j.verdict, SL_VERDICT_EQUAL);
        if (row)
            expect_trace(c, i, text, t.arena);
        free(row);
    }
    test_batch_clean_up(&t);
}

/* ---- repairs ---- */

struct asking {
    struct test_batch t;
    const struct sl_record *records[ITEMS];
    char *rows[ITEMS];
    struct sl_span seen[ITEMS], sides[ITEMS], written[ITEMS];
    enum sl_repair_effect effects[ITEMS];
    struct sl_mark marks[ITEMS];
    bool moved[ITEMS], may_remove;
};

static void look(struct course *c, struct asking *a)
{
    *a = (struct asking){.may_remove = draw(c, 2)};
    decode_source(c, &a->t);
    for (size_t i = 0; i < ITEMS; i++) {
        a->records[i] = sl_batch_record(&a->t.batch, i);
        a->rows[i] = ledger_row(c, i);
        a->seen[i] = a->rows[i] ? sl_span_str(a->rows[i]) : sl_span(NULL, 0);
    }
}

static void repair(struct course *c, struct asking *a, bool is_plan)
{
    struct sl_route *route = &c->s->p->routes[0];
    struct sl_error error = SL_NO_ERROR;
    struct sl_slice_call call = {
        .marks = a->marks,
        .slice = {.abi = SL_HANDLER_ABI,
                  .records = a->records,
                  .n = ITEMS,
                  .arena = a->t.arena,
                  .deadline_ms = c->s->sinks.clock->now_ms(c->s->sinks.clock) + 10000,
                  .request_id = ""}};
    struct sl_repair ask = {.seen = a->seen,
                            .sides = a->sides,
                            .written = a->written,
                            .effects = a->effects,
                            .may_remove = a->may_remove,
                            .is_plan = is_plan};
    memset(a->marks, 0, sizeof(a->marks));
    enum sl_status status = route->loaded.handler.repair(route->self, &call.slice, &ask, &error);
    assert_true(status == SL_OK || status == SL_REJECT);
}

static void forget(struct asking *a)
{
    for (size_t i = 0; i < ITEMS; i++)
        free(a->rows[i]);
    test_batch_clean_up(&a->t);
}

/* What the repair says of the item; returns whether it set it right. */
static bool expect_answer(const struct course *c, const struct asking *a, size_t i, const struct item *seen)
{
    const struct item *is = &c->source[i];
    bool differs = !says_same(c, is, seen, true);
    const char *code = !is->is_there && !says_nothing(c, seen) && !a->may_remove ? "WouldRemove"
                       : differs && a->moved[i]                                  ? "Moved"
                                                                                 : "";
    bool failed = a->marks[i].is_set && a->marks[i].status != SL_OK;
    const char *got = failed ? a->marks[i].why->code : "";
    if (strcmp(got, code) != 0 || (failed && a->marks[i].status != SL_REJECT))
        fail_msg("seed %llu, i%zu: \"%s\" instead of \"%s\"", (unsigned long long)c->seed, i, got, code);
    if (strcmp(code, "Moved") != 0) {
        assert_int_equal(a->effects[i], *code || !differs ? SL_REPAIR_NOTHING
                                        : is->is_there    ? SL_REPAIR_WRITTEN
                                                          : SL_REPAIR_REMOVED);
        assert_true((a->written[i].ptr != NULL) == (differs && !*code));
    }
    return !*code;
}

/* Between the look and the repair the stream changes some items. */
static void move_some(struct course *c, struct asking *a)
{
    struct item now[ITEMS];
    memcpy(now, c->counted, sizeof(now));
    for (size_t i = 0; i < ITEMS; i++)
        if (draw(c, 5) == 0) {
            now[i] = (struct item){true, "a", now[i].v && now[i].v[0] == '7' ? "8" : "7", "p"};
            a->moved[i] = true;
        }
    deliver(c, c->s, c->counted, now, a->moved);
    memcpy(c->counted, now, sizeof(now));
}

static void run(uint64_t seed)
{
    struct course c = {.chance = seed * 7919, .seed = seed, .route = routes[seed % ROUTES], .next_seq = 1000};
    struct item before[ITEMS] = {{0}}, next[ITEMS], seen[ITEMS];
    struct asking a;
    c.s = stage_new(c.route, NULL);
    for (size_t times = 1 + draw(&c, 3); times > 0; times--) {
        for (size_t i = 0; i < ITEMS; i++)
            c.counted[i] = draw_item(&c);
        deliver(&c, c.s, before, c.counted, NULL);
        memcpy(before, c.counted, sizeof(before));
    }
    for (size_t i = 0; i < ITEMS; i++) {
        c.source[i] = draw(&c, 3) ? draw_item(&c) : c.counted[i];
        next[i] = draw_item(&c);
    }
    expect_verdicts(&c);
    look(&c, &a);
    memcpy(seen, c.counted, sizeof(seen));
    repair(&c, &a, true);
    for (size_t i = 0; i < ITEMS; i++)
        (void)expect_answer(&c, &a, i, &seen[i]);
    expect_tables(&c, c.counted, "after a plan");
    if (draw(&c, 2))
        move_some(&c, &a);
    repair(&c, &a, false);
    for (size_t i = 0; i < ITEMS; i++)
        if (expect_answer(&c, &a, i, &seen[i]) && !a.moved[i])
            c.counted[i] = c.source[i];
    forget(&a);
    expect_tables(&c, c.counted, "after a repair");
    deliver(&c, c.s, c.source, next, NULL);
    for (size_t i = 0; i < ITEMS; i++) {
        /* An item that by its images never counted makes no row of the ledger. */
        bool is_asked = !says_nothing(&c, &c.source[i]) || !says_nothing(&c, &next[i]);
        if (is_asked && (c.source[i].is_there || next[i].is_there))
            c.counted[i] = next[i];
    }
    expect_tables(&c, c.counted, "after the next changes");
    stage_destroy(c.s);
}

static void random_damage_is_judged_and_repaired(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        run(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_damage_is_judged_and_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
