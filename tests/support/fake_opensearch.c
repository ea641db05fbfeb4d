#include "tests/support/fake_opensearch.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "tests/support/honest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOCS = 20000, ID_BYTES = 512, WINDOW = 10000, BULK_DOCS = 1000, SPARED = 12 };
#define BULK_BYTES ((size_t)5 * 1024 * 1024)

struct doc {
    char *id, *source; /* JSON as it came, the id without quotes; no source: it was deleted */
    unsigned long seq_no;
};

struct seen {
    char operation[32];
    size_t n, most;
};

struct fake_opensearch {
    struct doc docs[DOCS];
    size_t n;
    unsigned long seq_no;
    struct sl_arena *arena; /* of one request */
    struct sl_buffer out;
    const char *fault;
    const char *concrete; /* what "idx" stands for; NULL: itself */
    uint64_t random;
    unsigned one_in;
    size_t since, troubled;
    struct seen seen[8];
};

struct fake_opensearch *fake_opensearch_open(void)
{
    struct fake_opensearch *f = calloc(1, sizeof(*f));
    f->arena = sl_arena_new(64 * 1024);
    f->random = 11;
    sl_buffer_init(&f->out, 1 << 28);
    return f;
}

void fake_opensearch_close(struct fake_opensearch *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->docs[i].id);
        free(f->docs[i].source);
    }
    sl_arena_destroy(f->arena);
    sl_buffer_clean_up(&f->out);
    free(f);
}

void fake_opensearch_swap(struct fake_opensearch *f, const char *concrete)
{
    f->concrete = concrete;
}

static const char *index_name(const struct fake_opensearch *f)
{
    return f->concrete ? f->concrete : "idx";
}

void fake_opensearch_trouble(struct fake_opensearch *f, unsigned one_in)
{
    f->one_in = one_in;
}

size_t fake_opensearch_troubled(const struct fake_opensearch *f)
{
    return f->troubled;
}

const char *fake_opensearch_fault(const struct fake_opensearch *f)
{
    return f->fault;
}

static const struct seen *find_seen(const struct fake_opensearch *f, const char *operation)
{
    size_t i = 0;
    while (i < 7 && f->seen[i].n && strcmp(f->seen[i].operation, operation) != 0)
        i++;
    return &f->seen[i];
}

size_t fake_opensearch_requests(const struct fake_opensearch *f, const char *operation)
{
    return find_seen(f, operation)->n;
}

size_t fake_opensearch_most(const struct fake_opensearch *f, const char *operation)
{
    return find_seen(f, operation)->most;
}

static void note(struct fake_opensearch *f, const char *operation, size_t entries)
{
    struct seen *seen = &f->seen[find_seen(f, operation) - f->seen];
    snprintf(seen->operation, sizeof(seen->operation), "%s", operation);
    seen->n++;
    seen->most = entries > seen->most ? entries : seen->most;
}

static bool has_trouble(struct fake_opensearch *f)
{
    bool has = f->one_in && sl_random_step(&f->random) % f->one_in == 0;
    f->troubled += has;
    return has;
}

/* ---- documents ---- */

static struct sl_span member(struct sl_span object, const char *name)
{
    return sl_json_walk_member(object, sl_span_str(name));
}

static struct sl_span inner(struct sl_span string)
{
    return string.len >= 2 && *string.ptr == '"' ? sl_span(string.ptr + 1, string.len - 2) : sl_span(NULL, 0);
}

static struct doc *find(struct fake_opensearch *f, struct sl_span id, bool makes)
{
    for (size_t i = 0; i < f->n; i++)
        if (sl_span_is(id, f->docs[i].id))
            return &f->docs[i];
    if (!makes || f->n == DOCS)
        return NULL;
    f->docs[f->n].id = strndup(id.ptr, id.len);
    return &f->docs[f->n++];
}

static bool is_there(const struct doc *doc)
{
    return doc && doc->source;
}

static void store(struct fake_opensearch *f, struct doc *doc, struct sl_span source)
{
    free(doc->source);
    doc->source = source.ptr ? strndup(source.ptr, source.len) : NULL;
    doc->seq_no = ++f->seq_no;
}

void fake_opensearch_put(struct fake_opensearch *f, const char *id, struct sl_span source)
{
    store(f, find(f, sl_span_str(id), true), source);
}

void fake_opensearch_many(struct fake_opensearch *f, size_t n)
{
    char id[32];
    for (size_t i = 0; i < n && f->n < DOCS; i++) {
        snprintf(id, sizeof(id), "many %zu", i);
        f->docs[f->n] = (struct doc){.id = strdup(id)};
        store(f, &f->docs[f->n++], SL_LIT("{\"PK\":\"x\"}"));
    }
}

static bool names(struct sl_span list, struct sl_span name)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_span one;
    while (sl_json_walk_next(&walk, NULL, &one))
        if (sl_json_same(inner(one), name))
            return true;
    return false;
}

/* The members of the source that `wanted`, a list, names; all when it is absent. */
static void add_source(struct fake_opensearch *f, const struct doc *doc, struct sl_span wanted)
{
    struct sl_json_walk walk = sl_json_walk(sl_span_str(doc->source));
    struct sl_span name, value;
    bool any = false;
    sl_buffer_add_str(&f->out, "\"_source\":{");
    while (sl_json_walk_next(&walk, &name, &value))
        if (!wanted.ptr || names(wanted, name)) {
            sl_buffer_printf(&f->out, "%s\"%.*s\":", any ? "," : "", SL_ARG(name));
            sl_buffer_add_span(&f->out, value);
            any = true;
        }
    sl_buffer_add_str(&f->out, "}");
}

/* ---- multi gets ---- */

static void multi_get(struct fake_opensearch *f, struct sl_span asked)
{
    struct sl_json_walk walk = sl_json_walk(member(asked, "docs"));
    struct sl_span one;
    size_t n = 0;
    sl_buffer_add_str(&f->out, "{\"docs\":[");
    for (; sl_json_walk_next(&walk, NULL, &one); n++) {
        struct sl_span id = inner(member(one, "_id"));
        const struct doc *doc = find(f, id, false);
        sl_buffer_printf(&f->out, "%s{\"_index\":\"%s\",\"_id\":\"%.*s\",\"found\":%s", n ? "," : "",
                         index_name(f), SL_ARG(id), is_there(doc) ? "true," : "false}");
        if (!is_there(doc))
            continue;
        sl_buffer_printf(&f->out, "\"_version\":1,\"_seq_no\":%lu,\"_primary_term\":3,", doc->seq_no);
        add_source(f, doc, member(one, "_source"));
        sl_buffer_add_str(&f->out, "}");
    }
    sl_buffer_add_str(&f->out, "]}");
    note(f, "MultiGet", n);
}

/* ---- bulks ---- */

static void add_done(struct fake_opensearch *f, const struct doc *doc, int status, const char *result)
{
    sl_buffer_printf(&f->out, "\"status\":%d,\"result\":\"%s\",\"_seq_no\":%lu,\"_primary_term\":3", status,
                     result, doc ? doc->seq_no : f->seq_no);
}

static void add_error(struct fake_opensearch *f, int status, const char *type)
{
    sl_buffer_printf(&f->out, "\"status\":%d,\"error\":{\"type\":\"%s\",\"reason\":\"not now\"}", status,
                     type);
}

/* The script of sinks/opensearch/opensearch_write.c: replaces the document if a lower guard stands in it. */
static void run_script(struct fake_opensearch *f, struct sl_span id, struct sl_span body)
{
    struct sl_span params = member(member(body, "script"), "params"), guard = inner(member(params, "g"));
    struct doc *doc = find(f, id, true);
    bool was_there = is_there(doc), only_lower = sl_span_is(member(params, "f"), "true");
    struct sl_span have = was_there
                              ? sl_json_walk_member(sl_span_str(doc->source), inner(member(params, "n")))
                              : sl_span(NULL, 0);
    struct sl_span text = inner(have);
    if (!sl_span_is(member(body, "scripted_upsert"), "true") || !member(params, "d").ptr || !guard.ptr)
        f->fault = "a scripted update is not one";
    size_t least = text.len < guard.len ? text.len : guard.len;
    int order = text.ptr ? memcmp(text.ptr, guard.ptr, least) : 0;
    bool is_lower = text.ptr && (order < 0 || (order == 0 && text.len < guard.len));
    if (!have.ptr ? only_lower : !is_lower) {
        add_done(f, doc, 200, "noop");
        return;
    }
    store(f, doc, member(params, "d"));
    add_done(f, doc, was_there ? 200 : 201, was_there ? "updated" : "created");
}

static bool is_in_conflict(const struct doc *doc, struct sl_span action, bool creates)
{
    struct sl_span seq_no = member(action, "if_seq_no"), term = member(action, "if_primary_term");
    if (creates || !seq_no.ptr)
        return creates && is_there(doc);
    return !is_there(doc) || strtoul(seq_no.ptr, NULL, 10) != doc->seq_no || !sl_span_is(term, "3");
}

static void write_one(struct fake_opensearch *f, struct sl_span verb, struct sl_span action,
                      struct sl_span body)
{
    struct sl_span id = inner(member(action, "_id"));
    struct doc *doc = find(f, id, false);
    bool creates = sl_span_is(verb, "create"), was_there = is_there(doc);
    if (is_in_conflict(doc, action, creates)) {
        add_error(f, 409, "version_conflict_engine_exception");
    } else if (sl_span_is(verb, "update")) {
        run_script(f, id, body);
    } else if (sl_span_is(verb, "delete")) {
        if (doc)
            store(f, doc, sl_span(NULL, 0));
        add_done(f, doc, was_there ? 200 : 404, was_there ? "deleted" : "not_found");
    } else {
        doc = find(f, id, true);
        store(f, doc, body);
        add_done(f, doc, was_there ? 200 : 201, was_there ? "updated" : "created");
    }
}

/* Refused for now; somebody else's write is only told where a condition looks for it. */
static void write_later(struct fake_opensearch *f, struct sl_span verb, struct sl_span action)
{
    bool is_conditional = sl_span_is(verb, "create") || member(action, "if_seq_no").ptr;
    unsigned which = (unsigned)(sl_random_step(&f->random) % (is_conditional ? 3 : 2));
    if (which == 0)
        add_error(f, 429, "es_rejected_execution_exception");
    else if (which == 1)
        add_error(f, 503, "unavailable_shards_exception");
    else
        add_error(f, 409, "version_conflict_engine_exception");
}

static struct sl_span take_line(struct fake_opensearch *f, struct sl_span *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    struct sl_span line = end ? sl_span(rest->ptr, (size_t)(end - rest->ptr)) : sl_span("", 0);
    if (!end || sl_json_check_loose(line, NULL) != SL_OK || !sl_json_walk(line).is_object)
        f->fault = "a line of a bulk is not an object";
    *rest = f->fault ? sl_span("", 0) : sl_span_from(*rest, line.len + 1);
    return line;
}

static void bulk(struct fake_opensearch *f, struct sl_span rest)
{
    size_t n = 0, bytes = rest.len;
    sl_buffer_add_str(&f->out, "{\"took\":1,\"errors\":false,\"items\":[");
    for (; rest.len; n++) {
        struct sl_json_walk walk = sl_json_walk(take_line(f, &rest));
        struct sl_span verb = {NULL, 0}, action = {NULL, 0}, body = {NULL, 0};
        if (!sl_json_walk_next(&walk, &verb, &action) || member(action, "_id").len > ID_BYTES * 6)
            f->fault = "an action of a bulk is not one";
        if (f->fault)
            return;
        if (!sl_span_is(verb, "delete"))
            body = take_line(f, &rest);
        sl_buffer_printf(&f->out, "%s{\"%.*s\":{\"_index\":\"%s\",\"_id\":%.*s,", n ? "," : "", SL_ARG(verb),
                         index_name(f), SL_ARG(member(action, "_id")));
        if (n && has_trouble(f))
            write_later(f, verb, action);
        else
            write_one(f, verb, action, body);
        sl_buffer_add_str(&f->out, "}}");
    }
    sl_buffer_add_str(&f->out, "]}");
    if (!n || n > BULK_DOCS || (n > 1 && bytes > BULK_BYTES))
        f->fault = "a bulk has no document, or too many";
    note(f, "Bulk", n);
}

/* ---- searches ---- */

static struct sl_span hash_of(const struct doc *doc)
{
    return inner(member(sl_span_str(doc->source), "sluice_hash"));
}

static int compare_docs(const void *x, const void *y)
{
    const struct doc *a = *(const struct doc *const *)x, *b = *(const struct doc *const *)y;
    struct sl_span s = hash_of(a), t = hash_of(b);
    return s.ptr || t.ptr ? sl_span_compare(s, t) : (a->seq_no > b->seq_no) - (a->seq_no < b->seq_no);
}

static size_t number(struct sl_span json)
{
    return json.ptr ? strtoul(json.ptr, NULL, 10) : 0;
}

struct search {
    struct sl_span from, to, after; /* digests; of documents that have one */
    bool is_of_strangers;
};

static struct search read_search(struct fake_opensearch *f, struct sl_span asked)
{
    struct sl_span query = member(asked, "query"), range = member(member(query, "range"), "sluice_hash");
    struct sl_json_walk walk = sl_json_walk(member(asked, "search_after"));
    struct sl_span after = {NULL, 0};
    (void)sl_json_walk_next(&walk, NULL, &after);
    bool is_of_strangers = member(query, "bool").ptr != NULL;
    bool has_total = sl_span_is(member(asked, "track_total_hits"), "true");
    if (is_of_strangers == (range.ptr != NULL) || has_total != is_of_strangers || !member(asked, "sort").ptr)
        f->fault = "a search is not one of ours";
    return (struct search){inner(member(range, "gte")), inner(member(range, "lt")), inner(after),
                           is_of_strangers};
}

static bool is_meant(const struct search *s, const struct doc *doc)
{
    if (!is_there(doc))
        return false;
    struct sl_span hash = hash_of(doc);
    if (s->is_of_strangers || !hash.ptr)
        return s->is_of_strangers && !hash.ptr;
    return sl_span_compare(hash, s->from) >= 0 && (!s->to.ptr || sl_span_compare(hash, s->to) < 0) &&
           (!s->after.ptr || sl_span_compare(hash, s->after) > 0);
}

static void search(struct fake_opensearch *f, struct sl_span asked)
{
    const struct doc **found = sl_arena_alloc(f->arena, (f->n + 1) * sizeof(*found));
    struct search s = read_search(f, asked);
    size_t n = 0, from = number(member(asked, "from")), size = number(member(asked, "size"));
    for (size_t i = 0; i < f->n; i++)
        if (is_meant(&s, &f->docs[i]))
            found[n++] = &f->docs[i];
    qsort(found, n, sizeof(*found), compare_docs);
    if (!size || from + size > WINDOW)
        f->fault = "a search's window is empty, or too large";
    sl_buffer_add_str(
        &f->out,
        "{\"took\":1,\"timed_out\":false,\"_shards\":{\"total\":2,\"successful\":2,\"failed\":0},\"hits\":{");
    if (s.is_of_strangers)
        sl_buffer_printf(&f->out, "\"total\":{\"value\":%zu,\"relation\":\"eq\"},", n);
    sl_buffer_add_str(&f->out, "\"hits\":[");
    for (size_t i = from; i < n && i < from + size; i++) {
        sl_buffer_printf(&f->out, "%s{\"_index\":\"%s\",\"_id\":\"%s\",", i > from ? "," : "", index_name(f),
                         found[i]->id);
        add_source(f, found[i], member(asked, "_source"));
        if (s.is_of_strangers)
            sl_buffer_printf(&f->out, ",\"sort\":[%lu]}", found[i]->seq_no);
        else
            sl_buffer_printf(&f->out, ",\"sort\":[\"%.*s\"]}", SL_ARG(hash_of(found[i])));
    }
    sl_buffer_add_str(&f->out, "]}}");
    note(f, "Search", size);
}

static void stats(struct fake_opensearch *f)
{
    size_t n = 0, bytes = 0;
    for (size_t i = 0; i < f->n; i++)
        if (is_there(&f->docs[i])) {
            n++;
            bytes += strlen(f->docs[i].source);
        }
    sl_buffer_printf(
        &f->out,
        "{\"_shards\":{\"total\":2,\"failed\":0},\"_all\":{\"primaries\":{\"docs\":{\"count\":%zu,"
        "\"deleted\":0},\"store\":{\"size_in_bytes\":%zu}}}}",
        n, bytes);
}

/* ---- any request ---- */

static bool is_refused_for_now(struct fake_opensearch *f, struct scripted_reply *reply)
{
    if (f->since++ < SPARED || !has_trouble(f))
        return false;
    f->since = 0;
    reply->status = sl_random_step(&f->random) % 2 ? 429 : 503;
    sl_buffer_printf(&f->out, "{\"error\":{\"type\":\"%s\",\"reason\":\"later\"},\"status\":%d}",
                     reply->status == 429 ? "circuit_breaking_exception"
                                          : "no_shard_available_action_exception",
                     reply->status);
    return true;
}

void fake_opensearch_answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct fake_opensearch *f = arg;
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    sl_arena_reset(f->arena);
    sl_buffer_reset(&f->out);
    *reply = (struct scripted_reply){.status = 200};
    if (request->body.len && strcmp(operation, "Bulk") != 0 &&
        sl_json_check_loose(request->body, NULL) != SL_OK)
        f->fault = "a request is not JSON";
    else if (is_refused_for_now(f, reply))
        note(f, "refused", 0);
    else if (strcmp(operation, "MultiGet") == 0)
        multi_get(f, request->body);
    else if (strcmp(operation, "Bulk") == 0)
        bulk(f, request->body);
    else if (strcmp(operation, "Search") == 0)
        search(f, request->body);
    else if (strcmp(operation, "Stats") == 0)
        stats(f);
    else
        honest_answer(request, reply, &f->out);
    if (f->fault) {
        reply->status = 400;
        sl_buffer_reset(&f->out);
        sl_buffer_printf(&f->out, "{\"error\":{\"type\":\"x\",\"reason\":\"%s\"},\"status\":400}", f->fault);
    }
    reply->body = sl_buffer_span(&f->out);
}
