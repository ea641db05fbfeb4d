/* The replicate handler over real dispatch and the real SQLite sink. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica'" members "}]}"

#define A                   PK("a")
#define ITEM(v)             A ",'v':" N(v)
#define INSERT(seq, v)      RECORD("INSERT", seq, KEYS(A) NEW(ITEM(v)))
#define MODIFY(seq, v, old) RECORD("MODIFY", seq, KEYS(A) NEW(ITEM(v)) OLD(ITEM(old)))
#define REMOVE(seq, old)    RECORD("REMOVE", seq, KEYS(A) OLD(ITEM(old)))

/* A guard as replicate writes it; `n` is one character. */
#define GUARD(n)  ",'sluice_order':{'S':'000000:" ZEROS39 n ":0000000000000000'}"
#define TIME      ",'sluice_expires':" N("1701296000")
#define TOMBSTONE ",'sluice_deleted':{'BOOL':true}" TIME
#define ZEROS39   "000000000000000000000000000000000000000"

static void expect_rows(struct stage *s, const char *table, const char *wanted)
{
    char sql[128], *got;
    snprintf(sql, sizeof(sql), "SELECT item FROM '%s' ORDER BY key", table);
    got = stage_query(s, "db", sql);
    assert_string_equal(got, json(wanted));
    free(got);
}

/* All orders of five changes of an item, with one of them delivered twice. */
static void every_order_of_five_changes_ends_the_same(void **state)
{
    (void)state;
    static const char *const changes[] = {INSERT("99", "1"), MODIFY("1009", "2", "1"), REMOVE("1010", "2"),
                                          INSERT("999999999999999999999999999999999999999", "3"),
                                          MODIFY("1000000000000000000000000000000000000000", "4", "3")};
    for (int order = 0; order < 240; order++) {
        struct stage *s = stage_new(order % 2 ? ROUTE(",'guard':{'table':'guards'}") : ROUTE(""), NULL);
        int left[5] = {0, 1, 2, 3, 4}, rest = order / 2;
        for (int i = 0; i < 5; i++) {
            char event[2048];
            int pick = rest % (5 - i), change = left[pick];
            rest /= 5 - i;
            memmove(left + pick, left + pick + 1, (size_t)(4 - i - pick) * sizeof(*left));
            snprintf(event, sizeof(event), EVENT("%s,%s"), changes[change], changes[order % 5]);
            stage_deliver_all(s, event);
            stage_deliver_all(s, event);
            assert_int_equal(s->answer.parked, 0);
        }
        char *got = stage_query(s, "db", "SELECT item FROM replica");
        if (!strstr(got, json("'v':" N("4"))))
            fail_msg("order %d: %s", order, got);
        free(got);
        stage_destroy(s);
    }
}

static void a_deleted_item_stays_away(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "1"), REMOVE("2", "1")));
    stage_deliver_all(s, EVENT(INSERT("1", "1")));
    expect_rows(s, "replica",
                "{'sluice_write':{'S':'1:3ae9ba1ff02fda62:3bc3cfa1f5325f4c9087b30207441482'},'PK':{'S':'a'},"
                "'sluice_order':{'S':'000000:0000000000000000000000000000000000000002:"
                "0001767265199000'},'sluice_deleted':{'BOOL':true},'sluice_expires':{'N':'1701296000'}}\n");
    stage_destroy(s);
    s = stage_new(ROUTE(",'guard':{'table':'guards','key':'id'}"), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "1"), REMOVE("2", "1")));
    stage_deliver_all(s, EVENT(INSERT("1", "1")));
    expect_rows(s, "replica", "");
    char *row = stage_query(s, "db", "SELECT item FROM guards");
    assert_non_null(strstr(row, json("'sluice_expires':" N("1701296000"))));
    assert_non_null(strstr(row, json("'id':{'S':'replica ")));
    free(row);
    stage_destroy(s);
}

/* Somebody put back a row of before the deletion, whose mark stands: the change is over, and not tried again
 * and again. */
static void a_deletion_that_comes_again_ends_at_its_mark(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'tombstones':{'table':'marks'}"), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "1")));
    stage_change(s, "db", "CREATE TABLE kept AS SELECT * FROM replica");
    stage_deliver_all(s, EVENT(REMOVE("2", "1")));
    expect_rows(s, "replica", "");
    stage_change(s, "db", "INSERT INTO replica SELECT * FROM kept");
    stage_deliver_all(s, EVENT(REMOVE("2", "1")));
    assert_int_equal(s->answer.parked, 0);
    stage_destroy(s);
}

static void a_replica_in_a_side_tables_guard_is_the_image_byte_for_byte(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'guard':{'table':'guards'}"), NULL);
    stage_deliver_all(
        s,
        EVENT(RECORD("INSERT", "1", KEYS(A) NEW(A ",'t':{'S':'\\u00e9\\n'},'n':{'N':'1.50'},'e':{'M':{}}"))));
    expect_rows(s, "replica", "{'PK':{'S':'a'},'t':{'S':'\\u00e9\\n'},'n':{'N':'1.50'},'e':{'M':{}}}\n");
    stage_destroy(s);
}

/* Our names are the application's own where guards stand in another table. */
static void with_a_side_guard_no_attribute_is_ours(void **state)
{
    (void)state;
    static const char *const more[] = {"", ",'drop':['x']",
                                       (",'project':['sluice_order','sluice_write',"
                                        "'sluice_deleted','sluice_expires']")};
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        struct stage *s = stage_new(json_printf(ROUTE(",'guard':{'table':'guards'}%s"), more[i]), NULL);
        stage_deliver_all(
            s, EVENT(RECORD("INSERT", "1", KEYS(A) NEW(A GUARD("5") TOMBSTONE ",'sluice_write':" S("w")))));
        expect_rows(s, "replica", "{" A GUARD("5") TOMBSTONE ",'sluice_write':" S("w") "}\n");
        stage_deliver_all(s, EVENT(RECORD("MODIFY", "2", KEYS(A) NEW(A GUARD("6")) OLD(A GUARD("5")))));
        expect_rows(s, "replica", "{" A GUARD("6") "}\n");
        stage_destroy(s);
    }
}

/* A key of many bytes stands in the side table by its digest: each item has a guard of its own all the same.
 */
static void items_with_long_keys_have_guards_of_their_own(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'guard':{'table':'guards'}"), NULL);
    char key[1100];
    size_t n = 0;
    for (size_t len = 1; len <= 1060; len += len >= 1000 ? 1 : 111) {
        memset(key, 'k', len);
        key[len] = '\0';
        static const char *const changes[] = {"INSERT','5", "MODIFY','4", "INSERT','5"};
        for (size_t i = 0; i < 3; i++)
            stage_deliver_all(
                s, json_printf("{'Records':[{'eventID':'e','eventSource':'aws:dynamodb','eventName':'%.6s',"
                               "'dynamodb':{'Keys':{'PK':{'S':'%s'}},'NewImage':{'PK':{'S':'%s'},'v':{'N':"
                               "'%zu'}},'SequenceNumber':'%s','StreamViewType':'NEW_IMAGE'}}]}",
                               changes[i], key, key, i, changes[i] + 9));
        n++;
    }
    char wanted[16],
        *rows = stage_query(s, "db", "SELECT count(*) FROM replica WHERE item LIKE '%\"v\":{\"N\":\"0\"}%'");
    char *guards = stage_query(s, "db", "SELECT count(*) FROM guards WHERE length(key) < 1200");
    snprintf(wanted, sizeof(wanted), "%zu\n", n);
    assert_string_equal(rows, wanted);
    assert_string_equal(guards, wanted);
    free(rows);
    free(guards);
    stage_destroy(s);
}

static void attributes_are_reshaped(void **state)
{
    (void)state;
    static const struct {
        const char *config, *row;
    } cases[] = {
        {ROUTE(",'guard':'none','project':['b','c']"), "{'PK':{'S':'a'},'b':{'N':'2'},'c':{'L':[]}}\n"},
        {ROUTE(",'guard':'none','drop':['b','PK']"), "{'PK':{'S':'a'},'c':{'L':[]},'d':{'S':'x'}}\n"},
        {ROUTE(",'guard':'none','rename':{'b':'d','PK':'id'}"),
         "{'id':{'S':'a'},'d':{'N':'2'},'c':{'L':[]}}\n"},
        {ROUTE(",'guard':'none','key':{'id':'{table}#{PK}','sort':'{PK}'}"),
         "{'id':{'S':'orders#a'},'sort':{'S':'a'},'PK':{'S':'a'},'b':{'N':'2'},'c':{'L':[]},"
         "'d':{'S':'x'}}\n"},
        {ROUTE(",'guard':'none','key':{'PK':'x{PK}'},'project':['d']"), "{'PK':{'S':'xa'},'d':{'S':'x'}}\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        stage_deliver_all(
            s, EVENT(RECORD("INSERT", "1", KEYS(A) NEW(A ",'b':{'N':'2'},'c':{'L':[]},'d':{'S':'x'}"))));
        expect_rows(s, "replica", cases[i].row);
        stage_deliver_all(s, EVENT(REMOVE("2", "1")));
        expect_rows(s, "replica", "");
        stage_destroy(s);
    }
}

static void expired_items_may_be_kept(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'guard':'none','expired':'keep'"), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "1"), EXPIRED("2", KEYS(A) OLD(ITEM("1")))));
    expect_rows(s, "replica", "{'PK':{'S':'a'},'v':{'N':'1'}}\n");
    stage_deliver_all(s, EVENT(REMOVE("3", "1")));
    expect_rows(s, "replica", "");
    stage_destroy(s);
}

/* ---- loops, sources, epochs ---- */

static void a_replicates_own_change_goes_no_further(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(A) NEW(A GUARD("x")))));
    stage_deliver_all(s, EVENT(RECORD("MODIFY", "2", KEYS(A) NEW(A GUARD("y")) OLD(A GUARD("x")))));
    stage_deliver_all(s, EVENT(RECORD("REMOVE", "3", KEYS(A) OLD(A GUARD("y") TOMBSTONE))));
    expect_rows(s, "replica", "");
    stage_deliver_all(
        s, EVENT(RECORD("MODIFY", "4", KEYS(A) NEW(A GUARD("y") ",'v':" N("2")) OLD(A GUARD("y")))));
    char *row = stage_query(s, "db", "SELECT item FROM replica");
    assert_non_null(strstr(row, json("'v':" N("2"))));
    assert_null(strstr(row, "y:0"));
    free(row);
    stage_destroy(s);
}

/* An attribute of the application that happens to have the guard's name does not make the item an echo. */
static void an_attribute_with_the_guards_name_is_refused(void **state)
{
    (void)state;
    static const char *const values[] = {"{'S':'x'}", "{'N':'7'}"};
    for (size_t i = 0; i < 2; i++) {
        char event[1024];
        struct stage *s = stage_new(ROUTE(",'guard_attribute':'version'"), NULL);
        snprintf(event, sizeof(event), EVENT(RECORD("INSERT", "1", KEYS(A) NEW(A ",'version':%s"))),
                 values[i]);
        stage_deliver(s, json_span(event));
        assert_int_equal(s->answer.parked, 1);
        expect_rows(s, "replica", "");
        stage_destroy(s);
    }
}

/* The items would all be taken for a replicate's own, and left out. */
static void a_guard_in_the_key_stops_the_stream(void **state)
{
    (void)state;
    static const char *const more[] = {",'guard_attribute':'PK'",
                                       ",'guard_attribute':'PK','replicated':'copy'"};
    for (size_t i = 0; i < 2; i++) {
        char config[1024];
        snprintf(config, sizeof(config), ROUTE("%s"), more[i]);
        struct stage *s = stage_new(config, NULL);
        stage_deliver(s, json_span(EVENT(INSERT("1", "1"))));
        assert_int_equal(s->answer.error.status, SL_FATAL);
        assert_non_null(
            strstr(s->answer.error.text, "guard_attribute: PK is an attribute of the items' key"));
        stage_destroy(s);
    }
}

static void a_view_type_without_both_images_cannot_tell_an_echo(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    stage_deliver(s, json_span(EVENT(RECORD_OF("NEW_IMAGE", "MODIFY", "1", KEYS(A) NEW(A GUARD("x"))))));
    assert_int_equal(s->answer.error.status, SL_FATAL);
    assert_non_null(strstr(s->answer.error.text, "\"replicated\": \"copy\""));
    stage_destroy(s);
    s = stage_new(ROUTE(",'replicated':'copy'"), NULL);
    stage_deliver_all(s, EVENT(RECORD_OF("NEW_IMAGE", "MODIFY", "1", KEYS(A) NEW(A GUARD("x")))));
    stage_destroy(s);
}

static void streams_without_images_are_read_back(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    stage_deliver(s, json_span(EVENT(RECORD_OF("KEYS_ONLY", "MODIFY", "1", KEYS(A)))));
    assert_int_equal(s->answer.error.status, SL_FATAL);
    assert_non_null(strstr(s->answer.error.text, "KEYS_ONLY"));
    stage_destroy(s);
    /* The source is filled by another route. */
    s = stage_new("{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'s',"
                  "'handler':'replicate','to':'sqlite:${DIR}/db?table=source','guard':'none',"
                  "'when':{'pattern':[{'dynamodb':{'StreamViewType':['NEW_AND_OLD_IMAGES']}}]}},"
                  "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica','guard':'none',"
                  "'source':'sqlite:${DIR}/db?table=source',"
                  "'when':{'pattern':[{'dynamodb':{'StreamViewType':['KEYS_ONLY']}}]}}]}",
                  NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "7")));
    stage_deliver_all(s, EVENT(RECORD_OF("KEYS_ONLY", "INSERT", "1", KEYS(A))));
    expect_rows(s, "replica", "{'PK':{'S':'a'},'v':{'N':'7'}}\n");
    stage_deliver_all(s, EVENT(REMOVE("2", "7")));
    stage_deliver_all(s, EVENT(RECORD_OF("KEYS_ONLY", "MODIFY", "2", KEYS(A))));
    expect_rows(s, "replica", "");
    stage_destroy(s);
}

static void a_newer_change_that_is_refused_is_warned_of(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    stage_deliver_all(s, EVENT(INSERT("900", "1")));
    stage_deliver_all(s, EVENT(RECORD_WITH("NEW_AND_OLD_IMAGES", "1767265300", "MODIFY", "100",
                                           KEYS(A) NEW(ITEM("2")), "")));
    char *log = stage_log(s);
    assert_non_null(strstr(log, "raise \"epoch\" above 0"));
    assert_non_null(strstr(log, "RefusedNewer"));
    free(log);
    stage_destroy(s);
    s = stage_new(ROUTE(""), NULL);
    stage_deliver_all(s, EVENT(INSERT("900", "1")));
    stage_deliver_all(s, EVENT(INSERT("100", "1")));
    log = stage_log(s);
    assert_null(strstr(log, "epoch"));
    free(log);
    stage_destroy(s);
}

/* ---- signatures ---- */

/* The row that a replicate makes of the changes; the caller frees it. */
static char *replicated(const char *config, const char *event)
{
    struct stage *s = stage_new(config, NULL);
    stage_deliver_all(s, event);
    char *row = stage_query(s, "db", "SELECT item FROM replica");
    row[strcspn(row, "\n")] = '\0';
    stage_destroy(s);
    return row;
}

static struct sl_arena *test_arena;

/* The item with `from` in its text replaced. */
static const char *edited(const char *item, const char *from, const char *to)
{
    static char texts[16][1024];
    static int n;
    char *text = texts[n++ % 16];
    const char *at = strstr(item, json(from));
    assert_non_null(at);
    snprintf(text, sizeof(texts[0]), "%.*s%s%s", (int)(at - item), item, json(to), at + strlen(json(from)));
    return text;
}

/* What the replica holds after the change of an item, "" when it was taken for an echo; the caller frees it.
 */
static char *copied(const char *config, const char *event, const char *old, const char *new)
{
    const char *keys = new ? new : old;
    const char *key = strstr(keys, "\"PK\":");
    char images[4096], text[5000];
    snprintf(images, sizeof(images), "\"Keys\":{%.*s}%s%s%s%s", (int)(strchr(key, '}') + 1 - key), key,
             new ? ",\"NewImage\":" : "", new ? new : "", old ? ",\"OldImage\":" : "", old ? old : "");
    snprintf(
        text, sizeof(text),
        "{\"Records\":[{\"eventID\":\"e\",\"eventName\":\"%s\",\"awsRegion\":\"eu-west-1\",\"eventSource\":"
        "\"aws:dynamodb\",\"dynamodb\":{\"ApproximateCreationDateTime\":1767265199,%s,\"SequenceNumber\":"
        "\"900\",\"StreamViewType\":"
        "\"NEW_AND_OLD_IMAGES\"},\"eventSourceARN\":\"arn:aws:dynamodb:eu-west-1:123456789012:table/other/"
        "stream/2026-01-01T00:00:00.000\"}]}",
        event, images);
    struct stage *s = stage_new(config, NULL);
    stage_deliver(s, sl_span_str(text));
    assert_int_equal(s->answer.checkpoint, 1);
    assert_int_equal(s->answer.parked, 0);
    char *row = stage_query(s, "db", "SELECT item FROM replica");
    stage_destroy(s);
    return row;
}

static void expect_echo(const char *config, const char *event, const char *old, const char *new, bool is_echo)
{
    char *row = copied(config, event, old, new);
    if ((row[0] == '\0') != is_echo)
        fail_msg("%s: %s\nafter %s\nis %s echo: %s", event, new ? new : "-", old ? old : "-",
                 is_echo ? "an" : "no", row);
    free(row);
}

#define WRITTEN ",'n':{'N':'1.50'},'s':{'NS':['2','1E1']},'m':{'M':{'a':{'S':'\\u00e9'},'b':{'L':[]}}}"

static void an_echo_is_a_write_as_a_replicate_left_it(void **state)
{
    (void)state;
    char *item = replicated(ROUTE(""), EVENT(RECORD("INSERT", "5", KEYS(A) NEW(A WRITTEN))));
    char *older = replicated(ROUTE(""), EVENT(RECORD("INSERT", "4", KEYS(A) NEW(A WRITTEN))));
    expect_echo(ROUTE(""), "INSERT", NULL, item, true);
    expect_echo(ROUTE(""), "MODIFY", older, item, true);
    expect_echo(ROUTE(""), "MODIFY", json("{'PK':{'S':'a'},'v':{'N':'1'}}"), item, true);
    /* As the service gives it back: numbers in normal form, sets and maps in another order. */
    const char *served = edited(edited(item, "'1.50'", "'1.5'"), "['2','1E1']", "['10','2']");
    expect_echo(ROUTE(""), "INSERT", NULL, edited(served, "'S':'\\u00e9'", "'S':'\xC3\xA9'"), true);
    /* A user put back what was there before, once more, or edited; a clone; another value. */
    expect_echo(ROUTE(""), "MODIFY", item, older, false);
    expect_echo(ROUTE(""), "MODIFY", edited(item, "'1.50'", "'2'"), item, false);
    expect_echo(ROUTE(""), "INSERT", NULL, edited(item, "'PK':{'S':'a'}", "'PK':{'S':'b'}"), false);
    expect_echo(ROUTE(""), "INSERT", NULL, edited(item, "'1.50'", "'1.51'"), false);
    expect_echo(ROUTE(""), "INSERT", NULL, edited(item, ",'s':{'NS':['2','1E1']}", ""), false);
    expect_echo(ROUTE(""), "MODIFY", older, edited(item, "'a':{'S'", "'c':{'S'"), false);
    free(item);
    free(older);
}

/* A release without signatures: the guard alone tells, until the configuration says otherwise. One that
 * copied a signature with the application's attributes is such a release too. */
static void a_guard_without_its_signature_is_an_earlier_releases(void **state)
{
    (void)state;
    const char *unsigned_item = json("{" A GUARD("5") ",'v':{'N':'1'}}"), *older = json("{" A GUARD("4") "}");
    char *item = replicated(ROUTE(""), EVENT(INSERT("5", "1")));
    const char *stale = edited(item, "0005:", "0006:");
    const char *const copies[] = {unsigned_item, stale};
    for (size_t i = 0; i < 2; i++) {
        expect_echo(ROUTE(""), "INSERT", NULL, copies[i], true);
        expect_echo(ROUTE(""), "MODIFY", older, copies[i], true);
        expect_echo(ROUTE(""), "MODIFY", edited(copies[i], "'N':'1'", "'N':'2'"), copies[i], false);
        expect_echo(ROUTE(",'unsigned':'copy'"), "INSERT", NULL, copies[i], false);
        expect_echo(ROUTE(",'unsigned':'copy'"), "MODIFY", older, copies[i], false);
    }
    expect_echo(ROUTE(""), "MODIFY", unsigned_item, older, false); /* a put of an old copy */
    char *row = copied(ROUTE(",'unsigned':'copy'"), "INSERT", NULL, stale);
    assert_null(strstr(strstr(row, "sluice_write") + 1, "sluice_write")); /* ours does not stand twice */
    free(row);
    free(item);
}

/* A tombstone is removed by its time or by a replicate. Somebody who wrote on it has made an item of it. */
static void a_tombstone_that_was_written_on_is_an_item(void **state)
{
    (void)state;
    char *tombstone = replicated(ROUTE(""), EVENT(REMOVE("5", "1")));
    const char *earlier = json("{" A GUARD("5") TOMBSTONE "}"), *live = json("{" A ",'v':{'N':'1'}}");
    const char *const tombstones[] = {tombstone, earlier};
    for (size_t i = 0; i < 2; i++) {
        const char *written = edited(tombstones[i], "'PK'", "'v':{'N':'2'},'PK'");
        expect_echo(ROUTE(""), "MODIFY", live, tombstones[i], true);
        expect_echo(ROUTE(""), "REMOVE", tombstones[i], NULL, true);
        expect_echo(ROUTE(""), "REMOVE", written, NULL, false);
        char *row = copied(ROUTE(""), "MODIFY", tombstones[i], written);
        assert_non_null(strstr(row, json("'v':{'N':'2'}")));
        assert_null(strstr(row, "sluice_deleted"));
        assert_null(strstr(row, json("'sluice_expires'")));
        free(row);
        /* A time that the user set stays, and what is no time. */
        static const char *const set[] = {"{'N':'1800000000'}", "{'S':'x'}"};
        for (size_t k = 0; k < 2; k++) {
            row = copied(ROUTE(""), "MODIFY", tombstones[i], edited(written, "{'N':'1701296000'}", set[k]));
            assert_non_null(strstr(row, json_printf("'sluice_expires':%s", set[k])));
            assert_null(strstr(row, "sluice_deleted"));
            free(row);
        }
        /* What is left when our attributes are gone was written before. */
        expect_echo(ROUTE(""), "MODIFY", written, edited(written, TOMBSTONE, ""), true);
        /* In a chain a tombstone is a deletion. */
        row = copied(ROUTE(",'replicated':'copy'"), "MODIFY", live, tombstones[i]);
        assert_non_null(strstr(row, "sluice_deleted"));
        assert_non_null(strstr(row, "0900:"));
        free(row);
        row = copied(ROUTE(",'replicated':'copy'"), "MODIFY", live, written);
        assert_null(strstr(row, "sluice_deleted"));
        free(row);
    }
    free(tombstone);
}

/* An echo of `copy` comes where the item `there` is. */
static void expect_repair(const char *copy, const char *there, const char *left)
{
    char text[4096], sql[2048], event[8192];
    struct stage *s = stage_new(ROUTE(""), NULL);
    snprintf(sql, sizeof(sql), "INSERT INTO replica VALUES('{\"PK\":{\"S\":\"a\"}}','%s')", there);
    stage_change(s, "db", sql);
    snprintf(text, sizeof(text), EVENT(RECORD("INSERT", "9", KEYS(A) ",'NewImage':%s")), "@");
    char *at = strchr(text, '@');
    snprintf(event, sizeof(event), "%.*s%.*s%s", (int)(at - text), json(text), (int)strcspn(copy, "\n"), copy,
             json(at + 1));
    stage_deliver(s, sl_span_str(event));
    assert_int_equal(s->answer.checkpoint, 1);
    expect_rows(s, "replica", json_printf("%s\n", left));
    stage_destroy(s);
}

/* The item that was a tombstone loses our attributes too: its new copy asks for it. */
static void a_revived_item_is_repaired(void **state)
{
    (void)state;
    char *tombstone = replicated(ROUTE(""), EVENT(REMOVE("5", "1")));
    const char *written = edited(tombstone, "'PK'", "'v':{'N':'2'},'PK'");
    char *copy = copied(ROUTE(""), "MODIFY", tombstone, written);
    expect_repair(copy, written, edited(written, TOMBSTONE, ""));
    expect_repair(copy, tombstone, edited(tombstone, TOMBSTONE, ""));
    const char *others[] = {edited(written, "'1701296000'", "'1800000000'"),
                            edited(written, "0005:", "0006:"), "{\"PK\":{\"S\":\"a\"}}"};
    for (size_t i = 0; i < 3; i++)
        expect_repair(copy, others[i], others[i]);
    free(copy);
    /* The application took the time of expiry away. */
    const char *timeless = edited(written, TIME, "");
    copy = copied(ROUTE(""), "MODIFY", tombstone, timeless);
    expect_repair(copy, timeless, edited(written, TOMBSTONE, ""));
    free(copy);
    free(tombstone);
}

/* Records of items that were revived on the other side: each one's own item here is still a tombstone with a
 * value. */
static const char *revived_event(const char *const *copies, const char *const *ids, size_t n)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 16);
    sl_buffer_add_str(&text, "{\"Records\":[");
    for (size_t i = 0; i < n; i++)
        sl_buffer_printf(
            &text,
            "%s{\"eventID\":\"e%zu\",\"eventName\":\"INSERT\",\"eventSource\":\"aws:dynamodb\","
            "\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"%s\"}},\"NewImage\":%s,\"SequenceNumber\":\"%zu\","
            "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}",
            i ? "," : "", i, ids[i], copies[i], 9 + i);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    const char *event = sl_arena_printf(test_arena, "%s", text.ptr);
    sl_buffer_clean_up(&text);
    return event;
}

/* Also where half of the writes fail: an echo whose item was not repaired is retried. */
static void every_revived_item_of_a_slice_is_repaired(void **state)
{
    (void)state;
    static const char *const ids[] = {"a", "b", "c"};
    static const char *const removals[] = {EVENT(RECORD("REMOVE", "5", KEYS(PK("a")) OLD(PK("a")))),
                                           EVENT(RECORD("REMOVE", "5", KEYS(PK("b")) OLD(PK("b")))),
                                           EVENT(RECORD("REMOVE", "5", KEYS(PK("c")) OLD(PK("c"))))};
    const char *written[3], *copies[3];
    test_arena = sl_arena_new(1 << 16);
    for (size_t i = 0; i < 3; i++) {
        char *tombstone = replicated(ROUTE(""), removals[i]);
        written[i] = sl_arena_printf(test_arena, "%s", edited(tombstone, "'PK'", "'v':{'N':'2'},'PK'"));
        char *copy = copied(ROUTE(""), "MODIFY", tombstone, written[i]);
        copies[i] = sl_arena_printf(test_arena, "%.*s", (int)strcspn(copy, "\n"), copy);
        free(copy);
        free(tombstone);
    }
    for (unsigned seed = 0; seed < 24; seed++) {
        struct stage *s = stage_new(ROUTE(""), NULL);
        for (size_t i = 0; i < 3; i++)
            stage_change(s, "db",
                         sl_arena_printf(test_arena,
                                         "INSERT INTO replica VALUES('{\"PK\":{\"S\":\"%s\"}}','%s')", ids[i],
                                         written[i]));
        s->chance = seed;
        s->one_in = seed % 3 ? 2 : 0;
        assert_true(stage_drive(s, revived_event(copies, ids, 1 + seed % 4 % 3), 100));
        for (size_t i = 0; i < 3; i++) {
            const char *sql = sl_arena_printf(
                test_arena, "SELECT item FROM replica WHERE key = '{\"PK\":{\"S\":\"%s\"}}'", ids[i]);
            char *row = stage_query(s, "db", sql);
            row[strcspn(row, "\n")] = '\0';
            assert_string_equal(row, i < 1 + seed % 4 % 3 ? edited(written[i], TOMBSTONE, "") : written[i]);
            free(row);
        }
        stage_destroy(s);
    }
    sl_arena_destroy(test_arena);
}

/* A record that the key's template cannot place is one that failed, whatever the event is. */
static void what_a_key_lacks_is_parked(void **state)
{
    (void)state;
    static const char *const events[] = {EVENT(RECORD("INSERT", "1", KEYS(A) NEW(A))),
                                         EVENT(RECORD("MODIFY", "1", KEYS(A) NEW(A) OLD(A))),
                                         EVENT(RECORD("REMOVE", "1", KEYS(A) OLD(A)))};
    for (size_t i = 0; i < 3; i++) {
        struct stage *s = stage_new(ROUTE(",'guard':'none','key':{'id':'{lacking}'}"), NULL);
        stage_deliver_all(s, events[i]);
        assert_int_equal(s->answer.parked, 1);
        stage_destroy(s);
    }
}

/* ---- the target is the source ---- */

/* Delivers a change of the table "orders" in eu-west-1, account 123456789012, or of DynamoDB Local's; true
 * when the target is refused as its source. Otherwise the target is asked, and nobody answers. */
static bool is_refused_as_source(const char *target, const char *handler, bool is_local)
{
    static const char *const keys[] = {"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b",
                                       "AWS_REGION=eu-west-1", NULL};
    char config[1024];
    snprintf(config, sizeof(config),
             "{'on_failure':'report','routes':[{'name':'r',%s,'to':'dynamodb://%s'}]}", handler, target);
    struct stage *s = stage_new(config, keys);
    s->time_ms = 1500;
    stage_deliver(
        s, is_local ? json_span("{'Records':[{'eventID':'1','eventName':'INSERT','awsRegion':'ddblocal',"
                                "'eventSource':'aws:dynamodb','dynamodb':{" KEYS(A) NEW(ITEM(
                                    "1")) ",'SequenceNumber':'1','StreamViewType':'NEW_AND_OLD_IMAGES'},"
                                          "'eventSourceARN':'arn:aws:dynamodb:ddblocal:000000000000:table/"
                                          "orders/stream/2026-01-01T00:00:00.000'}]}")
                    : json_span(EVENT(INSERT("1", "1"))));
    bool is_refused = s->answer.error.code[0] && strcmp(s->answer.error.code, "TargetIsSource") == 0;
    stage_destroy(s);
    return is_refused;
}

#define NOWHERE "endpoint=http://127.0.0.1:1"

static void a_target_that_is_the_source_is_refused_however_it_is_named(void **state)
{
    (void)state;
    static const char *const handlers[] = {
        "'handler':'replicate'", "'handler':'aggregate','counters':[{'key':{'PK':'{PK}'},'add':{'n':1}}]"};
    static const struct {
        const char *target;
        bool is_source, is_local_source;
    } cases[] = {
        {"orders", true, true},
        {"orders?region=eu-west-1", true, true},
        {"orders?" NOWHERE, true, true},
        {"orders?region=eu-west-1&" NOWHERE, true, true},
        {"orders?region=us-east-1&" NOWHERE, false, true},
        {"orders2?" NOWHERE, false, false},
        {"orders?role=arn:aws:iam::123456789012:role/r&" NOWHERE, true, true},
        {"orders?role=arn:aws:iam::999999999999:role/r&" NOWHERE, false, true},
        {"arn:aws:dynamodb:eu-west-1:123456789012:table/orders", true, true},
        {"arn:aws:dynamodb:eu-west-1:123456789012:table/orders?" NOWHERE, true, true},
        {"arn:aws:dynamodb:us-east-1:123456789012:table/orders?" NOWHERE, false, true},
        {"arn:aws:dynamodb:eu-west-1:999999999999:table/orders?" NOWHERE, false, true},
        {"arn:aws:dynamodb:eu-west-1:123456789012:table/orders2?" NOWHERE, false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t k = 0; k < 2; k++) {
            if (is_refused_as_source(cases[i].target, handlers[k], false) != cases[i].is_source)
                fail_msg("%s: of the service, %s", cases[i].target, handlers[k]);
            if (is_refused_as_source(cases[i].target, handlers[k], true) != cases[i].is_local_source)
                fail_msg("%s: of DynamoDB Local, %s", cases[i].target, handlers[k]);
        }
}

/* ---- what can never succeed ---- */

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *config, *message;
    } cases[] = {
        {ROUTE(",'guard':'inlin'"), "guard: expected \"inline\", \"none\" or {\"table\": name}"},
        {ROUTE(",'guard':{'tabel':'x'}"), "guard.tabel: unknown member"},
        {ROUTE(",'guard':{'table':'replica'}"), "guard.table: the replica cannot keep these rows itself"},
        {ROUTE(",'project':{}"), "project: expected a list"},
        {ROUTE(",'drop':[1]"), "drop[0]: expected an attribute name"},
        {ROUTE(",'rename':{'a':1}"), "rename.a: expected an attribute name"},
        {ROUTE(",'rename':{'a':'c','b':'c'}"), "rename: two attributes become c"},
        {ROUTE(",'drop':['a'],'rename':{'a':'c'}"), "rename.a: the attribute is in drop"},
        {ROUTE(",'key':{'a':'{NewImage.b}'}"), "key.a: use attributes of the source's key only"},
        {ROUTE(",'key':{'a':'{b'}"), "$.routes[0].key.a: '{' is not closed"},
        {ROUTE(",'key':{}"), "key: expected an object of one or two"},
        {ROUTE(",'epoc':1"), "$.routes[0].epoc: is not known here; did you mean \"epoch\"?"},
        {ROUTE(",'guard_attribute':'a\\\"b'"), "guard_attribute: expected the name of an attribute"},
        {ROUTE(",'tombstones':{'table':'replica'}"), "tombstones.table: the replica cannot keep these rows"},
        {ROUTE(",'tombstones':{'tabel':'x'}"), "tombstones.tabel: unknown member"},
        {ROUTE(",'tombstones':'aside'"), "tombstones: expected \"inline\" or {\"table\": name}"},
        {ROUTE(",'guard':'none','tombstones':{'table':'x'}"), "only a replica with inline guards"},
        {ROUTE(",'rename':{'a':'sluice_order'}"), "rename.a: sluice_order is the guard_attribute"},
        {ROUTE(",'rename':{'a':'sluice_write'}"), "rename.a: sluice_write is the write_attribute"},
        {ROUTE(",'rename':{'a':'gone'},'deleted_attribute':'gone'"),
         "rename.a: gone is the deleted_attribute"},
        {ROUTE(",'rename':{'a':'sluice_expires'}"), "rename.a: sluice_expires is the expires_attribute"},
        {ROUTE(",'key':{'sluice_order':'{a}'}"), "key.sluice_order: sluice_order is the guard_attribute"},
        {ROUTE(",'guard_attribute':'x','deleted_attribute':'x'"),
         "$.routes[0].deleted_attribute: \"x\" is the guard_attribute too"},
        {ROUTE(",'expires_attribute':'sluice_deleted'"),
         "$.routes[0].expires_attribute: \"sluice_deleted\" is the deleted_attribute too"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        stage_refused(cases[i].config, cases[i].message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_five_changes_ends_the_same),
        cmocka_unit_test(a_deleted_item_stays_away),
        cmocka_unit_test(a_deletion_that_comes_again_ends_at_its_mark),
        cmocka_unit_test(a_replica_in_a_side_tables_guard_is_the_image_byte_for_byte),
        cmocka_unit_test(with_a_side_guard_no_attribute_is_ours),
        cmocka_unit_test(items_with_long_keys_have_guards_of_their_own),
        cmocka_unit_test(attributes_are_reshaped),
        cmocka_unit_test(expired_items_may_be_kept),
        cmocka_unit_test(a_replicates_own_change_goes_no_further),
        cmocka_unit_test(an_attribute_with_the_guards_name_is_refused),
        cmocka_unit_test(a_guard_in_the_key_stops_the_stream),
        cmocka_unit_test(a_view_type_without_both_images_cannot_tell_an_echo),
        cmocka_unit_test(streams_without_images_are_read_back),
        cmocka_unit_test(a_newer_change_that_is_refused_is_warned_of),
        cmocka_unit_test(an_echo_is_a_write_as_a_replicate_left_it),
        cmocka_unit_test(a_guard_without_its_signature_is_an_earlier_releases),
        cmocka_unit_test(a_tombstone_that_was_written_on_is_an_item),
        cmocka_unit_test(a_revived_item_is_repaired),
        cmocka_unit_test(every_revived_item_of_a_slice_is_repaired),
        cmocka_unit_test(what_a_key_lacks_is_parked),
        cmocka_unit_test(a_target_that_is_the_source_is_refused_however_it_is_named),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
