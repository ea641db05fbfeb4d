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

bool sl_memory_has(const struct sl_dispatch *d, const struct sl_route *route, size_t index)
{
    unsigned char wanted[SHA256_DIGEST_LENGTH];
    const struct sl_memory *memory = &d->p->memory;
    if (!memory->n)
        return false;
    digest(d, route, index, wanted);
    for (size_t i = 0; i < memory->n && i < SL_MEMORY_EFFECTS; i++)
        if (memcmp(memory->effects[i], wanted, SL_MEMORY_BYTES) == 0)
            return true;
    return false;
}

void sl_memory_add(struct sl_dispatch *d, const struct sl_route *route, size_t index)
{
    unsigned char made[SHA256_DIGEST_LENGTH];
    struct sl_memory *memory = &d->p->memory;
    if (sl_memory_has(d, route, index))
        return;
    digest(d, route, index, made);
    memcpy(memory->effects[memory->n++ % SL_MEMORY_EFFECTS], made, SL_MEMORY_BYTES);
}
