/* Paths to leave out, as a tree, and values written without them. */
#include "handlers/builtin/toolkit/prune.h"

#include "handlers/builtin/toolkit/text.h"

/* ---- paths ---- */

/* The step at `*p`, which moves past it: a name, or an absent span for "[*]". False: there is none. */
static bool read_step(const char **p, const char *end, struct sl_span *name)
{
    const char *begin = *p;
    *name = (struct sl_span){NULL, 0};
    if (*p < end && **p == '[') {
        bool is_all = end - *p >= 3 && memcmp(*p, "[*]", 3) == 0;
        *p += is_all ? 3 : 0;
        return is_all;
    }
    if (*p < end && **p == '`') {
        const char *close = memchr(begin + 1, '`', (size_t)(end - begin - 1));
        if (!close)
            return false;
        *name = (struct sl_span){begin + 1, (size_t)(close - begin - 1)};
        *p = close + 1;
        return name->len > 0;
    }
    while (*p < end && **p != '.' && **p != '[' && **p != '`')
        (*p)++;
    *name = (struct sl_span){begin, (size_t)(*p - begin)};
    return name->len > 0;
}

static struct sl_prune *find(const struct sl_prune *step, struct sl_span name)
{
    for (struct sl_prune *below = step->below; below; below = below->next)
        if (!below->name.ptr == !name.ptr && sl_span_eq(below->name, name))
            return below;
    return NULL;
}

static struct sl_prune *take_step(const struct sl_host *host, struct sl_arena *arena, struct sl_prune *step,
                                  struct sl_span name)
{
    struct sl_prune *below = find(step, name);
    if (below)
        return below;
    below = host->alloc(arena, sizeof(*below));
    *below = (struct sl_prune){.name = name, .next = step->below};
    if (name.ptr)
        below->name = host->join(arena, &name, 1);
    return step->below = below;
}

const char *sl_prune_add(const struct sl_host *host, struct sl_arena *arena, struct sl_prune *root,
                         struct sl_span path)
{
    const char *p = path.ptr, *end = p + path.len;
    struct sl_prune *step = root;
    struct sl_span name = {NULL, 0};
    if (p < end && *p == '[')
        return "a path begins with an attribute's name";
    if (p < end && *p == '$' && (p + 1 == end || p[1] == '.' || p[1] == '['))
        return "a path begins with an attribute's name, not with $";
    do {
        if (step != root && *p == '.')
            p++;
        if (!read_step(&p, end, &name))
            return p < end && *p == '['
                       ? "an element's place moves when others come and go; write [*] for every element"
                       : "expected a path such as a, a.b, a[*].b or `a.b`";
        step = take_step(host, arena, step, name);
        if (p < end && *p != '.' && *p != '[')
            return "expected a path such as a, a.b, a[*].b or `a.b`";
    } while (p < end);
    step->is_left_out = true;
    return name.ptr ? NULL : "a path ends with a name; to leave out all elements name the list alone";
}

/* ---- writing ---- */

static struct sl_span plain_name(const struct sl_host *host, struct sl_arena *arena, struct sl_span name)
{
    return memchr(name.ptr, '\\', name.len) ? host->json_unquote(arena, name) : name;
}

/* The tag that a value of this type has, up to its first element. */
static const char *opening_of(enum sl_type type)
{
    return type == SL_M ? "{\"M\":{" : "{\"L\":[";
}

char *sl_prune_put(const struct sl_host *host, struct sl_arena *arena, const struct sl_prune *step,
                   struct sl_value v, char *at)
{
    if (!step->below || (v.type != SL_M && v.type != SL_L))
        return host->value_put(at, v);
    struct sl_iter iter = host->value_iter(v);
    struct sl_span name = {NULL, 0};
    struct sl_value value;
    char *first = at = sl_text_put(at, sl_span_str(opening_of(v.type)));
    while (host->value_next(&iter, &name, &value)) {
        struct sl_span plain = v.type == SL_M ? plain_name(host, arena, name) : (struct sl_span){NULL, 0};
        const struct sl_prune *below = find(step, plain);
        if (below && below->is_left_out)
            continue;
        if (at > first)
            *at++ = ',';
        if (v.type == SL_M) {
            *at++ = '"';
            at = sl_text_put(at, name);
            at = sl_text_put(at, SL_LIT("\":"));
        }
        at = below ? sl_prune_put(host, arena, below, value, at) : host->value_put(at, value);
    }
    return sl_text_put(at, v.type == SL_M ? SL_LIT("}}") : SL_LIT("]}"));
}
