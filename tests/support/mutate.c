#include "tests/support/mutate.h"

#include <stdio.h>

static json_t *mutate(const json_t *value, const char *path, struct json_mutation *m);

static json_t *mutate_object(const json_t *value, const char *path, struct json_mutation *m)
{
    json_t *out = json_object(), *member;
    const char *name;
    char inner[200];
    json_object_foreach((json_t *)value, name, member)
    {
        snprintf(inner, sizeof(inner), "%s/%s", path, name);
        json_t *changed = mutate(member, inner, m);
        if (changed)
            json_object_set_new(out, name, changed);
    }
    return out;
}

static json_t *mutate_array(const json_t *value, const char *path, struct json_mutation *m)
{
    json_t *out = json_array(), *element;
    size_t i;
    char inner[200];
    json_array_foreach(value, i, element)
    {
        snprintf(inner, sizeof(inner), "%s/%zu", path, i);
        bool is_it = m->node == 0;
        json_t *changed = mutate(element, inner, m);
        if (changed && is_it && m->change == JSON_DOUBLED)
            json_array_append(out, changed);
        if (changed)
            json_array_append_new(out, changed);
    }
    return out;
}

static json_t *mutate(const json_t *value, const char *path, struct json_mutation *m)
{
    if (m->node-- == 0) {
        snprintf(m->path, sizeof(m->path), "%s", path);
        m->was = value;
        if (m->change == JSON_LEFT_OUT)
            return NULL;
        return m->change == JSON_REPLACED ? json_incref(m->with) : json_incref((json_t *)value);
    }
    return json_is_object(value)  ? mutate_object(value, path, m)
           : json_is_array(value) ? mutate_array(value, path, m)
                                  : json_incref((json_t *)value);
}

json_t *json_mutate(const json_t *value, struct json_mutation *m)
{
    return mutate(value, "", m);
}

int json_count(const json_t *value)
{
    int n = 1;
    size_t i;
    const char *name;
    json_t *inner;
    if (json_is_object(value))
        json_object_foreach((json_t *)value, name, inner) n += json_count(inner);
    json_array_foreach(value, i, inner) n += json_count(inner);
    return n;
}
