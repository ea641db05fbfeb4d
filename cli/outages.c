/* Outages of a replay, and what is made of their letters: see cli/outages.h. */
#include "cli/outages.h"

#include "base/array.h"
#include "base/json.h"
#include "base/span.h"
#include "cli/config/restrict.h"
#include "handlers/dispatch/drain.h"
#include "handlers/pipeline/config.h"
#include "live/source/letters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST  32
#define BATCH 10 /* letters of an event: the mapping's BatchSize */
#define LANES 2  /* events of a queue at a time: the mapping's MaximumConcurrency */
/* How often a letter may fail while its target is well. (SQS moves one after a thousand receives.) */
#define MOST_FAILURES 20

struct outage {
    struct sl_span route;
    int64_t from_ms, to_ms;
};

struct letter {
    char *body;
    size_t len, number;
    int64_t sent_ms, visible_ms;
    unsigned failures; /* while its target was well */
};

/* What a route sets aside. */
struct place {
    const char *route;
    bool is_paused;
    int fd; /* a file in memory, to which the route appends a line for each letter */
    off_t at;
    struct letter *letters; /* those that wait */
    size_t n, room;
    int64_t free_ms[LANES];
    size_t sent, drained, receives, left;
    int64_t oldest_ms;
};

struct sl_outages {
    struct sl_outages_options o;
    struct outage list[MOST];
    size_t n;
    struct place places[MOST];
    size_t n_places;
    struct sl_restricted config;
    struct sl_runner *drain; /* NULL: there was no letter yet */
    const char *down;        /* the routes whose targets are down now, as in SLUICE_OUTAGE */
    bool is_stale;           /* the drain's breaker closed a route whose target is well: a new process */
    uint64_t events;
};

/* ---- the flag ---- */

static bool read_seconds(struct sl_span *text, int64_t *out_ms)
{
    int64_t n = 0;
    size_t i = 0;
    for (; i < text->len && i < 8 && text->ptr[i] >= '0' && text->ptr[i] <= '9'; i++)
        n = 10 * n + (text->ptr[i] - '0');
    *text = sl_span_from(*text, i);
    *out_ms = n * 1000;
    return i > 0;
}

static enum sl_status read_spec(struct sl_outages *o, const char *spec, struct sl_error *error)
{
    struct outage *outage = &o->list[o->n];
    const char *at = strrchr(spec, '@');
    struct sl_span when = sl_span_str(at ? at + 1 : "");
    bool is_good =
        at && at > spec && read_seconds(&when, &outage->from_ms) && sl_span_starts(when, SL_LIT("-"));
    if (is_good) {
        when = sl_span_from(when, 1);
        is_good = read_seconds(&when, &outage->to_ms) && !when.len && outage->to_ms > outage->from_ms;
    }
    if (!is_good)
        return sl_fail(
            error, SL_REJECT, "InvalidOutage",
            "--outage: \"%s\" is not ROUTE@A-B: the target of ROUTE is down from A to B, in seconds of "
            "virtual time since the beginning, such as search@60-3600",
            spec);
    outage->route = sl_span(spec, (size_t)(at - spec));
    o->n++;
    return SL_OK;
}

static enum sl_status read_specs(struct sl_outages *o, struct sl_error *error)
{
    const struct sl_flag_list *specs = o->o.specs;
    enum sl_status status = SL_OK;
    if (specs->n > MOST)
        return sl_fail(error, SL_REJECT, "InvalidOutage", "--outage: there are more than %d", MOST);
    for (size_t i = 0; i < specs->n && status == SL_OK; i++)
        status = read_spec(o, specs->values[i], error);
    return status;
}

/* ---- the configuration ---- */

static const char *own_file(int fd, struct sl_arena *arena)
{
    return sl_arena_printf(arena, "jsonl:/proc/%d/fd/%d", (int)getpid(), fd);
}

static enum sl_status add_place(struct sl_outages *o, json_t *route, const char *name, struct sl_error *error)
{
    if (o->n_places == MOST)
        return sl_fail(error, SL_REJECT, "TooManyRoutes", "--outage: more than %d routes have set_aside",
                       MOST);
    struct place *place = &o->places[o->n_places++];
    *place = (struct place){.route = sl_arena_copy(o->o.arena, sl_span_str(name)),
                            .is_paused = json_is_true(json_object_get(route, "paused")),
                            .fd = memfd_create("letters", MFD_CLOEXEC),
                            .oldest_ms = -1};
    if (place->fd < 0)
        return sl_fail(error, SL_FATAL, "NoMemoryFile", "a file in memory for letters cannot be created: %s",
                       strerror(errno));
    json_object_set_new(route, "set_aside", json_string(own_file(place->fd, o->o.arena)));
    return SL_OK;
}

static bool is_named(const struct sl_outages *o, size_t i, const json_t *routes)
{
    size_t k;
    const json_t *route;
    json_array_foreach((json_t *)(uintptr_t)routes, k, route)
    {
        const char *name = json_string_value(json_object_get(route, "name"));
        if (name && sl_span_is(o->list[i].route, name))
            return true;
    }
    return false;
}

static enum sl_status copy_config(struct sl_outages *o, struct sl_error *error)
{
    json_t *root = sl_config_tree(o->o.config, o->o.arena, error), *route;
    json_t *routes = json_object_get(root, "routes");
    enum sl_status status = SL_OK;
    size_t i;
    if (!root)
        return SL_REJECT;
    for (i = 0; i < o->n && status == SL_OK; i++)
        if (!is_named(o, i, routes))
            status = sl_fail(error, SL_REJECT, "InvalidOutage", "--outage: %s has no route \"%.*s\"",
                             o->o.config, SL_ARG(o->list[i].route));
    json_array_foreach(routes, i, route)
    {
        const char *name = json_string_value(json_object_get(route, "name"));
        if (status == SL_OK && name && json_object_get(route, "set_aside"))
            status = add_place(o, route, name, error);
    }
    if (status == SL_OK)
        status = sl_restrict_write(root, o->o.arena, &o->config, error);
    json_decref(root);
    return status;
}

enum sl_status sl_outages_open(const struct sl_outages_options *options, struct sl_outages **out,
                               struct sl_error *error)
{
    struct sl_outages *o = sl_arena_zalloc(options->arena, sizeof(*o));
    o->o = *options;
    o->config.fd = -1;
    o->down = "";
    enum sl_status status = read_specs(o, error);
    if (status == SL_OK)
        status = copy_config(o, error);
    if (status != SL_OK)
        sl_outages_close(o);
    *out = status == SL_OK ? o : NULL;
    return status;
}

void sl_outages_close(struct sl_outages *o)
{
    if (!o)
        return;
    sl_runner_destroy(o->drain);
    for (size_t i = 0; i < o->n_places; i++) {
        struct place *place = &o->places[i];
        for (size_t k = 0; k < place->n; k++)
            free(place->letters[k].body);
        free(place->letters);
        if (place->fd >= 0)
            close(place->fd);
    }
    if (o->config.fd >= 0)
        close(o->config.fd);
}

const char *sl_outages_config(const struct sl_outages *o)
{
    return o->config.path;
}

/* ---- what is down ---- */

static bool is_down(const struct sl_outages *o, struct sl_span route, int64_t now_ms)
{
    for (size_t i = 0; i < o->n; i++)
        if (sl_span_eq(o->list[i].route, route) && now_ms >= o->list[i].from_ms && now_ms < o->list[i].to_ms)
            return true;
    return false;
}

/* The text changes, and with it its address, only when what is down does. */
static void look(struct sl_outages *o, int64_t now_ms)
{
    struct sl_buffer b;
    sl_buffer_init(&b, 64 * 1024);
    for (size_t i = 0; i < o->n; i++) {
        bool is_told = false;
        for (size_t k = 0; k < i; k++)
            is_told = is_told || sl_span_eq(o->list[k].route, o->list[i].route);
        if (!is_told && is_down(o, o->list[i].route, now_ms))
            sl_buffer_printf(&b, "%s%.*s", b.len ? "," : "", SL_ARG(o->list[i].route));
    }
    if (!sl_span_is(sl_buffer_span(&b), o->down))
        o->down = sl_arena_copy(o->o.arena, sl_buffer_span(&b));
    sl_buffer_clean_up(&b);
}

void sl_outages_begin(struct sl_outages *o, int64_t now_ms, struct sl_runner *runner)
{
    look(o, now_ms);
    sl_runner_set_outage(runner, o->down);
}

/* ---- the queues ---- */

static void add_letter(struct place *place, struct sl_span body, int64_t now_ms)
{
    char *copy = malloc(body.len + 1);
    if (!copy)
        sl_die("out of memory: a letter");
    memcpy(copy, body.ptr, body.len);
    SL_PUSH(place->letters, place->n, place->room, "letters") = (struct letter){
        .body = copy, .len = body.len, .number = place->sent++, .sent_ms = now_ms, .visible_ms = now_ms};
}

static void collect(struct place *place, int64_t now_ms)
{
    off_t end = lseek(place->fd, 0, SEEK_END);
    if (end <= place->at)
        return;
    size_t n = (size_t)(end - place->at);
    char *text = malloc(n);
    if (!text)
        sl_die("out of memory: letters");
    ssize_t got = pread(place->fd, text, n, place->at);
    struct sl_span rest = sl_span(text, got > 0 ? (size_t)got : 0);
    const char *line_end;
    while (rest.len && (line_end = memchr(rest.ptr, '\n', rest.len))) {
        size_t len = (size_t)(line_end - rest.ptr);
        add_letter(place, sl_span(rest.ptr, len), now_ms);
        place->at += (off_t)len + 1;
        rest = sl_span_from(rest, len + 1);
    }
    free(text); /* another sandbox may be writing the line that has no end yet */
}

void sl_outages_collect(struct sl_outages *o, int64_t now_ms)
{
    for (size_t i = 0; i < o->n_places; i++)
        collect(&o->places[i], now_ms);
}

/* ---- the drain ---- */

static size_t free_lane(const struct place *place)
{
    size_t first = 0;
    for (size_t i = 1; i < LANES; i++)
        first = place->free_ms[i] < place->free_ms[first] ? i : first;
    return first;
}

/* Letters of a paused route are received once an hour, and fail. */
static int64_t due_of(const struct place *place)
{
    int64_t due = INT64_MAX, free_at = place->free_ms[free_lane(place)];
    for (size_t i = 0; i < place->n && !place->is_paused; i++)
        due = place->letters[i].visible_ms < due ? place->letters[i].visible_ms : due;
    return due == INT64_MAX || due > free_at ? due : free_at;
}

int64_t sl_outages_due_ms(const struct sl_outages *o)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < o->n_places; i++)
        due = due_of(&o->places[i]) < due ? due_of(&o->places[i]) : due;
    return due;
}

/* The event runs at once, and takes its time on the virtual clock. */
static struct sl_span ask(struct sl_outages *o, const struct sl_letters_message *messages, size_t n,
                          struct sl_arena *arena)
{
    if (!o->drain) {
        struct sl_runner_options options = o->o.runner;
        options.sandbox.config_path = o->config.path;
        options.sandbox.report_failures = true;
        options.faults = (struct sl_faults){.random = 1};
        o->drain = sl_runner_new(&options);
    }
    /* Its breaker counts in real time, in which the quarter of an hour until the next receive is nothing. */
    if (o->is_stale)
        o->down = sl_arena_copy(o->o.arena, sl_span_str(o->down));
    o->is_stale = false;
    sl_runner_set_outage(o->drain, o->down);
    return sl_letters_run(o->drain, ++o->events, messages, n, arena);
}

static void settle(struct sl_outages *o, struct place *place, size_t i, bool is_done, int64_t now_ms)
{
    struct letter *letter = &place->letters[i];
    const int64_t age_ms = now_ms - letter->sent_ms;
    letter->visible_ms = now_ms + SL_DRAIN_HIDDEN_S * (int64_t)1000;
    const bool has_failed = !is_done && !is_down(o, sl_span_str(place->route), now_ms);
    letter->failures += has_failed;
    o->is_stale = o->is_stale || has_failed;
    if (!is_done && letter->failures < MOST_FAILURES)
        return;
    place->drained += is_done;
    place->left += !is_done;
    place->oldest_ms = is_done && age_ms > place->oldest_ms ? age_ms : place->oldest_ms;
    free(letter->body);
    *letter = place->letters[--place->n];
}

static void drain_place(struct sl_outages *o, struct place *place, int64_t now_ms)
{
    struct sl_arena *arena = sl_arena_new(256 * 1024);
    struct sl_letters_message messages[BATCH];
    size_t which[BATCH], n = 0;
    for (size_t i = 0; i < place->n && n < BATCH; i++) {
        struct letter *letter = &place->letters[i];
        if (letter->visible_ms > now_ms)
            continue;
        messages[n] = (struct sl_letters_message){sl_arena_printf(arena, "letter-%zu", letter->number),
                                                  sl_span(letter->body, letter->len)};
        which[n++] = i;
    }
    place->receives += n;
    place->free_ms[free_lane(place)] = now_ms + o->o.invocation_ms;
    struct sl_span answer = ask(o, messages, n, arena);
    for (size_t i = n; i-- > 0;) /* from the last: the place of one that goes is filled from the end */
        settle(o, place, which[i], sl_letters_is_done(answer, messages, n, i), now_ms);
    sl_arena_destroy(arena);
}

void sl_outages_drain(struct sl_outages *o, int64_t now_ms)
{
    look(o, now_ms);
    for (size_t i = 0; i < o->n_places; i++)
        if (due_of(&o->places[i]) <= now_ms)
            drain_place(o, &o->places[i], now_ms);
}

/* ---- what became of it ---- */

size_t sl_outages_left(const struct sl_outages *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_places; i++)
        n += o->places[i].n + o->places[i].left;
    return n;
}

const char *sl_outages_text(const struct sl_outages *o)
{
    struct sl_buffer b;
    sl_buffer_init(&b, 1 << 20);
    for (size_t i = 0; i < o->n; i++)
        sl_buffer_printf(&b, "outage          %8lld   s, of %.*s, after %lld s\n",
                         (long long)(o->list[i].to_ms - o->list[i].from_ms) / 1000, SL_ARG(o->list[i].route),
                         (long long)o->list[i].from_ms / 1000);
    for (size_t i = 0; i < o->n_places; i++) {
        const struct place *p = &o->places[i];
        if (!p->sent)
            continue;
        sl_buffer_printf(&b, "letters         %8zu   of %s; drained %zu, in %zu receives", p->sent, p->route,
                         p->drained, p->receives);
        if (p->drained)
            sl_buffer_printf(&b, ", the oldest after %lld s", (long long)p->oldest_ms / 1000);
        sl_buffer_printf(&b, "; left %zu%s\n", p->n + p->left, p->is_paused ? ", for it is paused" : "");
    }
    const char *text = sl_arena_copy(o->o.arena, sl_buffer_span(&b));
    sl_buffer_clean_up(&b);
    return text;
}
