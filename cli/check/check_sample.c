/* Every template of a route, wherever its options hold one, is tried on each record that the route takes. */
#include "cli/check/check_sample.h"

#include "base/nearest.h"
#include "base/span.h"
#include "live/source/inputs.h"
#include "streams/template/template.h"
#include "streams/value.h"
#include "streams/when/when.h"

#include <jansson.h>
#include <stdlib.h>

#define NAMES         256 /* attributes of the sample that a mistyped name is compared with */
#define RENDERED      ((size_t)1024 * 1024)
#define SCRATCH_BYTES ((size_t)64 * 1024)

/* A template of a route. */
struct tried {
    struct tried *next;
    const char *path;
    struct sl_span text;
    struct sl_template *template;
    size_t filled;
    struct sl_error why; /* of the last record that did not fill it */
};

struct of_route {
    struct tried *templates;
    size_t taken;
};

struct sampling {
    const struct sl_check_sample *c;
    struct of_route *routes;
    const char *names[NAMES];
    size_t n_names, n_records;
    struct sl_source_keys keys;
    struct sl_arena *scratch;
};

/* ---- the templates ---- */

static void add(struct sampling *s, struct of_route *route, const char *path, struct sl_span text,
                struct sl_template *template)
{
    struct tried *t = sl_arena_zalloc(s->c->arena, sizeof(*t));
    *t = (struct tried){.next = route->templates, .path = path, .text = text, .template = template};
    route->templates = t;
}

/* Texts with a place, below an option's JSON. Conditions are none, nor is what does not compile: the handler
 * would have refused it as a template. */
static void add_texts(struct sampling *s, struct of_route *route, const char *path, const json_t *value)
{
    const char *name;
    json_t *member;
    size_t i;
    if (json_is_string(value)) {
        struct sl_span text = sl_span_str(sl_arena_copy(s->c->arena, sl_span_str(json_string_value(value))));
        struct sl_template *template;
        struct sl_error error = SL_NO_ERROR;
        if (strchr(text.ptr, '{') &&
            sl_template_compile(text, s->c->vars, s->c->arena, &template, &error) == SL_OK)
            add(s, route, path, text, template);
    }
    json_object_foreach((json_t *)value, name, member)
    {
        if (strcmp(name, "where") != 0 && strcmp(name, "when") != 0)
            add_texts(s, route, sl_arena_printf(s->c->arena, "%s.%s", path, name), member);
    }
    json_array_foreach(value, i, member)
    {
        add_texts(s, route, sl_arena_printf(s->c->arena, "%s[%zu]", path, i), member);
    }
}

static void find_templates(struct sampling *s, const struct sl_route *from, struct of_route *route)
{
    for (size_t i = 0; i < from->options.n; i++) {
        const struct sl_option *row = &from->options.rows[i];
        const struct sl_option_value *value = &from->options.values[i];
        if (!value->is_set || !value->path || strcmp(row->name, "where") == 0)
            continue;
        if (value->template)
            add(s, route, value->path, value->text, value->template);
        if (row->type != SL_OPTION_JSON)
            continue;
        json_t *json = json_loadb(value->text.ptr, value->text.len, JSON_DECODE_ANY, NULL);
        add_texts(s, route, value->path, json);
        json_decref(json);
    }
}

/* ---- the records ---- */

static void learn_names(struct sampling *s, const struct sl_record *record)
{
    for (enum sl_image image = SL_KEYS; image <= SL_OLD_IMAGE; image++) {
        struct sl_iter iter = sl_value_iter(sl_record_image(record, image));
        struct sl_span name;
        struct sl_value value;
        while (s->n_names < NAMES && sl_value_next(&iter, &name, &value)) {
            size_t i = 0;
            while (i < s->n_names && !sl_span_is(name, s->names[i]))
                i++;
            if (i == s->n_names)
                s->names[s->n_names++] = sl_arena_copy(s->c->arena, name);
        }
    }
}

static bool fills(struct sampling *s, const struct sl_route *route, const struct sl_record *record,
                  struct tried *t)
{
    const struct sl_builtin *builtin = sl_builtin_named(route->config->handler);
    const struct sl_rendering how = {.record = record, .image = SL_ANY_IMAGE, .scratch = s->scratch};
    struct sl_error why = SL_NO_ERROR;
    struct sl_value made;
    struct sl_buffer text;
    sl_buffer_init(&text, RENDERED);
    bool is_filled = sl_template_type(t->template) == SL_S
                         ? sl_template_render(t->template, &how, &text, &why) == SL_OK
                         : sl_template_make(t->template, &how, RENDERED, &made, &why) == SL_OK;
    sl_buffer_clean_up(&text);
    t->why = why;
    return is_filled || (builtin->fills && builtin->fills(route->self, record, t->template, s->scratch));
}

static void try_record(struct sampling *s, const struct sl_record *record)
{
    learn_names(s, record);
    for (size_t i = 0; i < s->c->pipeline->n; i++) {
        const struct sl_route *route = &s->c->pipeline->routes[i];
        if (route->when && !sl_when_match(route->when, record, s->scratch))
            continue;
        s->routes[i].taken++;
        for (struct tried *t = s->routes[i].templates; t; t = t->next)
            t->filled += !t->filled && fills(s, route, record, t);
    }
}

static enum sl_status try_batch(void *arg, const struct sl_batch *batch, bool *is_enough,
                                struct sl_error *error)
{
    struct sampling *s = arg;
    (void)error;
    for (size_t i = 0; i < batch->n && s->n_records < SL_CHECK_SAMPLE_RECORDS; i++, s->n_records++) {
        sl_arena_reset(s->scratch);
        if (!s->n_records)
            sl_source_keys_of(sl_batch_record(batch, i), s->c->arena, &s->keys);
        try_record(s, sl_batch_record(batch, i));
    }
    *is_enough = s->n_records == SL_CHECK_SAMPLE_RECORDS;
    return SL_OK;
}

static enum sl_status try_records(struct sampling *s, struct sl_error *error)
{
    const char *ttl = s->c->pipeline->config.ttl_attribute.ptr
                          ? sl_arena_copy(s->c->arena, s->c->pipeline->config.ttl_attribute)
                          : NULL;
    const struct sl_inputs inputs = {.names = &s->c->path, .n = 1};
    return sl_inputs_each(&inputs, ttl, try_batch, s, error);
}

/* ---- what is said ---- */

/* The name within the braces of the message, as far as it is a plain one. */
static const char *nearest_name(const struct sampling *s, const struct tried *t)
{
    const char *open = strchr(t->why.text, '{');
    if (!open)
        return NULL;
    size_t n = strcspn(open + 1, "|}.[");
    struct sl_nearest search = sl_nearest_begin(sl_span(open + 1, n));
    for (size_t i = 0; i < s->n_names; i++)
        if (!sl_span_is(search.name, s->names[i]))
            sl_nearest_consider(&search, s->names[i]);
    return search.best;
}

static void say(const struct sampling *s, size_t i)
{
    const struct sl_check_sample *c = s->c;
    const struct of_route *route = &s->routes[i];
    if (!route->taken) {
        c->find(c->arg, SL_FINDING_SAMPLE_NOT_TAKEN,
                sl_arena_printf(c->arena, "%s: takes none of the %zu records of the sample",
                                c->pipeline->routes[i].config->path, s->n_records));
        return;
    }
    for (const struct tried *t = route->templates; t; t = t->next) {
        const char *near = t->filled ? NULL : nearest_name(s, t);
        if (!t->filled)
            c->find(c->arg, SL_FINDING_SAMPLE_NOT_FILLED,
                    sl_arena_printf(c->arena, "%s: none of %zu records fills it: %s%s%s%s", t->path,
                                    route->taken, t->why.text, near ? "; did you mean {" : "",
                                    near ? near : "", near ? "}?" : ""));
    }
}

/* ---- what needs no sample ---- */

static size_t name_at(struct sl_span text, size_t i)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    size_t n = 0;
    while (i + n < text.len && text.ptr[i + n] && strchr(letters, text.ptr[i + n]))
        n++;
    return n;
}

/* The habit of other template languages: "{{name}}" is the text "{name}" here. */
static void look_for_braces(const struct sl_check_sample *c, const struct tried *t)
{
    for (size_t i = 0; i + 4 < t->text.len; i++) {
        if (t->text.ptr[i] != '{' || t->text.ptr[i + 1] != '{')
            continue;
        size_t n = name_at(t->text, i + 2);
        struct sl_span name = sl_span(t->text.ptr + i + 2, n);
        if (n && sl_span_starts(sl_span_from(t->text, i + 2 + n), SL_LIT("}}")))
            c->find(c->arg, SL_FINDING_TEMPLATE_BRACES,
                    sl_arena_printf(
                        c->arena,
                        "%s: {{%.*s}} is the text \"{%.*s}\", not the attribute's value: write {%.*s}",
                        t->path, SL_ARG(name), SL_ARG(name), SL_ARG(name)));
        i += 1 + n;
    }
}

/* {NewImage.S} is an attribute called S. */
static bool is_image(struct sl_span text)
{
    return sl_span_is(text, "NewImage") || sl_span_is(text, "OldImage") || sl_span_is(text, "Keys");
}

/* DynamoDB's JSON in mind: {NewImage.status.S} looks for a member S of a map. */
static void look_for_tags(const struct sl_check_sample *c, const struct tried *t)
{
    for (size_t i = 0; i < t->text.len; i++) {
        size_t n = t->text.ptr[i] == '{' ? name_at(t->text, i + 1) : 0;
        struct sl_span name = sl_span(t->text.ptr + i + 1, n);
        const char *dot = n ? memrchr(name.ptr, '.', n) : NULL;
        i += n;
        if (!dot)
            continue;
        struct sl_span before = sl_span(name.ptr, (size_t)(dot - name.ptr));
        struct sl_span last = sl_span(dot + 1, n - before.len - 1);
        if (before.len && sl_value_tag(last.ptr, last.len) && !is_image(before))
            c->find(
                c->arg, SL_FINDING_TEMPLATE_TYPE,
                sl_arena_printf(c->arena,
                                "%s: {%.*s} is the member %.*s of a map; an attribute is named without its "
                                "type: {%.*s}",
                                t->path, SL_ARG(name), SL_ARG(last), SL_ARG(before)));
    }
}

enum sl_status sl_check_sample(const struct sl_check_sample *c, struct sl_source_keys *keys,
                               struct sl_error *error)
{
    struct sampling s = {.c = c, .scratch = sl_arena_new(SCRATCH_BYTES)};
    enum sl_status status = SL_OK;
    s.routes = sl_arena_zalloc(c->arena, c->pipeline->n * sizeof(*s.routes));
    for (size_t i = 0; i < c->pipeline->n; i++) {
        find_templates(&s, &c->pipeline->routes[i], &s.routes[i]);
        for (const struct tried *t = s.routes[i].templates; t; t = t->next) {
            look_for_braces(c, t);
            look_for_tags(c, t);
        }
    }
    if (c->path)
        status = try_records(&s, error);
    for (size_t i = 0; status == SL_OK && s.n_records && i < c->pipeline->n; i++)
        say(&s, i);
    *keys = s.keys;
    sl_arena_destroy(s.scratch);
    return status;
}
