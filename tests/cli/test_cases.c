/* `sluice test`, `new-test` and `try` in this process: what a case says and what is said of it, over every
 * kind of line; what is wrong with a case; and a disk that fails. (tests/cli/check_test.py compares with
 * replays.) */
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG                                                                                               \
    "{'ttl_attribute':'ttl','report_batch_item_failures':true,'on_failure':'sqs://failed','routes':["        \
    "{'name':'copy','handler':'replicate','to':'dynamodb://copy','where':{'hidden':[{'exists':false}]}},"    \
    "{'name':'count','handler':'aggregate','to':'dynamodb://totals','ledger':{'table':'ledger'},"            \
    "'empty':'delete','counters':[{'key':{'PK':'S#{status}'},'add':{'n':1}}]},"                              \
    "{'name':'loose','handler':'aggregate','to':'dynamodb://loose','missing':'skip',"                        \
    "'counters':[{'key':{'PK':'ALL'},'add':{'sum':'{total|default:0|number}'}}]},"                           \
    "{'name':'gone','handler':'archive','to':'s3://gone','format':'json','when':{'expired':true}},"          \
    "{'name':'say','handler':'notify','to':'sns:arn:aws:sns:us-east-1:123456789012:${TOPIC}',"               \
    "'subject':'{PK}','attributes':{'status':'{status}'},'when':{'item':{'status':['PAID']}},"               \
    "'message':'paid: {PK}'},"                                                                               \
    "{'name':'hook','handler':'notify','to':'https://example.com/"                                           \
    "x#secret=KEY','when':{'events':['MODIFY']},"                                                            \
    "'escape':'json','message':'[{total}]'}]}"

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    verb_write(v, "sluice.json", CONFIG);
    *state = v;
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

static void make_folder(struct verbs *v, const char *name)
{
    char path[2000];
    snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), name);
    assert_int_equal(mkdir(path, 0777), 0);
}

/* Blesses the case, and compares what it then expects; ' stands for ". */
static void leaves(struct verbs *v, const char *members, const char *const *lines)
{
    char text[4096], want[4096], quoted[4096] = "";
    snprintf(text, sizeof(text), "{%s}", members);
    verb_write(v, "case.json", text);
    verb_assert(v, verb(v, "test --bless case.json"), 0, "");
    verb_assert(v, verb(v, "test case.json"), 0, "1 case: 1 passed, 0 failed\n");
    for (size_t i = 0; lines[i]; i++)
        snprintf(quoted + strlen(quoted), sizeof(quoted) - strlen(quoted), "%s\n    %s", i ? "," : "",
                 lines[i]);
    snprintf(want, sizeof(want), "{%s,\n  'expect': [%s%s]\n}", members, quoted, lines[0] ? "\n  " : "");
    for (char *c = want; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    assert_string_equal(verb_read(v, "case.json"), want);
}

#define LINES(...)                                                                                           \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }
#define NEW  "{'after':{'PK':'a','status':'NEW','total':2.50,'s':{'SS':['y','x']}}}"
#define OLD  "{'PK':'a','status':'NEW'}"
#define PAID "{'PK':'a','status':'PAID','total':3}"

static void each_kind_of_line(void **state)
{
    struct verbs *v = *state;
    leaves(v, "'given':[" NEW "]",
           LINES("{'route':'copy','row':{'PK':'a','s':['x','y'],'status':'NEW','total':2.5}}",
                 "{'route':'count','row':{'PK':'S#NEW','n':1}}",
                 "{'route':'loose','row':{'PK':'ALL','sum':2.5}}"));
    leaves(v, "'given':[{'before':" OLD ",'after':" PAID "}]",
           LINES("{'route':'copy','row':{'PK':'a','status':'PAID','total':3}}",
                 "{'route':'count','row':{'PK':'S#PAID','n':1}}",
                 "{'route':'loose','row':{'PK':'ALL','sum':3}}",
                 "{'route':'say','message':'paid: a','subject':'a','attributes':{'status':'PAID'}}",
                 "{'route':'hook','message':[3]}"));
    leaves(v,
           "'given':[" NEW ",{'before':" OLD
           ",'after':{'PK':'a','hidden':1,'status':'X'}}],'routes':['copy']",
           LINES("{'route':'copy','gone':{'PK':'a'}}"));
    leaves(v, "'given':[{'after':{'PK':'b'}}],'routes':['count']",
           LINES("{'route':'count','parked':'MissingAttribute','key':{'PK':'b'}}"));
    leaves(v, "'given':[{'after':{'PK':'b'}}],'routes':['hook']", (const char *const[]){NULL});
    verb_assert(v, verb(v, "test --bless case.json"), 0,
                "ok    case.json\n1 case: 1 passed, 0 failed\nnote: ");
    leaves(v,
           "'given':[{'before':{'PK':'a','ttl':1767225000},'at':1767225600}],'routes':['gone'],'table':'t'",
           (const char *const[]){NULL});
    verb_write(v, "case.json",
               "{'given':[{'before':{'PK':'a','n':1},'expired':true}],'routes':['gone'],'table':'t'}");
    verb_assert(v, verb(v, "test --bless case.json"), 0, "wrote case.json");
    assert_non_null(strstr(verb_read(v, "case.json"), "\"object\":\"t/dt=2026-01-01/hour=00/"));
    assert_non_null(strstr(verb_read(v, "case.json"), ".jsonl.gz\",\"lines\":[{"));
}

/* Each target is a table of its own; routes with one target share it. */
static void targets_are_tables(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "sluice.json",
               "{'report_batch_item_failures':true,'on_failure':'report','routes':["
               "{'name':'one','handler':'replicate','to':'dynamodb://one','project':['a']},"
               "{'name':'two','handler':'replicate','to':'dynamodb://two','project':['b']},"
               "{'name':'three','handler':'replicate','to':'dynamodb://three','project':['c']},"
               "{'name':'add','handler':'aggregate','to':'dynamodb://"
               "sums','counters':[{'key':{'PK':'ALL'},'add':{'n':1}}]},"
               "{'name':'more','handler':'aggregate','to':'dynamodb://"
               "sums','counters':[{'key':{'PK':'ALL'},'add':{'m':2}}]}]}");
    leaves(v, "'given':[{'after':{'PK':'k','a':1,'b':2,'c':3}}]",
           LINES("{'route':'one','row':{'PK':'k','a':1}}", "{'route':'two','row':{'PK':'k','b':2}}",
                 "{'route':'three','row':{'PK':'k','c':3}}", "{'route':'add','row':{'PK':'ALL','n':1}}",
                 "{'route':'more','row':{'PK':'ALL','m':2,'n':1}}"));
}

static void a_difference_is_shown(void **state)
{
    struct verbs *v = *state;
    make_folder(v, "tests");
    verb_write(v, "tests/a.json",
               "{'about':'two rows','given':[" NEW "],'routes':['copy','count'],'expect':["
               "{'route':'copy','row':{'PK':'a','s':['x','y'],'status':'NEW','total':2.50}},"
               "{'route':'count','row':{'PK':'S#NEW','n':2}}]}");
    verb_write(v, "tests/b.json", "{'given':[{'after':{'PK':'q'}}],'routes':['count'],'expect':[]}");
    verb_write(v, "tests/.hidden.json", "{");
    verb_write(v, "tests/sluice.json", CONFIG);
    verb_assert(v, verb(v, "test"), 1,
                "FAIL  tests/a.json: two rows\n      - is expected, and did not leave; + left\n"
                "      - {\"route\":\"count\",\"row\":{\"PK\":\"S#NEW\",\"n\":2}}\n"
                "      + {\"route\":\"count\",\"row\":{\"PK\":\"S#NEW\",\"n\":1}}\n"
                "FAIL  tests/b.json\n      - is expected, and did not leave; + left\n"
                "      + {\"route\":\"count\",\"parked\":\"MissingAttribute\",\"key\":{\"PK\":\"q\"}}\n"
                "        count: parked: MissingAttribute: ");
    assert_non_null(strstr(verb_out(v),
                           "2 cases: 0 passed, 2 failed\nnote: no case gives a record to the route gone of "
                           "tests/sluice.json\n"));
    assert_null(strstr(verb_out(v), "to the route count"));
    verb_assert(v, verb(v, "test tests/b.json tests/b.json --config tests/sluice.json --junit j.xml"), 1,
                "2 cases: 0 passed, 2 failed");
    assert_non_null(strstr(verb_read(v, "j.xml"),
                           "<testsuite name=\"sluice test\" tests=\"2\" failures=\"2\" errors=\"0\">\n"));
    assert_non_null(
        strstr(verb_read(v, "j.xml"), "<failure message=\"- is expected, and did not leave; + left\">"));
    verb_write(v, "c.json",
               "{'given':[{'after':{'PK':'q'}}],'routes':['copy'],'expect':[1,{'route':'copy','row':{'PK':'q'"
               "}},2]}");
    verb_assert(v, verb(v, "test c.json"), 1, "; + left\n      - 1\n      - 2\n");
    /* What both have stays, however far it is moved. */
    verb_write(
        v, "d.json",
        "{'given':[{'after':{'PK':'a'}},{'after':{'PK':'b'}},{'after':{'PK':'c'}},{'after':{'PK':'d'}}],'"
        "routes':["
        "'copy'],'expect':[7,8,{'route':'copy','row':{'PK':'b'}},{'route':'copy','row':{'PK':'c'}},9]}");
    verb_assert(v, verb(v, "test d.json"), 1,
                "; + left\n      - 7\n      - 8\n      + {\"route\":\"copy\",\"row\":{\"PK\":\"a\"}}\n      "
                "- 9\n      + {\"route\":\"copy\",\"row\":{\"PK\":\"d\"}}\n1 case: ");
    verb_write(v, "d.json",
               "{'given':[{'after':{'PK':'a'}},{'after':{'PK':'b'}},{'after':{'PK':'c'}}],'routes':['copy'],'"
               "expect':["
               "{'route':'copy','row':{'PK':'c'}},{'route':'copy','row':{'PK':'a'}},{'route':'copy','row':{'"
               "PK':'b'}}]}");
    verb_assert(v, verb(v, "test d.json"), 1,
                "; + left\n      - {\"route\":\"copy\",\"row\":{\"PK\":\"c\"}}\n"
                "      + {\"route\":\"copy\",\"row\":{\"PK\":\"c\"}}\n1 case: ");
}

static void what_is_wrong_is_said(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "ends too early"},
        {"[]", "a case is an object"},
        {"{}", "it gives no record"},
        {"{'given':[]}", "it gives no record"},
        {"{'givn':[]}", "\"givn\" is not known: did you mean \"given\"?"},
        {"{'zzz':[]}", "\"zzz\" is not known: a case has about, config, keys, table, view, routes, given"},
        {"{'given':{}}", "given: a list is expected"},
        {"{'about':[]}", "about: a text is expected"},
        {"{'given':[],'given':[]}", "a name is there twice"},
        {"{'given':[1]}", "given[0]: {\"before\": ITEM"},
        {"{'given':[{'after':[]}]}", "given[0].after: an item is expected"},
        {"{'given':[{'before':1}]}", "given[0].before: an item is expected"},
        {"{'given':[{'after':{'x':1}}]}", "given[0].after: which attributes are the item's key?"},
        {"{'given':[{'before':{'x':1}}]}", "given[0].before: which attributes"},
        {"{'given':[{'after':{'PK':1}}],'keys':['PK','x']}",
         "the item has no attribute x, which is of its key"},
        {"{'given':[{'after':{'PK':1}}],'keys':['a','b','c']}", "a,b,c"},
        {"{'given':[{'after':{'PK':1},'expired':true}]}",
         "given[0].expired: an item that has expired has no \"after\""},
        {"{'given':[{'before':{'PK':1},'expired':0}]}", "given[0].expired: true or false"},
        {"{'given':[{'before':{'PK':1},'after':{'PK':2}}]}",
         "given[0]: the key changes from {\"PK\":{\"N\":\"1\"}} to"},
        {"{'given':[{'before':{'x':1},'after':{'PK':2}}]}", "given[0].before: "},
        {"{'given':[{'after':{'PK':1},'at':'now'}]}", "given[0].at: a time is expected"},
        {"{'given':[{'after':{'PK':1},'at':1.5}]}", "given[0].at: a time is expected"},
        {"{'given':[{'after':{'PK':1},'at':{}}]}", "given[0].at: a time is expected"},
        {"{'given':[{'after':{'PK':1},'is':1}]}", "given[0]: \"is\" is not known here"},
        {"{'given':[{'after':{'PK':1}}],'view':'ALL'}", "view: \"ALL\" is not a view type; use KEYS_ONLY"},
        {"{'given':[{'after':{'PK':1}}],'routes':['x']}", "routes: sluice.json has no route \"x\""},
        {"{'given':[{'after':{'PK':1}}],'routes':[1]}", "routes: sluice.json has no route 1"},
        {"{'given':[{'after':{'PK':1}}],'config':'x.json'}", "x.json: cannot be read"},
        {"{'records':'x.jsonl'}", "x.jsonl: cannot be opened"},
        {"{'given':[{'after':{'PK':1,'n':{'N':'x'}}}]}", "not a number"},
        {"{'given':[{'dynamodb':1}]}", "given"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "case.json", cases[i].text);
        verb_assert(v, verb(v, "test case.json"), 1, cases[i].why);
        assert_string_equal(verb_err(v), "");
    }
    verb_assert(v, verb(v, "test nosuch"), 2, "nosuch: cannot be read");
    verb_assert(v, verb(v, "test"), 2, "tests: cannot be read");
    make_folder(v, "tests");
    verb_write(v, "tests/x.txt", "");
    verb_assert(v, verb(v, "test tests/"), 2,
                "tests/: has no case, which is a file NAME.json: `sluice new-test tests//NAME.json");
    verb_write(v, "case.json", "{'given':[" NEW "]}");
    verb_assert(v, verb(v, "test --set x case.json"), 1, "--set x: write NAME=VALUE");
    verb_write(v, "sluice.json", "{'routes':1}");
    verb_assert(v, verb(v, "test case.json"), 1, "InvalidConfiguration: sluice.json: $.routes");
}

/* Whatever fails: the case that cannot be judged fails, or the verb says so; nothing is half written. */
static void a_disk_that_fails(void **state)
{
    struct verbs *v = *state;
    const char *text = "{'given':[" NEW "],'routes':['copy']}";
    verb_write(v, "c.json",
               "{'given':[" NEW
               "],'routes':['count'],'expect':[{'route':'count','row':{'PK':'S#NEW','n':1}}]}");
    int n = 1;
    for (bool came = true; came; n++) {
        verb_write(v, "case.json", text);
        char *before = strdup(verb_read(v, "case.json"));
        verb_fault(v, n, ENOSPC, NULL);
        int status = verb(v, "test --bless --junit j.xml case.json c.json");
        came = disk_fault_came();
        const char *after = verb_read(v, "case.json");
        if (status < 0 || status > 2 || (status == 2 && !*verb_err(v)))
            fail_msg("operation %d: %d\n%s%s", n, status, verb_out(v), verb_err(v));
        assert_true(strcmp(after, before) == 0 || strstr(after, "\"expect\": [\n"));
        assert_true(status != 0 || strstr(after, "\"expect\": [\n"));
        free(before);
    }
    assert_true(n > 5);
}

static void a_first_case(void **state)
{
    struct verbs *v = *state;
    verb_write(
        v, "in.jsonl",
        "{'eventName':'INSERT','dynamodb':{'Keys':{'SK':{'S':'ORDER#1'},'PK':{'S':'C#1'}},'NewImage':{'SK':{'"
        "S':'ORDER#1'},"
        "'PK':{'S':'C#1'},'n':{'N':'1'}},'SequenceNumber':'1','ApproximateCreationDateTime':5}}\n"
        "{'eventName':'INSERT','dynamodb':{'Keys':{'SK':{'S':'ORDER#2'},'PK':{'S':'C#2'}},'NewImage':{'SK':{'"
        "S':'ORDER#2'},"
        "'PK':{'S':'C#2'},'s':{'SS':['x']}},'SequenceNumber':'2'}}\n"
        "{'eventName':'INSERT','dynamodb':{'Keys':{'SK':{'S':'LINE#1'},'PK':{'S':'C#1'}},'NewImage':{'SK':{'"
        "S':'LINE#1'},"
        "'PK':{'S':'C#1'},'s':{'SS':['x']}},'SequenceNumber':'3'}}\n"
        "{'eventName':'REMOVE','userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'},'"
        "dynamodb':{'Keys':{'SK':"
        "{'S':'ORDER#1'},'PK':{'S':'C#1'}},'OldImage':{'SK':{'S':'ORDER#1'},'PK':{'S':'C#1'}},'"
        "SequenceNumber':'4'}}\n"
        "{'eventName':'MODIFY','dynamodb':{'Keys':{'SK':{'S':'#X'},'PK':{'S':'7'}},'SequenceNumber':'5'}}\n");
    verb_assert(v, verb(v, "new-test a/b.json in.jsonl"), 0,
                "a/b.json: 4 records\nnext: sluice test --config sluice.json --bless a/b.json\n");
    assert_string_equal(
        verb_read(v, "a/b.json"),
        "{\n  \"about\": \"the first record of each kind in in.jsonl\",\n  \"keys\": [\"PK\", \"SK\"],\n  "
        "\"given\": [\n"
        "    {\"after\": {\"PK\":\"C#1\",\"SK\":\"ORDER#1\",\"n\":1}, \"at\": 5},\n"
        "    {\"after\": {\"SK\":{\"S\":\"LINE#1\"},\"PK\":{\"S\":\"C#1\"},\"s\":{\"SS\":[\"x\"]}}},\n"
        "    {\"before\": {\"PK\":\"C#1\",\"SK\":\"ORDER#1\"}, \"expired\": true},\n"
        "    "
        "{\"eventName\":\"MODIFY\",\"dynamodb\":{\"Keys\":{\"SK\":{\"S\":\"#X\"},\"PK\":{\"S\":\"7\"}},"
        "\"SequenceNumber\":\"5\"}}\n"
        "  ]\n}\n");
    verb_assert(v, verb(v, "new-test a/b.json in.jsonl"), 2, "a/b.json: exists, and is left as it is");
    verb_assert(v, verb(v, "new-test --records 1 c.json in.jsonl"), 0, "c.json: 1 record\n");
    verb_assert(v, verb(v, "new-test d.json nosuch"), 2, "nosuch: cannot be opened");
    verb_assert(v, verb(v, "new-test --config nosuch.json d.json in.jsonl"), 2,
                "nosuch.json: cannot be read");
    verb_assert(v, verb(v, "new-test in.jsonl/d.json in.jsonl"), 2, "in.jsonl");
    int n = 1;
    for (bool came = true; came; n++) {
        verb_fault(v, n, ENOSPC, NULL);
        int status = verb(v, "new-test e.json in.jsonl");
        came = disk_fault_came();
        assert_true(status == 0 || (status == 2 && *verb_err(v)) || status == 1);
        assert_true((status == 0) == (*verb_read(v, "e.json") != '\0') || status == 1 || came);
        char path[2000];
        snprintf(path, sizeof(path), "%s/e.json", verbs_folder(v));
        (void)unlink(path);
    }
}

static void a_template_or_a_condition_is_tried(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *line, *out;
        int status;
    } cases[] = {
        {"'{s|lower} of {PK}' '{\"PK\":\"a\",\"s\":\"X\"}'", "x of a\n", 0},
        {"'{s}' '[{\"PK\":\"a\",\"s\":1},{\"PK\":\"b\"}]'", "record 1: MissingAttribute: ", 1},
        {"'{NewImage.n} {OldImage.n}' '{\"before\":{\"id\":1,\"n\":1},\"after\":{\"id\":1,\"n\":2}}'",
         "2 1\n", 0},
        {"--escape json '{s}' '{\"PK\":1,\"s\":\"\\\"\"}'", "\\\"\n", 0},
        {"--escape path '{s}' '{\"PK\":1,\"s\":\"/\"}'", "%2F\n", 0},
        {"--escape none '{s}' '{\"PK\":1,\"s\":\"/\"}'", "/\n", 0},
        {"--escape html '{s}' '{\"PK\":1}'", "--escape html: none, json or path", 2},
        {"'{x|up}' '{\"PK\":1}'", "\"up\" is not a function", 2},
        {"'{\"s\":[1]}' '{\"PK\":1,\"s\":1}' '{\"PK\":2,\"s\":2}'",
         "true    INSERT {\"PK\":1}\nfalse   INSERT {\"PK\":2}\n", 1},
        {"'{\"events\":[\"REMOVE\"]}' '{\"before\":{\"PK\":1}}'", "true    REMOVE {\"PK\":1}\n", 0},
        {"'{\"eventName\":[\"REMOVE\"]}' '{\"before\":{\"PK\":1}}'", "true    REMOVE {\"PK\":1}\n", 0},
        {"'{ }' '{\"PK\":1}'", "true    INSERT {\"PK\":1}\n", 0},
        {"'{\"x\":{' '{\"PK\":1}'", "ends too early", 2},
        {"'{\"x\":[]}' '{\"PK\":1}'", "x: the list is empty", 2},
        {"'{\"changed\":[\"a\"]}' "
         "'{\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"a\"}},\"SequenceNumber\":\"1\"},\"eventName\":\"MODIFY\"}"
         "'",
         "unknown MODIFY {\"PK\":\"a\"}\n", 1},
        {"'{\"s\":[1]}' "
         "'{\"Records\":[{\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"a\"}},"
         "\"SequenceNumber\":\"1\"}}]}'",
         "unknown REMOVE", 1},
        {"--keys k '{k}' '{\"k\":\"v\"}'", "v\n", 0},
        {"'{k}' '{\"k\":\"v\"}'", "which attributes are the item's key?", 2},
        {"'{k}' '{'", "the record {: ", 2},
        {"'{k}' nosuch", "nosuch: cannot be opened", 2},
        {"'{PK}'", "in\n", 0},
    };
    verb_input(v, "{\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"in\"}},"
                  "\"SequenceNumber\":\"1\"}}\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "try %s", cases[i].line), cases[i].status, cases[i].out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_kind_of_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(targets_are_tables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_difference_is_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_disk_that_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_first_case, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_template_or_a_condition_is_tried, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
