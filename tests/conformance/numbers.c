/* DynamoDB numbers: values that it refuses, as attributes of a record, and the normal form of others.
 *
 *   numbers CORPUS     reads CORPUS/numbers/number_cases.json */
#include "tests/support/test.h"

#include "base/number.h"
#include "tests/support/records.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* A record whose image holds {type: value}. */
static bool is_refused(const json_t *type, json_t *value)
{
    json_t *event = json_pack("{s[{sss{s{s{ss}}s{s{sO}}}}]}", "Records", "eventName", "INSERT", "dynamodb",
                              "Keys", "k", "S", "x", "NewImage", "v", json_string_value(type), value);
    char *text = json_dumps(event, 0);
    struct test_batch t;
    test_decode_event(&t, sl_span_str(text));
    bool refused = t.status == SL_REJECT && strcmp(t.error.code, "InvalidRecord") == 0;
    test_batch_clean_up(&t);
    free(text);
    json_decref(event);
    return refused;
}

static bool is_normal(const char *in, const char *stored)
{
    struct sl_number number;
    char out[SL_NUMBER_TEXT];
    if (sl_number_parse(sl_span_str(in), &number))
        return false;
    return sl_span_is(sl_span(out, sl_number_text(&number, out)), stored);
}

int main(int argc, char **argv)
{
    char path[4096];
    int passed = 0, total = 0;
    size_t i;
    json_t *one;
    snprintf(path, sizeof(path), "%s/numbers/number_cases.json",
             argc > 1 ? argv[1] : "../shared/conformance");
    json_t *cases = json_load_file(path, 0, NULL);
    json_array_foreach(json_object_get(cases, "rejected"), i, one)
    {
        bool good = is_refused(json_object_get(one, "type"), json_object_get(one, "value"));
        total++;
        passed += good;
        if (!good)
            printf("  rejected[%zu]\n", i);
    }
    json_array_foreach(json_object_get(cases, "normalised"), i, one)
    {
        bool good = is_normal(json_string_value(json_object_get(one, "in")),
                              json_string_value(json_object_get(one, "stored")));
        total++;
        passed += good;
        if (!good)
            printf("  normalised[%zu]\n", i);
    }
    json_decref(cases);
    printf("numbers: %d/%d\n", passed, total);
    return total > 0 && passed == total ? 0 : 1;
}
