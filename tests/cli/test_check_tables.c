/* `sluice check`, what it knows of tables: the keys and ledgers of those that are there (--tables), those
 * that two writers share, images that a view type lacks, and prices. */
#include "tests/cli/check_world.h"
#include "tests/support/fake_dynamodb.h"

#define ARN "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026"

/* ---- in a file ---- */

#define EVENT                                                                                                \
    "{'Records':[{'eventID':'1','eventName':'INSERT','eventSourceARN':'" ARN "','dynamodb':{'Keys':{'PK':"   \
    "{'S':'a'}},'NewImage':{'PK':{'S':'a'},'status':{'S':'OPEN'}},'SequenceNumber':'100'}}]}"

static void tables_are_asked_for_their_keys_and_ledgers(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *a;
        int status;
        const char *text;
    } cases[] = {
        {"'handler':'replicate','to':'sqlite:db?table=replica'", 0, "0 warnings"},
        {"'handler':'replicate','to':'sqlite:db?table=replica','key':{'PK':'{PK}'}", 0, "0 warnings"},
        {"'handler':'replicate','to':'sqlite:db?table=replica','key':{'id':'{PK}'}", 1,
         "$.routes[0].key: names the key id, and the table's key is PK"},
        {"'handler':'replicate','to':'sqlite:db?table=replica','key':{'PK':'{PK}','SK':'x'}", 1,
         "$.routes[0].key: names the key PK and SK"},
        {"'handler':'replicate','to':'sqlite:db?table=replica','set':{'PK':'{status}'}", 1, "[set-on-key]"},
        {LOCAL ",'epoch':2", 0, "0 warnings"},
        {LOCAL ",'epoch':2,'shards':3", 1, "$.routes[0].shards: changes from 0 to 3"},
        {LOCAL ",'epoch':1", 1, "$.routes[0].epoch: the ledger a is in epoch 2"},
        {LOCAL ",'epoch':3", 0, "$.routes[0].epoch: changes from 2 to 3: backfill"},
    };
    verb_write(v, "event.json", EVENT);
    verb_write(v, "fill.json",
               config_text(&(struct config){.a = LOCAL ",'epoch':2",
                                            .b = "'handler':'replicate','to':'sqlite:db?table=replica'",
                                            .more = "'on_failure':'report',"}));
    verb_write(v, "sluice.json",
               config_text(&(struct config){.a = cases[0].a, .more = "'on_failure':'report',"}));
    verb_assert(v, verb(v, "check --tables"), 0, "0 warnings"); /* the table is not there: nothing to say */
    verb_write(v, "sluice.json", config_text(&(struct config){.a = LOCAL, .more = "'on_failure':'report',"}));
    verb_assert(v, verb(v, "check --tables"), 0, "0 warnings");
    assert_string_equal(verb_read(v, "db"), "");
    verb_assert(v, verb(v, "backfill --config fill.json --unsafe-order --keys PK event.json"), 0, "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(&(struct config){.a = cases[i].a, .more = "'on_failure':'report',"}));
        verb_assert(v, verb(v, "check --tables"), cases[i].status, cases[i].text);
        verb_assert(v, verb(v, "check"), 0, "0 warnings");
    }
}

static void a_file_that_is_no_database_is_an_error(void **state)
{
    struct verbs *v = *state;
    static const char *const routes[] = {LOCAL, "'handler':'replicate','to':'sqlite:db?table=replica'"};
    verb_write(v, "db",
               "this is no database, but a text that is long enough to have a header of one, and more");
    for (size_t i = 0; i < 2; i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = routes[i]}));
        verb_assert(v, verb(v, "check --tables"), 2, "sluice check: $.routes[0].to: ");
        assert_non_null(strstr(verb_err(v), "db"));
    }
}

/* ---- in DynamoDB ---- */

/* Tables that are not there, and that this caller may not describe, or not read. */
static void answer(void *fake, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct sl_span target = scripted_header(request, "x-amz-target");
    static const struct {
        const char *table, *operation, *body;
    } refused[] = {
        {"\"missing\"", "DescribeTable",
         "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException\","
         "\"message\":\"Table: missing not found\"}"},
        {"\"denied\"", "DescribeTable",
         "{\"__type\":\"com.amazon.coral.service#AccessDeniedException\",\"message\":\"not you\"}"},
        {"\"missing\"", "BatchGetItem",
         "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException\","
         "\"message\":\"Table: missing not found\"}"},
        {"\"sluice:source:denied\"", "BatchGetItem",
         "{\"__type\":\"com.amazon.coral.service#AccessDeniedException\",\"message\":\"not you\"}"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (memmem(request->body.ptr, request->body.len, refused[i].table, strlen(refused[i].table)) &&
            sl_span_ends(target, sl_span_str(refused[i].operation))) {
            *reply = (struct scripted_reply){
                .status = 400, .body = sl_span_str(refused[i].body), .with_crc = true};
            return;
        }
    fake_dynamodb_answer(fake, request, reply);
}

#define TOTALS(table, key, more)                                                                             \
    "'handler':'aggregate','to':'dynamodb://" table "','counters':[{'key':{" key "},'add':{'n':1}}]" more
#define REPLICA(table, more) "'handler':'replicate','to':'dynamodb://" table "'" more
#define VIEW(key)            "'handler':'view','to':'dynamodb://side','key':{'PK':'" key "'}"
#define BOTH                 "'PK':'{a}','SK':'x'"

static const struct {
    const char *route;
    int status;
    const char *text;
} remote[] = {
    {TOTALS("main", BOTH, ""), 0, "0 warnings"},
    {TOTALS("main", "'SK':'{a}','PK':'x'", ""), 0, "0 warnings"},
    {TOTALS("main", "'PK':'{a}'", ""), 1,
     "$.routes[0].counters[0].key: names the key PK, and the table's key is PK and SK: every write would be "
     "refused "
     "[key-differs]"},
    {TOTALS("main", "'PK':'{a}','S':'x'", ""), 1, "names the key PK and S, and the table's key is PK and SK"},
    {TOTALS("side", "'PK':'{a}'", ",'ledger':{'table':'side'}"), 0, "0 warnings"},
    {TOTALS("side", "'PK':'{a}'", ",'ledger':{'table':'side','key':'id'}"), 1,
     "$.routes[0].ledger.key: names the key id, and the table's key is PK: every write would be refused "
     "[key-differs]"},
    {TOTALS("side", "'PK':'{a}'", ",'ledger':{'table':'main'}"), 1,
     "$.routes[0].ledger.table: names the key PK, and the table's key is PK and SK"},
    {TOTALS("side", "'PK':'{a}'", ",'ledger':{'table':'numbers'}"), 1,
     "$.routes[0].ledger.table: PK is of type N, and the rows' keys are texts (S) [key-differs]"},
    {TOTALS("side", "'PK':'{a}'", ",'ledger':{'name':'n','table':'missing'}"), 1,
     "$.routes[0].ledger.table: there is no such table: "},
    {TOTALS("missing", "'PK':'{a}'", ",'mode':'at-least-once'"), 1, "[table-missing]"},
    {TOTALS("side", "'PK':'{a}'", ",'per':'event'"), 0, "0 warnings"},
    {TOTALS("denied", "'PK':'{a}'", ""), 2, "$.routes[0].counters[0].key: the table cannot be described: "},
    {TOTALS("side", "'PK':'{a}'", ",'ledger':{'name':'denied'}"), 2,
     "$.routes[0].to: the ledger denied cannot be read: "},
    {REPLICA("main", ""), 0, "0 warnings"},
    {REPLICA("numbers", ""), 0, "0 warnings"},
    {REPLICA("main", ",'set':{'SK':'{b}','c':'{d}'}"), 1,
     "$.routes[0].set.SK: is an attribute of the table's key, which \"set\" cannot make"},
    {REPLICA("side", ",'set':{'SK':'{b}'}"), 0, "0 warnings"},
    {REPLICA("side", ",'key':{'PK':'{a}'},'set':{'c':'{b}'}"), 0, "0 warnings"},
    {REPLICA("side", ",'key':{'id':'{a}'}"), 1,
     "$.routes[0].key: names the key id, and the table's key is PK"},
    {REPLICA("main", ",'guard':{'table':'side'}"), 0, "0 warnings"},
    {REPLICA("main", ",'guard':{'table':'numbers'}"), 1, "$.routes[0].guard.table: PK is of type N"},
    {REPLICA("main", ",'tombstones':{'table':'missing'}"), 1,
     "$.routes[0].tombstones.table: there is no such table: "},
    {REPLICA("main", ",'guard':{'table':'denied'}"), 2,
     "$.routes[0].guard.table: the table cannot be described: "},
    {REPLICA("missing", ""), 1, "$.routes[0].to: there is no such table: "},
    {"'handler':'replicate','to':'opensearch://127.0.0.1:1/i'", 0, "0 warnings"}, /* has no key of its own */
    {ARCHIVE, 0, "0 warnings"},
};

static void remote_tables_are_asked_for_their_keys(void **state)
{
    struct verbs *v = *state;
    struct fake_dynamodb *fake = fake_dynamodb_open(verbs_folder(v));
    struct scripted_server *server = scripted_server_start(answer, fake);
    const char *variable = json_printf("AWS_ENDPOINT_URL=%s", scripted_server_url(server));
    verb_set(v, variable);
    for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = remote[i].route}));
        size_t asked = scripted_server_requests(server);
        int status = verb(v, "check");
        assert_int_equal(scripted_server_requests(server), asked); /* without --tables it asks nobody */
        assert_true(status == 0);
        verb_assert(v, verb(v, "check --tables"), remote[i].status, remote[i].text);
    }
    /* A replica without "key" has the source's: of the sample's first record, or of the mapping's table. */
    static const char differs[] =
        "$.routes[0].to: the source has the key PK, and the table's key is PK and SK: "
        "every write would be refused [key-differs]";
    verb_write(v, "event.json", EVENT);
    verb_write(v, "sluice.json", config_text(&(struct config){.a = REPLICA("main", "")}));
    verb_assert(v, verb(v, "check --tables --sample event.json"), 1, differs);
    verb_input(v, "{\"EventSourceArn\":\"arn:aws:dynamodb:us-east-1:1:table/side/stream/x\"}");
    verb_assert(v, verb(v, "check --tables --mapping -"), 1, differs);
    verb_write(v, "sluice.json", config_text(&(struct config){.a = REPLICA("side", "")}));
    verb_assert(v, verb(v, "check --tables --sample event.json"), 0, "0 warnings");
    verb_write(v, "sluice.json", config_text(&(struct config){.a = VIEW("{email}")}));
    verb_assert(
        v, verb(v, "check --tables --sample event.json"), 1,
        "$.routes[0].key: no template has a place {PK} or {PK|key}, an attribute of the source's key, so "
        "two items could make one row: the route would stop at its first record [key-not-unique]");
    verb_write(v, "sluice.json", config_text(&(struct config){.a = VIEW("x#{PK|key}")}));
    verb_assert(v, verb(v, "check --tables --sample event.json"), 0, "0 warnings");
    scripted_server_stop(server);
    assert_null(fake_dynamodb_fault(fake));
    fake_dynamodb_close(fake);
}

/* ---- what the mapping's stream is of ---- */

static void a_route_does_not_write_into_its_source(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *route, *arn;
        bool warns;
    } cases[] = {
        {REPLICA("orders", ""), ARN, true},
        {REPLICA("orders", ""), "arn:aws:dynamodb:us-east-1:123456789012:table/orders", true},
        {REPLICA("orders?region=us-east-1", ""), ARN, true},
        {REPLICA("arn:aws:dynamodb:us-east-1:123456789012:table/orders", ""), ARN, true},
        {REPLICA("replica", ",'guard':{'table':'orders'}"), ARN, true},
        {REPLICA("orders?region=eu-west-1", ""), ARN, false},
        {REPLICA("orders?role=arn:aws:iam::999999999999:role/r", ""), ARN, false},
        {REPLICA("arn:aws:dynamodb:us-east-1:999999999999:table/orders", ""), ARN, false},
        {REPLICA("orders2", ""), ARN, false},
        {REPLICA("orders", ""), "arn:aws:dynamodb:us-east-1:123456789012:", false},
        {REPLICA("orders", ""), "arn:aws:dynamodb:us-east-1:123456789012:orders", true},
        {"'handler':'replicate','to':'sqlite:orders?table=orders'", ARN, false},
        {REPLICA("orders", ""), "arn:aws:kinesis:us-east-1:123456789012:stream/orders", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = cases[i].route}));
        verb_input(v, json_printf("{'EventSourceArn':'%s','MaximumRetryAttempts':10000}", cases[i].arn));
        verb_assert(v, verb(v, "check --mapping -"), 1, "sluice.json: ");
        if (is_said(v, "warning", "$.routes[0].", "source-is-target") != cases[i].warns)
            fail_msg("%s, %s:\n%s", cases[i].route, cases[i].arn, verb_out(v));
    }
}

static void what_two_routes_share_is_told_by_store_and_region(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *a, *b;
        bool warns;
    } cases[] = {
        {REPLICA("tab", ""), REPLICA("tab", ""), true},
        {REPLICA("tab?region=eu-west-1", ""), REPLICA("tab?region=eu-west-1", ""), true},
        {REPLICA("tab?region=eu-west-1", ""), REPLICA("tab?region=eu-west-2", ""), false},
        {"'handler':'replicate','to':'opensearch://h/i'", "'handler':'replicate','to':'opensearch://h/i'",
         true},
        {"'handler':'replicate','to':'opensearch://h/i'", "'handler':'replicate','to':'opensearch://h/k'",
         false},
        {"'handler':'replicate','to':'opensearch://h/i'", "'handler':'replicate','to':'opensearch://g/i'",
         false},
        {"'handler':'replicate','to':'sqlite:a?table=t'", "'handler':'replicate','to':'sqlite:a?table=t'",
         true},
        {"'handler':'replicate','to':'sqlite:a?table=t'", "'handler':'replicate','to':'sqlite:b?table=t'",
         false},
        {REPLICA("tab", ",'key':{'a':'x{a}'},'guard':'none'"), REPLICA("tab", ",'key':{'a':'y{a}'}"), true},
        {REPLICA("tab", ",'key':{'a':'x{a}'}"), REPLICA("tab", ",'key':{'a':'y{a}'}"), false},
        {TOTALS("tab", "'PK':'{a}'", ""), TOTALS("tab", "'PK':'{b}'", ""), false},
        {TOTALS("tab", "'PK':'{a}'", ",'ledger':{'table':'led'}"), TOTALS("led", "'PK':'{b}'", ""), false},
        {TOTALS("tab", "'PK':'{a}'", ",'ledger':{'table':'led'}"), REPLICA("led", ""), true},
        {TOTALS("tab", "'PK':'{a}'", ",'mode':'at-least-once'"), REPLICA("tab", ""), true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = cases[i].a, .b = cases[i].b}));
        int status = verb(v, "check");
        if (status != cases[i].warns ||
            is_said(v, "warning", "$.routes[1].", "table-shared") != cases[i].warns)
            fail_msg("%s, %s:\n%s%s", cases[i].a, cases[i].b, verb_out(v), verb_err(v));
    }
}

static void routes_that_share_a_ledger_are_told(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *a, *b;
        bool warns;
    } cases[] = {
        {TOTALS("tab", "'PK':'{a}'", ",'ledger':{'name':'l'}"),
         TOTALS("tab", "'PK':'{b}'", ",'ledger':{'name':'l'}"), true},
        {TOTALS("tab", "'PK':'{a}'", ""), TOTALS("tab", "'PK':'{b}'", ",'ledger':{'name':'a'}"), true},
        {TOTALS("tab", "'PK':'{a}'", ",'ledger':{'name':'l'}"),
         TOTALS("tob", "'PK':'{b}'", ",'ledger':{'name':'l'}"), false},
        {TOTALS("tab", "'PK':'{a}'", ",'ledger':{'name':'l','table':'led'}"),
         TOTALS("tab", "'PK':'{b}'", ",'ledger':{'name':'l'}"), false},
        {TOTALS("tab", "'PK':'{a}'", ",'ledger':{'name':'l'}"),
         TOTALS("tab", "'PK':'{b}'", ",'ledger':{'name':'m'}"), false},
        {TOTALS("tab", "'PK':'{a}'", ",'ledger':{'name':'l'},'per':'event'"),
         TOTALS("tab", "'PK':'{b}'", ",'ledger':{'name':'l'}"), false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = cases[i].a, .b = cases[i].b}));
        int status = verb(v, "check");
        if (status == 2 || is_said(v, "warning", "$.routes[1].ledger: ", "ledger-shared") != cases[i].warns)
            fail_msg("%s, %s:\n%s%s", cases[i].a, cases[i].b, verb_out(v), verb_err(v));
    }
}

/* ---- images ---- */

static void a_pattern_looks_into_images_that_are_there(void **state)
{
    struct verbs *v = *state;
    static const char *const views[] = {"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"};
    static const struct {
        const char *image;
        unsigned views; /* that carry it */
    } images[] = {{"NewImage", 2 | 8}, {"OldImage", 4 | 8}, {"Keys", 1 | 2 | 4 | 8}};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 3; k++) {
            bool lacks = !(images[k].views & 1u << i);
            verb_write(
                v, "sluice.json",
                json_printf(
                    "{'report_batch_item_failures':true,'on_failure':'report','view_type':'%s','routes':[{"
                    "'name':'a'," ARCHIVE ",'when':{'pattern':[{'eventName':['INSERT']},{'dynamodb':{'%s'"
                    ":{'a':{'S':['x']}}}}]}}]}",
                    views[i], images[k].image));
            verb_assert(v, verb(v, "check"), lacks, "takes     every event, when {\"pattern\":[");
            assert_int_equal(is_said(v, "warning", "$.routes[0].when.pattern: ", "view-lacks-image"), lacks);
            const char *works = strstr(verb_out(v), "works with");
            assert_non_null(works);
            for (size_t view = 0; view < 4; view++) {
                const char *at = strstr(works, json_printf(" %s%s", views[view], view == 3 ? "\n" : ""));
                bool is_listed = at && at < strchr(works, '\n') + 1;
                if (is_listed != ((images[k].views & 1u << view) != 0))
                    fail_msg("%s, %s:\n%s", images[k].image, views[view], verb_out(v));
            }
        }
}

/* ---- prices ---- */

static void prices_follow_the_documented_formulas(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *view, *route, *flags, *texts[3];
    } cases[] = {
        {NULL,
         REPLICATE ",'guard':'none'",
         "",
         {"costs     INSERT, MODIFY, REMOVE: u (u: KB of the item, rounded up)\n",
          "100 changes of 500 bytes: 100 writes, 100 write units\n"}},
        {NULL,
         REPLICATE ",'guard':'none'",
         "--item-bytes 1025",
         {"100 changes of 1025 bytes: 100 writes, 200 write units\n"}},
        {NULL,
         REPLICATE ",'guard':'none','max_records':10",
         "",
         {"10 changes of 500 bytes: 10 writes, 10 write units\n"}},
        {NULL,
         REPLICATE ",'guard':'none','max_records':101",
         "",
         {"100 changes of 500 bytes: 100 writes, 100 write units\n"}},
        {NULL,
         REPLICATE ",'guard':{'table':'g'},'when':{'events':['INSERT','REMOVE']}",
         "",
         {"costs     INSERT, REMOVE: 2u + 2", "200 writes, 400 write units\n"}},
        {"KEYS_ONLY",
         REPLICATE ",'guard':'none','source':'dynamodb://orders'",
         "--item-bytes 4096",
         {"and a read of the item",
          "100 changes of 4096 bytes: 100 writes, 400 write units, 100 reads, 100 read units\n",
          "REMOVE: u (u: KB of the item, rounded up)\n"}},
        {NULL,
         AGGREGATE,
         "",
         {"all in one group: 102 writes, 204 write units\n",
          "each in a group of its own: 200 writes, 400 write units\n"}},
        {NULL,
         AGGREGATE ",'mode':'at-least-once'",
         "",
         {"all in one group: 1 writes, 1 write units\n",
          "each in a group of its own: 100 writes, 100 write units\n"}},
        {NULL,
         NOTIFY ",'to':'sqs://q'",
         "",
         {"costs     INSERT, MODIFY, REMOVE: one message\n    once only"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *view = cases[i].view ? json_printf("'view_type':'%s',", cases[i].view) : "";
        verb_write(v, "sluice.json",
                   config_text(&(struct config){.a = cases[i].route,
                                                .more = json_printf("%s'on_failure':'report',", view)}));
        for (size_t k = 0; k < 3 && cases[i].texts[k]; k++)
            verb_assert(v, verb(v, "check %s", cases[i].flags), 0, cases[i].texts[k]);
    }
}

/* An item counts where its last change puts it: said of totals over items alone, and of times alone. */
static void a_key_with_a_time_moves(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *key, *more;
        bool warns;
    } cases[] = {
        {"'PK':'{yyyy}'", "", true},
        {"'PK':'x','SK':'{mm}/{a}'", "", true},
        {"'PK':'{created|date:yyyy}'", "", false},
        {"'PK':'{yyyy}'", ",'per':'event'", false},
        {"'PK':'{a}'", ",'per':'item'", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(&(struct config){
                       .a = json_printf("'handler':'aggregate','to':'dynamodb://totals','counters':[{"
                                        "'key':{%s},'add':{'n':1}}]%s",
                                        cases[i].key, cases[i].more)}));
        int status = verb(v, "check");
        if (status != cases[i].warns ||
            is_said(v, "warning", "$.routes[0].counters[0].key.", "counter-moves") != status)
            fail_msg("%s%s:\n%s%s", cases[i].key, cases[i].more, verb_out(v), verb_err(v));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tables_are_asked_for_their_keys_and_ledgers),
        TEST(a_file_that_is_no_database_is_an_error),
        TEST(remote_tables_are_asked_for_their_keys),
        TEST(a_route_does_not_write_into_its_source),
        TEST(what_two_routes_share_is_told_by_store_and_region),
        TEST(routes_that_share_a_ledger_are_told),
        TEST(a_pattern_looks_into_images_that_are_there),
        TEST(prices_follow_the_documented_formulas),
        TEST(a_key_with_a_time_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
