/* The aggregate handler over real dispatch and the real SQLite sink. */
#include "base/clock.h"
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," members "}]}"
#define BY_STATUS "'counters':[{'key':{'PK':'{status}'},'add':{'n':1,'sum':'{total}'}}]"

#define ITEM(id, status, total)        PK(id) ",'status':" S(status) ",'total':" N(total)
#define INSERT(seq, id, status, total) RECORD("INSERT", seq, KEYS(PK(id)) NEW(ITEM(id, status, total)))
#define MODIFY(seq, id, status, total, old, was)                                                             \
    RECORD("MODIFY", seq, KEYS(PK(id)) NEW(ITEM(id, status, total)) OLD(ITEM(id, old, was)))
#define REMOVE(seq, id, old, was) RECORD("REMOVE", seq, KEYS(PK(id)) OLD(ITEM(id, old, was)))
#define EXPIRE(seq, id, old, was) EXPIRED(seq, KEYS(PK(id)) OLD(ITEM(id, old, was)))

/* The rows of the totals that are not the ledger's. */
static void expect_totals(struct stage *s, const char *wanted)
{
    char *got = stage_query(s, "db", "SELECT item FROM totals WHERE item NOT LIKE '%sluice:%' ORDER BY key");
    assert_string_equal(got, json(wanted));
    free(got);
}

static void items_that_change_group_move(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1.25"), INSERT("2", "b", "OPEN", "2")));
    stage_deliver_all(s, EVENT(MODIFY("3", "a", "PAID", "1.50", "OPEN", "1.25")));
    for (int i = 0; i < 3; i++) {
        expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'2'}}\n"
                         "{'PK':{'S':'PAID'},'n':{'N':'1'},'sum':{'N':'1.5'}}\n");
        stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1.25"), INSERT("2", "b", "OPEN", "2")));
        stage_deliver_all(s, EVENT(MODIFY("3", "a", "PAID", "1.50", "OPEN", "1.25")));
    }
    stage_deliver_all(s, EVENT(REMOVE("4", "a", "PAID", "1.50"), INSERT("5", "a", "OPEN", "7")));
    stage_deliver_all(s, EVENT(REMOVE("4", "a", "PAID", "1.50")));
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'2'},'sum':{'N':'9'}}\n"
                     "{'PK':{'S':'PAID'},'n':{'N':'0'},'sum':{'N':'0'}}\n");
    stage_destroy(s);
}

/* The old image says PAID, the ledger says OPEN: what was added is subtracted, not what was not. */
static void a_change_that_never_came_does_no_harm(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1")));
    stage_deliver_all(s, EVENT(MODIFY("3", "a", "SENT", "3", "PAID", "2")));
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'0'},'sum':{'N':'0'}}\n"
                     "{'PK':{'S':'SENT'},'n':{'N':'1'},'sum':{'N':'3'}}\n");
    stage_deliver_all(s, EVENT(MODIFY("2", "a", "PAID", "2", "OPEN", "1")));
    stage_deliver_all(s, EVENT(REMOVE("9", "b", "PAID", "2"), MODIFY("4", "c", "SENT", "5", "PAID", "2")));
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'0'},'sum':{'N':'0'}}\n"
                     "{'PK':{'S':'SENT'},'n':{'N':'2'},'sum':{'N':'8'}}\n");
    stage_destroy(s);
}

static void expired_items_are_subtracted_or_kept(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1"), EXPIRE("2", "a", "OPEN", "1")));
    expect_totals(s, "");
    stage_destroy(s);
    s = stage_new(ROUTE(BY_STATUS ",'expired':'keep'"), NULL);
    for (int i = 0; i < 2; i++) {
        stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1")));
        stage_deliver_all(s, EVENT(EXPIRE("2", "a", "OPEN", "1")));
        stage_deliver_all(s, EVENT(INSERT("3", "a", "OPEN", "5"), EXPIRE("4", "a", "OPEN", "5"),
                                   INSERT("5", "a", "OPEN", "7")));
        expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'3'},'sum':{'N':'13'}}\n");
    }
    stage_destroy(s);
}

static void events_are_counted_once_each(void **state)
{
    (void)state;
    struct stage *s =
        stage_new(ROUTE("'per':'event','counters':[{'key':{'PK':'{event} {table}'},'add':{'n':'2'}}]"), NULL);
    for (int i = 0; i < 2; i++)
        stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1"), INSERT("1", "a", "OPEN", "1"),
                                   REMOVE("2", "a", "OPEN", "1")));
    expect_totals(s,
                  "{'PK':{'S':'INSERT orders'},'n':{'N':'2'}}\n{'PK':{'S':'REMOVE orders'},'n':{'N':'2'}}\n");
    char *mark = stage_query(s, "db", "SELECT item FROM totals WHERE item LIKE '%sluice:event:t:e2\"%'");
    assert_string_equal(mark, json("{" PK("sluice:event:t:e2") ",'sluice_expires':" N("1701296000") "}\n"));
    free(mark);
    stage_destroy(s);
}

static void running_values_never_fall(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE("'counters':[{'key':{'PK':'all'},'add':{'n':1},"
                                      "'running_max':{'most':'{total}'},'running_min':{'least':'{total}'}}]"),
                                NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "5"), MODIFY("2", "a", "OPEN", "9", "OPEN", "5"),
                               MODIFY("3", "a", "OPEN", "7", "OPEN", "9")));
    stage_deliver_all(s, EVENT(INSERT("4", "b", "OPEN", "6"), REMOVE("5", "a", "OPEN", "7")));
    expect_totals(s, "{'PK':{'S':'all'},'n':{'N':'1'},'most':{'N':'9'},'least':{'N':'5'}}\n");
    stage_destroy(s);
}

static void sub_counters_spread_by_the_first_key_attribute(void **state)
{
    (void)state;
    struct stage *s =
        stage_new(ROUTE("'shards':1,'counters':[{'key':{'Z':'{status}','A':'{PK}'},'add':{'n':1}}]"), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "5")));
    expect_totals(s, "{'A':{'S':'a'},'Z':{'S':'OPEN#0'},'n':{'N':'1'}}\n");
    stage_destroy(s);
}

static void what_an_item_lacks_has_a_stated_result(void **state)
{
    (void)state;
    static const struct {
        const char *config, *totals;
        size_t parked;
    } cases[] = {
        {ROUTE(BY_STATUS), "", 1},
        {ROUTE(BY_STATUS ",'missing':'skip'"), "", 0},
        {ROUTE(BY_STATUS ",'missing':'empty'"), "{'PK':{'S':'OPEN'},'n':{'N':'1'}}\n", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") ",'status':" S("OPEN")))));
        expect_totals(s, cases[i].totals);
        assert_int_equal(s->answer.parked, cases[i].parked);
        stage_destroy(s);
    }
}

/* Such a record is rejected once, without a loop, and the good records around it count. */
static void what_cannot_be_added_is_rejected_alone(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    stage_deliver_all(
        s,
        EVENT(INSERT("1", "a", "OPEN", "1"),
              RECORD("INSERT", "2", KEYS(PK("b")) NEW(PK("b") ",'status':" S("OPEN") ",'total':" S("many"))),
              INSERT("3", "c", "OPEN", "2")));
    assert_int_equal(s->answer.parked, 1);
    assert_int_equal(s->groups, 1); /* the good ones, together */
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'2'},'sum':{'N':'3'}}\n");
    char *failed = stage_file(s, "failed.jsonl");
    assert_non_null(strstr(failed, "NotANumber"));
    free(failed);
    stage_deliver_all(s, EVENT(INSERT("4", "d", "OPEN", "99999999999999999999999999999999999999"),
                               INSERT("5", "e", "OPEN", "0.1"), INSERT("6", "f", "BIG", "1")));
    assert_int_equal(s->answer.parked, 1);
    failed = stage_file(s, "failed.jsonl");
    assert_non_null(strstr(failed, "38 digits"));
    free(failed);
    stage_destroy(s);
}

/* A group that has the key of a row which the route keeps beside it is rejected alone, whichever of the two
 * counters comes first. */
static void a_group_with_the_key_of_an_own_row_is_rejected(void **state)
{
    (void)state;
    static const char *const routes[] = {
        ROUTE("'counters':[{'key':{'PK':'ALL'},'distinct':{'people':'{PK}'}},{'key':{'PK':'{k}'},'add':{'n':"
              "1}}]"),
        ROUTE("'counters':[{'key':{'PK':'{k}'},'add':{'n':1}},{'key':{'PK':'ALL'},'distinct':{'people':'{PK}'"
              "}}]"),
    };
    for (size_t i = 0; i < 2; i++) {
        struct stage *s = stage_new(routes[i], NULL);
        stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") ",'k':" S("x")))));
        char *key = stage_query(
            s, "db", "SELECT json_extract(key,'$.PK') FROM totals WHERE key LIKE '%sluice:distinct:%'");
        key[strcspn(key, "\n")] = '\0';
        struct sl_buffer event;
        sl_buffer_init(&event, 1 << 16);
        sl_buffer_printf(&event,
                         "{\"Records\":[{\"eventID\":\"e2\",\"eventName\":\"MODIFY\",\"dynamodb\":{\"Keys\":{"
                         "\"PK\":{\"S\":\"a\"}},\"NewImage\":{\"PK\":{\"S\":\"a\"},\"k\":%s},"
                         "\"SequenceNumber\":\"2\",\"StreamViewType\":\"NEW_IMAGE\"}}]}",
                         key);
        stage_deliver(s, sl_span(event.ptr, event.len));
        assert_int_equal(s->answer.error.status, SL_OK);
        assert_int_equal(s->answer.parked, 1);
        char *failed = stage_file(s, "failed.jsonl");
        assert_non_null(strstr(failed, "ReservedKey"));
        expect_totals(s, "{'PK':{'S':'ALL'},'people':{'N':'1'}}\n{'PK':{'S':'x'},'n':{'N':'1'}}\n");
        free(failed);
        free(key);
        sl_buffer_clean_up(&event);
        stage_destroy(s);
    }
}

static void later_changes_wait_for_a_rejected_one(void **state)
{
    (void)state;
    struct stage *s =
        stage_new("{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'t',"
                  "'handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," BY_STATUS "}]}",
                  NULL);
    int64_t began_ms = s->clock.ms;
    stage_deliver(
        s, json_span(EVENT(INSERT("1", "a", "OPEN", "1"), RECORD("MODIFY", "2", KEYS(PK("a")) NEW(PK("a"))),
                           MODIFY("3", "a", "SENT", "3", "OPEN", "1"), INSERT("4", "b", "OPEN", "5"))));
    assert_int_equal(s->clock.ms, began_ms); /* nothing was tried again after a pause */
    assert_int_equal(s->answer.checkpoint, 1);
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'2'},'sum':{'N':'6'}}\n");
    stage_destroy(s);
}

static void totals_may_stand_beside_their_source(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS ",'own_rows':'mark'"), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1")));
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'1'},'sluice_row':{'S':'t'}}\n");
    stage_deliver_all(s,
                      EVENT(RECORD("INSERT", "2",
                                   KEYS(PK("OPEN")) NEW(PK("OPEN") ",'n':" N("1") ",'sluice_row':" S("t")))));
    expect_totals(s, "{'PK':{'S':'OPEN'},'n':{'N':'1'},'sum':{'N':'1'},'sluice_row':{'S':'t'}}\n");
    stage_destroy(s);
}

static void a_target_that_is_the_source_is_refused(void **state)
{
    (void)state;
    static const char *const variables[] = {"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=a",
                                            "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL=http://127.0.0.1:9",
                                            NULL};
    static const char *const handlers[] = {"'aggregate'," BY_STATUS, "'replicate'"};
    for (size_t i = 0; i < 2; i++) {
        char config[512];
        snprintf(config, sizeof(config),
                 "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'t',"
                 "'to':'dynamodb://orders','handler':%s}]}",
                 handlers[i]);
        struct stage *s = stage_new(config, variables);
        stage_deliver(s, json_span(EVENT(INSERT("1", "a", "OPEN", "1"))));
        assert_int_equal(s->answer.error.status, SL_FATAL);
        assert_string_equal(s->answer.error.code, "TargetIsSource");
        stage_destroy(s);
    }
}

/* A route needs the new image of what an item becomes, and the old one where no ledger says what was counted,
 * and of removals that are kept; of the events that its "when" lets through. */
static void view_types_that_cannot_serve_are_refused(void **state)
{
    (void)state;
#define ONLY(event) ",'when':{'events':['" event "']}"
#define ONCE        ",'mode':'at-least-once'"
#define KEEP        ",'expired':'keep'"
    static const char *const views[] = {"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"};
    static const struct {
        const char *config, *event;
        bool serves[4]; /* by view */
    } cases[] = {
        {ROUTE(BY_STATUS), "INSERT", {false, true, false, true}},
        {ROUTE(BY_STATUS ONCE), "INSERT", {false, false, false, true}},
        {ROUTE(BY_STATUS KEEP), "INSERT", {false, false, false, true}},
        {ROUTE(BY_STATUS ",'per':'event'"), "INSERT", {true, true, true, true}},
        {ROUTE(BY_STATUS ONLY("INSERT")), "INSERT", {false, true, false, true}},
        {ROUTE(BY_STATUS ONCE ONLY("INSERT")), "INSERT", {false, true, false, true}},
        {ROUTE(BY_STATUS KEEP ONLY("INSERT")), "INSERT", {false, true, false, true}},
        {ROUTE(BY_STATUS ONLY("MODIFY")), "MODIFY", {false, true, false, true}},
        {ROUTE(BY_STATUS ONCE ONLY("MODIFY")), "MODIFY", {false, false, false, true}},
        {ROUTE(BY_STATUS ONLY("REMOVE")), "REMOVE", {true, true, true, true}},
        {ROUTE(BY_STATUS ONCE ONLY("REMOVE")), "REMOVE", {false, false, true, true}},
        {ROUTE(BY_STATUS KEEP ONLY("REMOVE")), "REMOVE", {false, false, true, true}},
    };
    for (size_t i = 0; i < 4 * sizeof(cases) / sizeof(cases[0]); i++) {
        const char *view = views[i % 4], *event = cases[i / 4].event;
        bool has_new = i % 2 && strcmp(event, "REMOVE") != 0,
             has_old = i % 4 > 1 && strcmp(event, "INSERT") != 0;
        struct stage *s = stage_new(cases[i / 4].config, NULL);
        stage_deliver(s, sl_span_str(json_printf(EVENT(RECORD_OF("%s", "%s", "1", KEYS(PK("a")) "%s%s")),
                                                 event, has_new ? NEW(ITEM("a", "OPEN", "1")) : "",
                                                 has_old ? OLD(ITEM("a", "OPEN", "1")) : "", view)));
        const struct sl_error *error = &s->answer.error;
        if ((error->status == SL_OK) != cases[i / 4].serves[i % 4])
            fail_msg("case %zu of %s: %s", i / 4, view, error->text);
        if (error->status != SL_OK) {
            assert_string_equal(error->code, "ViewType");
            assert_non_null(strstr(error->text, view));
            bool is_offered = strstr(error->text, "(or NEW_IMAGE, which costs a read per change)") != NULL;
            assert_true(is_offered ? cases[i / 4].serves[1] : i / 4 > 0);
        }
        stage_destroy(s);
    }
}

/* ---- groups are told apart ---- */

/* A text as JSON writes it, and what it says: separators, quotes, controls, each in several spellings. */
static const struct {
    const char *json, *text;
    size_t len;
} spellings[] = {{"\\n0", "\n0", 2}, {"\\n", "\n", 1},     {"\\u000a", "\n", 1}, {"\\u0000", "\0", 1},
                 {"\\\"", "\"", 1},  {"\\u0022", "\"", 1}, {"\\\\", "\\", 1},    {"0", "0", 1},
                 {"1", "1", 1},      {"\\u0031", "1", 1},  {"'", "'", 1},        {",", ",", 1},
                 {"{", "{", 1},      {"}", "}", 1},        {"#", "#", 1},        {"\\u0001", "\1", 1},
                 {"\\t", "\t", 1}};

/* What a seed draws from: four spellings, so that texts meet. */
struct draw {
    uint64_t chance;
    size_t alphabet[4];
    bool has_numbers;
};

/* A value of a key: a string of one to three spellings, or a number. Writes its JSON, and what names it. */
static void draw_value(struct draw *d, struct sl_buffer *out, struct sl_buffer *name)
{
    static const char *const numbers[][2] = {
        {"1", "1"}, {"1.0", "1"}, {"10", "10"}, {"1e1", "10"}, {"0", "0"}};
    if (d->has_numbers && sl_random_step(&d->chance) % 4 == 0) {
        size_t i = sl_random_step(&d->chance) % 5;
        sl_buffer_printf(out, "{\"N\":\"%s\"}", numbers[i][0]);
        sl_buffer_printf(name, "N%s", numbers[i][1]);
        return;
    }
    sl_buffer_add_str(out, "{\"S\":\"");
    sl_buffer_add_str(name, "S");
    for (size_t n = 1 + sl_random_step(&d->chance) % 3; n > 0; n--) {
        size_t i = d->alphabet[sl_random_step(&d->chance) % 4];
        sl_buffer_add_str(out, spellings[i].json);
        sl_buffer_add(name, spellings[i].text, spellings[i].len);
    }
    sl_buffer_add_str(out, "\"}");
}

static void count_group(json_t *groups, const char *text, size_t len, json_int_t n)
{
    json_int_t have = json_integer_value(json_object_getn(groups, text, len));
    json_object_setn_new(groups, text, len, json_integer(have + n));
}

/* An event of many items, and how many of them are in each group, "TYPE text LENGTH TYPE text". */
static char *draw_groups(struct draw *d, size_t first, json_t *groups)
{
    struct sl_buffer out, name;
    sl_buffer_init(&out, 1 << 20);
    sl_buffer_init(&name, 1 << 10);
    sl_buffer_add_str(&out, "{\"Records\":[");
    for (size_t i = first; i < first + 400; i++) {
        sl_buffer_reset(&name);
        sl_buffer_printf(&out,
                         "%s{\"eventID\":\"%zu\",\"eventName\":\"INSERT\",\"dynamodb\":{\"SequenceNumber\":"
                         "\"%zu\",\"Keys\":{\"PK\":{\"S\":\"%zu\"}},\"NewImage\":{\"PK\":{\"S\":\"%zu\"},"
                         "\"e\":{\"S\":\"\"},\"a\":",
                         i > first ? "," : "", i, i + 1, i, i);
        draw_value(d, &out, &name);
        size_t len = name.len;
        sl_buffer_add_str(&out, ",\"b\":");
        draw_value(d, &out, &name);
        sl_buffer_printf(&name, " %zu", len);
        sl_buffer_add_str(&out, "}}}");
        count_group(groups, name.ptr, name.len, 1);
    }
    sl_buffer_add_str(&out, "]}");
    sl_buffer_add_char(&out, '\0');
    sl_buffer_clean_up(&name);
    return out.ptr;
}

static void add_value(struct sl_buffer *name, const json_t *value)
{
    const json_t *s = json_object_get(value, "S"), *n = json_object_get(value, "N");
    sl_buffer_add_str(name, s ? "S" : "N");
    sl_buffer_add(name, json_string_value(s ? s : n), json_string_length(s ? s : n));
}

static json_t *groups_of(struct stage *s)
{
    json_t *groups = json_object();
    char *rows = stage_query(s, "db", "SELECT item FROM totals WHERE item NOT LIKE '%sluice:%'");
    for (char *row = rows, *end; (end = strchr(row, '\n')); row = end + 1) {
        struct sl_buffer name;
        json_t *item = json_loadb(row, (size_t)(end - row), JSON_ALLOW_NUL, NULL);
        assert_non_null(item);
        sl_buffer_init(&name, 1 << 10);
        add_value(&name, json_object_get(item, "PK"));
        size_t len = name.len;
        add_value(&name, json_object_get(item, "SK"));
        sl_buffer_printf(&name, " %zu", len);
        count_group(groups, name.ptr, name.len,
                    strtoll(json_string_value(json_object_get(json_object_get(item, "n"), "N")), NULL, 10));
        sl_buffer_clean_up(&name);
        json_decref(item);
    }
    free(rows);
    return groups;
}

/* Every group of `these` is among `those`, with the same number. */
static void expect_groups(uint64_t seed, json_t *these, const json_t *those)
{
    const char *name;
    size_t len;
    json_t *n;
    json_object_keylen_foreach(these, name, len, n)
    {
        const json_t *other = json_object_getn(those, name, len);
        if (!json_equal(n, other))
            fail_msg("seed %llu: %.*s: %lld and %lld", (unsigned long long)seed, (int)len, name,
                     json_integer_value(n), json_integer_value(other));
    }
}

/* Two records are counted in one row if and only if their groups are the same, whatever the groups' texts
 * hold and however they are written. */
static void groups_are_told_apart(void **state)
{
    (void)state;
    static const char *const configs[] = {
        ROUTE("'counters':[{'key':{'PK':'{a}','SK':'{b}'},'add':{'n':1}}]"),
        ROUTE("'counters':[{'key':{'PK':'{a}{e}','SK':'{b}{e}'},'add':{'n':1}}]"), /* texts, not attributes */
        ROUTE("'per':'event','counters':[{'key':{'PK':'{a}{e}','SK':'{e}{b}'},'add':{'n':1}}]")};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct draw d = {.chance = seed, .has_numbers = seed % 3 == 0};
        for (size_t i = 1; i < 4; i++)
            d.alphabet[i] = sl_random_step(&d.chance) % (sizeof(spellings) / sizeof(spellings[0]));
        json_t *wanted = json_object();
        struct stage *s = stage_new(configs[seed % 3], NULL);
        for (size_t batch = 0; batch < 3; batch++) {
            char *event = draw_groups(&d, 400 * batch, wanted);
            for (int times = 0; times < 2; times++)
                if (!stage_drive(s, event, 1))
                    fail_msg("seed %llu: %s", (unsigned long long)seed, s->answer.error.text);
            assert_int_equal(s->answer.parked, 0);
            free(event);
        }
        json_t *got = groups_of(s);
        expect_groups(seed, got, wanted);
        expect_groups(seed, wanted, got);
        json_decref(got);
        json_decref(wanted);
        stage_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_that_change_group_move),
        cmocka_unit_test(a_change_that_never_came_does_no_harm),
        cmocka_unit_test(expired_items_are_subtracted_or_kept),
        cmocka_unit_test(events_are_counted_once_each),
        cmocka_unit_test(running_values_never_fall),
        cmocka_unit_test(sub_counters_spread_by_the_first_key_attribute),
        cmocka_unit_test(what_an_item_lacks_has_a_stated_result),
        cmocka_unit_test(what_cannot_be_added_is_rejected_alone),
        cmocka_unit_test(a_group_with_the_key_of_an_own_row_is_rejected),
        cmocka_unit_test(later_changes_wait_for_a_rejected_one),
        cmocka_unit_test(totals_may_stand_beside_their_source),
        cmocka_unit_test(a_target_that_is_the_source_is_refused),
        cmocka_unit_test(view_types_that_cannot_serve_are_refused),
        cmocka_unit_test(groups_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
