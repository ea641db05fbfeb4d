/* Differences between two images: by path, in order, and only where values differ. */
#include "data/recall/diff.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

static char found[4096];

static void on_found(void *arg, struct sl_span path, struct sl_value before, struct sl_value after)
{
    struct sl_arena *arena = arg;
    struct sl_span x = before.type ? sl_value_json(before, arena) : SL_LIT("-");
    struct sl_span y = after.type ? sl_value_json(after, arena) : SL_LIT("-");
    size_t len = strlen(found);
    snprintf(found + len, sizeof(found) - len, "%.*s: %.*s %.*s\n", SL_ARG(path), SL_ARG(x), SL_ARG(y));
}

static struct sl_value image(const char *text)
{
    struct sl_value none = {.type = SL_NONE};
    return text ? (struct sl_value){.type = SL_M, .raw = json_span(text)} : none;
}

static void differences_are_found_by_path(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *wanted;
    } cases[] = {
        {"{'a':{'N':'1'}}", "{'a':{'N':'1.00'}}", ""},
        {"{'a':{'SS':['x','y']},'b':{'S':'b'}}", "{'b':{'S':'b'},'a':{'SS':['y','x']}}", ""},
        {"{'a':{'N':'1'}}", "{'a':{'S':'1'}}", "a: {'N':'1'} {'S':'1'}\n"},
        {NULL, "{'a':{'N':'1'},'b':{'M':{'c':{'S':''}}}}", "a: - {'N':'1'}\nb: - {'M':{'c':{'S':''}}}\n"},
        {"{'a':{'N':'1'}}", NULL, "a: {'N':'1'} -\n"},
        {NULL, NULL, ""},
        {"{'gone':{'S':'x'},'a':{'S':'y'}}", "{'a':{'S':'y'},'new':{'BOOL':true}}",
         "new: - {'BOOL':true}\ngone: {'S':'x'} -\n"},
        {"{'m':{'M':{'x':{'M':{'y.z':{'N':'1'}}}}}}", "{'m':{'M':{'x':{'M':{'y.z':{'N':'2'}}}}}}",
         "m.x.`y.z`: {'N':'1'} {'N':'2'}\n"},
        {"{'l':{'L':[{'N':'1'},{'M':{'k':{'S':'a'}}},{'S':'c'}]}}",
         "{'l':{'L':[{'N':'1'},{'M':{'k':{'S':'b'}}}]}}", "l[1].k: {'S':'a'} {'S':'b'}\nl[2]: {'S':'c'} -\n"},
        {"{'l':{'L':[]}}", "{'l':{'L':[{'NULL':true}]}}", "l[0]: - {'NULL':true}\n"},
        {"{'m':{'M':{}}}", "{'m':{'L':[]}}", "m: {'M':{}} {'L':[]}\n"},
        {"{'a[0]':{'S':'x'},'':{'S':'y'}}", "{'a[0]':{'S':'z'},'':{'S':'w'}}",
         "`a[0]`: {'S':'x'} {'S':'z'}\n``: {'S':'y'} {'S':'w'}\n"},
        {"{'\\u0061':{'S':'x'}}", "{'a':{'S':'y'}}", "a: {'S':'x'} {'S':'y'}\n"},
        {"{'a':{'S':'1'},'b':{'S':'2'},'c':{'S':'3'}}", "{'c':{'S':'3'},'b':{'S':'x'},'a':{'S':'1'}}",
         "b: {'S':'2'} {'S':'x'}\n"},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        found[0] = '\0';
        sl_diff(image(cases[i].before), image(cases[i].after), arena, on_found, arena);
        if (strcmp(found, json(cases[i].wanted)) != 0)
            fail_msg("case %zu: %s", i, found);
    }
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(differences_are_found_by_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
