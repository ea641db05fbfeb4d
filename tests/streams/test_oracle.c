/* The decoder beside jansson, on random events and on what random damage makes of them: both accept or both
 * refuse, and what is accepted has the same values. The seed is fixed; SEED=n in the environment sets
 * another. */
#include "tests/support/test.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "tests/support/oracle.h"
#include "tests/support/records.h"

#include <stdio.h>
#include <stdlib.h>

struct random {
    uint64_t state;
    struct sl_buffer out;
    bool is_airy; /* whitespace between tokens */
};

static unsigned draw(struct random *r, unsigned n)
{
    return (unsigned)(sl_random_step(&r->state) >> 33) % n;
}

/* ---- a random event ---- */

static void space(struct random *r)
{
    static const char *const some[] = {"", " ", "\n  ", "\t", "\r\n"};
    if (r->is_airy)
        sl_buffer_add_str(&r->out, some[draw(r, 5)]);
}

static void token(struct random *r, const char *text)
{
    space(r);
    sl_buffer_add_str(&r->out, text);
    space(r);
}

static void string(struct random *r)
{
    static const char *const pieces[] = {"a",
                                         "bc",
                                         "0123456789abcdef",
                                         " ",
                                         "\\n",
                                         "\\\"",
                                         "\\\\",
                                         "\\/",
                                         "\\u0041",
                                         "\\u00e9",
                                         "\\ud83e\\udd8a",
                                         "\xC3\xA9",
                                         "\xE2\x82\xAC",
                                         "\xF0\x9F\xA6\x8A",
                                         "}",
                                         "[\\\"]"};
    space(r);
    sl_buffer_add_char(&r->out, '"');
    for (unsigned n = draw(r, 6); n > 0; n--)
        sl_buffer_add_str(&r->out, pieces[draw(r, draw(r, 2) ? 4 : 16)]);
    sl_buffer_add_char(&r->out, '"');
    space(r);
}

static void number(struct random *r)
{
    static const char *const some[] = {"0",    "-1",      "1.5", "0.001", "12345678901234567890",
                                       "1e10", "-2.5E-7", "+3"};
    unsigned i = draw(r, 16);
    if (i < 8)
        sl_buffer_printf(&r->out, "\"%s\"", some[i]);
    else
        sl_buffer_printf(&r->out, "\"%u\"", draw(r, 1u << (i * 2 - 1)));
}

static void value(struct random *r, unsigned depth);

static void name(struct random *r, unsigned i)
{
    static const char *const names[] = {"status",    "total", "PK", "a\\u0062",
                                        "n\xC3\xA9", "x.y",   "",   "veryLongAttributeName"};
    char text[64];
    snprintf(text, sizeof(text), "\"%s%u\"", names[i % 8], i);
    token(r, text);
    token(r, ":");
}

static void map(struct random *r, unsigned depth)
{
    token(r, "{");
    bool is_first = true;
    for (unsigned i = 0, n = draw(r, 12); i < n; i++) {
        if (draw(r, 8) == 0)
            continue;
        if (!is_first)
            token(r, ",");
        is_first = false;
        name(r, i);
        value(r, depth);
    }
    token(r, "}");
}

static void list(struct random *r, unsigned depth)
{
    token(r, "[");
    for (unsigned i = 0, n = draw(r, 4); i < n; i++) {
        if (i)
            token(r, ",");
        value(r, depth);
    }
    token(r, "]");
}

static void set(struct random *r, unsigned kind)
{
    token(r, "[");
    for (unsigned i = 0, n = draw(r, 4); i < n; i++) {
        if (i)
            token(r, ",");
        if (kind == 0)
            string(r);
        else if (kind == 1)
            sl_buffer_printf(&r->out, "\"%u\"", 10 * i + draw(r, 10));
        else
            sl_buffer_add_str(&r->out, draw(r, 2) ? "\"Zm9v\"" : "\"Zg==\"");
    }
    token(r, "]");
}

static void content(struct random *r, unsigned type, unsigned depth)
{
    static const char *const base64[] = {"\"\"", "\"AAEqQQ==\"", "\"Zm9vYmFy\"", "\"\\u002b\\/8=\""};
    switch (type) {
    case 0:
    case 1:
        string(r);
        break;
    case 2:
    case 3:
        number(r);
        break;
    case 4:
        sl_buffer_add_str(&r->out, base64[draw(r, 4)]);
        break;
    case 5:
        sl_buffer_add_str(&r->out, draw(r, 2) ? "true" : "false");
        break;
    case 6:
        sl_buffer_add_str(&r->out, "true");
        break;
    case 10:
        list(r, depth + 1);
        break;
    case 11:
        map(r, depth + 1);
        break;
    default:
        set(r, type - 7);
    }
}

static void value(struct random *r, unsigned depth)
{
    static const char *const tags[] = {"\"S\"",    "\"S\"",  "\"N\"",  "\"N\"",  "\"B\"", "\"BOOL\"",
                                       "\"NULL\"", "\"SS\"", "\"NS\"", "\"BS\"", "\"L\"", "\"M\""};
    unsigned type = draw(r, depth < 4 ? 12 : 10);
    token(r, "{");
    token(r, tags[type]);
    token(r, ":");
    content(r, type, depth);
    token(r, "}");
}

static void record(struct random *r, unsigned i)
{
    static const char *const events[] = {"INSERT", "MODIFY", "REMOVE"};
    token(r, "{");
    sl_buffer_printf(&r->out, "\"eventID\":\"%u\",\"eventName\":\"%s\",\"eventVersion\":\"1.1\",", i,
                     events[draw(r, 3)]);
    if (draw(r, 4))
        sl_buffer_add_str(&r->out, "\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"eu-west-1\",");
    if (draw(r, 4) == 0)
        sl_buffer_add_str(
            &r->out, "\"userIdentity\":{\"type\":\"Service\",\"principalId\":\"dynamodb.amazonaws.com\"},");
    sl_buffer_printf(&r->out, "\"dynamodb\":{\"ApproximateCreationDateTime\":%u,\"Keys\":", 1594935882 + i);
    map(r, 0);
    sl_buffer_add_str(&r->out, ",\"NewImage\":");
    map(r, 0);
    sl_buffer_add_str(&r->out, ",\"OldImage\":");
    map(r, 0);
    sl_buffer_printf(&r->out, ",\"SequenceNumber\":\"4000000000083676%u\",\"SizeBytes\":%u", 1000 + i,
                     draw(r, 1000));
    sl_buffer_add_str(&r->out, ",\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"},\"eventSourceARN\":\"arn:aws:"
                               "dynamodb:r:1:table/t/stream/x\"");
    token(r, "}");
}

static void event(struct random *r)
{
    sl_buffer_reset(&r->out);
    r->is_airy = draw(r, 3) == 0;
    token(r, "{\"Records\":[");
    for (unsigned i = 0, n = 1 + draw(r, 4); i < n; i++) {
        if (i)
            token(r, ",");
        record(r, i);
    }
    token(r, "]}");
}

/* ---- damage ---- */

static void overwrite(struct random *r, size_t at)
{
    static const char bytes[] = "\"\"\\\\{}[]:,0e.-tn \n\x01\x80\xC3\xFFSNBLM";
    r->out.ptr[at] = bytes[draw(r, sizeof(bytes) - 1)];
}

static void cut_out(struct random *r, size_t at)
{
    size_t n = 1 + draw(r, 5);
    if (at + n > r->out.len)
        n = r->out.len - at;
    memmove(r->out.ptr + at, r->out.ptr + at + n, r->out.len - at - n);
    r->out.len -= n;
}

static void swap(struct random *r, size_t at)
{
    size_t other = draw(r, (unsigned)r->out.len);
    char c = r->out.ptr[at];
    r->out.ptr[at] = r->out.ptr[other];
    r->out.ptr[other] = c;
}

static void damage(struct random *r)
{
    for (unsigned n = 1 + draw(r, 2); n > 0 && r->out.len > 1; n--) {
        size_t at = draw(r, (unsigned)r->out.len);
        switch (draw(r, 8)) {
        case 0:
            r->out.len = at;
            break;
        case 1:
        case 2:
            cut_out(r, at);
            break;
        case 3:
            swap(r, at);
            break;
        default:
            overwrite(r, at);
        }
    }
}

/* ---- judging ---- */

/* jansson refuses numbers that do not fit its types; those texts are JSON all the same. */
static bool is_range(const json_error_t *error)
{
    return strstr(error->text, "overflow") || strstr(error->text, "too big");
}

static bool has_duplicates(struct sl_span text)
{
    json_t *json = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    json_decref(json);
    return !json;
}

/* A time or size that is a JSON number may still be none by our rules; the oracle does not judge that. */
static bool is_unjudged(const struct sl_error *error)
{
    return strstr(error->text, "is no time") || strstr(error->text, "is no whole number");
}

static const char *compare_values(const struct test_batch *t, json_t *json)
{
    json_t *records = json_object_get(json, "Records");
    const char *why = test_event_fault(json);
    if (why)
        return why;
    if (json_array_size(records) != t->batch.n)
        return "the number of records";
    for (size_t i = 0; i < t->batch.n && !why; i++)
        why = test_record_differs(sl_batch_record(&t->batch, i), json_array_get(records, i));
    return why;
}

static const char *judge(struct sl_span text, unsigned *accepted)
{
    struct test_batch t;
    json_error_t jansson;
    json_t *json = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, &jansson);
    const char *why = NULL;
    bool is_json = sl_json_check(text, NULL) == SL_OK;
    test_decode_event(&t, text);
    if (is_json != (json != NULL) && !is_range(&jansson))
        why = is_json ? jansson.text : "only jansson reads it";
    else if (t.status == SL_OK && !json && !is_range(&jansson))
        why = "it was accepted";
    else if (t.status == SL_OK && json && !has_duplicates(text))
        why = compare_values(&t, json);
    else if (t.status != SL_OK && json && strcmp(t.error.code, "InvalidJson") == 0)
        why = t.error.text;
    else if (t.status != SL_OK && json && !test_event_fault(json) && !has_duplicates(text) &&
             !is_unjudged(&t.error))
        why = t.error.text;
    *accepted += t.status == SL_OK;
    if (why)
        print_message("%s\n%.*s\n", why, SL_ARG(text));
    test_batch_clean_up(&t);
    json_decref(json);
    return why ? "see above" : NULL;
}

static void run(unsigned rounds, unsigned damages)
{
    const char *seed = getenv("SEED");
    struct random r = {.state = seed ? strtoull(seed, NULL, 10) : 20261120};
    unsigned accepted = 0;
    sl_buffer_init(&r.out, 1 << 24);
    for (unsigned i = 0; i < rounds; i++) {
        event(&r);
        if (damages)
            damage(&r);
        assert_null(judge(sl_buffer_span(&r.out), &accepted));
    }
    sl_buffer_clean_up(&r.out);
    if (damages)
        assert_in_range(accepted, rounds / 100, rounds * 3 / 4);
    else
        assert_int_equal(accepted, rounds);
}

static void random_events_are_read_as_jansson_reads_them(void **state)
{
    (void)state;
    run(500, 0);
}

static void damaged_events_are_judged_as_jansson_judges_them(void **state)
{
    (void)state;
    run(4000, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_events_are_read_as_jansson_reads_them),
        cmocka_unit_test(damaged_events_are_judged_as_jansson_judges_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
