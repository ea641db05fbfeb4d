/* Where a checked value ends, by blocks, against a count of brackets a byte at a time. */
#include "base/clock.h"
#include "base/json.h"
#include "tests/support/test.h"

#include <stdlib.h>

#define MAX_BYTES 4096

struct text {
    char bytes[MAX_BYTES];
    size_t n;
    uint64_t seed;
};

static uint64_t draw(struct text *t, uint64_t below)
{
    return sl_random_step(&t->seed) % below;
}

static void put(struct text *t, const char *bytes)
{
    size_t n = strlen(bytes);
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
}

static void put_string(struct text *t)
{
    static const char *const pieces[] = {"a",    "{", "}", "[",          "]",       "\\\"",
                                         "\\\\", ",", ":", "plain text", "\xC3\xA9"};
    put(t, "\"");
    for (uint64_t i = draw(t, 12); i > 0; i--)
        put(t, pieces[draw(t, draw(t, 3) ? 5 : sizeof(pieces) / sizeof(pieces[0]))]);
    put(t, "\"");
}

static void put_value(struct text *t, unsigned depth)
{
    uint64_t kind = draw(t, depth ? 6 : 3);
    if (kind == 0 || t->n > MAX_BYTES - 1024) {
        put(t, "-12.5");
    } else if (kind < 3) {
        put_string(t);
    } else {
        bool is_object = kind < 5;
        put(t, is_object ? "{" : "[");
        for (uint64_t i = draw(t, 5); i > 0; i--) {
            if (is_object)
                put_string(t);
            put(t, is_object ? ": " : "");
            put_value(t, depth - 1);
            put(t, i > 1 ? "," : draw(t, 2) ? " " : "");
        }
        put(t, is_object ? "}" : "]");
    }
}

static const char *plain_end(const char *p)
{
    size_t depth = 0;
    bool in_string = false;
    for (;; p++) {
        if (in_string && *p == '\\')
            p++;
        else if (*p == '"')
            in_string = !in_string;
        else if (!in_string && (*p == '{' || *p == '['))
            depth++;
        else if (!in_string && (*p == '}' || *p == ']'))
            depth--;
        if (depth == 0 && !in_string && (*p == '"' || *p == '}' || *p == ']'))
            return p + 1;
    }
}

static void a_value_ends_where_its_brackets_close(void **state)
{
    (void)state;
    static struct text t;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        t.n = 0;
        t.seed = seed;
        put(&t, seed % 2 ? "[" : "{\"k\":");
        put_value(&t, 4);
        put(&t, seed % 2 ? "]" : "}");
        size_t n = t.n;
        if (seed % 3)
            put_string(&t); /* something after it */
        /* On memory of its own size, to show a read beyond the end. */
        char *copy = malloc(t.n);
        memcpy(copy, t.bytes, t.n);
        assert_int_equal(plain_end(t.bytes) - t.bytes, n);
        assert_int_equal(sl_json_value_end(copy, copy + t.n) - copy, n);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_ends_where_its_brackets_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
