/* Where records come from: the table that one names, whether two can be the same, and whether a handler would
 * write into the table that it reads. And what is asked of a single record: is it an item of an export, is
 * its removal one that is kept? */
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/test.h"

#include "handlers/builtin/toolkit/expired.h"
#include "handlers/builtin/toolkit/loop.h"
#include "handlers/builtin/toolkit/order.h"
#include "handlers/builtin/toolkit/render.h"
#include "handlers/pipeline/host.h"

static const struct sl_host *const host = &sl_host_table;

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ---- ARNs ---- */

static void the_parts_of_an_arn_are_counted_from_its_begin(void **state)
{
    (void)state;
    const struct sl_span arn = SL_LIT("arn:aws:dynamodb:eu-west-1:123456789012:table/orders");
    static const char *const parts[] = {"arn", "aws", "dynamodb", "eu-west-1", "123456789012"};
    static const char *const others[] = {"", "arn", "arm:aws:x:", "xarn:a:b:c:", "table/orders"};
    for (unsigned i = 0; i < COUNT(parts); i++)
        assert_span_is(sl_source_table_arn_part(arn, i), parts[i]);
    assert_null(sl_source_table_arn_part(arn, 5).ptr); /* the last one has no end */
    assert_null(sl_source_table_arn_part(arn, 6).ptr);
    assert_int_equal(sl_source_table_arn_part(SL_LIT("arn::x:"), 1).len, 0);
    assert_non_null(sl_source_table_arn_part(SL_LIT("arn:"), 0).ptr);
    for (size_t i = 0; i < COUNT(others); i++)
        assert_null(sl_source_table_arn_part(sl_span_str(others[i]), 0).ptr);
}

static const struct sl_record *record_from(struct test_batch *t, const char *where)
{
    return test_record(t, "INSERT", KEYS(PK("a")), where);
}

static void a_record_names_its_table_as_far_as_it_can(void **state)
{
    (void)state;
    static const struct {
        const char *where, *text;
    } cases[] = {
        {",'eventSourceARN':'arn:aws:dynamodb:eu-west-1:12:table/orders/stream/x','awsRegion':'eu-west-1'",
         "orders (eu-west-1, account 12)"},
        /* The ARN is the table's; what else the record says of a Region is of who sent it. */
        {",'eventSourceARN':'arn:aws:dynamodb:eu-west-1:12:table/orders/stream/x','awsRegion':'us-east-1'",
         "orders (eu-west-1, account 12)"},
        {",'eventSourceARN':'arn:aws:dynamodb::12:table/orders/stream/x','awsRegion':'us-east-1'",
         "orders (us-east-1, account 12)"},
        {",'eventSourceARN':'arn:aws:dynamodb:eu-west-1::table/orders/stream/x'", "orders (eu-west-1)"},
        {",'eventSourceARN':'arn:aws:dynamodb:::table/orders/stream/x'", "orders"},
        /* Kinesis' own account and Region are not the table's. */
        {",'eventSourceARN':'arn:aws:kinesis:eu-west-9:99:stream/s','awsRegion':'eu-west-1','tableName':"
         "'orders'",
         "orders (eu-west-1)"},
        {",'tableName':'orders'", "orders"},
        {",'awsRegion':'us-east-1','eventSourceARN':'" SL_REPLAYED_ARN "'", ""},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct test_batch t;
        const struct sl_record *r = record_from(&t, cases[i].where);
        struct sl_source_table source = sl_source_table_of(host, r);
        assert_span_is(sl_source_table_text(host, t.arena, &source), cases[i].text);
        test_batch_clean_up(&t);
    }
}

/* ---- two sources ---- */

/* Every part absent, "a" or "b": the rules part by part, over all pairs. */
static struct sl_source_table source_number(int i)
{
    static const struct sl_span texts[] = {{NULL, 0}, {"a", 1}, {"b", 1}};
    return (struct sl_source_table){texts[i % 3], texts[i / 3 % 3], texts[i / 9 % 3]};
}

static void what_is_not_said_fits_and_is_learnt(void **state)
{
    (void)state;
    for (int i = 0; i < 27; i++) {
        for (int k = 0; k < 27; k++) {
            struct sl_source_table x = source_number(i), y = source_number(k),
                                   both = sl_source_table_join(&x, &y);
            const struct sl_span *xs[] = {&x.account, &x.region, &x.table};
            const struct sl_span *ys[] = {&y.account, &y.region, &y.table};
            const struct sl_span *joined[] = {&both.account, &both.region, &both.table};
            bool fits = true, covers = true;
            for (int part = 0; part < 3; part++) {
                fits = fits && (!xs[part]->ptr || !ys[part]->ptr || sl_span_eq(*xs[part], *ys[part]));
                covers = covers && (!ys[part]->ptr || (xs[part]->ptr && sl_span_eq(*xs[part], *ys[part])));
                assert_true(sl_span_eq(*joined[part], xs[part]->ptr ? *xs[part] : *ys[part]));
            }
            assert_int_equal(sl_source_table_fits(&x, &y), fits);
            assert_int_equal(sl_source_table_covers(&x, &y), covers);
        }
    }
}

/* ---- loops ---- */

#define STREAM(region, account, table)                                                                       \
    ",'awsRegion':'" region "','eventSourceARN':'arn:aws:dynamodb:" region ":" account ":table/" table       \
    "/stream/x'"
#define OURS STREAM("eu-west-1", "12", "orders")

static void a_target_that_may_be_the_source_closes_a_loop(void **state)
{
    (void)state;
    static const struct {
        const char *url, *where;
        bool closes;
    } cases[] = {
        {"dynamodb://orders", OURS, true},
        {"dynamodb://order", OURS, false},
        {"dynamodb://orders2", OURS, false},
        {"dynamodb://orders?region=eu-west-1", OURS, true},
        {"dynamodb://orders?region=eu-west-2", OURS, false},
        {"dynamodb://orders?regions=eu-west-2", OURS, true}, /* another parameter */
        {"dynamodb://orders?x=1&region=eu-west-2", OURS, false},
        {"dynamodb://orders?region=eu-west-2&x=1", OURS, false},
        {"dynamodb://orders?x=1&y=2&region=eu-west-1&z=3", OURS, true},
        {"dynamodb://orders?&region=eu-west-2", OURS, false},
        {"dynamodb://orders?region=", OURS, true}, /* it says nothing */
        {"dynamodb://orders?role=arn:aws:iam::12:role/r", OURS, true},
        {"dynamodb://orders?role=arn:aws:iam::13:role/r", OURS, false},
        {"dynamodb://orders?region=eu-west-1&role=arn:aws:iam::13:role/r", OURS, false},
        {"dynamodb://orders?role=r", OURS, true},
        {"dynamodb://arn:aws:dynamodb:eu-west-1:12:table/orders", OURS, true},
        {"dynamodb://arn:aws:dynamodb:eu-west-1:12:table/orders?x=/orders", OURS, true},
        {"dynamodb://arn:aws:dynamodb:eu-west-1:13:table/orders", OURS, false},
        {"dynamodb://arn:aws:dynamodb:eu-west-2:12:table/orders", OURS, false},
        {"dynamodb://arn:aws:dynamodb:eu-west-1:12:table/others", OURS, false},
        {"dynamodb://orders", STREAM("eu-west-1", "12", "others"), false},
        /* DynamoDB Local calls every Region so. */
        {"dynamodb://orders?region=eu-west-2", STREAM("ddblocal", "000000000000", "orders"), true},
        {"dynamodb://others?region=eu-west-2", STREAM("ddblocal", "000000000000", "orders"), false},
        {"dynamodb://orders?region=eu-west-2", ",'tableName':'orders'", true},
        {"dynamodb://orders", "", false}, /* nobody says which table it is */
        {"sqlite:orders.db?table=orders", OURS, false},
        {"sqlite:orders.db", OURS, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct test_batch t;
        struct sl_loop loop;
        const struct sl_record *r = record_from(&t, cases[i].where);
        const struct sl_slice slice = {.records = &r, .n = 1}, none = {.n = 0};
        sl_loop_init(&loop, sl_span_str(cases[i].url));
        if (sl_loop_closes(&loop, host, &slice) != cases[i].closes)
            fail_msg("%s, records %s", cases[i].url, cases[i].where);
        assert_false(sl_loop_closes(&loop, host, &none));
        test_batch_clean_up(&t);
    }
}

/* Guards and side tables are named by it. */
static void the_table_of_every_target_is_known(void **state)
{
    (void)state;
    static const char *const urls[] = {"dynamodb://orders",
                                       "dynamodb://orders?region=x&table=y",
                                       "dynamodb://arn:aws:dynamodb:eu-west-1:12:table/orders",
                                       "dynamodb://arn:aws:dynamodb:eu-west-1:12:table/orders?region=x",
                                       "sqlite:file.db?table=orders",
                                       "sqlite:file.db?x=1&table=orders&y=2"};
    for (size_t i = 0; i < COUNT(urls); i++) {
        struct sl_loop loop;
        sl_loop_init(&loop, sl_span_str(urls[i]));
        assert_span_is(loop.target.table, "orders");
        assert_int_equal(loop.is_local, i >= 4);
    }
}

static void a_loop_is_refused_with_advice(void **state)
{
    (void)state;
    struct sl_loop loop;
    struct sl_error error = SL_NO_ERROR;
    sl_loop_init(&loop, SL_LIT("dynamodb://arn:aws:dynamodb:eu-west-1:12:table/orders?x=1"));
    assert_int_equal(sl_loop_refuse(&loop, host, ", or do this", &error), SL_FATAL);
    assert_string_equal(error.code, "TargetIsSource");
    assert_non_null(strstr(error.text, "to: orders is the table that the records come from: name another "
                                       "table, or do this ("));
}

/* ---- single records ---- */

static void an_item_has_a_short_number_that_is_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *event, *sequence, *id;
        bool is_item;
    } cases[] = {
        {"INSERT", "1", "1", true},
        {"INSERT", "123456789012345", "123456789012345", true},
        {"INSERT", "1234567890123456", "1234567890123456", false},
        {"INSERT", "1", "2", false},
        {"INSERT", "100000000000000000001", "e", false},
        {"MODIFY", "1", "1", false},
        {"REMOVE", "1", "1", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct test_batch t;
        const struct sl_record *r = test_record(
            &t, cases[i].event, json_printf(KEYS(PK("a")) ",'SequenceNumber':'%s'", cases[i].sequence),
            json_printf(",'eventID':'%s'", cases[i].id));
        if (sl_order_is_of_item(host, r, t.arena) != cases[i].is_item)
            fail_msg("%s %s %s", cases[i].event, cases[i].sequence, cases[i].id);
        struct sl_span digits = sl_order_digits(host, r, t.arena);
        if (cases[i].is_item)
            assert_null(digits.ptr);
        else
            assert_span_is(digits, cases[i].sequence);
        test_batch_clean_up(&t);
    }
}

/* What the route's option says, for each verdict about who removed the item. */
static void removals_are_kept_as_the_option_says(void **state)
{
    (void)state;
#define AT(time) KEYS(PK("a")) OLD(PK("a") ",'ttl':" N(time)) ",'ApproximateCreationDateTime':1767265199"
    static const struct {
        const char *members, *others;
        enum sl_ttl ttl;
        bool keep, keep_any;
    } cases[] = {
        {KEYS(PK("a")), "", SL_TTL_UNKNOWN, false, false},
        {AT("1767269999"), "", SL_TTL_USER, false, false},
        {AT("1767265000"), "", SL_TTL_INFERRED, false, true},
        {KEYS(PK("a")), ",'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'}",
         SL_TTL_EXPIRED, true, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct test_batch t;
        const struct sl_record *r = test_record(&t, "REMOVE", cases[i].members, cases[i].others);
        assert_int_equal(host->record_ttl(r), cases[i].ttl);
        assert_false(sl_expired_is_kept(SL_EXPIRED_APPLY, host, r));
        assert_int_equal(sl_expired_is_kept(SL_EXPIRED_KEEP, host, r), cases[i].keep);
        assert_int_equal(sl_expired_is_kept(SL_EXPIRED_KEEP_ANY, host, r), cases[i].keep_any);
        test_batch_clean_up(&t);
    }
}

static void templates_that_name_an_image_are_known(void **state)
{
    (void)state;
    static const char *const good[] = {"{NewImage.a}", "x{NewImage|json}", "{a}{OldImage.b}",
                                       "{OldImage|json}"};
    static const char *const bad[] = {"", "{a}", "NewImage.a", "{NewImages}", "{OldImage}", "{a.NewImage.b}"};
    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(sl_render_names_image(sl_span_str(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(sl_render_names_image(sl_span_str(bad[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_an_arn_are_counted_from_its_begin),
        cmocka_unit_test(a_record_names_its_table_as_far_as_it_can),
        cmocka_unit_test(what_is_not_said_fits_and_is_learnt),
        cmocka_unit_test(a_target_that_may_be_the_source_closes_a_loop),
        cmocka_unit_test(the_table_of_every_target_is_known),
        cmocka_unit_test(a_loop_is_refused_with_advice),
        cmocka_unit_test(an_item_has_a_short_number_that_is_its_name),
        cmocka_unit_test(removals_are_kept_as_the_option_says),
        cmocka_unit_test(templates_that_name_an_image_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
