/* The replicate handler's lists: a mistake is named wherever in its list it stands. */
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>

#define ROUTE                                                                                                \
    "{'on_failure':'report','routes':[{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?"             \
    "table=replica'%s}]}"

/* `good` is a right element of the same option. `others` are other options that the mistake needs. */
static const struct {
    const char *option, *good, *bad, *message, *others;
} mistakes[] = {
    {"project", "'g'", "1", "expected an attribute name", ""},
    {"project", "'g'", "''", "expected an attribute name", ""},
    {"drop", "'g'", "1", "expected an attribute name", ""},
    {"drop", "'g.h'", "'a['", "place moves when others come and go", ""},
    {"drop", "'g'", "'a'", "rename.a: the attribute is in drop, too", ",'rename':{'a':'b'}"},
    {"rename", "'g':'h'", "'a':1", "rename.a: expected an attribute name, and the name that it gets", ""},
    {"rename", "'g':'h'", "'a':''", "rename.a: expected an attribute name, and the name that it gets", ""},
    {"rename", "'g':'h'", "'':'a'", "rename.: expected an attribute name, and the name that it gets", ""},
    {"rename", "'g':'h'", "'a':'h','b':'h'", "rename: two attributes become h", ""},
    {"rename", "'g':'h'", "'a':'b'", "rename.a: the attribute is in drop, too", ",'drop':['a']"},
    {"rename", "'g':'h'", "'a':'sluice_order'", "rename.a: sluice_order is the guard_attribute", ""},
    {"rename", "'g':'h'", "'a':'sluice_expires'", "rename.a: sluice_expires is the expires_attribute", ""},
    {"rename", "'g':'h'", "'a':'s'", "set.s: rename.a makes this attribute", ",'set':{'s':'x'}"},
    {"key", "'g':'{a}'", "'k':1", "key.k: expected a template", ""},
    {"key", "'g':'{a}'", "'':'{a}'", "key.: expected a template", ""},
    {"key", "'g':'{a}'", "'k':''", "key.k: is empty, and a key attribute cannot be", ""},
    {"key", "'g':'{a}'", "'k':'{NewImage.b}'", "key.k: use attributes of the source", ""},
    {"key", "'g':'{a}'", "'sluice_write':'{b}'", "key.sluice_write: sluice_write is the write_attribute", ""},
    {"key", "'g':'{a}'", "'s':'{b}'", "set.s: \"key\" makes this attribute", ",'set':{'t':'x','s':'x'}"},
    {"set", "'g':'x'", "'s':1", "set.s: expected an attribute name and a template", ""},
    {"set", "'g':'x'", "'s':'{yyyy}'", "set.s: the template names the time or the event of a change", ""},
    {"set", "'g':'x'", "'sluice_deleted':'x'", "set.sluice_deleted: sluice_deleted is the deleted_attribute",
     ""},
    {"set", "'g':'x'", "'s':'x'", "set.s: rename.b makes this attribute", ",'rename':{'a':'c','b':'s'}"},
};

static void expect_refused(size_t i, const char *before, const char *between, const char *after)
{
    const char *option = mistakes[i].option;
    bool is_list = option[0] == 'p' || option[0] == 'd';
    char members[400];
    snprintf(members, sizeof(members), ",'%s':%s%s%s%s%s%s", option, is_list ? "[" : "{", before, between,
             after, is_list ? "]" : "}", mistakes[i].others);
    stage_refused(json_printf(ROUTE, members), mistakes[i].message);
}

static void a_mistake_is_named_wherever_it_stands(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        expect_refused(i, "", mistakes[i].bad, "");
        expect_refused(i, mistakes[i].good, ",", mistakes[i].bad);
        expect_refused(i, mistakes[i].bad, ",", mistakes[i].good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_is_named_wherever_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
