#include "tests/support/history.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_S 1767265000

size_t history_draw(uint64_t *state, size_t n)
{
    return (size_t)(sl_random_step(state) % n);
}

/* ---- NUL, which jansson does not hold ---- */

void history_put_nul(char *json)
{
    while ((json = strstr(json, HISTORY_NUL)))
        memcpy(json, "\\u0000", strlen(HISTORY_NUL));
}

void history_take_nul(char *json)
{
    for (; *json; json++)
        if (*json == '\\' && strncmp(json, "\\u0000", strlen(HISTORY_NUL)) == 0)
            memcpy(json, HISTORY_NUL, strlen(HISTORY_NUL));
        else if (*json == '\\')
            json++;
}

size_t history_item(const json_t *item)
{
    const char *pk = json_string_value(json_object_get(json_object_get(item, "PK"), "S"));
    const char *sk = json_string_value(json_object_get(json_object_get(item, "SK"), "N"));
    return (size_t)strtol(pk + strlen("order#"), NULL, 10) * 3 + (size_t)strtod(sk, NULL);
}

/* ---- items ---- */

static json_t *scalar(const char *tag, const char *text)
{
    return json_pack("{s:s}", tag, text);
}

/* Some names have a NUL. One number is spelled in many ways: records and images need not agree. */
static json_t *key_of(size_t item, size_t spelling)
{
    static const char *const numbers[3][4] = {
        {"0", "-0", "0.0", "0E3"}, {"1", "1.0", "10e-1", "+1"}, {"2", "2.00", "0.2E1", "02"}};
    char name[64];
    snprintf(name, sizeof(name), "order#%zu%s", item / 3, item / 3 % 4 == 1 ? HISTORY_NUL "x" : "");
    const char *number = numbers[item % 3][spelling % 4];
    return json_pack("{s:o,s:o}", "PK", scalar("S", name), "SK", scalar("N", number));
}

static json_t *draw_total(uint64_t *state)
{
    char text[64];
    switch (history_draw(state, 5)) {
    case 0:
        return NULL;
    case 1:
        snprintf(text, sizeof(text), "%zu", history_draw(state, 1000));
        break;
    case 2:
        snprintf(text, sizeof(text), "-%zu.%02zu", history_draw(state, 1000), history_draw(state, 89) + 11);
        break;
    case 3:
        snprintf(text, sizeof(text), "%zu.%09zu1", history_draw(state, 1000000),
                 history_draw(state, 1000000000));
        break;
    default:
        snprintf(text, sizeof(text), "0.%020zu7", history_draw(state, 1000000));
    }
    return scalar("N", text);
}

static json_t *draw_note(uint64_t *state)
{
    static const char *const notes[] = {
        "",           "plain",     "\"quoted\" \\ and {braces}", "line\nbreak\ttab", "\xC3\xA9\xE2\x82\xAC",
        "}},\"x\":{", HISTORY_NUL, "a" HISTORY_NUL "b"};
    json_t *list = json_pack("{s:[o,o]}", "L", scalar("S", notes[history_draw(state, 8)]),
                             json_pack("{s:{s:{s:b},s:{s:b}}}", "M", "deep" HISTORY_NUL, "NULL", 1, "flag",
                                       "BOOL", (int)history_draw(state, 2)));
    return list;
}

/* ---- lines ---- */

static json_t *draw_line(uint64_t *state, const char *id)
{
    char sku[16], qty[16];
    snprintf(sku, sizeof(sku), "S#%zu%%", history_draw(state, 7));
    snprintf(qty, sizeof(qty), "%zu", history_draw(state, 4));
    json_t *line = json_pack("{s:o,s:o}", "id", scalar("S", id), "qty", scalar("N", qty));
    if (history_draw(state, 8))
        json_object_set_new(line, "sku", scalar("S", sku));
    return json_pack("{s:o}", "M", line);
}

static const char *line_id(const json_t *line)
{
    return json_string_value(json_object_get(json_object_get(json_object_get(line, "M"), "id"), "S"));
}

/* Each id once. */
static void add_line(uint64_t *state, json_t *list)
{
    char id[16];
    size_t i;
    json_t *line;
    snprintf(id, sizeof(id), "l%zu", history_draw(state, 30));
    json_array_foreach(list, i, line)
    {
        if (strcmp(line_id(line), id) == 0)
            return;
    }
    json_array_insert_new(list, history_draw(state, json_array_size(list) + 1), draw_line(state, id));
}

static void change_lines(uint64_t *state, json_t *image)
{
    json_t *list = json_object_get(json_object_get(image, "lines"), "L");
    if (!list || history_draw(state, 8) == 0) {
        list = json_array();
        json_object_set_new(image, "lines", json_pack("{s:o}", "L", list));
    }
    size_t n = json_array_size(list), at = n ? history_draw(state, n) : 0;
    switch (history_draw(state, 6)) {
    case 0:
        json_object_del(image, "lines");
        break;
    case 1:
        if (n)
            json_array_remove(list, at);
        break;
    case 2:
        if (n)
            json_array_set_new(list, at, draw_line(state, line_id(json_array_get(list, at))));
        break;
    case 3:
        if (n) { /* the order alone */
            json_t *line = json_incref(json_array_get(list, at));
            json_array_remove(list, at);
            json_array_append_new(list, line);
        }
        break;
    default:
        for (size_t k = history_draw(state, 5); k > 0; k--)
            add_line(state, list);
    }
}

static json_t *draw_item(uint64_t *state, size_t item, const json_t *before, size_t spelling)
{
    static const char *const names[] = {"OPEN", "PAID", "SHIPPED", "CANCELED"};
    json_t *image = before ? json_deep_copy(before) : json_object(), *key = key_of(item, spelling);
    json_object_update(image, key);
    json_decref(key);
    size_t what = before ? history_draw(state, 4) : 3;
    if (what == 1 || what == 3)
        json_object_set_new(image, "status", scalar("S", names[history_draw(state, 4)]));
    if (what >= 2) {
        json_t *total = draw_total(state);
        if (total)
            json_object_set_new(image, "total", total);
        else
            json_object_del(image, "total");
    }
    if (what == 0 || what == 3)
        json_object_set_new(image, "note", draw_note(state));
    char text[32];
    snprintf(text, sizeof(text), "%zu", history_draw(state, 1000000000));
    json_object_set_new(image, "version", scalar("N", text));
    json_object_set_new(image, HISTORY_NUL "name", scalar("S", HISTORY_NUL));
    return image;
}

/* ---- records ---- */

static void add_images(json_t *change, const char *view, json_t *after, json_t *before)
{
    if (after && strstr(view, "NEW"))
        json_object_set(change, "NewImage", after);
    if (before && strstr(view, "OLD"))
        json_object_set(change, "OldImage", before);
}

static json_t *make_record(const struct history *h, size_t item, json_t *after, json_t *before, size_t i,
                           uint64_t *state, uint64_t *sequence)
{
    char id[64], number[64], arn[256];
    const char *name = !before ? "INSERT" : after ? "MODIFY" : "REMOVE";
    *sequence += 1 + history_draw(state, 1000);
    snprintf(id, sizeof(id), "%016llx%016zx", (unsigned long long)h->options.seed, i);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)*sequence);
    snprintf(arn, sizeof(arn),
             "arn:aws:dynamodb:eu-west-1:123456789012:table/%s/stream/2026-01-01T00:00:00.000",
             h->options.table ? h->options.table : "orders");
    json_t *change = json_pack("{s:I,s:o,s:s,s:i,s:s}", "ApproximateCreationDateTime",
                               (json_int_t)(TIME_S + i / 7), "Keys", key_of(item, i), "SequenceNumber",
                               number, "SizeBytes", 1, "StreamViewType", h->options.view);
    add_images(change, h->options.view, after, before);
    json_t *record = json_pack("{s:s,s:s,s:s,s:s,s:s,s:o,s:s}", "eventID", id, "eventName", name,
                               "eventVersion", "1.1", "eventSource", "aws:dynamodb", "awsRegion", "eu-west-1",
                               "dynamodb", change, "eventSourceARN", arn);
    if (!after && history_draw(state, 3) == 0)
        json_object_set_new(
            record, "userIdentity",
            json_pack("{s:s,s:s}", "type", "Service", "principalId", "dynamodb.amazonaws.com"));
    return record;
}

void history_make(struct history *h, const struct history_options *options)
{
    *h = (struct history){.options = *options, .table = json_object(), .records = json_array()};
    uint64_t state = options->seed, sequence = 99999999999999999u;
    for (size_t i = 0; i < options->changes; i++) {
        if (i == options->changes / 2)
            h->snapshot = json_copy(h->table);
        size_t item = history_draw(&state, options->items);
        char key[32];
        snprintf(key, sizeof(key), "%zu", item);
        json_t *before = json_incref(json_object_get(h->table, key));
        bool removes = before && history_draw(&state, 4) == 0;
        json_t *after = removes ? NULL : draw_item(&state, item, before, i + i / 3);
        if (after && options->has_lines && history_draw(&state, 2))
            change_lines(&state, after);
        json_array_append_new(h->records, make_record(h, item, after, before, i, &state, &sequence));
        if (after)
            json_object_set_new(h->table, key, after);
        else
            json_object_del(h->table, key);
        json_decref(before);
    }
}

void history_clean_up(struct history *h)
{
    json_decref(h->table);
    json_decref(h->snapshot);
    json_decref(h->records);
}

/* The items of a map, as an event. */
static char *export_of(const struct history *h, const json_t *items, size_t first, size_t most)
{
    json_t *list = json_array(), *item;
    const char *key;
    size_t i = 0;
    json_object_foreach((json_t *)items, key, item)
    {
        if (i++ < first || json_array_size(list) == most)
            continue;
        char number[32];
        snprintf(number, sizeof(number), "%021zu", json_array_size(list) + 1);
        json_t *change = json_pack("{s:{s:O,s:O},s:O,s:s,s:s}", "Keys", "PK", json_object_get(item, "PK"),
                                   "SK", json_object_get(item, "SK"), "NewImage", item, "SequenceNumber",
                                   number, "StreamViewType", h->options.view);
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:o}", "eventID", number, "eventName", "INSERT", "dynamodb", change));
    }
    json_t *event = json_pack("{s:o}", "Records", list);
    char *text = json_array_size(list) ? json_dumps(event, JSON_COMPACT) : NULL;
    json_decref(event);
    if (text)
        history_put_nul(text);
    return text;
}

char *history_export(const struct history *h)
{
    return export_of(h, h->snapshot, 0, SIZE_MAX);
}

char *history_export_at(const struct history *h, size_t n, size_t first, size_t most)
{
    json_t *items = json_object();
    for (size_t i = 0; i < n; i++) {
        const json_t *change = json_object_get(json_array_get(h->records, i), "dynamodb");
        char key[32];
        snprintf(key, sizeof(key), "%zu", history_item(json_object_get(change, "Keys")));
        json_t *image = json_object_get(change, "NewImage");
        if (image)
            json_object_set(items, key, image);
        else
            json_object_del(items, key);
    }
    char *text = export_of(h, items, first, most);
    json_decref(items);
    return text;
}

char *history_event(const struct history *h, size_t first, size_t n)
{
    json_t *list = json_array();
    for (size_t i = first; i < first + n && i < json_array_size(h->records); i++)
        json_array_append(list, json_array_get(h->records, i));
    json_t *event = json_pack("{s:o}", "Records", list);
    char *text = json_dumps(event, JSON_COMPACT);
    json_decref(event);
    history_put_nul(text);
    return text;
}
