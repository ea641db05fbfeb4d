/* Configurations for the tests of `sluice check`, and its findings. */
#ifndef SL_TESTS_CLI_CHECK_WORLD_H
#define SL_TESTS_CLI_CHECK_WORLD_H

#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARCHIVE   "'handler':'archive','to':'s3://bucket/x'"
#define REPLICATE "'handler':'replicate','to':'dynamodb://replica'"
#define TO_OTHER  "'handler':'replicate','to':'dynamodb://other'"
#define COUNTER   "'counters':[{'key':{'PK':'{status}'},'add':{'n':1}}]"
#define AGGREGATE "'handler':'aggregate','to':'dynamodb://totals'," COUNTER
#define LOCAL     "'handler':'aggregate','to':'sqlite:db?table=totals'," COUNTER
#define NOTIFY    "'handler':'notify'"
#define URL       "https://hooks.example.com/SECRET"

/* Members of up to two routes, and of the configuration besides. */
struct config {
    const char *a, *b, *more;
};

static inline const char *config_text(const struct config *c)
{
    return json_printf("{%s%s'routes':[{'name':'a',%s}%s%s%s]}",
                       c->more && strstr(c->more, "report_batch") ? "" : "'report_batch_item_failures':true,",
                       c->more ? c->more : "'on_failure':'sqs://failures',", c->a,
                       c->b ? ",{'name':'b'," : "", c->b ? c->b : "", c->b ? "}" : "");
}

/* The lines that begin with "warning: ", or with "note: ". */
static inline size_t count(const struct verbs *v, const char *begin)
{
    size_t n = 0;
    for (const char *at = verb_out(v); *at; at += strcspn(at, "\n") + 1)
        n += strncmp(at, begin, strlen(begin)) == 0;
    return n;
}

/* A line that begins with the weight and the place, and ends with the code. */
static inline bool is_said(const struct verbs *v, const char *weight, const char *place, const char *code)
{
    const char *begin = json_printf("%s: %s", weight, place), *end = json_printf("[%s]", code);
    for (const char *at = verb_out(v); *at; at += strcspn(at, "\n") + 1)
        if (strncmp(at, begin, strlen(begin)) == 0 &&
            sl_span_ends(sl_span(at, strcspn(at, "\n")), sl_span_str(end)))
            return true;
    return false;
}

static inline int set_up(void **state)
{
    *state = verbs_new();
    return 0;
}

static inline int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
