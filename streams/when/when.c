/* The members of `when`: read and matched. Patterns, tests of values and walks are in the files below. */
#include "streams/when/when.h"

#include "base/array.h"
#include "base/json.h"
#include "base/nearest.h"
#include "streams/record_layout.h"
#include "streams/when/when_private.h"

/* ---- the members of `when` ---- */

struct draft {
    struct sl_when *when;
    struct sl_span *changed;
    struct sl_when_sets sets;
};

typedef enum sl_status (*read_fn)(struct sl_when_parse *parse, struct sl_span value, struct draft *draft);

static enum sl_status read_list(struct sl_when_parse *parse, struct sl_span list, read_fn read,
                                struct draft *draft)
{
    if (list.ptr[0] != '[')
        return sl_when_fail(parse, list, "a list is expected");
    struct sl_json_walk c = sl_json_walk(list);
    struct sl_span element;
    size_t i = 0;
    for (; sl_json_walk_next(&c, NULL, &element); i++) {
        struct sl_when_place place = {parse->place, {0}, i};
        parse->place = &place;
        enum sl_status status = read(parse, element, draft);
        parse->place = place.parent;
        if (status != SL_OK)
            return status;
    }
    return i ? SL_OK : sl_when_fail(parse, list, "the list is empty and would match nothing");
}

static enum sl_status read_expired(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    draft->when->expired = true;
    draft->when->or_inferred = sl_span_is(value, "\"any\"");
    if (draft->when->or_inferred || sl_span_is(value, "true"))
        return SL_OK;
    return sl_when_fail(parse, value, "true or \"any\" is expected");
}

static enum sl_status read_event(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    static const char *const names[] = {
        [SL_INSERT] = "\"INSERT\"", [SL_MODIFY] = "\"MODIFY\"", [SL_REMOVE] = "\"REMOVE\""};
    for (unsigned i = SL_INSERT; i <= SL_REMOVE; i++)
        if (sl_span_is(value, names[i])) {
            draft->when->events |= 1u << i;
            return SL_OK;
        }
    return sl_when_fail(parse, value,
                        "%.*s is not an event: \"INSERT\", \"MODIFY\" or \"REMOVE\" is expected",
                        SL_ARG(value));
}

static enum sl_status read_events(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    return read_list(parse, value, read_event, draft);
}

static enum sl_status read_name(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    if (value.ptr[0] != '"' || sl_span_is(value, "\"\""))
        return sl_when_fail(parse, value, "the name of an attribute is expected");
    draft->changed[draft->when->n_changed++] = sl_when_string(parse, value);
    return SL_OK;
}

static enum sl_status read_changed(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    /* A name and its comma are three bytes at least. */
    draft->changed = sl_arena_alloc(parse->arena, (value.len / 3 + 1) * sizeof(draft->changed[0]));
    draft->when->changed = draft->changed;
    draft->when->needs |= 1u << SL_NEW_IMAGE | 1u << SL_OLD_IMAGE;
    draft->when->images |= draft->when->needs;
    return read_list(parse, value, read_name, draft);
}

static enum sl_status read_pattern(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    return sl_when_compile_pattern(parse, value, &draft->sets);
}

static enum sl_status read_patterns(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    return read_list(parse, value, read_pattern, draft);
}

static enum sl_status read_plain(struct sl_when_parse *parse, struct sl_span value, struct draft *draft,
                                 enum sl_image image)
{
    struct sl_plain *plain;
    enum sl_status status = sl_plain_compile(parse, value, &plain);
    draft->when->plain[image] = plain;
    draft->when->images |= 1u << image;
    draft->when->needs |= 1u << image;
    return status;
}

static enum sl_status read_keys(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    return read_plain(parse, value, draft, SL_KEYS);
}

static enum sl_status read_item(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    return read_plain(parse, value, draft, SL_NEW_IMAGE);
}

static enum sl_status read_old_item(struct sl_when_parse *parse, struct sl_span value, struct draft *draft)
{
    return read_plain(parse, value, draft, SL_OLD_IMAGE);
}

static const struct {
    const char *name;
    read_fn read;
} members[] = {{"expired", read_expired}, {"events", read_events}, {"changed", read_changed},
               {"keys", read_keys},       {"item", read_item},     {"old_item", read_old_item},
               {"pattern", read_patterns}};

#define N_MEMBERS SL_COUNT(members)

static enum sl_status not_a_member(const struct sl_when_parse *parse, struct sl_span name)
{
    struct sl_nearest near = sl_nearest_begin(name);
    for (size_t i = 0; i < N_MEMBERS; i++)
        sl_nearest_consider(&near, members[i].name);
    return sl_when_fail(
        parse, name, "not a condition%s%s%s; use expired, events, changed, keys, item, old_item or pattern",
        near.best ? " (did you mean \"" : "", near.best ? near.best : "", near.best ? "\"?)" : "");
}

static enum sl_status read_member(struct sl_when_parse *parse, struct sl_span name, struct sl_span value,
                                  unsigned *seen, struct draft *draft)
{
    for (unsigned i = 0; i < N_MEMBERS; i++) {
        if (!sl_json_text_is(name, sl_span_str(members[i].name)))
            continue;
        if (*seen & 1u << i)
            return sl_when_fail(parse, name, "given twice");
        *seen |= 1u << i;
        return members[i].read(parse, value, draft);
    }
    return not_a_member(parse, name);
}

static enum sl_status read_when(struct sl_when_parse *parse, struct sl_span json, struct draft *draft)
{
    if (json.ptr[0] != '{')
        return sl_when_fail(parse, json, "an object is expected, as in {\"events\": [\"INSERT\"]}");
    struct sl_json_walk c = sl_json_walk(json);
    struct sl_span name, value;
    unsigned seen = 0;
    while (sl_json_walk_next(&c, &name, &value)) {
        struct sl_when_place place = {parse->place, name, 0};
        parse->place = &place;
        enum sl_status status = read_member(parse, name, value, &seen, draft);
        parse->place = place.parent;
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}

#define ALL_EVENTS (1u << SL_INSERT | 1u << SL_MODIFY | 1u << SL_REMOVE)

static unsigned possible_events(const struct sl_when *when, struct sl_arena *scratch)
{
    unsigned events = when->events ? when->events : ALL_EVENTS, of_sets = 0;
    for (size_t i = 0; i < when->n_sets; i++)
        of_sets |= sl_when_set_events(&when->sets[i], scratch);
    if (when->sets)
        events &= of_sets;
    if (when->plain[SL_NEW_IMAGE] && !when->plain[SL_NEW_IMAGE]->may_lack)
        events &= ~(1u << SL_REMOVE);
    if (when->plain[SL_OLD_IMAGE] && !when->plain[SL_OLD_IMAGE]->may_lack)
        events &= ~(1u << SL_INSERT);
    return when->expired ? events & 1u << SL_REMOVE : events;
}

static enum sl_status compile_as(struct sl_when_parse parse, read_fn read, struct sl_when **out)
{
    struct sl_span json = parse.json;
    struct sl_arena *arena = parse.arena;
    enum sl_status status = sl_json_check(json, parse.error);
    if (status != SL_OK)
        return status;
    struct draft draft = {.when = sl_arena_zalloc(arena, sizeof(struct sl_when))};
    struct sl_span value = sl_json_find(json, "");
    parse.scratch = sl_arena_new(4096);
    status = read(&parse, value, &draft);
    if (status == SL_OK) {
        draft.when->sets = draft.sets.sets;
        draft.when->n_sets = draft.sets.n;
        draft.when->images |= draft.sets.images;
        draft.when->possible = possible_events(draft.when, parse.scratch);
        *out = draft.when;
    }
    sl_arena_destroy(parse.scratch);
    return status;
}

static enum sl_status compile(struct sl_span json, read_fn read, struct sl_arena *arena, struct sl_when **out,
                              struct sl_error *error)
{
    return compile_as((struct sl_when_parse){.json = json, .arena = arena, .error = error}, read, out);
}

/* Whatever was written, a condition that no record can meet was not meant. */
static enum sl_status check_events(struct sl_span json, const struct sl_when *when, struct sl_error *error)
{
    if (when->possible)
        return SL_OK;
    bool is_about_item = (when->plain[SL_NEW_IMAGE] && !when->plain[SL_NEW_IMAGE]->may_lack) ||
                         (when->plain[SL_OLD_IMAGE] && !when->plain[SL_OLD_IMAGE]->may_lack);
    return sl_fail_at(error, SL_REJECT, "InvalidPattern", (size_t)(sl_json_find(json, "").ptr - json.ptr),
                      "no event can meet all of its members%s",
                      is_about_item ? ": a REMOVE has no item (use old_item), and an INSERT no old_item"
                                    : "");
}

enum sl_status sl_when_compile(struct sl_span json, struct sl_arena *arena, struct sl_when **out,
                               struct sl_error *error)
{
    const struct sl_when_parse parse = {.json = json, .arena = arena, .error = error, .is_judged = true};
    enum sl_status status = compile_as(parse, read_when, out);
    return status == SL_OK ? check_events(json, *out, error) : status;
}

enum sl_status sl_where_compile(struct sl_span json, struct sl_arena *arena, struct sl_when **out,
                                struct sl_error *error)
{
    return compile(json, read_item, arena, out, error);
}

enum sl_status sl_pattern_compile(struct sl_span json, struct sl_arena *arena, struct sl_when **out,
                                  struct sl_error *error)
{
    return compile(json, read_pattern, arena, out, error);
}

enum sl_status sl_pattern_judge(struct sl_span json, sl_when_found_fn found, void *arg,
                                struct sl_error *error)
{
    struct sl_when *unused;
    struct sl_when_parse parse = {
        .json = json, .error = error, .is_judged = true, .found = found, .found_arg = arg};
    parse.arena = sl_arena_new(4096);
    enum sl_status status = compile_as(parse, read_pattern, &unused);
    sl_arena_destroy(parse.arena);
    return status;
}

/* ---- matching ---- */

static bool is_expired(const struct sl_when *when, const struct sl_record *record)
{
    enum sl_ttl ttl = sl_record_ttl(record);
    return ttl == SL_TTL_EXPIRED || (when->or_inferred && ttl == SL_TTL_INFERRED);
}

static bool is_any_changed(const struct sl_when *when, const struct sl_record *record)
{
    for (size_t i = 0; i < when->n_changed; i++)
        if (sl_record_changed(record, when->changed[i]))
            return true;
    return false;
}

static bool is_any_set(const struct sl_when *when, const struct sl_record *record, struct sl_arena *scratch)
{
    for (size_t i = 0; i < when->n_sets; i++)
        if (sl_when_match_set(&when->sets[i], record, scratch))
            return true;
    return false;
}

/* The images that a change of this kind has; the stream's view type may leave them out. */
static unsigned images_of(enum sl_event event)
{
    return 1u << SL_KEYS | (event == SL_REMOVE ? 0 : 1u << SL_NEW_IMAGE) |
           (event == SL_INSERT ? 0 : 1u << SL_OLD_IMAGE);
}

static unsigned lacking(const struct sl_when *when, const struct sl_record *record)
{
    unsigned has = 0;
    for (unsigned image = SL_KEYS; image <= SL_OLD_IMAGE; image++)
        has |= (unsigned)(record->image_len[image] != 0) << image;
    return when->needs & images_of((enum sl_event)record->event) & ~has;
}

/* What a record of any view type shows. */
static bool is_concerned(const struct sl_when *when, const struct sl_record *record, struct sl_arena *scratch)
{
    if (when->events && !(when->events & 1u << sl_record_event(record)))
        return false;
    if (when->expired && !is_expired(when, record))
        return false;
    return !when->plain[SL_KEYS] || !record->image_len[SL_KEYS] ||
           sl_plain_match_image(when->plain[SL_KEYS], record, SL_KEYS, scratch);
}

/* The item is absent after a REMOVE, and before an INSERT. */
static bool is_image_met(const struct sl_when *when, const struct sl_record *record, enum sl_image image,
                         struct sl_arena *scratch)
{
    const struct sl_plain *plain = when->plain[image];
    if (!plain)
        return true;
    if (!(images_of((enum sl_event)record->event) & 1u << image))
        return plain->may_lack;
    return sl_plain_match_image(plain, record, image, scratch);
}

bool sl_when_match(const struct sl_when *when, const struct sl_record *record, struct sl_arena *scratch)
{
    if (!when)
        return true;
    if (!is_concerned(when, record, scratch) || (when->needs && lacking(when, record)))
        return false;
    if (!is_image_met(when, record, SL_NEW_IMAGE, scratch) ||
        !is_image_met(when, record, SL_OLD_IMAGE, scratch))
        return false;
    if (when->changed && !is_any_changed(when, record))
        return false;
    return !when->sets || is_any_set(when, record, scratch);
}

unsigned sl_when_lacks(const struct sl_when *when, const struct sl_record *record, struct sl_arena *scratch)
{
    return when && when->needs && is_concerned(when, record, scratch) ? lacking(when, record) : 0;
}

bool sl_when_accepts(const struct sl_when *when, enum sl_view view)
{
    static const unsigned carried[] = {
        [SL_VIEW_UNKNOWN] = 1u << SL_KEYS | 1u << SL_NEW_IMAGE | 1u << SL_OLD_IMAGE,
        [SL_VIEW_KEYS_ONLY] = 1u << SL_KEYS,
        [SL_VIEW_NEW_IMAGE] = 1u << SL_KEYS | 1u << SL_NEW_IMAGE,
        [SL_VIEW_OLD_IMAGE] = 1u << SL_KEYS | 1u << SL_OLD_IMAGE,
        [SL_VIEW_NEW_AND_OLD_IMAGES] = 1u << SL_KEYS | 1u << SL_NEW_IMAGE | 1u << SL_OLD_IMAGE,
    };
    unsigned needs = 0;
    for (unsigned event = SL_INSERT; when && event <= SL_REMOVE; event++)
        if (sl_when_events(when) & 1u << event)
            needs |= when->needs & images_of((enum sl_event)event);
    return !(needs & ~carried[view]);
}

bool sl_where_match(const struct sl_when *where, struct sl_value item, struct sl_arena *scratch)
{
    return sl_plain_match(where->plain[SL_NEW_IMAGE], item, scratch);
}

bool sl_pattern_match(const struct sl_when *pattern, struct sl_span json, struct sl_arena *scratch)
{
    for (size_t i = 0; i < pattern->n_sets; i++)
        if (sl_when_match_json(&pattern->sets[i], json, scratch))
            return true;
    return !pattern->sets;
}

unsigned sl_when_events(const struct sl_when *when)
{
    return when ? when->possible : ALL_EVENTS;
}

static bool is_set_of_keys(const struct sl_when_set *set)
{
    for (size_t i = 0; i < set->n_attributes; i++)
        if (set->attributes[i].image != SL_KEYS)
            return false;
    return !set->n_texts && !set->images[SL_NEW_IMAGE].root && !set->images[SL_OLD_IMAGE].root &&
           !set->record.root;
}

bool sl_when_is_of_keys(const struct sl_when *when)
{
    bool is_of_keys = !when->events && !when->expired && !when->changed && !when->plain[SL_NEW_IMAGE] &&
                      !when->plain[SL_OLD_IMAGE];
    for (size_t i = 0; i < when->n_sets; i++)
        is_of_keys = is_of_keys && is_set_of_keys(&when->sets[i]);
    return is_of_keys;
}

unsigned sl_when_images(const struct sl_when *when)
{
    return when ? when->images & (1u << SL_NEW_IMAGE | 1u << SL_OLD_IMAGE) : 0;
}
