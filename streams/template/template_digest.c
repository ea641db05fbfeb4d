/* Digests of text, in hexadecimal. A key is read when the template is compiled; of it only the two states are
 * kept, in memory of libcrypto's that is wiped when it is freed. */
#include "streams/template/template_private.h"

static void digest_free(void *arg)
{
    struct template_digest *digest = arg;
    sl_sha256_key_clean_up(&digest->key);
    sl_sha256_clean_up(&digest->sha);
}

static struct template_digest *digest_new(struct sl_arena *arena)
{
    struct template_digest *digest = sl_arena_zalloc(arena, sizeof(*digest));
    sl_sha256_init(&digest->sha);
    sl_arena_defer(arena, digest_free, digest);
    return digest;
}

enum sl_status template_sha256_read(const struct template_reader *r, struct template_call *call,
                                    const struct template_call *before)
{
    (void)before;
    call->digest = digest_new(r->arena);
    return SL_OK;
}

/* Where a key was written in its place, the error must not quote it. */
static bool is_variable_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!is_letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.len > 0;
}

/* A name as people write them: short, or of several words. What is not one may be a key, say in base32. */
static bool is_plainly_a_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] >= 'a' && name.ptr[i] <= 'z')
            return false;
    return name.len <= 8 || memchr(name.ptr, '_', name.len);
}

enum sl_status template_hmac_read(const struct template_reader *r, struct template_call *call,
                                  const struct template_call *before)
{
    (void)before;
    char name[SL_TEMPLATE_ARGUMENT_BYTES + 1];
    if (!is_variable_name(call->args[0]))
        return template_fail(
            r, call->at,
            "hmac: expected the name of the environment variable that holds the key, and not the key");
    memcpy(name, call->args[0].ptr, call->args[0].len);
    name[call->args[0].len] = '\0';
    const char *key = r->vars ? sl_vars_get(r->vars, name) : NULL;
    if (!key || !*key)
        return template_fail(
            r, call->at, "hmac: the environment variable %s is %s; set it to the key, a long random text",
            is_plainly_a_name(call->args[0]) ? name : "that is named here", key ? "empty" : "not set");
    call->digest = digest_new(r->arena);
    sl_sha256_key_set(&call->digest->sha, &call->digest->key, sl_span_str(key));
    return SL_OK;
}

static struct sl_span hex(const unsigned char bytes[SL_SHA256_BYTES], struct sl_arena *scratch)
{
    char *text = sl_arena_alloc(scratch, SL_SHA256_HEX);
    sl_sha256_hex(bytes, text);
    return sl_span(text, SL_SHA256_HEX - 1);
}

struct sl_span template_sha256(const struct template_call *call, struct sl_span text,
                               struct sl_arena *scratch)
{
    unsigned char bytes[SL_SHA256_BYTES];
    sl_sha256_parts(&call->digest->sha, &text, 1, bytes);
    return hex(bytes, scratch);
}

struct sl_span template_hmac(const struct template_call *call, struct sl_span text, struct sl_arena *scratch)
{
    unsigned char bytes[SL_SHA256_BYTES];
    sl_sha256_hmac(&call->digest->sha, &call->digest->key, text, bytes);
    return hex(bytes, scratch);
}
