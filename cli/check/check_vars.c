/* The variables of a configuration: see cli/check/check_vars.h. */
#include "cli/check/check_vars.h"

#include "base/array.h"
#include "base/span.h"
#include "handlers/pipeline/builtins.h"
#include "handlers/pipeline/config.h"
#include "cli/check/check_stand_in.h"
#include "sinks/target.h"

#include <jansson.h>
#include <string.h>

#define NAMES_MOST 1000

struct variable {
    struct sl_span name;
    const char *value; /* its stand-in */
    const char *route; /* that names it as a secret; NULL: it is a ${NAME} */
    bool is_special;
    bool is_secret; /* read from AWS where it runs */
};

struct gathering {
    const struct sl_check_vars *in;
    const char **list; /* what is set */
    size_t n;
    bool is_used[sizeof(((struct sl_flag_list *)0)->values) / sizeof(char *)]; /* of in->set */
    const json_t *own; /* the configuration's "variables" */
    struct variable *missing;
    size_t n_missing;
};

/* Where a text is. */
struct place {
    const struct sl_option *row;
    const char *member, *route;
    bool is_failure, is_spans, is_nested;
};

/* ---- what is set ---- */

static bool is_of(const char *pair, struct sl_span name)
{
    return strncmp(pair, name.ptr, name.len) == 0 && pair[name.len] == '=';
}

static bool is_set(const struct gathering *g, struct sl_span name)
{
    for (size_t i = 0; i < g->n; i++)
        if (is_of(g->list[i], name))
            return true;
    return false;
}

static enum sl_status take_set(struct gathering *g, struct sl_error *error)
{
    const struct sl_flag_list *set = g->in->set;
    for (size_t i = 0; i < set->n; i++) {
        size_t n = strspn(set->values[i], SL_VARS_LETTERS);
        if (!n || set->values[i][n] != '=')
            return sl_fail(error, SL_REJECT, "BadFlag", "--set %s: write NAME=VALUE", set->values[i]);
        if (is_set(g, sl_span(set->values[i], n)))
            return sl_fail(error, SL_REJECT, "BadFlag", "--set %.*s is given twice; keep one", (int)n,
                           set->values[i]);
        g->list[g->n++] = set->values[i];
    }
    return SL_OK;
}

static void take_environment(struct gathering *g, const struct sl_vars *vars)
{
    for (size_t i = 0; vars->list[i]; i++)
        if (!is_set(g, sl_span(vars->list[i], strcspn(vars->list[i], "="))))
            g->list[g->n++] = vars->list[i];
    if (!is_set(g, SL_LIT("AWS_REGION")))
        g->list[g->n++] = "AWS_REGION=us-east-1";
}

/* ---- what is missing ---- */

static const char *own_text(const struct gathering *g, struct sl_span name)
{
    return json_string_value(json_object_getn(g->own, name.ptr, name.len));
}

static struct variable *need(struct gathering *g, struct sl_span name)
{
    for (size_t i = 0; i < g->in->set->n; i++)
        g->is_used[i] = g->is_used[i] || is_of(g->in->set->values[i], name);
    if (!name.len || is_set(g, name))
        return NULL;
    for (size_t i = 0; i < g->n_missing; i++)
        if (sl_span_eq(g->missing[i].name, name))
            return &g->missing[i];
    const char *own = own_text(g, name);
    struct sl_span reference;
    bool is_secret = own && sl_config_is_secret(sl_span_str(own), &reference);
    if (g->n_missing == NAMES_MOST || (own && !is_secret))
        return NULL;
    struct variable *v = &g->missing[g->n_missing++];
    *v = (struct variable){.name = sl_span(sl_arena_copy(g->in->arena, name), name.len),
                           .is_secret = is_secret};
    return v;
}

static void need_secret(struct gathering *g, const struct place *place, struct sl_span name)
{
    struct variable *v = need(g, name);
    if (!v || v->value)
        return;
    v->value = SL_SECRET_STAND_IN;
    v->route = place->route ? place->route : "";
}

/* Two places may name one variable: the one that takes not every text decides. */
static void need_value(struct gathering *g, const struct place *place, struct sl_span text,
                       struct sl_span name, size_t at)
{
    struct variable *v = need(g, name);
    const struct sl_stand_in_place where = {.row = place->row,
                                            .member = place->member,
                                            .is_failure = place->is_failure,
                                            .is_spans = place->is_spans,
                                            .is_nested = place->is_nested,
                                            .before = sl_span(text.ptr, at),
                                            .after = sl_span_from(text, at + name.len + 3),
                                            .name = name};
    if (!v || v->is_special)
        return;
    v->value = sl_check_stand_in(&where, g->in->arena, &v->is_special);
    v->route = NULL;
}

/* ---- texts ---- */

/* Every ${NAME}; "$${" does not begin one. */
static void look_for_places(struct gathering *g, const struct place *place, struct sl_span text)
{
    for (size_t i = 0; i + 2 < text.len; i++) {
        struct sl_span at = sl_span_from(text, i);
        if (sl_span_starts(at, SL_LIT("$${")))
            i += 2;
        if (!sl_span_starts(at, SL_LIT("${")))
            continue;
        size_t n = strspn(at.ptr + 2, SL_VARS_LETTERS);
        if (at.ptr[n + 2] == '}')
            need_value(g, place, text, sl_span(at.ptr + 2, n), i);
    }
}

/* The names that follow each `mark`, up to a character of `end`, with commas between them. */
static void look_for_secrets(struct gathering *g, const struct place *place, const char *text,
                             const char *mark, const char *end)
{
    for (const char *at = strstr(text, mark); at; at = strstr(at, mark)) {
        at += strlen(mark);
        for (size_t left = strcspn(at, end); left;) {
            size_t n = strcspn(at, ",");
            n = n < left ? n : left;
            if (strspn(at, SL_VARS_LETTERS) == n)
                need_secret(g, place, sl_span(at, n));
            left -= n < left ? n + 1 : n;
            at += n < strcspn(at, end) ? n + 1 : n;
        }
    }
}

/* "#header_env.Authorization=NAME" */
static void look_for_headers(struct gathering *g, const struct place *place, const char *text)
{
    for (const char *at = strstr(text, "header_env."); at; at = strstr(at, "header_env.")) {
        at += strcspn(at, "=&");
        if (*at == '=')
            need_secret(g, place, sl_span(at + 1, strcspn(at + 1, "&")));
    }
}

static void look_at_text(struct gathering *g, const struct place *place, const char *text)
{
    look_for_places(g, place, sl_span_str(text));
    look_for_secrets(g, place, text, "|hmac:", "|}");
    if (strncmp(text, "https:", 6) == 0 || strncmp(text, "http:", 5) == 0 || strncmp(text, "${", 2) == 0) {
        look_for_secrets(g, place, text, "#secret=", "&");
        look_for_secrets(g, place, text, "&secret=", "&");
        look_for_headers(g, place, text);
    }
    if (strncmp(text, "postgres:", 9) == 0) {
        look_for_secrets(g, place, text, "?password=", "&");
        look_for_secrets(g, place, text, "&password=", "&");
    }
    if (strncmp(text, "opensearch:", 11) == 0 && strstr(text, "auth=basic")) {
        need_secret(g, place, SL_LIT("OPENSEARCH_USERNAME"));
        need_secret(g, place, SL_LIT("OPENSEARCH_PASSWORD"));
    }
}

/* ---- the tree ---- */

static void look_at(struct gathering *g, const struct place *place, const json_t *value);

/* Of objects whose members have names of the user's: what counts is in which one a text is. */
static const char *member_of(const char *object, const char *name, struct sl_arena *arena)
{
    static const char *const groups[] = {"add", "running_max", "running_min", "key", "distinct"};
    for (size_t i = 0; object && i < SL_COUNT(groups); i++)
        if (strcmp(object, groups[i]) == 0)
            return sl_arena_printf(arena, "%s/", object);
    return name;
}

static void look_below(struct gathering *g, const struct place *place, const json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        struct place below = *place;
        below.is_nested = true;
        below.member = member_of(place->member, name, g->in->arena);
        look_at_text(g, &(struct place){.route = place->route}, name);
        look_at(g, &below, value);
    }
}

static void look_at(struct gathering *g, const struct place *place, const json_t *value)
{
    size_t i;
    json_t *one;
    if (json_is_string(value))
        look_at_text(g, place, json_string_value(value));
    json_array_foreach((json_t *)value, i, one)
    {
        look_at(g, place, one);
    }
    look_below(g, place, value);
}

static const struct sl_option *row_of(const struct sl_option *rows, const char *name)
{
    for (; rows && rows->type != SL_OPTION_END; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

static const struct sl_option *rows_of(const char *handler)
{
    const struct sl_handler *builtin = handler ? sl_builtin_named(handler)->handler : NULL;
    return builtin ? builtin->options : NULL;
}

/* The members of an object that options are read from. */
static void look_at_members(struct gathering *g, const json_t *object, const struct sl_option *rows,
                            const struct sl_option *more, const char *route)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        struct place place = {.row = row_of(rows, name),
                              .member = name,
                              .route = route,
                              .is_failure = strcmp(name, "on_failure") == 0,
                              .is_spans = strcmp(name, "trace_to") == 0};
        place.row = place.row ? place.row : row_of(more, name);
        bool has_options = more && strcmp(name, "options") == 0;
        look_at_text(g, &(struct place){.route = route}, name);
        if (has_options)
            look_at_members(g, value, more, NULL, route);
        else if (strcmp(name, "routes") != 0)
            look_at(g, &place, value);
    }
}

static void look_at_file(struct gathering *g, const json_t *root)
{
    size_t i;
    json_t *route;
    look_at_members(g, root, sl_config_rows, NULL, NULL);
    json_array_foreach(json_object_get(root, "routes"), i, route)
    {
        const char *name = json_string_value(json_object_get(route, "name"));
        look_at_members(g, route, sl_config_route_rows,
                        rows_of(json_string_value(json_object_get(route, "handler"))), name ? name : "");
    }
}

/* ---- what is said ---- */

static void say_missing(struct gathering *g, const struct variable *v)
{
    struct sl_arena *arena = g->in->arena;
    const char *line =
        v->route ? sl_arena_printf(arena, "%.*s is not set here; the %s%s needs it where it runs",
                                   SL_ARG(v->name), *v->route ? "route " : "function", v->route)
                 : sl_arena_printf(arena, "%.*s is not set here; \"%s\" stands for it (--set %.*s=VALUE)",
                                   SL_ARG(v->name), v->value, SL_ARG(v->name));
    if (!v->is_secret)
        g->in->find(g->in->arg, SL_FINDING_VARIABLE_NOT_SET, line);
    g->list[g->n++] = sl_arena_printf(arena, "%.*s=%s", SL_ARG(v->name), v->value);
}

/* Variables that Sluice and the AWS client read by themselves. */
static bool is_read_anyway(struct sl_span name)
{
    return sl_span_starts(name, SL_LIT("AWS_")) || sl_span_starts(name, SL_LIT("SLUICE_")) ||
           sl_span_ends(name, SL_LIT("_PROXY")) || sl_span_ends(name, SL_LIT("_proxy"));
}

static void say_unused(struct gathering *g)
{
    for (size_t i = 0; i < g->in->set->n; i++) {
        const char *pair = g->in->set->values[i];
        struct sl_span name = sl_span(pair, strcspn(pair, "="));
        if (!g->is_used[i] && !is_read_anyway(name))
            g->in->find(g->in->arg, SL_FINDING_SET_UNUSED,
                        sl_arena_printf(g->in->arena,
                                        "--set %.*s: the configuration has no ${%.*s}, and names it nowhere",
                                        SL_ARG(name), SL_ARG(name)));
    }
}

enum sl_status sl_check_vars(const struct sl_check_vars *in, struct sl_vars *vars, struct sl_error *error)
{
    struct gathering g = {.in = in};
    size_t room = in->set->n + NAMES_MOST + 3;
    for (size_t i = 0; vars->list[i]; i++)
        room++;
    g.list = sl_arena_alloc(in->arena, room * sizeof(*g.list));
    g.missing = sl_arena_alloc(in->arena, NAMES_MOST * sizeof(*g.missing));
    enum sl_status status = take_set(&g, error);
    if (status != SL_OK)
        return status;
    take_environment(&g, vars);
    json_t *root = json_loadb(in->text.ptr, in->text.len, 0, NULL);
    g.own = json_object_get(root, "variables");
    if (root) {
        look_at_file(&g, root);
        for (size_t i = 0; i < g.n_missing; i++)
            say_missing(&g, &g.missing[i]);
        say_unused(&g);
    }
    json_decref(root);
    g.list[g.n] = NULL;
    vars->list = g.list;
    return SL_OK;
}
