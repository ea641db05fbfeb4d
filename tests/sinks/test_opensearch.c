/* opensearch:// in front of a scripted server: the exact bytes of its requests, whose fault each error is,
 * what is sent again, and how a document that somebody changed is read. */
#include "tests/support/events.h"
#include "tests/support/fault.h"
#include "tests/support/honest.h"

#include "aws/contrast.h"

#include <stdio.h>
#include <stdlib.h>

#define INDEX "opensearch://server/idx?tls=off"
#define MOST  8

static struct fault f;

/* What the server answers to bulks and multi gets; "" what an honest one answers. */
struct script {
    const char *bulk[MOST], *multi_get[MOST];
    int status[MOST]; /* of the bulks; 0: 200 */
    size_t n_bulk, n_multi_get;
    struct sl_buffer truth;
};

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct script *script = arg;
    char operation[64];
    const char *said = NULL;
    honest_operation(request, operation, sizeof(operation));
    honest_answer(request, reply, &script->truth);
    if (strcmp(operation, "Bulk") == 0 && script->n_bulk < MOST) {
        if (script->status[script->n_bulk])
            reply->status = script->status[script->n_bulk];
        said = script->bulk[script->n_bulk++];
    } else if (strcmp(operation, "MultiGet") == 0 && script->n_multi_get < MOST) {
        said = script->multi_get[script->n_multi_get++];
    }
    if (said)
        reply->body = sl_span_str(said);
}

static void open_script(struct script *script)
{
    sl_buffer_init(&script->truth, 1024 * 1024);
    fault_open(&f, answer, script);
}

static void close_script(struct script *script)
{
    fault_close(&f);
    sl_buffer_clean_up(&script->truth);
}

static struct sl_table_op put_op(const char *item)
{
    return (struct sl_table_op){
        .verb = SL_TABLE_PUT, .key = json_span("{'PK':{'S':'a'}}"), .item = json_span(item)};
}

static struct sl_result apply_one(struct sl_table_port *port, struct sl_table_op op)
{
    struct sl_result result;
    port->apply(port, &op, 1, &result, &f.call);
    fault_note(&f, &result, 1);
    return result;
}

/* The body of the nth request of the operation. */
static struct sl_span body_of(const char *operation, size_t nth)
{
    char name[64];
    for (size_t i = 0; i < scripted_server_requests(f.server); i++) {
        const struct scripted_request *request = scripted_server_request(f.server, i);
        honest_operation(request, name, sizeof(name));
        if (strcmp(name, operation) == 0 && nth-- == 0)
            return request->body;
    }
    fail_msg("there is no such request: %s", operation);
    return sl_span(NULL, 0);
}

static void assert_body(const char *operation, size_t nth, const char *wanted)
{
    struct sl_span have = body_of(operation, nth);
    if (!sl_span_is(have, json(wanted)))
        fail_msg("%s %zu: %.*s\nand not\n%s", operation, nth, SL_ARG(have), json(wanted));
}

/* ---- requests ---- */

#define HASH "'sluice_hash':'de16a1d0cb3b0db10da8fa2b2e9bd1ed'"

static void documents_are_plain_json(void **state)
{
    (void)state;
    struct script script = {.n_bulk = 0};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    assert_int_equal(port->can, SL_TABLE_UPDATES | SL_TABLE_TESTS);
    struct sl_result result = apply_one(
        port,
        put_op("{'PK':{'S':'a'},'n':{'N':'1.50'},'big':{'N':'12345678901234567890.5'},'plus':{'N':'+1E2'},"
               "'b':{'B':'AP8B'},'ss':{'SS':['x','y']},'ns':{'NS':['1','2']},'t':{'BOOL':true},'z':{'NULL':"
               "true},"
               "'m':{'M':{'l':{'L':[{'S':'q'},{'B':'AA=='}]}}}}"));
    assert_result(result, SL_OK, NULL);
    struct sl_span body = body_of("Bulk", 0);
    const char *doc = strchr(body.ptr, '\n') + 1;
    const char *wanted = json("'PK':'a','n':1.50,'big':12345678901234567890.5,'plus':100,'b':'AP8B','ss':['x'"
                              ",'y'],'ns':[1,2],'t':true,"
                              "'z':null,'m':{'l':['q','AA==']},'sluice_types':'");
    if (!sl_span_starts(body, json_span("{'index':{'_id':'a'}}\n{'sluice_hash':'")) || !strstr(doc, wanted) ||
        !strstr(doc, "{\\\"big\\\":\\\"N=12345678901234567890.5\\\",\\\"b\\\":\\\"B\\\",\\\"ss\\\":"
                     "\\\"SS\\\",\\\"ns\\\":"
                     "\\\"NS\\\",\\\"m\\\":{\\\"l\\\":{\\\"1\\\":\\\"B\\\"}}}\"}\n"))
        fail_msg("%.*s", SL_ARG(body));
    port->close(port);
    close_script(&script);
}

static void numbers_may_be_text(void **state)
{
    (void)state;
    struct script script = {.n_bulk = 0};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX "&numbers=text");
    assert_result(apply_one(port, put_op("{'PK':{'S':'a'},'n':{'N':'1.50'},'ns':{'NS':['1']}}")), SL_OK,
                  NULL);
    struct sl_span body = body_of("Bulk", 0);
    assert_non_null(strstr(body.ptr, json("'n':'1.50','ns':['1']")));
    assert_non_null(strstr(body.ptr, "{\\\"n\\\":\\\"N\\\",\\\"ns\\\":\\\"NS\\\"}"));
    port->close(port);
    close_script(&script);
}

/* A key's id: the value, both values with an escaped first, or a digest. */
static void ids_are_unambiguous(void **state)
{
    (void)state;
    static const struct {
        const char *key, *id;
    } cases[] = {
        {"{'PK':{'S':'a|b%'}}", "a|b%"},
        {"{'PK':{'S':'a|b%'},'SK':{'N':'1.0'}}", "a%7Cb%25|1"},
        {"{'SK':{'N':'1'},'PK':{'S':'a'}}", "a|1"},
        {"{'B':{'B':'AP8B'}}", "AP8B"},
        {"{'PK':{'S':'q\\\"\\u0001'}}", "q\\\"\\u0001"},
        {"{'PK':{'S':'sha256:x'}}", "sha256:"},
        {"{'PK':{'S':'\\ud800'}}", "sha256:"},
    };
    struct script script = {.n_bulk = 0};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_table_op op = {.verb = SL_TABLE_GET, .key = json_span(cases[i].key)};
        assert_result(apply_one(port, op), SL_OK, NULL);
        char wanted[200];
        bool is_digest = strcmp(cases[i].id, "sha256:") == 0;
        snprintf(wanted, sizeof(wanted), "{\"docs\":[{\"_id\":\"%s%s", cases[i].id, is_digest ? "" : "\"}]}");
        struct sl_span body = body_of("MultiGet", i);
        if (!sl_span_starts(body, sl_span_str(wanted)) || (is_digest && body.len != strlen(wanted) + 64 + 4))
            fail_msg("%s: %.*s", cases[i].key, SL_ARG(body));
    }
    port->close(port);
    close_script(&script);
}

/* ---- conditions ---- */

#define GUARDED(guard) "{'PK':{'S':'a'},'sluice_order':{'S':'" guard "'}}"

static struct sl_table_op guarded_op(const char *guard)
{
    static struct sl_test tests[2] = {{.verb = SL_ABSENT, .name = {"sluice_order", 12}},
                                      {.verb = SL_LT, .name = {"sluice_order", 12}}};
    const char *item =
        sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"a\"},\"sluice_order\":{\"S\":\"%s\"}}", guard);
    tests[1].value = sl_span_str(sl_arena_printf(f.call.arena, "{\"S\":\"%s\"}", guard));
    struct sl_table_op op = put_op("{}");
    op.item = sl_span_str(item);
    op.tests = tests;
    op.n_tests = 2;
    op.any_test = op.want_item = true;
    return op;
}

#define FOUND(guard, seq)                                                                                    \
    "{\"docs\":[{\"_id\":\"a\",\"found\":true,\"_seq_no\":" seq                                              \
    ",\"_primary_term\":3,\"_source\":{\"PK\":\"a\","                                                        \
    "\"sluice_order\":\"" guard "\"}}]}"
#define CONFLICT(action)                                                                                     \
    "{\"items\":[{\"" action "\":{\"_id\":\"a\",\"status\":409,\"error\":{\"type\":"                         \
    "\"version_conflict_engine_exception\",\"reason\":\"x\"}}}]}"
#define DONE(action)                                                                                         \
    "{\"items\":[{\"" action "\":{\"_id\":\"a\",\"status\":200,\"result\":\"updated\",\"_seq_no\":9,"        \
    "\"_primary_term\":3}}]}"

/* Read, refused because somebody wrote in between, read again, written. */
static void a_conflict_is_read_again(void **state)
{
    (void)state;
    struct script script = {.multi_get = {FOUND("1", "7"), FOUND("2", "8")},
                            .bulk = {CONFLICT("index"), DONE("index")}};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    assert_result(apply_one(port, guarded_op("5")), SL_OK, NULL);
    assert_body("MultiGet", 0, "{'docs':[{'_id':'a','_source':['sluice_types','sluice_order']}]}");
    assert_true(sl_span_starts(body_of("Bulk", 0),
                               json_span("{'index':{'_id':'a','if_seq_no':7,'if_primary_term':3}}\n")));
    assert_true(sl_span_starts(body_of("Bulk", 1),
                               json_span("{'index':{'_id':'a','if_seq_no':8,'if_primary_term':3}}\n")));
    port->close(port);
    close_script(&script);
}

/* The item that stands there comes back whole: it is read once more. */
static void a_guard_that_stands_refuses(void **state)
{
    (void)state;
    struct script script = {.multi_get = {FOUND("7", "7"), FOUND("7", "7")}};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    struct sl_result result = apply_one(port, guarded_op("5"));
    assert_true(result.condition_failed);
    assert_true(sl_span_is(result.item, json(GUARDED("7"))));
    assert_body("MultiGet", 1, "{'docs':[{'_id':'a'}]}");
    assert_int_equal(script.n_bulk, 0);
    port->close(port);
    close_script(&script);
}

static void an_absent_document_is_created(void **state)
{
    (void)state;
    struct script script = {.bulk = {CONFLICT("create"), NULL},
                            .multi_get = {NULL, FOUND("9", "1"), FOUND("9", "1")}};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    assert_true(apply_one(port, guarded_op("5")).condition_failed);
    assert_true(sl_span_starts(body_of("Bulk", 0), json_span("{'create':{'_id':'a'}}\n")));
    port->close(port);
    close_script(&script);
}

/* Guarded writes of `n` items, from the key k<first> on; returns how many multi gets that took. */
static size_t write_many(struct sl_table_port *port, struct script *script, size_t first, size_t n)
{
    struct sl_table_op *ops = sl_arena_alloc(f.call.arena, n * sizeof(*ops));
    struct sl_result *results = sl_arena_alloc(f.call.arena, n * sizeof(*results));
    script->n_bulk = script->n_multi_get = MOST; /* the answers are honest */
    size_t before = scripted_server_requests(f.server), gets = 0;
    for (size_t i = 0; i < n; i++) {
        ops[i] = guarded_op("5");
        ops[i].key = ops[i].item =
            sl_span_str(sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"k%zu\"}}", first + i));
    }
    port->apply(port, ops, n, results, &f.call);
    for (size_t i = 0; i < n; i++)
        assert_result(results[i], SL_OK, NULL);
    for (size_t i = before; i < scripted_server_requests(f.server); i++)
        gets += strstr(scripted_server_request(f.server, i)->path, "_mget") != NULL;
    return gets;
}

/* Where nearly all documents were new, the next ones are created without a look; until one is there. */
static void new_documents_are_created_without_a_look(void **state)
{
    (void)state;
    struct script script = {.n_bulk = 0};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    assert_int_equal(write_many(port, &script, 0, 20), 1);
    assert_int_equal(write_many(port, &script, 100, 20), 0);
    assert_int_equal(write_many(port, &script, 200, 20), 0);
    port->close(port);
    close_script(&script);
}

static void documents_that_are_there_are_read_first(void **state)
{
    (void)state;
    struct script script = {.n_bulk = 0};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    assert_int_equal(write_many(port, &script, 0, 20), 1);
    struct sl_buffer conflicts, found;
    sl_buffer_init_in(&conflicts, f.call.arena, SIZE_MAX);
    sl_buffer_init_in(&found, f.call.arena, SIZE_MAX);
    for (int i = 0; i < 9; i++) {
        sl_buffer_printf(&conflicts,
                         "%s{\"create\":{\"_id\":\"k%d\",\"status\":409,\"error\":{\"type\":"
                         "\"version_conflict_engine_exception\"}}}",
                         i ? "," : "{\"items\":[", i);
        sl_buffer_printf(
            &found, "%s{\"_id\":\"k%d\",\"found\":true,\"_seq_no\":1,\"_primary_term\":1,\"_source\":{}}",
            i ? "," : "{\"docs\":[", i);
    }
    sl_buffer_add(&conflicts, "]}", 3);
    sl_buffer_add(&found, "]}", 3);
    struct sl_table_op ops[9];
    struct sl_result results[9];
    for (int i = 0; i < 9; i++) {
        ops[i] = guarded_op("5");
        ops[i].key = ops[i].item = sl_span_str(sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"k%d\"}}", i));
    }
    script.n_bulk = script.n_multi_get = 0;
    script.bulk[0] = conflicts.ptr;
    script.multi_get[0] = found.ptr;
    port->apply(port, ops, 9, results, &f.call);
    for (int i = 0; i < 9; i++)
        assert_result(results[i], SL_OK, NULL);
    assert_int_equal(write_many(port, &script, 0, 9), 1);
    port->close(port);
    close_script(&script);
}

/* A document that others write all the time is given up for now. */
static void always_refuse(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct script *script = arg;
    honest_answer(request, reply, &script->truth);
    if (strstr(request->path, "_bulk")) {
        script->n_bulk++;
        reply->body = SL_LIT(CONFLICT("index"));
    } else if (strstr(request->path, "_mget")) {
        reply->body = SL_LIT(FOUND("1", "7"));
    }
}

static void conflicts_have_an_end(void **state)
{
    (void)state;
    struct script script = {.n_bulk = 0};
    sl_buffer_init(&script.truth, 1024 * 1024);
    fault_open(&f, always_refuse, &script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    assert_result(apply_one(port, guarded_op("5")), SL_RETRY, "VersionConflict");
    assert_int_equal(script.n_bulk, 20);
    port->close(port);
    close_script(&script);
}

static void a_bulk_has_a_thousand_documents_at_most(void **state)
{
    (void)state;
    enum { COUNT = 1001 };
    struct script script = {.n_bulk = MOST};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX "&in_flight=1");
    struct sl_table_op *ops = sl_arena_alloc(f.call.arena, COUNT * sizeof(*ops));
    struct sl_result *results = sl_arena_alloc(f.call.arena, COUNT * sizeof(*results));
    for (size_t i = 0; i < COUNT; i++) {
        ops[i] = put_op("{}");
        ops[i].key = ops[i].item = sl_span_str(sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"k%zu\"}}", i));
    }
    port->apply(port, ops, COUNT, results, &f.call);
    for (size_t i = 0; i < COUNT; i++)
        assert_result(results[i], SL_OK, NULL);
    size_t lines[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        struct sl_span body = body_of("Bulk", i);
        for (size_t k = 0; k < body.len; k++)
            lines[i] += body.ptr[k] == '\n';
    }
    assert_int_equal(lines[0], 2000);
    assert_int_equal(lines[1], 2);
    port->close(port);
    close_script(&script);
}

static void a_script_compares_on_the_shard(void **state)
{
    (void)state;
    struct script script = {
        .bulk = {DONE("update"),
                 "{\"items\":[{\"update\":{\"_id\":\"a\",\"status\":200,\"result\":\"noop\"}}]}"},
        .multi_get = {FOUND("7", "7"), FOUND("7", "7")}};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX "&order=script");
    assert_result(apply_one(port, guarded_op("5")), SL_OK, NULL);
    assert_int_equal(script.n_multi_get, 0);
    struct sl_span body = body_of("Bulk", 0);
    assert_true(sl_span_starts(
        body,
        json_span(
            "{'update':{'_id':'a','retry_on_conflict':5}}\n{'scripted_upsert':true,'upsert':{},'script':{")));
    assert_non_null(
        strstr(body.ptr, json("'params':{'n':'sluice_order','f':false,'g':'5','d':{'sluice_hash':")));
    struct sl_result result = apply_one(port, guarded_op("6"));
    assert_true(result.condition_failed);
    assert_true(sl_span_is(result.item, json(GUARDED("7"))));
    port->close(port);
    close_script(&script);
}

/* ---- errors of documents ---- */

static const char *failing(const char *status, const char *type, const char *reason)
{
    return sl_arena_printf(f.call.arena,
                           "{\"items\":[{\"index\":{\"_id\":\"a\",\"status\":%s,\"error\":{\"type\":\"%s\","
                           "\"reason\":\"%s\"}}}]}",
                           status, type, reason);
}

static const struct judged {
    const char *status, *type, *reason;
    enum sl_status is;
    const char *code;
} judged[] = {
    {"400", "mapper_parsing_exception", "failed to parse field [x]", SL_REJECT, "mapper_parsing_exception"},
    {"400", "strict_dynamic_mapping_exception", "x", SL_REJECT, "strict_dynamic_mapping_exception"},
    {"400", "illegal_argument_exception", "mapper [x] cannot be changed from type [a] to [b]", SL_REJECT,
     "illegal_argument_exception"},
    {"400", "illegal_argument_exception",
     "Document contains at least one immense term in field=\\\"v\\\" "
     "(whose UTF-8 encoding is longer than the max length 32766). The prefix of the first immense term is: "
     "'[99, "
     "97, 110, 97, 114, 121, 45, 105, 116, 101, 109]...'",
     SL_REJECT, "illegal_argument_exception"},
    {"400", "mapper_parsing_exception", "failed to parse field [sluice_hash] of type", SL_FATAL, NULL},
    {"400", "illegal_argument_exception", "Limit of total fields [9] has been exceeded", SL_FATAL, NULL},
    {"400", "illegal_argument_exception", "cannot execute [inline] scripts", SL_FATAL, NULL},
    {"403", "cluster_block_exception", "index [x] blocked by: [FORBIDDEN/8/index write (api)];", SL_FATAL,
     "cluster_block_exception"},
    {"429", "cluster_block_exception", "blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage",
     SL_FATAL, "cluster_block_exception"},
    {"503", "cluster_block_exception", "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered", SL_RETRY,
     "cluster_block_exception"},
    {"404", "index_not_found_exception", "no such index [x]", SL_FATAL, "index_not_found_exception"},
    {"403", "security_exception", "no permissions", SL_FATAL, "security_exception"},
    {"429", "rejected_execution_exception", "x", SL_RETRY, "rejected_execution_exception"},
    {"429", "circuit_breaking_exception", "Data too large", SL_RETRY, "circuit_breaking_exception"},
    {"503", "unavailable_shards_exception", "primary shard is not active", SL_RETRY, NULL},
    {"500", "whatever_exception", "x", SL_RETRY, NULL},
    {"400", "brand_new_exception", "x", SL_FATAL, "brand_new_exception"},
    {"401", "brand_new_exception", "x", SL_FATAL, NULL},
};

static void errors_of_documents_have_their_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
        struct script script = {.n_bulk = 0};
        open_script(&script);
        fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
        script.bulk[0] = failing(judged[i].status, judged[i].type, judged[i].reason);
        struct sl_table_port *port = fault_table(&f, INDEX);
        struct sl_result result = apply_one(port, put_op("{'PK':{'S':'a'}}"));
        if (result.status != judged[i].is || (judged[i].code && strcmp(result.code, judged[i].code) != 0) ||
            !result.text || strstr(result.text, "99, 97"))
            fail_msg("%s, %s: status %d, %s: %s", judged[i].type, judged[i].reason, (int)result.status,
                     result.code, result.text);
        port->close(port);
        close_script(&script);
    }
}

/* An error of the whole request, in OpenSearch's shape. */
static void errors_of_requests_have_their_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
        struct script script = {.n_bulk = 0};
        open_script(&script);
        fault_set(&f, "AWS_MAX_ATTEMPTS", "1");
        script.status[0] = (int)strtol(judged[i].status, NULL, 10);
        script.bulk[0] =
            sl_arena_printf(f.call.arena, "{\"error\":{\"type\":\"%s\",\"reason\":\"%s\"},\"status\":%s}",
                            judged[i].type, judged[i].reason, judged[i].status);
        struct sl_table_port *port = fault_table(&f, INDEX);
        struct sl_result result = apply_one(port, put_op("{'PK':{'S':'a'}}"));
        /* Of a request of one document nothing else vouches for the target. */
        enum sl_status wanted = judged[i].is == SL_REJECT ? SL_FATAL : judged[i].is;
        if (result.status != wanted)
            fail_msg("%s, %s: status %d, %s: %s", judged[i].type, judged[i].reason, (int)result.status,
                     result.code, result.text);
        port->close(port);
        close_script(&script);
    }
}

static void an_unknown_error_is_the_records_beside_a_success(void **state)
{
    (void)state;
    struct script script = {.bulk = {"{\"items\":[{\"index\":{\"_id\":\"a\",\"status\":400,\"error\":{"
                                     "\"type\":\"brand_new_exception\",\"reason\":"
                                     "\"x\"}}},{\"index\":{\"_id\":\"b\",\"status\":201,\"result\":"
                                     "\"created\",\"_seq_no\":1,\"_primary_term\":1}}]}"}};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    struct sl_table_op ops[2] = {put_op("{'PK':{'S':'a'}}"), put_op("{'PK':{'S':'b'}}")};
    struct sl_result results[2];
    ops[1].key = ops[1].item;
    port->apply(port, ops, 2, results, &f.call);
    assert_int_equal(results[0].status, SL_REJECT);
    assert_int_equal(results[1].status, SL_OK);
    port->close(port);
    port = fault_table(&f, INDEX "&reject=brand_new_exception");
    script.n_bulk = 0;
    script.bulk[0] = failing("400", "brand_new_exception", "x");
    assert_int_equal(apply_one(port, ops[0]).status, SL_REJECT);
    port->close(port);
    close_script(&script);
}

/* An earlier success vouches for a few refusals, and no more. */
static void many_unknown_errors_are_the_targets(void **state)
{
    (void)state;
    struct script script = {.n_bulk = 0};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    for (size_t n = 1; n <= 6; n++) {
        struct sl_table_op ops[6];
        struct sl_result results[6];
        struct sl_buffer said;
        sl_buffer_init_in(&said, f.call.arena, SIZE_MAX);
        script.n_bulk = MOST;
        assert_result(apply_one(port, put_op("{'PK':{'S':'a'}}")), SL_OK, NULL);
        for (size_t i = 0; i < n; i++) {
            sl_buffer_printf(
                &said,
                "%s{\"index\":{\"_id\":\"k%zu\",\"status\":400,\"error\":{\"type\":\"new_exception\"}}}",
                i ? "," : "{\"items\":[", i);
            ops[i] = put_op("{}");
            ops[i].key = ops[i].item =
                sl_span_str(sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"k%zu\"}}", i));
        }
        sl_buffer_add(&said, "]}", 3);
        script.n_bulk = 0;
        script.bulk[0] = said.ptr;
        port->apply(port, ops, n, results, &f.call);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(results[i].status, n <= SL_CONTRAST_REFUSALS ? SL_REJECT : SL_FATAL);
            assert_int_equal(strstr(results[i].text, "add reject=new_exception") != NULL,
                             n > SL_CONTRAST_REFUSALS);
        }
    }
    port->close(port);
    close_script(&script);
}

static void only_what_failed_for_now_is_sent_again(void **state)
{
    (void)state;
    struct script script = {.bulk = {"{\"items\":[{\"index\":{\"_id\":\"a\",\"status\":429,\"error\":{"
                                     "\"type\":\"rejected_execution_exception\","
                                     "\"reason\":\"x\"}}},{\"index\":{\"_id\":\"b\",\"status\":400,\"error\":"
                                     "{\"type\":\"mapper_parsing_exception\","
                                     "\"reason\":\"failed to parse field [" FAULT_VALUE
                                     "]\"}}},{\"index\":{\"_id\":\"c\",\"status\":201,\"result\":"
                                     "\"created\",\"_seq_no\":1,\"_primary_term\":1}}]}"}};
    open_script(&script);
    struct sl_table_port *port = fault_table(&f, INDEX);
    struct sl_table_op ops[3];
    struct sl_result results[3];
    static const char *const items[] = {"{'PK':{'S':'a'}}", "{'PK':{'S':'b'},'v':{'S':'" FAULT_VALUE "'}}",
                                        "{'PK':{'S':'c'}}"};
    static const char *const keys[] = {"{'PK':{'S':'a'}}", "{'PK':{'S':'b'}}", "{'PK':{'S':'c'}}"};
    for (int i = 0; i < 3; i++) {
        ops[i] = put_op(items[i]);
        ops[i].key = json_span(keys[i]);
    }
    port->apply(port, ops, 3, results, &f.call);
    fault_note(&f, results, 3);
    assert_int_equal(results[0].status, SL_OK);
    assert_result(results[1], SL_REJECT, "mapper_parsing_exception");
    assert_non_null(strstr(results[1].text, "failed to parse field"));
    assert_int_equal(results[2].status, SL_OK);
    struct sl_span again = body_of("Bulk", 1);
    assert_true(sl_span_starts(again, json_span("{'index':{'_id':'a'}}\n")) &&
                !memmem(again.ptr, again.len, "\"b\"", 3));
    port->close(port);
    close_script(&script);
}

/* ---- documents that others changed ---- */

static void a_changed_document_shows_its_change(void **state)
{
    (void)state;
    static const struct {
        const char *source, *item;
    } cases[] = {
        {"{'PK':'a','n':1.5,'sluice_types':'{\\\"n\\\":\\\"N=1.50\\\"}'}",
         "{'PK':{'S':'a'},'n':{'N':'1.50'}}"},
        {"{'PK':'a','n':2.5,'sluice_types':'{\\\"n\\\":\\\"N=1.50\\\"}'}",
         "{'PK':{'S':'a'},'n':{'N':'2.5'}}"},
        {"{'PK':'a','n':'x','sluice_types':'{\\\"n\\\":\\\"N\\\"}'}", "{'PK':{'S':'a'},'n':{'S':'x'}}"},
        {"{'PK':'a','b':'no!','sluice_types':'{\\\"b\\\":\\\"B\\\"}'}", "{'PK':{'S':'a'},'b':{'S':'no!'}}"},
        {"{'x':'AAAA','PK':'a','b':'AA==','sluice_types':'{\\\"b\\\":\\\"B\\\"}'}",
         "{'x':{'S':'AAAA'},'PK':{'S':'a'},'b':{'B':'AA=='}}"}, /* a type is its own name's */
        {"{'PK':'a','s':[],'sluice_types':'{\\\"s\\\":\\\"SS\\\"}'}", "{'PK':{'S':'a'},'s':{'L':[]}}"},
        {"{'PK':'a','s':['x',1],'sluice_types':'{\\\"s\\\":\\\"SS\\\"}'}",
         "{'PK':{'S':'a'},'s':{'L':[{'S':'x'},{'N':'1'}]}}"},
        {"{'PK':'a','s':[1,'2'],'sluice_types':'{\\\"s\\\":\\\"NS=1,2.0\\\"}'}",
         "{'PK':{'S':'a'},'s':{'NS':['1','2.0']}}"},
        {"{'PK':'a','s':'x','sluice_types':'not json'}", "{'PK':{'S':'a'},'s':{'S':'x'}}"},
        {"{'PK':'a','s':'x','sluice_types':5}", "{'PK':{'S':'a'},'s':{'S':'x'}}"},
        {"{'z':'AA==','PK':'a','b':'AA==','sluice_types':'{\\\"b\\\":\\\"B\\\",\\\"z\\\":\\\"B\\\"}'}",
         "{'z':{'B':'AA=='},'PK':{'S':'a'},'b':{'B':'AA=='}}"},
        {"{'PK':'a','l':['AA==',{'x':'AA=='}],'sluice_types':'{\\\"l\\\":{\\\"1\\\":{\\\"x\\\":\\\"B\\\"}}}'"
         "}",
         "{'PK':{'S':'a'},'l':{'L':[{'S':'AA=='},{'M':{'x':{'B':'AA=='}}}]}}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = {.n_bulk = 0};
        open_script(&script);
        script.multi_get[0] = sl_arena_printf(
            f.call.arena,
            "{\"docs\":[{\"_id\":\"a\",\"found\":true,\"_seq_no\":1,\"_primary_term\":1,\"_source\":%s}]}",
            json(cases[i].source));
        struct sl_table_port *port = fault_table(&f, INDEX);
        struct sl_table_op op = {.verb = SL_TABLE_GET, .key = json_span("{'PK':{'S':'a'}}")};
        struct sl_result result = apply_one(port, op);
        if (result.status != SL_OK || !sl_span_is(result.item, json(cases[i].item)))
            fail_msg("%s became %.*s", cases[i].source, SL_ARG(result.item));
        port->close(port);
        close_script(&script);
    }
}

/* ---- who asks ---- */

/* The canary is the password: fault_close looks for it in all that was said. */
static void who_asks_is_in_the_header_alone(void **state)
{
    (void)state;
    static const struct {
        const char *more, *begins;
    } cases[] = {{"", NULL},
                 {"&auth=basic", "Basic bWU6"},
                 {"&auth=aws&region=eu-west-1",
                  "AWS4-HMAC-SHA256 Credential=" FAULT_KEY "/20261120/eu-west-1/es/aws4_request"}};
    for (size_t i = 0; i < 3; i++) {
        struct script script = {
            .bulk = {"{\"error\":{\"type\":\"" FAULT_SECRET "\",\"reason\":\"" FAULT_SECRET "\"}}"},
            .status = {400}};
        if (i == 0)
            script.bulk[0] = NULL; /* it was told no secret */
        open_script(&script);
        fault_set(&f, "OPENSEARCH_USERNAME", "me");
        fault_set(&f, "OPENSEARCH_PASSWORD", FAULT_SECRET);
        struct sl_table_port *port =
            fault_table(&f, sl_arena_printf(f.call.arena, INDEX "%s", cases[i].more));
        (void)apply_one(port, put_op("{'PK':{'S':'a'}}"));
        for (size_t k = 0; k < scripted_server_requests(f.server); k++) {
            const struct scripted_request *request = scripted_server_request(f.server, k);
            struct sl_span have = scripted_header(request, "authorization");
            if (cases[i].begins ? !sl_span_starts(have, sl_span_str(cases[i].begins)) : have.ptr != NULL)
                fail_msg("%s: %.*s", cases[i].more, SL_ARG(have));
            assert_int_equal(scripted_header(request, "amz-sdk-request").ptr != NULL, i == 2);
            assert_int_equal(scripted_header(request, "x-amz-security-token").ptr != NULL, i == 2);
        }
        port->close(port);
        close_script(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_plain_json),
        cmocka_unit_test(numbers_may_be_text),
        cmocka_unit_test(ids_are_unambiguous),
        cmocka_unit_test(a_conflict_is_read_again),
        cmocka_unit_test(a_guard_that_stands_refuses),
        cmocka_unit_test(an_absent_document_is_created),
        cmocka_unit_test(new_documents_are_created_without_a_look),
        cmocka_unit_test(documents_that_are_there_are_read_first),
        cmocka_unit_test(conflicts_have_an_end),
        cmocka_unit_test(a_bulk_has_a_thousand_documents_at_most),
        cmocka_unit_test(a_script_compares_on_the_shard),
        cmocka_unit_test(errors_of_documents_have_their_class),
        cmocka_unit_test(errors_of_requests_have_their_class),
        cmocka_unit_test(an_unknown_error_is_the_records_beside_a_success),
        cmocka_unit_test(many_unknown_errors_are_the_targets),
        cmocka_unit_test(only_what_failed_for_now_is_sent_again),
        cmocka_unit_test(a_changed_document_shows_its_change),
        cmocka_unit_test(who_asks_is_in_the_header_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
