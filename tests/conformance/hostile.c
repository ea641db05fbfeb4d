/* Strings that break naive software, as attribute values and parts of keys: each comes through a record
 * unchanged, stays one segment of an object's key that no other string makes, one JSON string, and one line
 * of the log, in which nothing drives a terminal or turns the direction of reading.
 *
 *   hostile CORPUS     reads CORPUS/hostile-strings/blns.json */
#include "tests/support/test.h"

#include "base/log.h"
#include "streams/template/template.h"
#include "tests/support/records.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEGMENT "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.%"

struct texts {
    struct sl_arena *arena;
    json_t *seen; /* keys made so far */
    int log[2];
};

static bool is_one_segment(struct texts *x, struct sl_span text)
{
    struct sl_buffer out;
    sl_buffer_init(&out, SIZE_MAX / 2);
    sl_escape_text(text, SL_ESCAPE_PATH, &out);
    sl_buffer_add_char(&out, '\0');
    bool good = out.len > 1 && out.ptr[0] != '.' && strspn(out.ptr, SEGMENT) == out.len - 1;
    const char *other = json_string_value(json_object_get(x->seen, out.ptr));
    good = good && (!other || sl_span_is(text, other));
    json_object_set_new(x->seen, out.ptr, json_stringn(text.ptr, text.len));
    sl_buffer_clean_up(&out);
    return good;
}

/* Through a template, as a message that quotes it. */
static bool is_one_string(struct texts *x, const struct sl_record *r, const json_t *item)
{
    struct sl_template *t;
    struct sl_buffer out;
    sl_buffer_init(&out, SIZE_MAX / 2);
    const struct sl_rendering how = {
        .record = r, .image = SL_ANY_IMAGE, .escape = SL_ESCAPE_JSON, .scratch = x->arena};
    bool good = sl_template_compile(SL_LIT("\"{PK}\""), NULL, x->arena, &t, NULL) == SL_OK &&
                sl_template_render(t, &how, &out, NULL) == SL_OK;
    json_t *back = json_loadb(out.ptr, out.len, JSON_DECODE_ANY, NULL);
    good = good && json_equal(back, item);
    json_decref(back);
    sl_buffer_clean_up(&out);
    return good;
}

/* The character at *p, and p moved beyond it. */
static unsigned next_char(const unsigned char **p)
{
    const unsigned char *c = *p;
    int more = c[0] < 0x80 ? 0 : c[0] < 0xE0 ? 1 : c[0] < 0xF0 ? 2 : 3;
    unsigned u = more ? c[0] & (0x3Fu >> more) : c[0];
    for (int i = 1; i <= more; i++)
        u = u << 6 | (c[i] & 0x3Fu);
    *p += more + 1;
    return u;
}

static bool is_plain(unsigned u)
{
    return (u >= 0x20 && u < 0x7F) || u == '\n' || u == '\t' ||
           (u > 0x9F && u != 0x61C && u != 0x200E && u != 0x200F && !(u >= 0x2028 && u <= 0x202E) &&
            !(u >= 0x2066 && u <= 0x2069) && u != 0xFEFF);
}

/* As it is, but for characters that are no part of a line: those as \x1b or \u202e. */
static bool reads_as(const char *message, const char *text)
{
    const unsigned char *m = (const unsigned char *)message, *t = (const unsigned char *)text;
    while (*t) {
        unsigned u = next_char(&t);
        char escape[8];
        int n = snprintf(escape, sizeof(escape), u < 0x80 ? "\\x%02x" : "\\u%04x", u);
        if (is_plain(u) ? next_char(&m) != u : strncmp((const char *)m, escape, (size_t)n) != 0)
            return false;
        m += is_plain(u) ? 0 : n;
    }
    return *m == '\0';
}

static bool is_one_line(struct texts *x, const char *text)
{
    char line[8192];
    struct sl_log log;
    sl_log_init(&log, x->log[1], SL_INFO, SL_LOG_JSON, sl_clock_system());
    sl_log(&log, SL_INFO, "%s", text);
    sl_log_clean_up(&log);
    ssize_t n = read(x->log[0], line, sizeof(line));
    json_t *back = n > 0 ? json_loadb(line, (size_t)n, 0, NULL) : NULL;
    const char *message = json_string_value(json_object_get(back, "message"));
    bool good = message && reads_as(message, text) && memchr(line, '\n', (size_t)n) == line + n - 1;
    json_decref(back);
    return good;
}

static bool comes_through(struct texts *x, json_t *item)
{
    json_t *event = json_pack("{s[{sss{s{s{sO}}}}]}", "Records", "eventName", "REMOVE", "dynamodb", "Keys",
                              "PK", "S", item);
    char *json = json_dumps(event, 0);
    struct test_batch t;
    test_decode_event(&t, sl_span_str(json));
    bool good = t.status == SL_OK && t.batch.n == 1;
    if (good) {
        const struct sl_record *r = sl_batch_record(&t.batch, 0);
        struct sl_span text = sl_value_text(sl_record_attribute(r, SL_KEYS, SL_LIT("PK")), x->arena);
        good = sl_span_eq(text, sl_span(json_string_value(item), json_string_length(item))) &&
               is_one_segment(x, text) && is_one_string(x, r, item) &&
               is_one_line(x, json_string_value(item));
    }
    test_batch_clean_up(&t);
    free(json);
    json_decref(event);
    return good;
}

int main(int argc, char **argv)
{
    char path[4096];
    struct texts x = {.arena = sl_arena_new(65536), .seen = json_object()};
    int passed = 0, total = 0;
    size_t i;
    json_t *item;
    snprintf(path, sizeof(path), "%s/hostile-strings/blns.json",
             argc > 1 ? argv[1] : "../shared/conformance");
    json_t *list = json_load_file(path, 0, NULL);
    if (pipe(x.log) != 0)
        return 2;
    json_array_foreach(list, i, item)
    {
        bool good = comes_through(&x, item);
        total++;
        passed += good;
        if (!good)
            printf("  string %zu\n", i);
    }
    json_decref(list);
    json_decref(x.seen);
    sl_arena_destroy(x.arena);
    printf("hostile-strings: %d/%d\n", passed, total);
    return total > 0 && passed == total ? 0 : 1;
}
