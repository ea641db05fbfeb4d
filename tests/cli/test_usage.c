/* Every flag of every verb, by what the verb's own help says of it: what it takes, and what it refuses. */
#include "base/version.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MOST 64
static char names[NAMES_MOST][32];
static size_t n_names;

/* Every verb that the command's own help lists: "  replay       run ...". */
static void read_names(struct verbs *v)
{
    verb_assert(v, verb(v, "--help"), 0, "usage: sluice VERB");
    for (const char *at = strstr(verb_out(v), "\n  "); at && at[3] != ' '; at = strstr(at + 1, "\n  "))
        if (n_names < NAMES_MOST && sscanf(at + 3, "%31[a-z-]", names[n_names]) == 1)
            n_names++;
    assert_true(n_names >= 13);
}

/* The next flag of a help text: "  --batch-size N          BatchSize, ...". */
static const char *next_flag(const char *at, char name[64], char value[64])
{
    at = strstr(at, "\n  --");
    if (!at)
        return NULL;
    value[0] = '\0';
    assert_true(sscanf(at + 5, "%63[^ ]", name) == 1);
    at += 5 + strlen(name);
    if (at[0] == ' ' && at[1] != ' ')
        assert_true(sscanf(at + 1, "%63[^ ]", value) == 1);
    return at;
}

static bool is_number(const char *value)
{
    return strcmp(value, "N") == 0 || strcmp(value, "EPOCH_S") == 0 || strcmp(value, "S") == 0 ||
           strcmp(value, "MS") == 0 || strcmp(value, "MB") == 0;
}

static void each_flag_is_asked_for_what_it_needs(void **state)
{
    struct verbs *v = *state;
    n_names = 0;
    read_names(v);
    char name[64], value[64];
    for (size_t i = 0; i < n_names; i++) {
        verb_assert(v, verb(v, "%s --help", names[i]), 0, "usage: sluice ");
        assert_string_equal(verb_err(v), "");
        char *help = strdup(verb_out(v));
        verb_assert(v, verb(v, "%s -h", names[i]), 0, help);
        size_t n = 0;
        for (const char *at = help; (at = next_flag(at, name, value)); n++) {
            if (!*value) {
                verb_assert(v, verb(v, "%s --%s=1", names[i], name), 2,
                            json_printf("--%s takes no value (see sluice", name));
                continue;
            }
            verb_assert(v, verb(v, "%s --%s", names[i], name), 2,
                        json_printf("--%s needs a value (see sluice", name));
            verb_assert(v, verb(v, "%s --%s --help", names[i], name), 2,
                        json_printf("--%s needs a value (see sluice", name));
            verb_assert(v, verb(v, "%s --%s ''", names[i], name), 2,
                        json_printf("--%s needs a value, and this one is empty (see sluice", name));
            if (is_number(value) && strcmp(name, "sample") != 0)
                verb_assert(v, verb(v, "%s --%s 1x", names[i], name), 2,
                            json_printf("sluice %s: --%s needs a whole number, not '1x' (see sluice",
                                        names[i], name));
        }
        assert_true(n > 2 || strcmp(names[i], "new-handler") == 0 || strcmp(names[i], "decode") == 0);
        free(help);
    }
}

/* No number can be so large or small that a later computation overflows. */
static void each_number_has_its_range(void **state)
{
    static const char *const beyond[] = {"-9223372036854775808", "-2", "9223372036854775807"};
    struct verbs *v = *state;
    char name[64], value[64];
    size_t n = 0;
    for (size_t i = 0; i < n_names; i++) {
        verb_assert(v, verb(v, "%s --help", names[i]), 0, "usage: sluice ");
        char *help = strdup(verb_out(v));
        for (const char *at = help; (at = next_flag(at, name, value));) {
            if (!is_number(value) || strcmp(name, "sample") == 0 || strcmp(name, "seed") == 0)
                continue;
            n++;
            for (size_t k = 0; k < sizeof(beyond) / sizeof(beyond[0]); k++)
                verb_assert(v, verb(v, "%s --%s %s", names[i], name, beyond[k]), 2,
                            json_printf("sluice %s: --%s %s is out of range; write a number from ", names[i],
                                        name, beyond[k]));
        }
        free(help);
    }
    assert_true(n > 30);
    verb_assert(v, verb(v, "backfill --table t --write-units 0"), 2, "--write-units 0 is out of range");
}

static void what_no_verb_has_is_refused(void **state)
{
    struct verbs *v = *state;
    for (size_t i = 0; i < n_names; i++) {
        verb_assert(v, verb(v, "%s --nothing-like-this", names[i]), 2,
                    "unknown flag --nothing-like-this (see sluice");
        verb_assert(v, verb(v, "%s -x", names[i]), 2, "unknown flag -x (see sluice");
        verb_assert(v, verb(v, "%s --no-config-at-all=3 a", names[i]), 2, "unknown flag --no-config-at-all");
        assert_string_equal(verb_out(v), "");
    }
    verb_assert(v, verb(v, "replay --bach-size 3 x"), 2,
                "unknown flag --bach-size: did you mean --batch-size? (see sluice");
    verb_assert(v, verb(v, "verify more"), 2, "takes no operand, but has \"more\" (see sluice");
    verb_assert(v, verb(v, "tail more"), 2, "takes no operand, but has \"more\" (see sluice");
    verb_assert(v, verb(v, "manifest"), 2, "PREFIX is missing (see sluice");
    verb_assert(v, verb(v, "manifest a b"), 2, "takes only one PREFIX, but also has \"b\" (see sluice");
    verb_assert(v, verb(v, "new-handler"), 2, "NAME is missing (see sluice");
    verb_assert(v, verb(v, "decode"), 2, "INPUT is missing (see sluice");
    verb_assert(v, verb(v, "redrive"), 2, "PLACE is missing (see sluice");
    verb_assert(v, verb(v, "decode -- --help"), 2, "--help");
}

static void leases_are_carried_in_one_direction(void **state)
{
    struct verbs *v = *state;
    static const char stream[] =
        "--stream arn:aws:dynamodb:eu-west-1:1:table/orders/stream/l --wait-seconds 0";
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"leases", "write --from-kcl3 TABLE --to TABLE, or --from TABLE --to-kcl3 TABLE"},
        {"leases --from-kcl3 sqlite:a.db?table=a", "write --from-kcl3"},
        {"leases --from-kcl3 sqlite:a.db?table=a --to-kcl3 sqlite:b.db?table=b", "write --from-kcl3"},
        {"leases --from sqlite:a.db?table=a --to sqlite:b.db?table=b", "write --from-kcl3"},
        {"leases --from-kcl3 sqlite:a.db?table=a --to sqlite:b.db?table=b", "--stream is missing"},
        {"leases --from-kcl3 sqlite:a.db?table=a --to sqlite:b.db?table=b --stream orders",
         "is not the ARN of a stream"},
        {"leases --from-kcl3 sqlite:a.db?table=a --to sqlite:b.db?table=b --stream "
         "arn:aws:dynamodb:eu-west-1:1:table/orders",
         "is not the ARN of a stream"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "%s", cases[i].line), 2, cases[i].text);
    static const char taking[] = "leases --from-kcl3 sqlite:a.db?table=a --to sqlite:b.db?table=b";
    verb_assert(v, verb(v, "%s --several-streams %s", taking, stream), 2,
                "--several-streams is for --to-kcl3");
    verb_assert(v, verb(v, "%s %s", taking, stream), 2, "a.db");
    verb_assert(v, verb(v, "leases --from s3://b --to-kcl3 sqlite:b.db?table=b %s", stream), 2,
                "a table is needed here");
}

static void values_have_their_ranges(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "sluice.json",
               "{'on_failure':'report','routes':[{'name':'a','handler':'archive','to':'file:a'}]}");
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"replay --batch-size 0 x", "--batch-size 0 is out of range"},
        {"replay --batch-size=0 x", "--batch-size 0 is out of range"},
        {"replay --batch-size= x", "--batch-size needs a value, and this one is empty"},
        {"verify --table t --region us-west-2 --endpoint-url nowhere",
         "--endpoint-url \"nowhere\" is not a URL"},
        {"replay --batch-size 10001 x", "--batch-size 10001 is out of range"},
        {"replay --max-age 59 x", "MaximumRecordAgeInSeconds is 59"},
        {"replay --timeout 0 x", "--timeout 0 is out of range; write a number from 1 to 900 (see sluice"},
        {"replay --timeout 901 x", "--timeout 901 is out of range; write a number from 1 to 900 (see sluice"},
        {"replay --shards 1001 x",
         "--shards 1001 is out of range; write a number from 1 to 1000 (see sluice"},
        {"replay --shards 99999999999999999999 x",
         "--shards needs a whole number, not \"99999999999999999999\" (see sluice"},
        {"replay --invocation-ms 900001 x", "--invocation-ms 900001 is out of range"},
        {"replay --concurrency 1001 x", "--concurrency 1001 is out of range"},
        {"redrive --wait 11 x", "--wait 11 is out of range; write a number from 1 to 10 (see sluice"},
        {"redrive --visibility 43201 x", "--visibility 43201 is out of range"},
        {"redrive --parallel 11 x", "--parallel 11 is out of range"},
        {"tail --table t --concurrency 257",
         "--concurrency 257 is out of range; write a number from 1 to 256 (see sluice"},
        {"tail --table t --lease-seconds 1 --leases dynamodb://l", "--lease-seconds 1 is out of range"},
        {"verify --table orders --region NOWHERE",
         "--region \"NOWHERE\" is not an AWS Region such as us-west-2 (see sluice"},
        {"verify --table t --endpoint-url nowhere", "--endpoint-url \"nowhere\" is not a URL"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "%s", cases[i].line), 2, cases[i].text);
}

/* Of a flag that is given twice the last one counts, unless it is a list, which has an end. */
static void flags_may_be_repeated(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "sluice.json",
               "{'on_failure':'report','routes':[{'name':'a','handler':'archive','to':'file:${A0}'}]}");
    verb_assert(v, verb(v, "check --item-bytes 0 --item-bytes 5"), 2, "--item-bytes 0 is out of range");
    verb_assert(v, verb(v, "check --tables --no-tables --item-bytes 5 --item-bytes=6 --set A0=x"), 0,
                "file:x");
    char line[4096] = "check";
    int n = 0;
    for (; n < 200; n++) {
        snprintf(line + strlen(line), sizeof(line) - strlen(line), " --set=A%d=x", n);
        if (verb(v, "%s", line) == 2)
            break;
    }
    verb_assert(v, verb(v, "%s", line), 2, "--set is given too often (see sluice check --help)");
    assert_true(n >= 10); /* as often as AWS allows filters */
}

static void the_command_itself_helps(void **state)
{
    struct verbs *v = *state;
    verb_assert(v, verb(v, " "), 2, "usage: sluice VERB [flags] [INPUT...]");
    assert_string_equal(verb_out(v), "");
    char *help = strdup(verb_err(v));
    for (size_t i = 0; i < n_names; i++)
        assert_non_null(strstr(help, json_printf("\n  %-12s ", names[i])));
    static const char *const asks[] = {"--help", "-h", "help"};
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        assert_int_equal(verb(v, "%s", asks[i]), 0);
        assert_string_equal(verb_out(v), help);
        assert_string_equal(verb_err(v), "");
    }
    free(help);
    assert_int_equal(verb(v, "--version"), 0);
    assert_string_equal(verb_out(v), json_printf("sluice %s\n", sl_version));
    assert_int_equal(verb(v, "version"), 0);
    assert_string_equal(verb_out(v), json_printf("sluice %s\n", sl_version));
    for (size_t i = 0; i < n_names; i++) {
        assert_int_equal(verb(v, "%s --help", names[i]), 0);
        help = strdup(verb_out(v));
        assert_int_equal(verb(v, "help %s", names[i]), 0);
        assert_string_equal(verb_out(v), help);
        free(help);
    }
    verb_assert(v, verb(v, "help chekc"), 2, "sluice: there is no verb \"chekc\": did you mean check?");
    verb_assert(v, verb(v, "replya x"), 2,
                "sluice: there is no verb \"replya\": did you mean replay? (see sluice --help)");
    verb_assert(v, verb(v, "--config"), 2, "sluice: there is no verb \"--config\" (see sluice --help)");
    verb_assert(v, verb(v, "''"), 2, "sluice: there is no verb \"\" (see sluice --help)");
}

static int set_up(void **state)
{
    *state = verbs_new();
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_flag_is_asked_for_what_it_needs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_number_has_its_range, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_no_verb_has_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leases_are_carried_in_one_direction, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_have_their_ranges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flags_may_be_repeated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_command_itself_helps, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
