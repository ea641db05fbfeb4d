/* The port suite against services in this process, which keep the rules of a request: what check_ports.sh
 * does with the real ones. */
#include "tests/support/fake_dynamodb.h"
#include "tests/support/fake_opensearch.h"
#include "tests/support/fake_s3.h"
#include "tests/support/fault.h"
#include "tests/support/port_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char *folder;

/* ---- DynamoDB ---- */

static struct dynamodb {
    struct fault f;
    struct fake_dynamodb *fake;
    struct port_suite suite;
} calm, troubled;

static void open_dynamodb(struct dynamodb *d, const char *name, unsigned one_in)
{
    char *at = NULL;
    assert_true(asprintf(&at, "%s/%s", folder, name) > 0);
    assert_int_equal(mkdir(at, 0700), 0);
    d->fake = fake_dynamodb_open(at);
    free(at);
    fake_dynamodb_trouble(d->fake, one_in);
    fault_open(&d->f, fake_dynamodb_answer, d->fake);
    d->suite = (struct port_suite){.name = "dynamodb",
                                   .call = d->f.call,
                                   .side_table = "side",
                                   .number_table = "numbers",
                                   .has_keys = true};
    d->suite.table = fault_table(&d->f, "dynamodb://main");
}

static void close_dynamodb(struct dynamodb *d)
{
    d->suite.table->close(d->suite.table);
    fault_close(&d->f);
    fake_dynamodb_close(d->fake);
}

/* ---- OpenSearch ---- */

static struct search {
    struct fault f;
    struct fake_opensearch *fake;
    struct port_suite suite;
} plain, scanned, scripted, texts, contested;

static void open_search(struct search *s, const char *name, const char *url, unsigned one_in)
{
    s->fake = fake_opensearch_open();
    fake_opensearch_trouble(s->fake, one_in);
    fault_open(&s->f, fake_opensearch_answer, s->fake);
    s->suite = (struct port_suite){.name = name, .call = s->f.call};
    s->suite.table = fault_table(&s->f, url);
}

static void close_search(struct search *s)
{
    s->suite.table->close(s->suite.table);
    fault_close(&s->f);
    fake_opensearch_close(s->fake);
}

/* ---- S3 ---- */

static struct bucket {
    struct fault f;
    struct fake_s3 *fake;
    const char *prefix;
    struct port_suite suite;
} bucket, busy;

static char *read_object(struct port_suite *suite, const char *key, size_t *len)
{
    const struct bucket *b = suite == &bucket.suite ? &bucket : &busy;
    struct sl_span body = fake_s3_object(b->fake, sl_arena_printf(suite->call.arena, "%s%s", b->prefix, key));
    char *copy = body.ptr ? malloc(body.len + 1) : NULL;
    if (copy)
        memcpy(copy, body.ptr, body.len + 1);
    *len = body.len;
    return copy;
}

static void open_bucket(struct bucket *b, const char *name, const char *url, unsigned one_in)
{
    b->fake = fake_s3_open();
    b->prefix = url + strlen("s3://");
    fake_s3_trouble(b->fake, one_in);
    fault_open(&b->f, fake_s3_answer, b->fake);
    b->suite = (struct port_suite){.name = name, .call = b->f.call, .read_object = read_object};
    b->suite.objects = fault_objects(&b->f, url);
}

static void close_bucket(struct bucket *b)
{
    b->suite.objects->close(b->suite.objects);
    fault_close(&b->f);
    fake_s3_close(b->fake);
}

/* ---- all ---- */

static void no_rule_of_a_request_was_broken(void **state)
{
    (void)state;
    const char *const faults[] = {fake_dynamodb_fault(calm.fake),
                                  fake_dynamodb_fault(troubled.fake),
                                  fake_opensearch_fault(plain.fake),
                                  fake_opensearch_fault(scanned.fake),
                                  fake_opensearch_fault(scripted.fake),
                                  fake_opensearch_fault(texts.fake),
                                  fake_opensearch_fault(contested.fake),
                                  fake_s3_fault(bucket.fake),
                                  fake_s3_fault(busy.fake)};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (faults[i])
            fail_msg("service %zu: %s", i, faults[i]);
}

static void there_was_trouble(void **state)
{
    (void)state;
    assert_true(fake_dynamodb_troubled(troubled.fake) >= 50);
    assert_true(fake_opensearch_troubled(contested.fake) >= 50);
    assert_true(fake_s3_troubled(busy.fake) >= 5);
    assert_int_equal(fake_dynamodb_troubled(calm.fake), 0);
}

static size_t add_cases(struct CMUnitTest *tests, size_t n, struct port_suite *suite,
                        const struct port_case *cases)
{
    for (; cases->name; cases++)
        tests[n++] = port_suite_test(suite, cases);
    return n;
}

int main(void)
{
    struct CMUnitTest tests[200];
    size_t n = 0;
    folder = test_folder_in_memory();
    open_dynamodb(&calm, "calm", 0);
    open_dynamodb(&troubled, "troubled", 9);
    /* Scans first: the fake returns items as they were written, in spellings that the service does not use.
     */
    n = add_cases(tests, n, &calm.suite, port_scan_cases);
    n = add_cases(tests, n, &calm.suite, port_table_cases);
    n = add_cases(tests, n, &calm.suite, port_value_cases);
    n = add_cases(tests, n, &calm.suite, port_batch_cases);
    n = add_cases(tests, n, &troubled.suite, port_batch_cases);
    open_search(&plain, "opensearch", "opensearch://server/idx?tls=off", 0);
    open_search(&scanned, "opensearch scanned", "opensearch://server/idx?tls=off", 0);
    open_search(&scripted, "opensearch scripted", "opensearch://server/idx?tls=off&order=script", 0);
    open_search(&texts, "opensearch texts", "opensearch://server/idx?tls=off&numbers=text", 0);
    open_search(&contested, "opensearch contested", "opensearch://server/idx?tls=off", 9);
    n = add_cases(tests, n, &plain.suite, port_table_cases);
    n = add_cases(tests, n, &plain.suite, port_value_cases);
    n = add_cases(tests, n, &plain.suite, port_batch_cases);
    n = add_cases(tests, n, &scanned.suite, port_scan_cases);
    n = add_cases(tests, n, &scripted.suite, port_table_cases);
    n = add_cases(tests, n, &scripted.suite, port_batch_cases);
    n = add_cases(tests, n, &texts.suite, port_table_cases);
    n = add_cases(tests, n, &contested.suite, port_batch_cases);
    open_bucket(&bucket, "s3", "s3://bucket/pre/fix/", 0);
    open_bucket(&busy, "s3 busy", "s3://bucket/", 9);
    n = add_cases(tests, n, &bucket.suite, port_object_cases);
    n = add_cases(tests, n, &bucket.suite, port_read_cases);
    n = add_cases(tests, n, &bucket.suite, port_object_batch_cases);
    n = add_cases(tests, n, &busy.suite, port_object_batch_cases);
    n = add_cases(tests, n, &busy.suite, port_read_cases);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(no_rule_of_a_request_was_broken);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(there_was_trouble);
    int failed = _cmocka_run_group_tests("services", tests, n, NULL, NULL);
    close_dynamodb(&calm);
    close_dynamodb(&troubled);
    struct search *const searches[] = {&plain, &scanned, &scripted, &texts, &contested};
    for (size_t i = 0; i < 5; i++)
        close_search(searches[i]);
    close_bucket(&bucket);
    close_bucket(&busy);
    test_folder_remove(folder);
    return failed;
}
