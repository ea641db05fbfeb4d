/* postgres:// without a server: what a target's text may be, what a value becomes in a column, the token of
 * IAM. check_postgres.py has the rest. */
#include "tests/support/fault.h"

#include "sinks/postgres.h"
#include "sinks/postgres/postgres_private.h"
#include "streams/value.h"

#include <stdlib.h>

static struct fault f;

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)reply;
    fail_msg("%s is asked for: opening a target sends nothing", request->path);
}

#define OK  "postgres://h/d?table=t&user=u"
#define FIT "postgres://h/d?table=t&user=u&columns="
#define B63 "a12345678901234567890123456789012345678901234567890123456789012" /* as long as a name may be */

static void targets_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *url, *says; /* NULL: it is fine */
    } cases[] = {
        {OK, NULL},
        {"postgres://h:6432/d?table=shop.orders&user=u&tls=on&ca=/x&cert=/c&key=/k", NULL},
        {"postgres://[::1]:5433/d?table=t&user=u&tls=off", NULL},
        {"postgres:///d?table=t&user=u&socket=/run/postgresql", NULL},
        {"postgres://a.b.eu-west-1.rds.amazonaws.com/d?table=t&user=u&auth=iam", NULL},
        {OK "&auth=iam&region=eu-west-1&role=arn:aws:iam::123456789012:role/r", NULL},
        {FIT "a:text,b:numeric,c:bigint,d:boolean,e:bytea,f:timestamptz,g:timestamptz(ms),a%3Ab:text", NULL},
        {"postgres://h/" B63 "?table=" B63 "." B63 "&user=u&columns=" B63 ":text", NULL},
        {"postgres://h/" B63 "b?table=t&user=u", "name of a database"},
        {"postgres://h/d?table=" B63 "b.t&user=u", "63 bytes"},
        {"postgres://h/d?table=a.b.&user=u", "table=NAME"},
        {"postgres://h/d?table=t&user=%0Au", "user=NAME"},
        {"postgres:h/d?table=t&user=u", "postgres://HOST"},
        {"postgres://h?table=t&user=u", "postgres://HOST"},
        {"postgres://h/?table=t&user=u", "name of a database"},
        {"postgres://h/a/b?table=t&user=u", "name of a database"},
        {"postgres:///d?table=t&user=u", "HOST is not"},
        {"postgres://h h/d?table=t&user=u", "HOST is not"},
        {"postgres://h:x/d?table=t&user=u", "HOST is not"},
        {"postgres://u:p@h/d?table=t", "user"},
        {"postgres://h/d?table=t&user=u&socket=/s", "socket=FOLDER"},
        {"postgres:///d?table=t&user=u&socket=s", "socket=FOLDER"},
        {"postgres://h/d?user=u", "table=NAME"},
        {"postgres://h/d?table=&user=u", "table=NAME"},
        {"postgres://h/d?table=a.&user=u", "table=NAME"},
        {"postgres://h/d?table=.a&user=u", "table=NAME"},
        {"postgres://h/d?table=a.b.c&user=u", "table=NAME"},
        {"postgres://h/d?table=a%22b&user=u", "table=NAME"},
        {"postgres://h/d?table=a123456789012345678901234567890123456789012345678901234567890123&user=u",
         "63 bytes"},
        {"postgres://h/d?table=t", "user=NAME"},
        {"postgres://h/d?table=t&user=", "user=NAME"},
        {OK "&auth=x", "auth=x is neither password nor iam"},
        {OK "&tls=no", "tls=no is neither on nor off"},
        {OK "&auth=iam&region=no_where", "auth=iam needs region"},
        {OK "&auth=iam&region=eu-west-1&tls=off", "over TLS alone"},
        {OK "&password=NOT_SET", "password=NOT_SET names a variable that is not set"},
        {OK "&password=SECRET&tls=off", "in the clear"},
        {OK "&cert=/c", "belong together"},
        {OK "&key=/k", "belong together"},
        {OK "&tls=off&ca=/x", "nothing to do"},
        {OK "&nonsense=1", "nonsense"},
        {OK "&region=eu-west-1", "region"},
        {FIT, "NAME:TYPE"},
        {FIT "a", "NAME:TYPE"},
        {FIT "a:float", "NAME:TYPE"},
        {FIT "a:text,", "NAME:TYPE"},
        {FIT ":text", "NAME:TYPE"},
        {FIT "a%0Ab:text", "NAME:TYPE"},
        {FIT "a123456789012345678901234567890123456789012345678901234567890123:text", "63 bytes"},
        {FIT "a:text,a:numeric", "the name a is taken"},
        {FIT "item:text", "the name item is taken"},
    };
    fault_open(&f, answer, NULL);
    fault_set(&f, "SECRET", FAULT_PASSWORD);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_table_port *port = NULL;
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_target_table(&f.sinks, sl_span_str(cases[i].url), &port, &error);
        if ((status == SL_OK) != !cases[i].says || (cases[i].says && !strstr(error.text, cases[i].says)))
            fail_msg("%s: %s", cases[i].url, error.text);
        if (port)
            port->close(port);
    }
    fault_close(&f);
}

static void a_target_is_what_its_text_says(void **state)
{
    (void)state;
    fault_open(&f, answer, NULL);
    fault_set(&f, "PGPASSWORD", FAULT_PASSWORD);
    struct sl_table_port *port =
        fault_table(&f, "postgres://[::1]:5433/d?table=s.t&user=u&columns=a%20b:text,c%22d:timestamptz(ms)");
    const struct sl_postgres_target *t = &((struct sl_postgres *)port)->target;
    assert_string_equal(t->host, "::1");
    assert_string_equal(t->port, "5433");
    assert_string_equal(t->database, "d");
    assert_string_equal(t->user, "u");
    assert_string_equal(t->own, "s.t");
    assert_string_equal(t->password, FAULT_PASSWORD);
    assert_true(t->is_local);
    assert_int_equal(t->n_columns, 2);
    assert_string_equal(t->columns[0].quoted, "\"a b\"");
    assert_string_equal(t->columns[1].quoted, "\"c\"\"d\"");
    assert_int_equal(t->columns[1].type, SL_POSTGRES_TIMESTAMPTZ_MS);
    port->close(port);
    port = fault_table(&f, "postgres:///d?table=t&user=u&socket=/run/x");
    t = &((struct sl_postgres *)port)->target;
    assert_string_equal(t->host, "/run/x");
    assert_true(t->is_local);
    port->close(port);
    port = fault_table(&f, "postgres://h/d?table=t&user=u");
    t = &((struct sl_postgres *)port)->target;
    assert_string_equal(t->port, "5432");
    assert_false(t->is_local);
    port->close(port);
    fault_close(&f);
}

static void statements_make_the_table(void **state)
{
    (void)state;
    const struct sl_table_key keys[] = {{SL_LIT("P\"K"), 'S'}, {SL_LIT("SK"), 'N'}, {SL_LIT("b"), 'B'}};
    fault_open(&f, answer, NULL);
    struct sl_span url =
        SL_LIT("postgres://h/d?table=shop.orders&user=u&columns=total:numeric,at:timestamptz(ms)");
    const char *text = sl_postgres_statements(&f.sinks, url, sl_span(NULL, 0), keys, 2, true, f.call.arena);
    assert_string_equal(
        text, "CREATE TABLE \"shop\".\"orders\" (\"P\"\"K\" text COLLATE \"C\", \"SK\" numeric, item jsonb "
              "NOT NULL, "
              "\"total\" numeric, \"at\" timestamptz, PRIMARY KEY (\"P\"\"K\", \"SK\"));\n"
              "CREATE INDEX ON \"shop\".\"orders\" (((item->'sluice_expires'->>'N')::numeric)) WHERE item ? "
              "'sluice_deleted';\n"
              "CREATE VIEW \"shop\".\"orders_live\" AS SELECT * FROM \"shop\".\"orders\" WHERE NOT item ? "
              "'sluice_deleted';");
    text = sl_postgres_statements(&f.sinks, url, SL_LIT("side"), &keys[2], 1, false, f.call.arena);
    assert_string_equal(text,
                        "CREATE TABLE \"side\" (\"b\" bytea, item jsonb NOT NULL, PRIMARY KEY (\"b\"));");
    assert_null(sl_postgres_statements(&f.sinks, SL_LIT("dynamodb://t"), sl_span(NULL, 0), keys, 1, false,
                                       f.call.arena));
    fault_close(&f);
}

static void columns_take_what_they_hold(void **state)
{
    (void)state;
    static const struct {
        enum sl_postgres_type type;
        const char *value, *text; /* NULL: NULL; "!": refused with this code */
    } cases[] = {
        {SL_POSTGRES_TEXT, "{\"S\":\"a\\u00e4\"}", "a\xC3\xA4"},
        {SL_POSTGRES_TEXT, "{\"S\":\"\"}", ""},
        {SL_POSTGRES_TEXT, "{\"NULL\":true}", NULL},
        {SL_POSTGRES_TEXT, "{\"N\":\"1\"}", "!WrongColumnType"},
        {SL_POSTGRES_TEXT, "{\"SS\":[\"a\"]}", "!WrongColumnType"},
        {SL_POSTGRES_NUMERIC, "{\"N\":\"1.50\"}", "1.5"},
        {SL_POSTGRES_NUMERIC, "{\"N\":\"-1E-130\"}",
         "-0."
         "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
         "0000000000000000000000000000001"},
        {SL_POSTGRES_NUMERIC, "{\"N\":\"12345678901234567890123456789012345678\"}",
         "12345678901234567890123456789012345678"},
        {SL_POSTGRES_NUMERIC, "{\"S\":\"1\"}", "!WrongColumnType"},
        {SL_POSTGRES_BIGINT, "{\"N\":\"9223372036854775807\"}", "9223372036854775807"},
        {SL_POSTGRES_BIGINT, "{\"N\":\"-9223372036854775808\"}", "-9223372036854775808"},
        {SL_POSTGRES_BIGINT, "{\"N\":\"9223372036854775808\"}", "!ColumnOutOfRange"},
        {SL_POSTGRES_BIGINT, "{\"N\":\"1e3\"}", "1000"},
        {SL_POSTGRES_BIGINT, "{\"N\":\"1.5\"}", "!ColumnOutOfRange"},
        {SL_POSTGRES_BIGINT, "{\"BOOL\":true}", "!WrongColumnType"},
        {SL_POSTGRES_BOOLEAN, "{\"BOOL\":true}", "true"},
        {SL_POSTGRES_BOOLEAN, "{\"BOOL\":false}", "false"},
        {SL_POSTGRES_BOOLEAN, "{\"N\":\"1\"}", "!WrongColumnType"},
        {SL_POSTGRES_BYTEA, "{\"B\":\"AP9h\"}", "\\x00ff61"},
        {SL_POSTGRES_BYTEA, "{\"B\":\"\"}", "\\x"},
        {SL_POSTGRES_BYTEA, "{\"S\":\"a\"}", "!WrongColumnType"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"S\":\"2026-11-20T21:04:00Z\"}", "2026-11-20T21:04:00.000000Z"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"S\":\"2026-11-20T21:04:00.123456789+01:30\"}",
         "2026-11-20T19:34:00.123456Z"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"S\":\"now\"}", "!ColumnOutOfRange"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"S\":\"\"}", "!ColumnOutOfRange"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"N\":\"1795208640\"}", "2026-11-20T21:04:00.000000Z"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"N\":\"1795208640.0000019\"}", "2026-11-20T21:04:00.000001Z"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"N\":\"-0.5\"}", "1969-12-31T23:59:59.500000Z"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"N\":\"-1\"}", "1969-12-31T23:59:59.000000Z"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"N\":\"-62135596800\"}", "0001-01-01T00:00:00.000000Z"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"N\":\"-62135596801\"}", "!ColumnOutOfRange"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"N\":\"253402300799\"}", "9999-12-31T23:59:59.000000Z"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"N\":\"253402300800\"}", "!ColumnOutOfRange"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"N\":\"1e30\"}", "!ColumnOutOfRange"},
        {SL_POSTGRES_TIMESTAMPTZ, "{\"BOOL\":true}", "!WrongColumnType"},
        {SL_POSTGRES_TIMESTAMPTZ_MS, "{\"N\":\"1795208640001\"}", "2026-11-20T21:04:00.001000Z"},
        {SL_POSTGRES_TIMESTAMPTZ_MS, "{\"S\":\"2026-11-20T21:04:00Z\"}", "!WrongColumnType"},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_postgres_column column = {
            .name = SL_LIT("total"), .quoted = "\"total\"", .type = cases[i].type};
        struct sl_error error = SL_NO_ERROR;
        const char *text = "untouched", *wanted = cases[i].text;
        enum sl_status status = sl_postgres_column_text(&column, sl_value_read(sl_span_str(cases[i].value)),
                                                        arena, &text, &error);
        bool is_refused = wanted && *wanted == '!';
        if (is_refused ? status != SL_REJECT || strcmp(error.code, wanted + 1) != 0 ||
                             !strstr(error.text, "attribute total")
                       : status != SL_OK || (wanted ? !text || strcmp(text, wanted) != 0 : text != NULL))
            fail_msg("%s of %s: %s, %s", sl_postgres_type_name(cases[i].type), cases[i].value,
                     text ? text : "NULL", error.text);
    }
    sl_arena_destroy(arena);
}

static void what_is_no_text_is_found(void **state)
{
    (void)state;
    assert_true(sl_postgres_is_json(SL_LIT("{\"a\\\\u0000\":\"\\n\\u0001\\\\\"}")));
    assert_false(sl_postgres_is_json(SL_LIT("{\"a\\\\\\u0000\":1}")));
    assert_false(sl_postgres_is_json(SL_LIT("[\"\\ud800\"]")));
    assert_false(sl_postgres_is_json(SL_LIT("[\"\xED\xA0\x80\"]")));
    assert_true(sl_postgres_is_text(SL_LIT("")));
    assert_false(sl_postgres_is_text(sl_span("a\0b", 3)));
    assert_false(sl_postgres_is_text(SL_LIT("\xff")));
}

/* The signature is what botocore 1.44.5 makes (generate_db_auth_token) with these keys at this time. */
static void the_token_is_signed(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    struct sl_buffer token;
    sl_buffer_init(&token, 64 * 1024);
    fault_open(&f, answer, NULL);
    struct sl_table_port *port = fault_table(
        &f, "postgres://orders.abc.eu-west-1.rds.amazonaws.com:5433/d?table=t&user=slu%20ice&auth=iam");
    ((struct sl_postgres *)port)->deadline_ms = f.call.deadline_ms;
    assert_int_equal(sl_postgres_token((struct sl_postgres *)port, &token, &error), SL_OK);
    assert_non_null(
        strstr(token.ptr, "orders.abc.eu-west-1.rds.amazonaws.com:5433/?Action=connect&DBUser=slu%20ice&"));
    assert_non_null(strstr(token.ptr, "&X-Amz-Expires=900&"));
    assert_string_equal(strstr(token.ptr, "&X-Amz-Signature="),
                        "&X-Amz-Signature=b25051b6b53f4b043d970d4450166789ad98a80f46c8deea4685e223be2f855b");
    port->close(port);
    sl_buffer_clean_up(&token);
    fault_close(&f);
}

/* The table of a server, where check_postgres.py names one. */
static struct sl_table_port *open_server(void)
{
    const char *url = getenv("POSTGRES_TARGET"), *password = getenv("PGPASSWORD");
    if (!url || !password)
        skip();
    fault_open(&f, answer, NULL);
    fault_set(&f, "PGPASSWORD", password);
    return fault_table(&f, url);
}

/* check_postgres.py looks at which connection wrote which. */
static void an_idle_connection_is_not_used_again(void **state)
{
    (void)state;
    struct sl_table_port *port = open_server();
    static const int64_t waits[] = {0, 59000, 61000};
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        f.clock.ms += waits[i];
        f.call.deadline_ms = f.clock.ms + 60000;
        assert_result(fault_put_item(&f, port, sl_arena_printf(f.call.arena, "%zu", i)), SL_OK, NULL);
    }
    port->close(port);
    fault_close(&f);
}

/* What an administrator does meanwhile, with the environment's own login. */
static void administrate(const char *sql)
{
    PGconn *connection = PQconnectdb("");
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(connection));
    PQclear(result);
    PQfinish(connection);
}

static void a_connection_that_was_ended_is_made_anew(void **state)
{
    (void)state;
    struct sl_table_port *port = open_server();
    for (int i = 0; i < 3; i++) {
        f.call.deadline_ms = f.clock.ms + 60000;
        assert_result(fault_put_item(&f, port, "ended"), SL_OK, NULL);
        administrate(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sluice'");
    }
    port->close(port);
    fault_close(&f);
}

/* A migration drops a column, or the key, and another one sets it right. */
static void a_table_that_changes_is_looked_at_again(void **state)
{
    (void)state;
    static const struct {
        const char *spoils, *mends;
    } cases[] = {
        {"ALTER TABLE backends RENAME COLUMN item TO thing",
         "ALTER TABLE backends RENAME COLUMN thing TO item"},
        {"ALTER TABLE backends DROP CONSTRAINT backends_pkey",
         "ALTER TABLE backends ADD PRIMARY KEY (\"PK\")"},
        {"ALTER TABLE backends RENAME TO others", "ALTER TABLE others RENAME TO backends"},
        {"ALTER TABLE backends RENAME COLUMN \"PK\" TO pk",
         "ALTER TABLE backends RENAME COLUMN pk TO \"PK\""},
    };
    struct sl_table_port *port = open_server();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        f.call.deadline_ms = f.clock.ms + 60000;
        assert_result(fault_put_item(&f, port, "changes"), SL_OK, NULL);
        administrate(cases[i].spoils);
        for (int k = 0; k < 2; k++) {
            struct sl_result result = fault_put_item(&f, port, "changes");
            assert_int_equal(result.status, SL_FATAL);
            assert_non_null(result.text);
        }
        administrate(cases[i].mends);
        (void)fault_put_item(&f, port, "changes"); /* as it was believed to be */
        assert_result(fault_put_item(&f, port, "changes"), SL_OK, NULL);
    }
    port->close(port);
    fault_close(&f);
}

/* Likewise: it looks at the order in which the rows were made. */
static void rows_are_locked_in_one_order(void **state)
{
    (void)state;
    struct sl_table_port *port = open_server();
    static const char *const names[] = {"g3", "g1", "g2", "s3", "s1", "s2"};
    struct sl_table_op ops[6];
    struct sl_result results[6];
    for (size_t i = 0; i < 6; i++) {
        const char *key = sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"%s\"}}", names[i]);
        ops[i] = (struct sl_table_op){
            .verb = SL_TABLE_PUT, .group = i < 3, .key = sl_span_str(key), .item = sl_span_str(key)};
    }
    f.call.deadline_ms = f.clock.ms + 60000;
    port->apply(port, ops, 6, results, &f.call);
    for (size_t i = 0; i < 6; i++)
        assert_result(results[i], SL_OK, NULL);
    port->close(port);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_checked),
        cmocka_unit_test(a_target_is_what_its_text_says),
        cmocka_unit_test(statements_make_the_table),
        cmocka_unit_test(columns_take_what_they_hold),
        cmocka_unit_test(what_is_no_text_is_found),
        cmocka_unit_test(the_token_is_signed),
        cmocka_unit_test(an_idle_connection_is_not_used_again),
        cmocka_unit_test(rows_are_locked_in_one_order),
        cmocka_unit_test(a_connection_that_was_ended_is_made_anew),
        cmocka_unit_test(a_table_that_changes_is_looked_at_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
