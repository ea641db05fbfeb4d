/* Spans of invocations, on a virtual clock, into a port that does what the test says. The check of the whole
 * way, with a collector and OpenTelemetry's own schema, is tests/runtime/check_traces.py. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "handlers/pipeline/route.h"
#include "handlers/tracing/tracing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define HEADER "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"

static const char config[] =
    "{'trace':'t','on_failure':'mem:parked','report_batch_item_failures':true,"
    "'routes':[{'name':'a','handler':'one'},{'name':'b','handler':'two','when':{'item':{'even':['1']}}}]}";

/* What spans go to. */
struct collector {
    struct sl_queue_port port;
    struct world *world;
    enum sl_status status;
    size_t calls;
    int64_t deadline_ms;
    json_t *taken; /* the spans of each request that succeeded, in a row */
};

struct world {
    struct rig *rig;
    struct sl_vars vars;
    struct sl_tracing *tracing;
    struct collector collector;
};

static void apply(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                  struct sl_result *results, const struct sl_call *call)
{
    struct collector *c = (struct collector *)port;
    assert_int_equal(n, 1);
    c->calls++;
    c->deadline_ms = call->deadline_ms;
    results[0] = (struct sl_result){.status = c->status, .code = "Planned", .text = "as planned"};
    if (c->status != SL_OK)
        return;
    json_error_t why;
    json_t *body = json_loadb(messages[0].body.ptr, messages[0].body.len, JSON_REJECT_DUPLICATES, &why);
    if (!body)
        fail_msg("%s: %.*s", why.text, (int)messages[0].body.len, messages[0].body.ptr);
    json_t *scope = json_array_get(
        json_object_get(json_array_get(json_object_get(body, "resourceSpans"), 0), "scopeSpans"), 0);
    json_array_extend(c->taken, json_object_get(scope, "spans"));
    json_decref(body);
}

static void close_nothing(struct sl_queue_port *port)
{
    (void)port;
}

static void world_open(struct world *w)
{
    *w = (struct world){.rig = rig_new(config)};
    rig_keep_log(w->rig);
    w->collector = (struct collector){
        .port = {.size = sizeof(w->collector.port), .apply = apply, .close = close_nothing},
        .taken = json_array()};
    w->rig->p->spans = &w->collector.port;
    w->tracing = sl_tracing_open(&w->vars, &w->rig->log, w->rig->p);
    assert_non_null(w->tracing);
}

static void world_close(struct world *w)
{
    sl_tracing_close(w->tracing, true);
    json_decref(w->collector.taken);
    rig_destroy(w->rig);
}

/* An event of `n` records; the first `sampled` of them belong to a trace that records, the next `others` to
 * one that does not. Every second is route b's, too. */
static void event(struct world *w, size_t n, size_t sampled, size_t others)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 8 * 1024 * 1024);
    sl_buffer_add_str(&text, "{'Records':[");
    for (size_t i = 0; i < n; i++) {
        sl_buffer_printf(
            &text,
            "%s{'eventID':'%zu','eventName':'INSERT','eventSource':'aws:dynamodb',"
            "'dynamodb':{'Keys':{'PK':{'S':'k%zu'}},'NewImage':{'PK':{'S':'k%zu'},'even':{'S':'%d'}",
            i ? "," : "", i, i, i, i % 2 == 0);
        if (i < sampled + others)
            sl_buffer_printf(&text, ",'t':{'S':'00-%032zx-%016zx-%s'}", i + 1, i + 1,
                             i < sampled ? "01" : "00");
        sl_buffer_printf(&text,
                         "},'SequenceNumber':'%zu'},"
                         "'eventSourceARN':'arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/s'}",
                         1000 + i);
    }
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    rig_event_text(w->rig, text.ptr, n);
    sl_buffer_clean_up(&text);
}

/* One invocation with its answer, as the loop has it. */
static void invoke(struct world *w, const char *header, const char *error)
{
    struct rig *rig = w->rig;
    sl_pipeline_stats_reset(rig->p);
    rig->invocation.links = sl_tracing_begin(w->tracing, header);
    rig->clock.ms += 3;
    rig_run(rig, 60000);
    rig->clock.ms += 2;
    const struct sl_traced traced = {.request_id = "r-1",
                                     .function_arn = "arn:f",
                                     .table = SL_LIT("orders"),
                                     .records = rig->batch.n,
                                     .error = error};
    sl_tracing_end(w->tracing, &traced);
    sl_tracing_send(w->tracing, rig->clock.ms + 10000, rig->arena);
}

static const json_t *span(const struct world *w, size_t i)
{
    return json_array_get(w->collector.taken, i);
}

static const char *text_of(const json_t *span, const char *name)
{
    const char *text = json_string_value(json_object_get(span, name));
    return text ? text : "";
}

static size_t links_of(const json_t *span)
{
    return json_array_size(json_object_get(span, "links"));
}

static long long dropped_of(const json_t *span)
{
    return json_integer_value(json_object_get(span, "droppedLinksCount"));
}

/* An attribute's value as text; "": there is none. */
static const char *attribute(const json_t *span, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(span, "attributes"), i, one)
    {
        json_t *value = json_object_get(one, "value");
        if (strcmp(text_of(one, "key"), name) != 0)
            continue;
        return json_object_get(value, "boolValue")
                   ? json_is_true(json_object_get(value, "boolValue")) ? "yes" : "no"
               : json_object_get(value, "intValue") ? text_of(value, "intValue")
                                                    : text_of(value, "stringValue");
    }
    return "";
}

static void flush(struct world *w)
{
    w->rig->clock.ms += 5000;
    sl_tracing_send(w->tracing, w->rig->clock.ms + 10000, w->rig->arena);
}

/* ---- tests ---- */

static void a_span_for_the_invocation_and_each_route(void **state)
{
    struct world w;
    (void)state;
    world_open(&w);
    event(&w, 6, 3, 2);
    w.rig->handlers[RIG_TWO].takes_ms = 7;
    invoke(&w, NULL, NULL);
    assert_int_equal(w.collector.calls, 0); /* not yet: the next ones go with them */
    flush(&w);
    assert_int_equal(json_array_size(w.collector.taken), 3);
    const json_t *whole = span(&w, 0), *a = span(&w, 1), *b = span(&w, 2);
    assert_string_equal(text_of(whole, "name"), "process orders");
    assert_string_equal(text_of(a, "name"), "a");
    assert_string_equal(text_of(b, "name"), "b");
    assert_int_equal(strlen(text_of(whole, "traceId")), 32);
    assert_int_equal(strlen(text_of(whole, "spanId")), 16);
    assert_int_equal(strlen(text_of(a, "spanId")), 16);
    assert_string_equal(text_of(whole, "parentSpanId"), "");
    assert_string_equal(attribute(whole, "faas.trigger"), "datasource");
    assert_string_equal(attribute(whole, "faas.invocation_id"), "r-1");
    assert_string_equal(attribute(whole, "faas.coldstart"), "yes");
    assert_string_equal(attribute(whole, "cloud.resource_id"), "arn:f");
    assert_string_equal(attribute(whole, "faas.document.collection"), "orders");
    assert_string_equal(attribute(whole, "messaging.batch.message_count"), "6");
    assert_string_equal(attribute(whole, "error.type"), "");
    assert_string_equal(attribute(b, "sluice.route"), "b");
    assert_string_equal(attribute(b, "sluice.handler"), "two");
    assert_string_equal(attribute(b, "sluice.matched"), "3");
    assert_string_equal(attribute(b, "sluice.applied"), "3");
    assert_string_equal(attribute(b, "sluice.calls"), "1");
    assert_string_equal(attribute(b, "sluice.failed"), ""); /* counts of 0 are left out */
    assert_string_equal(text_of(a, "parentSpanId"), text_of(whole, "spanId"));
    assert_string_equal(text_of(b, "parentSpanId"), text_of(whole, "spanId"));
    assert_string_equal(text_of(a, "traceId"), text_of(whole, "traceId"));
    assert_string_not_equal(text_of(a, "spanId"), text_of(b, "spanId"));
    /* Linked to what records, by the records that the route took. */
    assert_int_equal(links_of(whole), 3);
    assert_int_equal(links_of(a), 3);
    assert_int_equal(links_of(b), 2);
    assert_string_equal(text_of(json_array_get(json_object_get(b, "links"), 1), "spanId"),
                        "0000000000000003");
    /* Inside of the invocation, one after the other. */
    long long began = strtoll(text_of(whole, "startTimeUnixNano"), NULL, 10),
              ended = strtoll(text_of(whole, "endTimeUnixNano"), NULL, 10),
              b_began = strtoll(text_of(b, "startTimeUnixNano"), NULL, 10),
              b_ended = strtoll(text_of(b, "endTimeUnixNano"), NULL, 10);
    assert_int_equal(ended - began, 12 * 1000000);
    assert_int_equal(b_began - began, 3 * 1000000);
    assert_int_equal(b_ended - b_began, 7 * 1000000);
    assert_null(json_object_get(whole, "status"));
    world_close(&w);
}

static void xrays_header_is_the_parent_if_it_records(void **state)
{
    static const char *const none[] = {
        "",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1",
        "Root=1-5759e988-bd862e3fe1be46a99427279;Parent=53995c3f42cd8ad8;Sampled=1",
        "Root=1-5759E988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
        "Root=2-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
        "Root=1-5759e988xbd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
        "Root=1-00000000-000000000000000000000000;Parent=53995c3f42cd8ad8;Sampled=1",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=0000000000000000;Sampled=1",
        "Sampled=1;;;=",
    };
    struct world w;
    (void)state;
    world_open(&w);
    event(&w, 2, 0, 2);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        invoke(&w, none[i], NULL);
    flush(&w);
    assert_int_equal(w.collector.calls, 0);
    static const char *const all[] = {HEADER, "Self=1-2-3;Sampled=1;Parent=53995c3f42cd8ad8;Lineage=1:2:3;"
                                              "Root=1-5759e988-bd862e3fe1be46a994272793"};
    for (size_t i = 0; i < 2; i++)
        invoke(&w, all[i], "Planned");
    flush(&w);
    assert_int_equal(json_array_size(w.collector.taken), 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(text_of(span(&w, i), "traceId"), "5759e988bd862e3fe1be46a994272793");
    assert_string_equal(text_of(span(&w, 0), "parentSpanId"), "53995c3f42cd8ad8");
    assert_string_equal(text_of(json_object_get(span(&w, 0), "status"), "message"), "Planned");
    assert_int_equal(links_of(span(&w, 0)), 0);
    assert_string_equal(attribute(span(&w, 0), "error.type"), "Planned");
    assert_string_equal(attribute(span(&w, 0), "faas.coldstart"), "no");
    world_close(&w);
}

static void links_have_a_limit_and_say_what_is_beyond(void **state)
{
    struct world w;
    (void)state;
    world_open(&w);
    event(&w, 1000, 800, 100);
    invoke(&w, NULL, NULL);
    flush(&w);
    assert_int_equal(links_of(span(&w, 0)), 128);
    assert_int_equal(dropped_of(span(&w, 0)), 800 - 128);
    assert_int_equal(dropped_of(span(&w, 1)), 800 - 128);
    assert_int_equal(links_of(span(&w, 2)), 128);
    assert_int_equal(dropped_of(span(&w, 2)), 400 - 128);
    world_close(&w);
}

static void records_that_fail_are_seen_in_their_routes_span(void **state)
{
    struct world w;
    (void)state;
    world_open(&w);
    event(&w, 4, 4, 0);
    w.rig->handlers[RIG_TWO].always = SL_FATAL;
    invoke(&w, NULL, "Planned");
    flush(&w);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(span(&w, 0), "status"), "code")), 2);
    assert_null(json_object_get(span(&w, 1), "status"));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(span(&w, 2), "status"), "code")), 2);
    world_close(&w);
}

/* At most 64 KB wait, nothing waits for more than 5 s while there are invocations, and the rest goes at the
 * end. */
static void spans_are_sent_together(void **state)
{
    struct world w;
    size_t n = 0;
    (void)state;
    world_open(&w);
    event(&w, 2, 1, 0);
    for (; w.collector.calls == 0; n++)
        invoke(&w, NULL, NULL);
    assert_true(n > 10 && n < 100);
    assert_int_equal(json_array_size(w.collector.taken), 3 * n);
    assert_true(w.collector.deadline_ms <= w.rig->clock.ms + 1000);
    invoke(&w, NULL, NULL);
    w.rig->clock.ms += 4000;
    invoke(&w, NULL, NULL);
    assert_int_equal(w.collector.calls, 1);
    w.rig->clock.ms += 1000;
    invoke(&w, NULL, NULL);
    assert_int_equal(w.collector.calls, 2);
    invoke(&w, NULL, NULL);
    sl_tracing_close(w.tracing, true);
    w.tracing = NULL;
    assert_int_equal(w.collector.calls, 3);
    assert_true(w.collector.deadline_ms <= w.rig->clock.ms + 300);
    assert_int_equal(json_array_size(w.collector.taken), 3 * (n + 4));
    world_close(&w);
}

static void there_is_no_time_for_them_before_a_deadline(void **state)
{
    struct world w;
    (void)state;
    world_open(&w);
    event(&w, 1, 1, 0);
    invoke(&w, NULL, NULL);
    w.rig->clock.ms += 60000;
    sl_tracing_send(w.tracing, w.rig->clock.ms + 249, w.rig->arena);
    assert_int_equal(w.collector.calls, 0);
    sl_tracing_send(w.tracing, w.rig->clock.ms + 250, w.rig->arena);
    assert_int_equal(w.collector.calls, 1);
    assert_int_equal(w.collector.deadline_ms, w.rig->clock.ms + 50);
    world_close(&w);
}

/* A collector that is down costs a second in half a minute, and a bounded memory; spans are dropped, and the
 * log says so once a minute. */
static void a_collector_that_is_down_costs_little(void **state)
{
    struct world w;
    size_t n = 0;
    (void)state;
    world_open(&w);
    event(&w, 300, 300, 0);
    w.collector.status = SL_RETRY;
    for (int64_t end = w.rig->clock.ms + 10 * 60000; w.rig->clock.ms < end; n++) {
        rig_forget(w.rig);
        w.rig->clock.ms += 200;
        invoke(&w, NULL, NULL);
    }
    assert_true(n > 2000 && w.collector.calls <= 21);
    assert_int_equal(json_array_size(w.collector.taken), 0);
    char *log = rig_log(w.rig);
    size_t lines = 0;
    for (const char *at = log; (at = strstr(at, "trace_to: spans were not taken")) != NULL; at++)
        lines++;
    assert_true(lines >= 9 && lines <= 10);
    assert_non_null(strstr(log, "Planned: as planned"));
    free(log);
    /* It comes back: what waits arrives, and what follows. */
    w.collector.status = SL_OK;
    w.rig->clock.ms += 30000;
    invoke(&w, NULL, NULL);
    assert_int_equal(w.collector.calls > 0 && json_array_size(w.collector.taken) > 0, true);
    world_close(&w);
}

static void what_was_refused_for_good_is_not_sent_again(void **state)
{
    static const enum sl_status statuses[] = {SL_REJECT, SL_FATAL, SL_RETRY};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world w;
        world_open(&w);
        event(&w, 1, 1, 0);
        w.collector.status = statuses[i];
        invoke(&w, NULL, NULL);
        flush(&w);
        assert_int_equal(w.collector.calls, 1);
        w.collector.status = SL_OK;
        w.rig->clock.ms += 30000;
        flush(&w);
        assert_int_equal(w.collector.calls, statuses[i] == SL_RETRY ? 2 : 1);
        assert_int_equal(json_array_size(w.collector.taken), statuses[i] == SL_RETRY ? 3 : 0);
        world_close(&w);
    }
}

static void nothing_is_sent_where_descriptors_are_not_ours(void **state)
{
    struct world w;
    (void)state;
    world_open(&w);
    event(&w, 1, 1, 0);
    invoke(&w, NULL, NULL);
    sl_tracing_close(w.tracing, false);
    w.tracing = NULL;
    assert_int_equal(w.collector.calls, 0);
    world_close(&w);
}

static void without_a_target_nothing_is_made(void **state)
{
    struct rig *rig = rig_new(config);
    const struct sl_traced traced = {.request_id = "", .function_arn = ""};
    (void)state;
    struct sl_tracing *none = sl_tracing_open(&(struct sl_vars){.list = NULL}, &rig->log, rig->p);
    assert_null(none);
    assert_null(sl_tracing_begin(none, HEADER));
    sl_tracing_end(none, &traced);
    sl_tracing_send(none, INT64_MAX, rig->arena);
    sl_tracing_close(none, true);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_for_the_invocation_and_each_route),
        cmocka_unit_test(xrays_header_is_the_parent_if_it_records),
        cmocka_unit_test(links_have_a_limit_and_say_what_is_beyond),
        cmocka_unit_test(records_that_fail_are_seen_in_their_routes_span),
        cmocka_unit_test(spans_are_sent_together),
        cmocka_unit_test(there_is_no_time_for_them_before_a_deadline),
        cmocka_unit_test(a_collector_that_is_down_costs_little),
        cmocka_unit_test(what_was_refused_for_good_is_not_sent_again),
        cmocka_unit_test(nothing_is_sent_where_descriptors_are_not_ours),
        cmocka_unit_test(without_a_target_nothing_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
