/* The golden table: each handler x view type x event x verdict, each delivered, delivered again, and
 * delivered again after a later change. A case is a folder below tests/handlers/builtin/golden; `make bless`
 * writes what is expected, and nothing else does. */
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define GOLDEN "tests/handlers/builtin/golden"

static char *path_of(const char *folder, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        abort();
    return path;
}

static char *read_all(const char *folder, const char *name)
{
    char *path = path_of(folder, name), *text = test_read(path, NULL);
    free(path);
    return text;
}

/* ---- what a case does ---- */

static void add_verdict(struct stage *s, struct sl_buffer *out)
{
    const struct sl_error *e = &s->answer.error;
    if (s->answer.parked > 0)
        sl_buffer_add_str(out, "parked\n");
    else if (!s->answer.is_error && s->answer.checkpoint == s->n)
        sl_buffer_add_str(out, "done\n");
    else
        sl_buffer_printf(out, "refused: %s: %s\n", e->code, e->text);
}

static void add_indented(struct sl_buffer *out, const char *text)
{
    for (const char *end; *text; text = end + 1) {
        end = strchr(text, '\n');
        sl_buffer_printf(out, "  %.*s\n", (int)(end - text), text);
    }
}

static void add_state(struct stage *s, struct sl_buffer *out)
{
    char *names, *objects = stage_objects(s, "out", &names);
    char *rows = stage_query(s, "db", "SELECT item FROM rows ORDER BY key");
    if (!strstr(names, "queue.jsonl"))
        add_indented(out, names);
    add_indented(out, objects);
    add_indented(out, rows);
    free(names);
    free(objects);
    free(rows);
}

static void add_delivery(struct stage *s, const char *title, const char *event, struct sl_buffer *out)
{
    sl_buffer_printf(out, "%s: ", title);
    stage_deliver(s, sl_span_str(event));
    add_verdict(s, out);
    add_state(s, out);
}

/* Lines of events.jsonl: what made the item, the change, a later change. */
static char *play(const char *config, char *events)
{
    struct sl_buffer out;
    char *before = events, *change = strchr(before, '\n'), *later;
    *change++ = '\0';
    later = strchr(change, '\n');
    *later++ = '\0';
    sl_buffer_init(&out, SIZE_MAX / 4);
    struct stage *s = stage_new(config, NULL);
    stage_deliver(s, sl_span_str(before));
    add_delivery(s, "first delivery", change, &out);
    add_delivery(s, "redelivery", change, &out);
    add_delivery(s, "a later change", later, &out);
    add_delivery(s, "redelivery after it", change, &out);
    stage_destroy(s);
    sl_buffer_add_char(&out, '\0');
    return out.ptr;
}

/* ---- all cases ---- */

static void check_case(const char *config, const char *folder, size_t *n)
{
    char *own = read_all(folder, "sluice.json");
    char *events = read_all(folder, "events.jsonl"), *got = play(own ? own : config, events);
    char *path = path_of(folder, "expected.txt"), *wanted = test_read(path, NULL);
    if (getenv("BLESS"))
        test_write(path, got);
    else if (!wanted || strcmp(got, wanted) != 0)
        fail_msg("%s: got\n%s\nand not\n%s", folder, got, wanted ? wanted : "(nothing is blessed)");
    free(own);
    free(events);
    free(got);
    free(path);
    free(wanted);
    ++*n;
}

static void check_handler(const char *handler, size_t *n)
{
    char *folder = path_of(GOLDEN, handler), *config = read_all(folder, "sluice.json");
    struct dirent **cases = NULL;
    int count = scandir(folder, &cases, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char *path = path_of(folder, cases[i]->d_name);
        if (strchr(cases[i]->d_name, '-'))
            check_case(config, path, n);
        free(path);
        free(cases[i]);
    }
    free(cases);
    free(config);
    free(folder);
}

static void every_case_is_as_blessed(void **state)
{
    (void)state;
    static const char *const handlers[] = {"archive", "replicate", "aggregate", "view", "notify"};
    size_t n = 0;
    const size_t n_handlers = sizeof(handlers) / sizeof(handlers[0]);
    for (size_t i = 0; i < n_handlers; i++)
        check_handler(handlers[i], &n);
    assert_int_equal(n, n_handlers * 4 * 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_is_as_blessed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
