/* Items as people write them, and texts compared by what they say. */
#include "base/json.h"
#include "cli/test/same.h"
#include "streams/shorthand.h"
#include "tests/support/test.h"

#include <string.h>

/* ' stands for ". */
static const char *quoted(const char *text, char *out)
{
    size_t n = strlen(text);
    for (size_t i = 0; i <= n; i++)
        out[i] = text[i] == '\'' ? '"' : text[i];
    return out;
}

static void what_people_write_becomes_dynamodbs_json(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "{}"},
        {"{'a':'x','b':1,'c':-1.50e3,'d':true,'e':null}",
         "{'a':{'S':'x'},'b':{'N':'1'},'c':{'N':'-1.50e3'},'d':{'BOOL':true},'e':{'NULL':true}}"},
        {"{'n':12345678901234567890123456789012345678}",
         "{'n':{'N':'12345678901234567890123456789012345678'}}"},
        {"{ 'l' : [ 1 , 'a' , [ ] ] }", "{'l':{'L':[{'N':'1'},{'S':'a'},{'L':[]}]}}"},
        {"{'m':{'x':{'y':false}}}", "{'m':{'M':{'x':{'M':{'y':{'BOOL':false}}}}}}"},
        {"{'b':{'base64':'eA=='}}", "{'b':{'B':'eA=='}}"},
        /* DynamoDB's own stays what it is */
        {"{'a':{'S':'x'},'n':{'N':'1'},'l':{'L':[{'S':'a'}]}}",
         "{'a':{'S':'x'},'n':{'N':'1'},'l':{'L':[{'S':'a'}]}}"},
        {"{'s':{'SS':['a','b']},'n':{'NS':['1']},'b':{'BS':['eA==']}}",
         "{'s':{'SS':['a','b']},'n':{'NS':['1']},'b':{'BS':['eA==']}}"},
        {"{'t':{'BOOL':true},'z':{'NULL':true},'m':{'M':{}}}",
         "{'t':{'BOOL':true},'z':{'NULL':true},'m':{'M':{}}}"},
        /* maps that only look like it */
        {"{'sizes':{'S':5,'M':7}}", "{'sizes':{'M':{'S':{'N':'5'},'M':{'N':'7'}}}}"},
        {"{'sizes':{'S':5}}", "{'sizes':{'M':{'S':{'N':'5'}}}}"},
        {"{'x':{'L':{}}}", "{'x':{'M':{'L':{'M':{}}}}}"},
        {"{'x':{'NULL':false}}", "{'x':{'M':{'NULL':{'BOOL':false}}}}"},
        {"{'x':{'base64':1}}", "{'x':{'M':{'base64':{'N':'1'}}}}"},
        {"{'x':{'M':{'N':{'S':'north'}}}}", "{'x':{'M':{'N':{'S':'north'}}}}"},
        {"{'\\u0061\\n':'\\u00e9'}", "{'\\u0061\\n':{'S':'\\u00e9'}}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char in[256], want[256];
        struct sl_buffer out;
        sl_buffer_init(&out, 1 << 20);
        sl_shorthand_add_item(&out, sl_span_str(quoted(cases[i][0], in)));
        assert_span_is(sl_buffer_span(&out), quoted(cases[i][1], want));
        sl_buffer_clean_up(&out);
    }
}

static void texts_that_say_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool is_same;
    } cases[] = {
        {"1", "1.0", true},
        {"100", "1e2", true},
        {"12345678901234567890123456789012345678", "12345678901234567890123456789012345679", false},
        {"1e999", "1e999", true},
        {"1e999", "1e998", false},
        {"'a'", "'\\u0061'", true},
        {"'a'", "'b'", false},
        {"'1'", "1", false},
        {"true", "false", false},
        {"null", "null", true},
        {"{'a':1,'b':[1,2]}", "{ 'b' : [ 1.0, 2 ], '\\u0061' : 1 }", true},
        {"{'a':1}", "{'a':1,'b':2}", false},
        {"{'a':1,'b':2}", "{'a':1,'c':2}", false},
        {"{'a':1}", "{'a':2}", false},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,2]", false},
        {"[]", "{}", false},
        {"[{'x':[]}]", "[{'x':[]}]", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char a[128], b[128];
        struct sl_span one = sl_span_str(quoted(cases[i].a, a)), other = sl_span_str(quoted(cases[i].b, b));
        if (sl_json_says_same(one, other) != cases[i].is_same ||
            sl_json_says_same(other, one) != cases[i].is_same)
            fail_msg("%s and %s", a, b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_people_write_becomes_dynamodbs_json),
        cmocka_unit_test(texts_that_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
