/* Effects done above the checkpoint: remembered, so that they are not done again. */
#include "base/array.h"
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "streams/record.h"

#include <openssl/sha.h>

/* A digest of what makes an effect: the route and the record's identity. Long enough that no two effects
 * share one: a record wrongly taken for done would be lost. */
static void digest(const struct sl_dispatch *d, const struct sl_route *route, size_t index,
                   unsigned char out[SHA256_DIGEST_LENGTH])
{
    static const enum sl_field fields[] = {SL_FIELD_SOURCE_ARN, SL_FIELD_IDENTIFIER, SL_FIELD_EVENT_ID};
    const struct sl_record *record = sl_batch_record(d->batch, index);
    struct sl_buffer text;
    sl_buffer_init(&text, 64 * 1024);
    sl_buffer_add_str(&text, route->config->name);
    for (size_t i = 0; i < SL_COUNT(fields); i++) {
        sl_buffer_add_char(&text, '\n');
        sl_buffer_add_span(&text, sl_record_text(record, fields[i]));
    }
    SHA256((const unsigned char *)text.ptr, text.len, out);
    sl_buffer_clean_up(&text);
}

static bool has(const struct sl_memory *memory, const unsigned char *wanted)
{
    for (size_t i = 0; i < memory->n && i < SL_MEMORY_EFFECTS; i++)
        if (memcmp(memory->effects[i], wanted, SL_MEMORY_BYTES) == 0)
            return true;
    return false;
}

bool sl_memory_has(const struct sl_memory *memory, const struct sl_dispatch *d, const struct sl_route *route,
                   size_t index)
{
    unsigned char wanted[SHA256_DIGEST_LENGTH];
    if (!memory->n)
        return false;
    digest(d, route, index, wanted);
    return has(memory, wanted);
}

void sl_memory_add(struct sl_memory *memory, const struct sl_dispatch *d, const struct sl_route *route,
                   size_t index)
{
    unsigned char made[SHA256_DIGEST_LENGTH];
    digest(d, route, index, made);
    if (!has(memory, made))
        memcpy(memory->effects[memory->n++ % SL_MEMORY_EFFECTS], made, SL_MEMORY_BYTES);
}

/* ---- what was set aside ---- */

/* Where the digest is, or would be: never full, see sl_memory_add_aside. */
static unsigned char *place_of(const struct sl_aside *aside, const unsigned char *wanted)
{
    static const unsigned char none[SL_MEMORY_BYTES];
    size_t at = (size_t)(wanted[0] << 8 | wanted[1]);
    for (;; at++) {
        unsigned char *place = aside->seen[at % SL_ASIDE_SEEN];
        if (memcmp(place, wanted, SL_MEMORY_BYTES) == 0 || memcmp(place, none, SL_MEMORY_BYTES) == 0)
            return place;
    }
}

bool sl_memory_has_aside(const struct sl_dispatch *d, const struct sl_route *route, size_t index)
{
    unsigned char wanted[SHA256_DIGEST_LENGTH];
    if (!route->aside.n_seen)
        return false;
    digest(d, route, index, wanted);
    return memcmp(place_of(&route->aside, wanted), wanted, SL_MEMORY_BYTES) == 0;
}

void sl_memory_add_aside(struct sl_dispatch *d, struct sl_route *route, size_t index)
{
    unsigned char made[SHA256_DIGEST_LENGTH];
    struct sl_aside *aside = &route->aside;
    if (!aside->seen)
        aside->seen = sl_arena_zalloc(d->p->arena, SL_ASIDE_SEEN * sizeof(*aside->seen));
    if (aside->n_seen == SL_ASIDE_SEEN / 4 * 3 || sl_memory_has_aside(d, route, index))
        return;
    digest(d, route, index, made);
    memcpy(place_of(aside, made), made, SL_MEMORY_BYTES);
    aside->n_seen++;
}

void sl_memory_forget_asides(struct sl_route *route)
{
    if (route->aside.n_seen)
        memset(route->aside.seen, 0, SL_ASIDE_SEEN * sizeof(*route->aside.seen));
    route->aside.n_seen = 0;
}
