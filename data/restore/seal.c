/* Digests of lists of objects and of files: each part is chained to the digest of those before it. */
#include "data/restore/seal.h"

#include "base/sha256.h"
#include "base/disk.h"
#include "base/error.h"
#include "data/source/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK_BYTES ((size_t)64 * 1024)

struct chain {
    struct sl_sha256 sha;
    unsigned char digest[SL_SHA256_BYTES];
};

static void chain_init(struct chain *chain)
{
    *chain = (struct chain){.digest = {0}};
    sl_sha256_init(&chain->sha);
}

/* `number` stands before the text, so no two lists of parts look alike. */
static void chain_add(struct chain *chain, uint64_t number, struct sl_span text)
{
    const uint64_t head[] = {number, text.len};
    const struct sl_span parts[] = {sl_span((const char *)chain->digest, sizeof(chain->digest)),
                                    sl_span((const char *)head, sizeof(head)),
                                    sl_span(text.len ? text.ptr : "", text.len)};
    sl_sha256_parts(&chain->sha, parts, 3, chain->digest);
}

static void chain_end(struct chain *chain, char out[SL_SEAL_BYTES])
{
    sl_sha256_hex(chain->digest, out);
    sl_sha256_clean_up(&chain->sha);
}

/* ---- objects ---- */

static enum sl_status add_page(struct chain *chain, struct sl_store *store, char **after,
                               const struct sl_call *call, struct sl_error *error)
{
    struct sl_object_page page;
    struct sl_object_port *port = sl_store_port(store);
    const struct sl_object_list list = {.after = sl_span_str(*after)};
    port->list(port, &list, &page, call);
    free(*after);
    *after = NULL;
    if (page.result.status != SL_OK)
        return sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
    for (size_t i = 0; i < page.n; i++) {
        if (sl_store_is_ours(page.entries[i].key))
            continue;
        chain_add(chain, page.entries[i].bytes, page.entries[i].key);
        chain_add(chain, 0, page.entries[i].etag);
    }
    if (page.next.ptr && !(*after = strndup(page.next.ptr, page.next.len)))
        sl_die("out of memory: an object's key");
    return SL_OK;
}

static enum sl_status add_place(struct chain *chain, struct sl_sinks *sinks, const char *place,
                                const struct sl_call *call, struct sl_error *error)
{
    struct sl_store *store;
    char *after = NULL;
    enum sl_status status = sl_store_open(sinks, place, &store, error);
    if (status != SL_OK)
        return status;
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    const struct sl_call own = {.arena = arena, .deadline_ms = call->deadline_ms};
    do {
        sl_arena_reset(arena);
        status = add_page(chain, store, &after, &own, error);
    } while (status == SL_OK && after);
    free(after);
    sl_arena_destroy(arena);
    sl_store_close(store);
    return status;
}

enum sl_status sl_seal_objects(struct sl_sinks *sinks, const char *const *places, size_t n,
                               const struct sl_call *call, char out[SL_SEAL_BYTES], struct sl_error *error)
{
    struct chain chain;
    enum sl_status status = SL_OK;
    chain_init(&chain);
    for (size_t i = 0; i < n && status == SL_OK; i++) {
        chain_add(&chain, i, sl_span_str(places[i]));
        status = add_place(&chain, sinks, places[i], call, error);
    }
    chain_end(&chain, out);
    return status;
}

/* ---- a file ---- */

enum sl_status sl_seal_file(const char *path, char out[SL_SEAL_BYTES], struct sl_error *error)
{
    struct chain chain;
    char *block = malloc(BLOCK_BYTES);
    FILE *file = fopen(path, "rb");
    size_t n;
    if (!block)
        sl_die("out of memory: a block of a file");
    chain_init(&chain);
    while (file && (n = fread(block, 1, BLOCK_BYTES, file)) > 0)
        chain_add(&chain, n, sl_span(block, n));
    bool is_good = file && !ferror(file);
    int err = errno;
    if (file)
        fclose(file);
    free(block);
    chain_end(&chain, out);
    return is_good ? SL_OK
                   : sl_fail(error, SL_FATAL, sl_disk_code(err), "cannot read %s: %s", path, strerror(err));
}
