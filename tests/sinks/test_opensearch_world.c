/* opensearch:// in front of an index in this process: what others put into it, what its name may stand for,
 * and what is no document. */
#include "tests/support/fake_opensearch.h"
#include "tests/support/fault.h"
#include "tests/support/honest.h"

#include "aws/aws.h"

#include <stdio.h>
#include <stdlib.h>

#define INDEX "opensearch://server/idx?tls=off"

static struct fault f;
static struct fake_opensearch *fake;
static struct sl_table_port *port;
static const char *alias, *mapping; /* answers to GetAlias and GetMapping; NULL: honest ones */
static int alias_status, mapping_status;
static const char *spoils; /* a bulk with this text is refused whole; NULL: none is */

/* Behind an alias the index is called "real-1", and "real-2" when it was swapped. */
static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    static char path[300];
    char operation[64];
    struct scripted_request named = *request;
    bool is_real = strncmp(request->path, "/real-", 6) == 0;
    snprintf(path, sizeof(path), "/idx%s", request->path + (is_real ? 7 : 4));
    named.path = path;
    honest_operation(&named, operation, sizeof(operation));
    fake_opensearch_answer(arg, &named, reply);
    bool is_alias = strcmp(operation, "GetAlias") == 0, is_mapping = strcmp(operation, "GetMapping") == 0;
    if (spoils && strcmp(operation, "Bulk") == 0 &&
        memmem(request->body.ptr, request->body.len, spoils, strlen(spoils)))
        *reply = (struct scripted_reply){
            .status = 400, .body = json_span("{'error':{'type':'new_exception'},'status':400}")};
    const char *body = is_alias ? alias : is_mapping ? mapping : NULL;
    if (body)
        *reply = (struct scripted_reply){.status = is_alias ? alias_status : mapping_status,
                                         .body = sl_span_str(body)};
}

static void open_index(const char *url)
{
    alias = mapping = spoils = NULL;
    alias_status = mapping_status = 200;
    fake = fake_opensearch_open();
    fault_open(&f, answer, fake);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "2");
    port = fault_table(&f, url);
}

static void close_index(void)
{
    const char *fault = fake_opensearch_fault(fake);
    port->close(port);
    fault_close(&f);
    fake_opensearch_close(fake);
    if (fault)
        fail_msg("%s", fault);
}

static struct sl_result run(struct sl_table_op op)
{
    struct sl_result result;
    port->apply(port, &op, 1, &result, &f.call);
    fault_note(&f, &result, 1);
    return result;
}

static struct sl_table_op put_op(const char *item)
{
    return (struct sl_table_op){
        .verb = SL_TABLE_PUT, .key = json_span("{'PK':{'S':'a'}}"), .item = json_span(item)};
}

/* ---- what others put into the index ---- */

/* Pages of `limit`; returns how many items there are, and in how many pages. */
static size_t scan_all(size_t limit, size_t *pages, struct sl_result *result)
{
    struct sl_table_scan scan = {.limit = limit};
    struct sl_table_page page;
    size_t n = 0;
    *pages = 0;
    do {
        port->scan(port, &scan, 1, &page, &f.call);
        *result = page.result;
        if (page.result.status != SL_OK)
            return n;
        assert_true(!limit || page.n <= limit);
        n += page.n;
        scan.after = page.next;
        ++*pages;
    } while (page.next.ptr && *pages < 1000);
    return n;
}

/* One refresh for all scans of a call, when any of them wants to see what was written before it. */
static void scans_that_must_see_all_refresh_once(void **state)
{
    (void)state;
    enum { N = 3 };
    for (unsigned wanted = 0; wanted < 1u << N; wanted++) {
        struct sl_table_scan scans[N];
        struct sl_table_page pages[N];
        open_index(INDEX);
        assert_int_equal(run(put_op("{'PK':{'S':'a'}}")).status, SL_OK);
        for (uint32_t i = 0; i < N; i++)
            scans[i] = (struct sl_table_scan){.segment = i, .of = N, .is_consistent = (wanted >> i & 1) != 0};
        port->scan(port, scans, N, pages, &f.call);
        size_t refreshes = 0;
        for (size_t i = 0; i < scripted_server_requests(f.server); i++)
            refreshes += strstr(scripted_server_request(f.server, i)->path, "/_refresh") != NULL;
        assert_int_equal(refreshes, wanted ? 1 : 0);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(pages[i].result.status, SL_OK);
        close_index();
    }
}

static void strangers_are_told_once(void **state)
{
    (void)state;
    for (size_t strangers = 0; strangers <= 7; strangers++)
        for (size_t limit = 0; limit <= 8; limit++) {
            size_t pages;
            struct sl_result result;
            open_index(INDEX);
            assert_int_equal(run(put_op("{'PK':{'S':'a'}}")).status, SL_OK);
            fake_opensearch_many(fake, strangers);
            assert_int_equal(scan_all(limit, &pages, &result), strangers + 1);
            assert_int_equal(result.status, SL_OK);
            close_index();
        }
}

static void strangers_have_a_limit(void **state)
{
    (void)state;
    for (size_t n = 9999; n <= 10001; n++) {
        size_t pages;
        struct sl_result result;
        open_index(INDEX);
        fake_opensearch_many(fake, n);
        size_t found = scan_all(0, &pages, &result);
        assert_result(result, n <= 10000 ? SL_OK : SL_FATAL, n <= 10000 ? NULL : "Strangers");
        assert_int_equal(found, n <= 10000 ? n : 0);
        close_index();
    }
}

/* A document under an id that is not its key's is told by its id alone. */
static void a_document_astray_is_told_by_its_id(void **state)
{
    (void)state;
    static const char *const hash = "00000000000000000000000000000000";
    struct sl_table_scan scan = {.limit = 0};
    struct sl_table_page page;
    open_index(INDEX);
    assert_int_equal(run(put_op("{'PK':{'S':'a'}}")).status, SL_OK);
    fake_opensearch_put(fake, "elsewhere", sl_span_str(json_printf("{'PK':'b','sluice_hash':'%s'}", hash)));
    fake_opensearch_put(fake, "keyless", sl_span_str(json_printf("{'X':'b','sluice_hash':'%s'}", hash)));
    port->scan(port, &scan, 1, &page, &f.call);
    assert_int_equal(page.result.status, SL_OK);
    bool has_id = false, has_keyless = false;
    for (size_t i = 0; i < page.n; i++) {
        has_id = has_id || sl_span_is(page.items[i], json("{'_id':{'S':'elsewhere'}}"));
        has_keyless = has_keyless || sl_span_is(page.items[i], json("{'X':{'S':'b'}}"));
    }
    assert_true(has_id && has_keyless);
    close_index();
}

/* Names that a filter of source fields would take for patterns are not sent to it. */
static void wanted_attributes_are_asked_for(void **state)
{
    (void)state;
    static const struct {
        struct sl_span name;
        bool is_plain;
    } cases[] = {{SL_LIT("PK"), true},    {SL_LIT("a b"), true},  {SL_LIT("a.b"), false},
                 {SL_LIT("a*"), false},   {SL_LIT("a,b"), false}, {SL_LIT("a\\b"), false},
                 {SL_LIT("a\"b"), false}, {SL_LIT("a\tb"), false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_span names[] = {SL_LIT("one"), cases[i].name};
        struct sl_table_scan scan = {.names = names, .n_names = 2};
        struct sl_table_page page;
        open_index(INDEX);
        port->scan(port, &scan, 1, &page, &f.call);
        assert_int_equal(page.result.status, SL_OK);
        const struct scripted_request *last =
            scripted_server_request(f.server, scripted_server_requests(f.server) - 1);
        const char *wanted = sl_arena_printf(f.call.arena, "\"_source\":[\"sluice_types\",\"one\",\"%.*s\"]",
                                             SL_ARG(cases[i].name));
        assert_int_equal(memmem(last->body.ptr, last->body.len, wanted, strlen(wanted)) != NULL,
                         cases[i].is_plain);
        assert_int_equal(memmem(last->body.ptr, last->body.len, "_source", 7) != NULL, cases[i].is_plain);
        close_index();
    }
}

/* ---- what the name stands for ---- */

static void a_name_stands_for_one_index(void **state)
{
    (void)state;
    static const struct {
        const char *alias, *mapping;
        int alias_status, mapping_status;
        enum sl_status status;
        const char *code; /* NULL: it is fine */
    } cases[] = {
        {"{'idx':{'aliases':{}}}", NULL, 200, 200, SL_OK, NULL},
        {"{'real-1':{'aliases':{'idx':{}}}}", NULL, 200, 200, SL_OK, NULL},
        {"{'real-1':{'aliases':{'idx':{'is_write_index':false}}}}", NULL, 200, 200, SL_OK, NULL},
        {"{'real-1':{'aliases':{'idx':{'is_write_index':true}}}}", NULL, 200, 200, SL_FATAL, "UnfitAlias"},
        {"{'real-1':{'aliases':{'idx':{'filter':{'x':1}}}}}", NULL, 200, 200, SL_FATAL, "UnfitAlias"},
        {"{'real-1':{'aliases':{'other':{}}}}", NULL, 200, 200, SL_RETRY, "BrokenAnswer"},
        {"{'idx':{'aliases':{}},'idy':{'aliases':{}}}", NULL, 200, 200, SL_FATAL, "SeveralIndexes"},
        {"{'.ds-idx-1':{'aliases':{'idx':{}}}}", NULL, 200, 200, SL_FATAL, "DataStream"},
        {"{'a\\u0062':{'aliases':{'idx':{}}}}", NULL, 200, 200, SL_RETRY, "BrokenAnswer"},
        {"{'':{'aliases':{'idx':{}}}}", NULL, 200, 200, SL_RETRY, "BrokenAnswer"},
        {"{'idx':{'aliases':[]}}", NULL, 200, 200, SL_RETRY, "BrokenAnswer"},
        {"{}", NULL, 200, 200, SL_RETRY, "BrokenAnswer"},
        {"{'idx':{'aliases':{}},'error':'alias [x] missing'}", NULL, 200, 200, SL_RETRY, "BrokenAnswer"},
        {"{'error':{'type':'index_not_found_exception','reason':'no such index [idx]'},'status':404}", NULL,
         404, 200, SL_FATAL, "index_not_found_exception"},
        {NULL, "{'idx':{'mappings':{}}}", 200, 200, SL_FATAL, "NoTemplate"},
        {NULL, "{'idx':{'mappings':{'sluice_hash':{'mapping':{'sluice_hash':{'type':'text'}}}}}}", 200, 200,
         SL_FATAL, "NoTemplate"},
        {NULL,
         "{'idx':{'mappings':{'sluice_hash':{'mapping':{'sluice_hash':{'type':'keyword','index':false}}}}}}",
         200, 200, SL_FATAL, "NoTemplate"},
        {NULL,
         "{'idx':{'mappings':{'sluice_hash':{'mapping':{'sluice_hash':{'type':'keyword','doc_values':false}}}"
         "}}}",
         200, 200, SL_FATAL, "NoTemplate"},
        {NULL,
         "{'idx':{'mappings':{'sluice_hash':{'mapping':{'sluice_hash':{'type':'keyword','index':true,"
         "'doc_values':true}}}}}}",
         200, 200, SL_OK, NULL},
        {NULL, "{'idx':{'mappings':[]}}", 200, 200, SL_RETRY, "BrokenAnswer"},
        {NULL, "{}", 200, 404, SL_FATAL, "ClosedIndex"},
        {NULL, "{}", 200, 403, SL_FATAL, "Http403"},
        {NULL, "{'error':{'type':'index_not_found_exception','reason':'no such index [idx]'},'status':404}",
         200, 404, SL_FATAL, "index_not_found_exception"},
        {NULL, "{'error':{'type':'security_exception','reason':'no'},'status':403}", 200, 403, SL_FATAL,
         "security_exception"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_index(INDEX);
        alias = cases[i].alias ? json(cases[i].alias) : NULL;
        mapping = cases[i].mapping ? json(cases[i].mapping) : NULL;
        alias_status = cases[i].alias_status;
        mapping_status = cases[i].mapping_status;
        struct sl_table_page page;
        struct sl_table_facts facts;
        struct sl_result result;
        port->scan(port, &(struct sl_table_scan){.limit = 1}, 1, &page, &f.call);
        assert_result(page.result, cases[i].status, cases[i].code);
        port->describe(port, sl_span(NULL, 0), &facts, &f.call);
        if (!cases[i].alias || strncmp(cases[i].alias, "{'real", 6) != 0)
            assert_result(facts.result, cases[i].status, cases[i].code);
        if (cases[i].code) {
            result = run(put_op("{'PK':{'S':'a'}}"));
            assert_result(result, cases[i].status, cases[i].code);
            assert_true(result.not_sent);
            assert_int_equal(fake_opensearch_requests(fake, "Bulk"), 0);
        }
        close_index();
    }
}

/* A verification scans for hours: no call keeps the memory that it worked in. */
static void no_call_keeps_its_memory(void **state)
{
    (void)state;
    const struct sl_table_scan scans[3] = {{.of = 0}, {.of = 0, .is_consistent = true}, {.segment = 5}};
    struct sl_table_page pages[3];
    struct sl_table_facts facts;
    open_index(INDEX);
    for (int round = 0; round < 3; round++) {
        port->scan(port, scans, 3, pages, &f.call);
        assert_int_equal(sl_arena_used(f.sinks.aws->scratch), 0);
        port->describe(port, sl_span(NULL, 0), &facts, &f.call);
        assert_int_equal(sl_arena_used(f.sinks.aws->scratch), 0);
        (void)run(put_op("{'PK':{'S':'a'}}"));
        assert_int_equal(sl_arena_used(f.sinks.aws->scratch), 0);
    }
    close_index();
}

/* The index is looked for again after a minute. */
static void an_index_is_looked_for_each_minute(void **state)
{
    (void)state;
    open_index(INDEX);
    for (int round = 0; round < 3; round++) {
        size_t before = scripted_server_requests(f.server);
        assert_int_equal(run(put_op("{'PK':{'S':'a'}}")).status, SL_OK);
        assert_int_equal(scripted_server_requests(f.server) - before, round == 1 ? 1 : 3);
        f.clock.ms += round == 0 ? 59999 : 60000;
    }
    close_index();
}

/* An alias is swapped between two lookups: the write goes where it leads, and does not count before that
 * index was looked at. */
static void an_alias_that_is_swapped_is_noticed(void **state)
{
    (void)state;
    static const char *const scripted[] = {INDEX, INDEX "&order=script"};
    for (size_t i = 0; i < 2; i++) {
        open_index(scripted[i]);
        alias = json("{'real-1':{'aliases':{'idx':{}}}}");
        fake_opensearch_swap(fake, "real-1");
        assert_result(run(put_op("{'PK':{'S':'a'}}")), SL_OK, NULL);
        alias = json("{'real-2':{'aliases':{'idx':{}}}}");
        fake_opensearch_swap(fake, "real-2");
        assert_result(run(put_op("{'PK':{'S':'a'}}")), SL_RETRY, "AliasMoved");
        assert_result(run(put_op("{'PK':{'S':'a'}}")), SL_OK, NULL);
        struct sl_table_op get = put_op("{'PK':{'S':'a'}}");
        get.verb = SL_TABLE_GET;
        assert_result(run(get), SL_OK, NULL);
        fake_opensearch_swap(fake, "real-3");
        assert_result(run(get), SL_RETRY, "AliasMoved");
        alias = json("{'real-3':{'aliases':{'idx':{}}}}");
        struct sl_table_page page;
        fake_opensearch_swap(fake, "real-4");
        port->scan(port, &(struct sl_table_scan){.limit = 1}, 1, &page, &f.call);
        assert_result(page.result, SL_RETRY, "AliasMoved");
        close_index();
    }
    open_index(INDEX); /* no alias: an answer about another index is not believed */
    assert_result(run(put_op("{'PK':{'S':'a'}}")), SL_OK, NULL);
    fake_opensearch_swap(fake, "other");
    assert_result(run(put_op("{'PK':{'S':'a'}}")), SL_RETRY, "BrokenAnswer");
    close_index();
}

/* ---- what is no document ---- */

static void what_is_no_item_is_refused(void **state)
{
    (void)state;
    static const char *const items[] = {
        "5",
        "[]",
        "{'PK':{'S':'a'}",
        "{'PK':{'S':'a'},'v':{}}",
        "{'PK':{'S':'a'},'v':5}",
        "{'PK':{'S':'a'},'v':{'X':'1'}}",
        "{'PK':{'S':'a'},'v':{'SX':['1']}}",
        "{'PK':{'S':'a'},'v':{'S':'1','N':'2'}}",
        "{'PK':{'S':'a'},'v':{'S':1}}",
        "{'PK':{'S':'a'},'v':{'N':1}}",
        "{'PK':{'S':'a'},'v':{'N':'x'}}",
        "{'PK':{'S':'a'},'v':{'N':'1\\u0030x'}}",
        "{'PK':{'S':'a'},'v':{'B':5}}",
        "{'PK':{'S':'a'},'v':{'BOOL':'true'}}",
        "{'PK':{'S':'a'},'v':{'BOOL':null}}",
        "{'PK':{'S':'a'},'v':{'NULL':false}}",
        "{'PK':{'S':'a'},'v':{'NULL':null}}",
        "{'PK':{'S':'a'},'v':{'SS':[]}}",
        "{'PK':{'S':'a'},'v':{'NS':[]}}",
        "{'PK':{'S':'a'},'v':{'BS':[]}}",
        "{'PK':{'S':'a'},'v':{'SS':[1]}}",
        "{'PK':{'S':'a'},'v':{'NS':['1',2]}}",
        "{'PK':{'S':'a'},'v':{'NS':['1','x']}}",
        "{'PK':{'S':'a'},'v':{'L':{}}}",
        "{'PK':{'S':'a'},'v':{'M':[]}}",
        "{'PK':{'S':'a'},'v':{'L':[{}]}}",
        "{'PK':{'S':'a'},'v':{'M':{'x':{'Q':1}}}}",
        "{'PK':{'S':'a'},'sluice_hash':{'S':'x'}}",
        "{'PK':{'S':'a'},'sluice_types':{'S':'x'}}",
        "{'PK':{'S':'a'},'sluice\\u005fhash':{'S':'x'}}",
        "{'PK':{'S':'b'}}",
        "{'SK':{'S':'a'}}",
    };
    open_index(INDEX);
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        struct sl_result result = run(put_op(items[i]));
        if (result.status != SL_REJECT || !result.not_sent || !result.code || !result.text)
            fail_msg("%s: status %d, %s", items[i], (int)result.status, result.text ? result.text : "-");
    }
    assert_int_equal(fake_opensearch_requests(fake, "Bulk"), 0);
    close_index();
}

/* Lists in lists: 32 of them. */
static void an_item_has_a_depth(void **state)
{
    (void)state;
    open_index(INDEX);
    for (size_t depth = 31; depth <= 33; depth++) {
        struct sl_buffer item;
        sl_buffer_init_in(&item, f.call.arena, 10000);
        sl_buffer_add_str(&item, "{'PK':{'S':'a'},'v':");
        for (size_t i = 0; i < depth; i++)
            sl_buffer_add_str(&item, i % 2 ? "{'L':[" : "{'M':{'m':");
        sl_buffer_add_str(&item, "{'N':'1'}");
        for (size_t i = depth; i > 0; i--)
            sl_buffer_add_str(&item, (i - 1) % 2 ? "]}" : "}}");
        sl_buffer_add(&item, "}", 2);
        assert_result(run(put_op(item.ptr)), depth <= 32 ? SL_OK : SL_REJECT, NULL);
    }
    close_index();
}

/* An index has neither transactions nor tables beside it. */
static void what_an_index_has_not_is_refused(void **state)
{
    (void)state;
    static const struct sl_set set = {.verb = SL_SET, .name = {"a\xff", 2}, .value = {"{\"N\":\"1\"}", 9}};
    static const struct sl_test test = {.verb = SL_PRESENT, .name = {"\xc3", 1}};
    static const struct sl_test no_value = {.verb = SL_EQ, .name = {"a", 1}, .value = {"{}", 2}};
    struct sl_table_op op = put_op("{'PK':{'S':'a'}}");
    open_index(INDEX);
    op.group = 1;
    assert_result(run(op), SL_FATAL, "NoTransactions");
    op.group = 0;
    op.table = SL_LIT("side");
    assert_result(run(op), SL_FATAL, "InvalidTarget");
    op.table = sl_span(NULL, 0);
    op.n_tests = 1;
    op.tests = &test;
    assert_result(run(op), SL_REJECT, "ValidationException");
    op.tests = &no_value;
    assert_result(run(op), SL_REJECT, "ValidationException");
    op.n_tests = 0;
    op.verb = SL_TABLE_UPDATE;
    op.sets = &set;
    op.n_sets = 1;
    assert_result(run(op), SL_REJECT, "ValidationException");
    struct sl_table_page page;
    port->scan(port, &(struct sl_table_scan){.table = SL_LIT("side")}, 1, &page, &f.call);
    assert_result(page.result, SL_FATAL, "InvalidTarget");
    struct sl_table_facts facts;
    port->describe(port, SL_LIT("side"), &facts, &f.call);
    assert_result(facts.result, SL_FATAL, "InvalidTarget");
    port->apply(port, NULL, 0, NULL, &f.call);
    assert_int_equal(fake_opensearch_requests(fake, "Bulk"), 0);
    close_index();
}

/* A key of up to 512 bytes is the document's id, a longer one its digest. */
static void ids_have_a_length(void **state)
{
    (void)state;
    open_index(INDEX);
    for (size_t n = 511; n <= 513; n++) {
        char *text = sl_arena_zalloc(f.call.arena, n + 1);
        memset(text, 'k', n);
        struct sl_table_op op = {.verb = SL_TABLE_PUT};
        op.key = op.item = sl_span_str(sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"%s\"}}", text));
        assert_int_equal(run(op).status, SL_OK);
        const struct scripted_request *last =
            scripted_server_request(f.server, scripted_server_requests(f.server) - 1);
        assert_int_equal(memmem(last->body.ptr, 40, "\"sha256:", 8) != NULL, n > 512);
    }
    close_index();
}

/* The script compares texts without escapes; every other condition is read first. */
static void what_the_script_compares(void **state)
{
    (void)state;
    static const struct {
        const char *absent, *name, *value;
        enum sl_test_verb verb;
        bool any, is_scripted;
    } cases[] = {
        {NULL, "v", "{'S':'x'}", SL_LT, false, true},    {"v", "v", "{'S':'x'}", SL_LT, true, true},
        {"v", "v", "{'S':'x'}", SL_LT, false, false},    {"w", "v", "{'S':'x'}", SL_LT, true, false},
        {NULL, "v", "{'S':'x'}", SL_LE, false, false},   {NULL, "v", "{'N':'1'}", SL_LT, false, false},
        {NULL, "v", "{'S':'\\n'}", SL_LT, false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_test tests[2] = {{.verb = SL_ABSENT},
                                   {.verb = cases[i].verb, .value = json_span(cases[i].value)}};
        struct sl_table_op op = put_op("{'PK':{'S':'a'},'v':{'S':'x'}}");
        open_index(INDEX "&order=script");
        tests[0].name = sl_span_str(cases[i].absent);
        tests[1].name = sl_span_str(cases[i].name);
        op.tests = cases[i].absent ? tests : tests + 1;
        op.n_tests = cases[i].absent ? 2 : 1;
        op.any_test = cases[i].any;
        (void)run(op);
        bool had_update = false;
        for (size_t k = 0; k < scripted_server_requests(f.server); k++) {
            const struct scripted_request *request = scripted_server_request(f.server, k);
            had_update = had_update || sl_span_starts(request->body, SL_LIT("{\"update\""));
        }
        assert_int_equal(had_update, cases[i].is_scripted);
        close_index();
    }
}

/* Puts of items that are new (from `first` on) and that are there already, with a guard; returns how many
 * multi gets that took. */
static size_t guard_many(size_t first, size_t n_new, size_t n_there)
{
    static const struct sl_test guard[] = {{.verb = SL_ABSENT, .name = {"v", 1}},
                                           {.verb = SL_LT, .name = {"v", 1}, .value = {"{\"S\":\"y\"}", 9}}};
    struct sl_table_op ops[40];
    struct sl_result results[40];
    size_t n = n_new + n_there, before = fake_opensearch_requests(fake, "MultiGet");
    for (size_t i = 0; i < n; i++) {
        ops[i] = put_op("{}");
        ops[i].key = sl_span_str(json_printf("{'PK':{'S':'k%zu'}}", first + i));
        ops[i].item = sl_span_str(json_printf("{'PK':{'S':'k%zu'},'v':{'S':'x'}}", first + i));
    }
    if (n_there)
        port->apply(port, ops + n_new, n_there, results, &f.call);
    for (size_t i = 0; i < n; i++) {
        ops[i].tests = guard;
        ops[i].n_tests = 2;
        ops[i].any_test = true;
    }
    port->apply(port, ops, n, results, &f.call);
    for (size_t i = 0; i < n; i++)
        assert_result(results[i], SL_OK, NULL);
    return fake_opensearch_requests(fake, "MultiGet") - before;
}

/* Where seven of eight were new, of eight at least, the next ones are written without a look; also after such
 * a call itself. Reads teach nothing. */
static void what_is_new_is_learnt_from_the_last_call(void **state)
{
    (void)state;
    static const struct {
        size_t n_new, n_there;
        bool expects_new;
    } cases[] = {{7, 0, false}, {8, 0, true},   {7, 1, true},  {6, 2, false},  {15, 0, true}, {14, 1, true},
                 {14, 2, true}, {13, 3, false}, {21, 3, true}, {20, 4, false}, {0, 8, false}, {0, 16, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_index(INDEX);
        struct sl_table_op gets[20];
        struct sl_result results[20];
        for (size_t k = 0; k < 20; k++)
            gets[k] = (struct sl_table_op){.verb = k % 2 ? SL_TABLE_GET : SL_TABLE_CHECK,
                                           .key = sl_span_str(json_printf("{'PK':{'S':'g%zu'}}", k))};
        port->apply(port, gets, 20, results, &f.call);
        assert_int_equal(guard_many(0, cases[i].n_new, cases[i].n_there), 1);
        for (size_t k = 1; k <= 2; k++)
            assert_int_equal(guard_many(100 * k, 12, 0), cases[i].expects_new || k > 1 ? 0 : 1);
        assert_int_equal(guard_many(300, 0, 8), 1);
        assert_int_equal(guard_many(400, 12, 0), 1);
        close_index();
    }
}

/* What the rule says of any sequence of calls, whatever was expected when each began. */
static void what_is_new_is_learnt_from_every_call(void **state)
{
    (void)state;
    uint64_t seed = 5;
    size_t looks = 0, calls = 60;
    bool expects_new = false;
    open_index(INDEX);
    for (size_t i = 0; i < calls; i++) {
        size_t n_there = sl_random_step(&seed) % 3, n_new = sl_random_step(&seed) % 20, n = n_new + n_there;
        size_t wanted = n && (!expects_new || n_there) ? 1 : 0;
        looks += wanted;
        assert_int_equal(guard_many(100 * i, n_new, n_there), wanted);
        if (n >= 8)
            expects_new = n_new >= n - n / 8;
    }
    if (looks < calls / 4 || looks > calls * 3 / 4)
        fail_msg("%zu looks: the sequence has too few of one kind", looks);
    close_index();
}

/* One document may be the reason why a whole bulk is refused: each is sent alone then, and the others are in
 * the index. */
static void one_document_spoils_no_other(void **state)
{
    (void)state;
    enum { N = 5 };
    for (size_t bad = 0; bad < N; bad++) {
        struct sl_table_op ops[N];
        struct sl_result results[N];
        open_index(INDEX);
        spoils = "poison";
        for (size_t i = 0; i < N; i++) {
            ops[i] = put_op("{}");
            ops[i].key = sl_span_str(json_printf("{'PK':{'S':'k%zu'}}", i));
            ops[i].item = sl_span_str(
                json_printf("{'PK':{'S':'k%zu'},'v':{'S':'%s'}}", i, i == bad ? "poison" : "good"));
        }
        port->apply(port, ops, N, results, &f.call);
        for (size_t i = 0; i < N; i++)
            assert_result(results[i], i == bad ? SL_REJECT : SL_OK, i == bad ? "new_exception" : NULL);
        assert_int_equal(fake_opensearch_most(fake, "Bulk"), N);
        for (size_t i = 0; i < N; i++)
            ops[i] = (struct sl_table_op){.verb = SL_TABLE_GET, .key = ops[i].key};
        port->apply(port, ops, N, results, &f.call);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(i == bad || results[i].item.ptr != NULL, true);
        close_index();
    }
}

/* Digits beside a number that somebody else wrote count as long as both may be compared. */
static void a_long_number_is_its_own(void **state)
{
    (void)state;
    const struct sl_table_op get = {.verb = SL_TABLE_GET, .key = json_span("{'PK':{'S':'a'}}")};
    char zeros[301];
    memset(zeros, '0', 300);
    zeros[300] = '\0';
    open_index(INDEX);
    for (int len = 254; len <= 257; len++) {
        const char *own = sl_arena_printf(f.call.arena, "1.5%.*s", len - 3, zeros);
        const char *types = "{\\\"n\\\":\\\"N=1.50\\\"}";
        fake_opensearch_put(fake, "a",
                            sl_span_str(json_printf("{'PK':'a','n':%s,'sluice_types':'%s'}", own, types)));
        assert_span_is(run(get).item,
                       json_printf("{'PK':{'S':'a'},'n':{'N':'%s'}}", len < 256 ? "1.50" : own));
    }
    fake_opensearch_put(
        fake, "a",
        sl_span_str(
            json_printf("{'PK':'a','n':1.5%s,'sluice_types':'{\\\"n\\\":\\\"N=1.6%s\\\"}'}", zeros, zeros)));
    assert_span_is(run(get).item, json_printf("{'PK':{'S':'a'},'n':{'N':'1.5%s'}}", zeros));
    close_index();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scans_that_must_see_all_refresh_once),
        cmocka_unit_test(strangers_are_told_once),
        cmocka_unit_test(strangers_have_a_limit),
        cmocka_unit_test(a_document_astray_is_told_by_its_id),
        cmocka_unit_test(wanted_attributes_are_asked_for),
        cmocka_unit_test(a_name_stands_for_one_index),
        cmocka_unit_test(no_call_keeps_its_memory),
        cmocka_unit_test(an_index_is_looked_for_each_minute),
        cmocka_unit_test(an_alias_that_is_swapped_is_noticed),
        cmocka_unit_test(what_is_no_item_is_refused),
        cmocka_unit_test(an_item_has_a_depth),
        cmocka_unit_test(what_an_index_has_not_is_refused),
        cmocka_unit_test(ids_have_a_length),
        cmocka_unit_test(what_the_script_compares),
        cmocka_unit_test(what_is_new_is_learnt_from_the_last_call),
        cmocka_unit_test(what_is_new_is_learnt_from_every_call),
        cmocka_unit_test(one_document_spoils_no_other),
        cmocka_unit_test(a_long_number_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
