/* A key as a document's id, and as its place in a scan. */
#include "sinks/opensearch/opensearch_private.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/utf8.h"

/* In front of a key's digest; an id that begins so by itself becomes a digest, too. */
#define DIGEST "sha256:"

/* The value of one of the key's attributes, without escapes. */
static struct sl_span value_of(struct sl_span json, struct sl_buffer *buffer)
{
    struct sl_json_walk walk = sl_json_walk(json);
    struct sl_span tag, content = {"\"\"", 2};
    (void)sl_json_walk_next(&walk, &tag, &content); /* a key's text has one, in quotes */
    return sl_json_unescape_in(sl_span(content.ptr + 1, content.len - 2), buffer);
}

/* "100%|x" becomes "100%25%7Cx": the first '|' is what divides the key's two values. */
static void add_first(struct sl_buffer *out, struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%' || c == '|')
            sl_buffer_add_str(out, c == '%' ? "%25" : "%7C");
        else
            sl_buffer_add_char(out, c);
    }
}

/* The values of the key's one or two attributes, in the order of the attributes' names. */
static void add_values(struct sl_buffer *out, struct sl_span key_text, struct sl_buffer *buffer)
{
    struct sl_json_walk walk = sl_json_walk(key_text);
    struct sl_span name, value, second;
    (void)sl_json_walk_next(&walk, &name, &value);
    if (!sl_json_walk_next(&walk, &name, &second)) {
        sl_buffer_add_span(out, value_of(value, buffer));
        return;
    }
    add_first(out, value_of(value, buffer));
    sl_buffer_add_char(out, '|');
    sl_buffer_add_span(out, value_of(second, buffer));
}

static bool is_id(struct sl_span text)
{
    return text.len > 0 && text.len <= SL_OPENSEARCH_ID_BYTES && sl_utf8_is_valid(text) &&
           !sl_span_starts(text, SL_LIT(DIGEST));
}

static void digest(struct sl_opensearch *index, struct sl_span text, char out[SL_SHA256_HEX])
{
    unsigned char bytes[SL_SHA256_BYTES];
    sl_sha256_parts(sl_aws_sha(index->client.aws), &text, 1, bytes);
    sl_sha256_hex(bytes, out);
}

struct sl_span sl_opensearch_id(struct sl_opensearch *index, struct sl_span key_text, struct sl_arena *arena)
{
    struct sl_buffer text, id;
    sl_buffer_init(&text, SIZE_MAX);
    sl_buffer_init(&id, SIZE_MAX);
    add_values(&text, key_text, &index->unescaped);
    if (is_id(sl_buffer_span(&text))) {
        sl_json_add_escaped(&id, sl_buffer_span(&text));
    } else {
        char hex[SL_SHA256_HEX];
        digest(index, key_text, hex);
        sl_buffer_printf(&id, DIGEST "%s", hex);
    }
    struct sl_span out = sl_span(sl_arena_copy(arena, sl_buffer_span(&id)), id.len);
    sl_buffer_clean_up(&text);
    sl_buffer_clean_up(&id);
    return out;
}

void sl_opensearch_hash(struct sl_opensearch *index, struct sl_span key_text,
                        char out[SL_OPENSEARCH_HASH_BYTES])
{
    char hex[SL_SHA256_HEX];
    digest(index, key_text, hex);
    memcpy(out, hex, SL_OPENSEARCH_HASH_BYTES - 1);
    out[SL_OPENSEARCH_HASH_BYTES - 1] = '\0';
}

void sl_opensearch_learn_key(struct sl_opensearch *index, struct sl_span key)
{
    struct sl_json_walk walk = sl_json_walk(key);
    struct sl_span name, value;
    if (index->key_names[0].ptr)
        return;
    for (size_t i = 0; i < 2 && sl_json_walk_next(&walk, &name, &value); i++) {
        struct sl_span plain = sl_json_unescape_in(name, &index->unescaped);
        index->key_names[i] = sl_span(sl_arena_copy(index->arena, plain), plain.len);
    }
}

static bool add_key(struct sl_opensearch *index, struct sl_span item, struct sl_buffer *key)
{
    for (size_t i = 0; i < 2 && index->key_names[i].ptr; i++) {
        struct sl_span value = sl_item_attribute(item, index->key_names[i]);
        if (!value.ptr)
            return false;
        sl_buffer_add_str(key, i ? ",\"" : "{\"");
        sl_json_add_exact(key, index->key_names[i]);
        sl_buffer_add_str(key, "\":");
        sl_buffer_add_span(key, value);
    }
    sl_buffer_add_char(key, '}');
    return true;
}

bool sl_opensearch_is_in_place(struct sl_opensearch *index, struct sl_span item, struct sl_span id)
{
    struct sl_buffer key, text;
    if (!index->key_names[0].ptr)
        return true;
    sl_buffer_init(&key, SIZE_MAX);
    sl_buffer_init(&text, SIZE_MAX);
    bool has_key =
        add_key(index, item, &key) && sl_table_key_text(sl_buffer_span(&key), &text, NULL) == SL_OK;
    bool is_there =
        !has_key ||
        sl_json_same(sl_opensearch_id(index, sl_buffer_span(&text), index->client.aws->scratch), id);
    sl_buffer_clean_up(&key);
    sl_buffer_clean_up(&text);
    return is_there;
}
