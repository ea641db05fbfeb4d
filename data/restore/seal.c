/* Digests of lists of objects and of files: each part is chained to the digest of those before it. */
#include "data/restore/seal.h"

#include "base/sha256.h"
#include "base/disk.h"
#include "base/error.h"
#include "data/source/listing.h"
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

static enum sl_status add_object(void *arg, const struct sl_object_entry *entry, struct sl_error *error)
{
    (void)error;
    if (sl_store_is_ours(entry->key))
        return SL_OK;
    chain_add(arg, entry->bytes, entry->key);
    chain_add(arg, 0, entry->etag);
    return SL_OK;
}

static enum sl_status add_place(struct chain *chain, struct sl_sinks *sinks, const char *place,
                                struct sl_error *error)
{
    struct sl_store *store;
    enum sl_status status = sl_store_open(sinks, place, &store, error);
    if (status != SL_OK)
        return status;
    status = sl_listing_each(sl_store_port(store), sinks->clock, sl_span(NULL, 0), sl_span(NULL, 0),
                             add_object, chain, error);
    sl_store_close(store);
    return status;
}

enum sl_status sl_seal_objects(struct sl_sinks *sinks, const char *const *places, size_t n,
                               char out[SL_SEAL_BYTES], struct sl_error *error)
{
    struct chain chain;
    enum sl_status status = SL_OK;
    chain_init(&chain);
    for (size_t i = 0; i < n && status == SL_OK; i++) {
        chain_add(&chain, i, sl_span_str(places[i]));
        status = add_place(&chain, sinks, places[i], error);
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
