/* Lines of totals and archives, in words. */
#include "cli/verify/report.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is printed of a line; the caller frees it. */
static char *words_of(struct sl_report *report, const char *line)
{
    char *folder = test_folder_in_memory();
    const char *path = json_printf("%s/out", folder);
    fflush(stdout);
    int real = dup(STDOUT_FILENO);
    assert_non_null(freopen(path, "w", stdout));
    sl_report_line(report, json_span(line));
    fflush(stdout);
    assert_int_equal(dup2(real, STDOUT_FILENO), STDOUT_FILENO);
    close(real);
    char *text = test_read(path, NULL);
    test_folder_remove(folder);
    return text;
}

static void each_line_is_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"{'result':'different','kind':'sum','target':'db','key':{'PK':{'S':'a'}},'attribute':'n','total':'3'"
         ",'ledger':'1'"
         ",'difference':'2'}",
         "db: sum {'PK':{'S':'a'}}, n: the total is 3, its ledger says 1: 2 off\n"},
        {"{'result':'unsettled','kind':'sum','target':'db','key':{'PK':{'S':'a'}},'attribute':'n','low':'-1',"
         "'high':'2'}",
         "db: unsettled, sum {'PK':{'S':'a'}}, n: between -1 and 2 off: the ledger changed during every "
         "scan\n"},
        {"{'result':'different','kind':'values','target':'db','key':{'PK':{'S':'a'}},'attribute':'n'}",
         "db: values of {'PK':{'S':'a'}}, n: their rows are not those that the ledgers name\n"},
        {"{'result':'unsettled','kind':'members','target':'db','key':{'PK':{'S':'a'}}}",
         "db: unsettled, members of {'PK':{'S':'a'}}: the ledger changed during every scan\n"},
        {"{'result':'different','kind':'damaged','route':'keep','handler':'archive','object':'a/"
         "b','records':7,'why':'it "
         "is cut'}",
         "keep: archive: damaged, object a/b, records 7, why it is cut\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_report report = {.verb = "verify"};
        char *words = words_of(&report, cases[i].line);
        assert_string_equal(words, json(cases[i].words));
        free(words);
        report.is_json = true;
        report.printed = SL_REPORT_LINES; /* as JSON all are printed */
        words = words_of(&report, cases[i].line);
        assert_string_equal(words, json(cases[i].line));
        assert_int_equal(report.left, 0);
        free(words);
        report.is_json = false;
        words = words_of(&report, cases[i].line);
        assert_string_equal(words, "");
        assert_int_equal(report.left, 1);
        free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
