/* Documents in the embedded metric format: CloudWatch's limits are kept, whatever is asked for. */
#include "tests/support/test.h"

#include "base/clock.h"
#include "base/emf.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

/* A plan that is filled in is the document itself, whatever its numbers are. */
static void a_planned_document_is_the_document(void **state)
{
    (void)state;
    uint64_t seed = 5;
    struct sl_emf_metric metrics[] = {{"A", "Count", 0}, {"B\n", "Milliseconds", 0}, {"Route", "?", 0}},
                         fact = {"F", "", 0};
    struct sl_emf emf = {.function = "f\"", .metrics = metrics, .n = 3, .facts = &fact, .n_facts = 1};
    struct sl_buffer one, other;
    sl_buffer_init(&one, 65536);
    sl_buffer_init(&other, 65536);
    for (int i = 0; i < 2000; i++) {
        emf.route = i % 2 ? "r" : NULL;
        emf.level = i % 3 ? "WARN" : NULL;
        struct sl_emf_plan plan;
        sl_emf_plan_init(&plan, &emf);
        double values[4];
        for (size_t k = 0; k < 4; k++)
            values[k] =
                (double)(int64_t)sl_random_step(&seed) / (double)(1ull << (sl_random_step(&seed) % 60));
        if (i % 5 == 0)
            values[1] = (double)(sl_random_step(&seed) % 100000) / 1000;
        for (size_t k = 0; k < 3; k++)
            metrics[k].value = values[k];
        fact.value = values[3];
        emf.epoch_ms = 1795359003109 + i;
        sl_buffer_reset(&one);
        sl_buffer_reset(&other);
        sl_emf_add(&one, &emf);
        sl_emf_plan_add(&plan, emf.epoch_ms, values, &other);
        assert_true(one.len == other.len && memcmp(one.ptr, other.ptr, one.len) == 0);
        json_t *value = json_loadb(one.ptr, one.len, JSON_REJECT_DUPLICATES, NULL);
        assert_true(json_integer_value(json_object_get(json_object_get(value, "_aws"), "Timestamp")) ==
                    emf.epoch_ms);
        assert_float_equal(json_number_value(json_object_get(value, "A")), values[0],
                           fabs(values[0]) * 1e-14);
        assert_float_equal(json_number_value(json_object_get(value, "Route_")), values[2],
                           fabs(values[2]) * 1e-14);
        json_decref(value);
        sl_emf_plan_clean_up(&plan);
    }
    sl_buffer_clean_up(&one);
    sl_buffer_clean_up(&other);
}

/* More metrics than a document may have become several documents. */
static void a_document_has_a_hundred_metrics_at_most(void **state)
{
    (void)state;
    struct sl_emf_metric metrics[250];
    struct sl_buffer b;
    for (size_t i = 0; i < 250; i++)
        metrics[i] = (struct sl_emf_metric){"M", "Count", (double)i};
    const size_t cases[][2] = {{0, 0}, {1, 1}, {100, 1}, {101, 2}, {200, 2}, {250, 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t lines = 0;
        sl_buffer_init(&b, 1 << 20);
        sl_emf_add(&b, &(struct sl_emf){.function = "f", .metrics = metrics, .n = cases[i][0]});
        for (size_t k = 0; k < b.len; k++)
            lines += b.ptr[k] == '\n';
        assert_int_equal(lines, cases[i][1]);
        sl_buffer_clean_up(&b);
    }
}

/* The document of one metric. */
static json_t *document(const struct sl_emf_metric *metric, const char *function, const char *route)
{
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 20);
    sl_emf_add(
        &b, &(struct sl_emf){.epoch_ms = 7, .function = function, .route = route, .metrics = metric, .n = 1});
    json_t *value = json_loadb(b.ptr, b.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(value);
    sl_buffer_clean_up(&b);
    return value;
}

static void text_is(json_t *object, const char *name, const char *wanted)
{
    assert_string_equal(json_string_value(json_object_get(object, name)), wanted);
}

static void a_value_is_within_the_range_of_cloudwatch(void **state)
{
    (void)state;
    static const double least = 8.515920e-109, most = 1.174271e+108;
    const double cases[][2] = {
        {0, 0},
        {1, 1},
        {-2.5, -2.5},
        {least, least},
        {-least, -least},
        {least / 2, 0},
        {-least / 2, 0},
        {most, most},
        {-most, -most},
        {most * 2, most},
        {-most * 2, -most},
        {(double)INFINITY, 0},
        {-(double)INFINITY, 0},
        {(double)NAN, 0},
        {999999999999.5, 999999999999.5},
        {1e12, 1e12},
        {0.0005, 0.0005},
        {1234.567, 1234.567},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_emf_metric metric = {"M", "Count", cases[i][0]};
        json_t *value = document(&metric, "f", NULL);
        double got = json_number_value(json_object_get(value, "M"));
        if (fabs(got - cases[i][1]) > fabs(cases[i][1]) * 1e-14)
            fail_msg("%g became %g", cases[i][0], got);
        json_decref(value);
    }
}

/* Of "Seconds" to "Count/Second"; what CloudWatch does not know is "None". */
static void only_known_units_are_written(void **state)
{
    (void)state;
    static const char *const known[] = {"Seconds", "Milliseconds", "Bytes",
                                        "Count",   "Percent",      "Count/Second"};
    static const char *const other[] = {"", "count", "Counts", "Coun", "?", NULL};
    for (size_t i = 0; i < 6; i++)
        for (int is_known = 0; is_known < 2; is_known++) {
            const struct sl_emf_metric metric = {"M", is_known ? known[i] : other[i], 1};
            json_t *value = document(&metric, "f", NULL);
            json_t *list = json_object_get(json_object_get(value, "_aws"), "CloudWatchMetrics");
            json_t *metrics = json_object_get(json_array_get(list, 0), "Metrics");
            assert_int_equal(json_array_size(metrics), 1);
            text_is(json_array_get(metrics, 0), "Unit", is_known ? known[i] : "None");
            text_is(json_array_get(metrics, 0), "Name", "M");
            json_decref(value);
        }
}

/* Printable ASCII of 1 to 1,024 bytes. */
static void texts_are_made_fit_for_a_dimension(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"", "-"},      {"   ", "-"},    {" a", " a"},
                                           {"\x1f", "?"},  {"\x7f~", "?~"}, {"\xC3\xA4", "??"},
                                           {"a b", "a b"}, {"\t\n", "??"},  {"  \x01", "  ?"}};
    const struct sl_emf_metric metric = {"M", "Count", 1};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *value = document(&metric, cases[i][0], cases[i][0]);
        text_is(value, "Function", cases[i][1]);
        text_is(value, "Route", cases[i][1]);
        json_decref(value);
    }
    json_t *value = document(&metric, NULL, NULL);
    text_is(value, "Function", "-");
    assert_null(json_object_get(value, "Route"));
    json_decref(value);
    for (size_t n = 1023; n <= 1026; n++) {
        char text[1100];
        memset(text, 'x', n);
        text[n] = '\0';
        value = document(&metric, text, NULL);
        assert_int_equal(json_string_length(json_object_get(value, "Function")), n < 1024 ? n : 1024);
        json_decref(value);
    }
}

/* A metric stands beside the document's own members. */
static void a_metric_never_takes_the_place_of_another_member(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"_aws", "_aws_"},  {"Function", "Function_"}, {"Route", "Route_"}, {"level", "level_"},
        {"route", "route"}, {"Level", "Level"},        {"Routes", "Routes"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct sl_emf_metric metric = {names[i][0], "Count", 12};
        json_t *value = document(&metric, "f", "r");
        assert_int_equal(json_integer_value(json_object_get(value, names[i][1])), 12);
        text_is(value, "Function", "f");
        text_is(value, "Route", "r");
        json_decref(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planned_document_is_the_document),
        cmocka_unit_test(a_document_has_a_hundred_metrics_at_most),
        cmocka_unit_test(a_value_is_within_the_range_of_cloudwatch),
        cmocka_unit_test(only_known_units_are_written),
        cmocka_unit_test(texts_are_made_fit_for_a_dimension),
        cmocka_unit_test(a_metric_never_takes_the_place_of_another_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
