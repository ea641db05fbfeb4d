/* The lease table in DynamoDB, before it is used: it is created when there is none, waited for while it is
 * not active, and refused when it is somebody else's. */
#include "live/lease/lease_table.h"
#include "tests/support/fault.h"

#include <stdio.h>

#define TABLE(status, keys, more)                                                                            \
    "{'Table':{'TableName':'leases','TableStatus':'" status "','KeySchema':[" keys "]," more "}}"
#define KEY    "{'AttributeName':'leaseKey','KeyType':'HASH'}"
#define TYPE   "'AttributeDefinitions':[{'AttributeName':'leaseKey','AttributeType':'S'}]"
#define GOOD   TABLE("ACTIVE", KEY, TYPE)
#define ABSENT "{'__type':'x#ResourceNotFoundException','message':'no'}"
#define DENIED "{'__type':'x#AccessDeniedException','message':'not allowed'}"

/* DescribeTable answers `first`, from then on `then`, `nth` times later `at_last`. */
struct script {
    const char *first, *then, *at_last;
    size_t nth;
    const char *created; /* what CreateTable answers */
    size_t describes, creates;
    char request[2048]; /* the last CreateTable */
};

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct script *s = arg;
    const char *body;
    if (strstr(request->head, "CreateTable")) {
        s->creates++;
        snprintf(s->request, sizeof(s->request), "%.*s", SL_ARG(request->body));
        body = s->created;
    } else {
        size_t n = s->describes++;
        body = n == 0 ? s->first : n <= s->nth ? s->then : s->at_last;
    }
    reply->status = strstr(body, "__type") ? 400 : 200;
    reply->headers = "content-type: application/x-amz-json-1.0\r\n";
    reply->body = json_span(body);
}

static enum sl_status prepare(struct script *s, bool *is_created, int64_t *took_ms, struct sl_error *error)
{
    struct fault f;
    fault_open(&f, answer, s);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
    int64_t began_ms = f.clock.ms;
    enum sl_status status =
        sl_lease_table_prepare(&f.sinks, SL_LIT("dynamodb://leases"), false, is_created, error);
    *took_ms = f.clock.ms - began_ms;
    fault_close(&f);
    return status;
}

static void what_the_service_says_decides(void **state)
{
    (void)state;
    static const struct {
        struct script script;
        bool is_created;
        const char *code, *told; /* NULL: it is used */
    } cases[] = {
        {{.first = GOOD}, false, NULL, NULL},
        {{.first = TABLE("UPDATING", KEY, TYPE)}, false, NULL, NULL},
        {{.first = TABLE("CREATING", KEY, TYPE), .at_last = GOOD}, false, NULL, NULL},
        {{.first = ABSENT, .created = "{}", .at_last = GOOD}, true, NULL, NULL},
        /* What was created is not seen at once. */
        {{.first = ABSENT, .created = "{}", .then = ABSENT, .nth = 3, .at_last = GOOD}, true, NULL, NULL},
        {{.first = ABSENT, .created = "{}", .then = TABLE("CREATING", KEY, TYPE), .nth = 3, .at_last = GOOD},
         true,
         NULL,
         NULL},
        /* Another worker creates it at the same time. */
        {{.first = ABSENT, .created = "{'__type':'x#ResourceInUseException','message':'x'}", .at_last = GOOD},
         true,
         NULL,
         NULL},
        {{.first = ABSENT, .created = DENIED}, true, "AccessDeniedException", "CreateTable"},
        {{.first = DENIED}, false, "AccessDeniedException", "DescribeTable"},
        {{.first = ABSENT, .created = "{}", .at_last = DENIED},
         true,
         "AccessDeniedException",
         "DescribeTable"},
        {{.first = TABLE("ACTIVE", "{'AttributeName':'PK','KeyType':'HASH'}", TYPE)},
         false,
         "NotALease",
         "its key is not leaseKey (S) alone"},
        {{.first = TABLE("ACTIVE", KEY ",{'AttributeName':'SK','KeyType':'RANGE'}", TYPE)},
         false,
         "NotALease",
         "Name another table"},
        {{.first = TABLE("ACTIVE", KEY,
                         "'AttributeDefinitions':[{'AttributeName':'leaseKey','AttributeType':'N'}]")},
         false,
         "NotALease",
         "leases"},
        {{.first =
              TABLE("ACTIVE", KEY, "'AttributeDefinitions':[{'AttributeName':'other','AttributeType':'S'}]")},
         false,
         "NotALease",
         "leases"},
        {{.first = TABLE("ACTIVE", "", TYPE)}, false, "NotALease", "leases"},
        {{.first = TABLE(
              "ACTIVE", KEY,
              TYPE
              ",'GlobalSecondaryIndexes':[{'IndexName':'x'},{'IndexName':'LeaseOwnerToLeaseKeyIndex'}]")},
         false,
         "NewerLeases",
         "it is one of KCL 3"},
        {{.first = TABLE("ACTIVE", KEY, TYPE ",'GlobalSecondaryIndexes':[{'IndexName':'x'}]")},
         false,
         NULL,
         NULL},
        {{.first = "{}"}, false, "BrokenAnswer", "DescribeTable"},
        {{.first = "[]"}, false, "BrokenAnswer", "DescribeTable"},
        {{.first = "{'Table':{'TableName':'another','TableStatus':'ACTIVE'}}"},
         false,
         "BrokenAnswer",
         "DescribeTable"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script s = cases[i].script;
        struct sl_error error = SL_NO_ERROR;
        bool is_created;
        int64_t took_ms;
        enum sl_status status = prepare(&s, &is_created, &took_ms, &error);
        if ((status != SL_OK) != (cases[i].code != NULL) || is_created != cases[i].is_created)
            fail_msg("case %zu: %d %d %s", i, (int)status, (int)is_created, error.text);
        if (cases[i].code && (strcmp(error.code, cases[i].code) != 0 || !strstr(error.text, cases[i].told)))
            fail_msg("case %zu: %s: %s", i, error.code, error.text);
        assert_int_equal(s.creates, cases[i].is_created);
    }
}

/* What is created is paid by request, with the one key. It is not waited for without an end. */
static void a_table_is_not_waited_for_without_an_end(void **state)
{
    (void)state;
    struct script s = {
        .first = ABSENT, .created = "{}", .then = TABLE("CREATING", KEY, TYPE), .nth = SIZE_MAX};
    struct sl_error error = SL_NO_ERROR;
    bool is_created;
    int64_t took_ms;
    assert_int_equal(prepare(&s, &is_created, &took_ms, &error), SL_RETRY);
    assert_string_equal(error.text, "the table leases is not active yet: try again");
    assert_in_range(took_ms, SL_LEASE_TABLE_WAIT_MS, SL_LEASE_TABLE_WAIT_MS + 1000);
    assert_string_equal(s.request,
                        json("{'TableName':'leases','BillingMode':'PAY_PER_REQUEST','KeySchema':[{"
                             "'AttributeName':'leaseKey','KeyType':'HASH'}],'AttributeDefinitions':[{"
                             "'AttributeName':'leaseKey','AttributeType':'S'}]}"));
}

static void a_target_that_is_wrong_is_refused(void **state)
{
    (void)state;
    static const char *const targets[] = {"dynamodb://leases?region", "dynamodb://leases?endpoint=ftp://x"};
    struct fault f;
    struct script s = {.first = GOOD};
    fault_open(&f, answer, &s);
    for (size_t i = 0; i < 2; i++) {
        struct sl_error error = SL_NO_ERROR;
        bool is_created = true;
        assert_true(sl_lease_table_prepare(&f.sinks, sl_span_str(targets[i]), false, &is_created, &error) !=
                    SL_OK);
        assert_true(error.text[0] && !is_created);
    }
    bool is_created = true;
    assert_int_equal(
        sl_lease_table_prepare(&f.sinks, SL_LIT("sqlite:x.db?table=leases"), false, &is_created, NULL),
        SL_OK);
    assert_false(is_created);
    assert_int_equal(s.describes, 0);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_service_says_decides),
        cmocka_unit_test(a_table_is_not_waited_for_without_an_end),
        cmocka_unit_test(a_target_that_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
