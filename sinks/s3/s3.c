/* s3://bucket/prefix: opens the target. */
#include "base/array.h"
#include "net/uri.h"
#include "sinks/object.h"
#include "sinks/s3/s3_private.h"
#include "sinks/services.h"

#include <stdlib.h>

#define TAGS 10

#define PARAMS SL_CLIENT_PARAMS ", style, storage_class, sse, kms_key, tags, if_none_match"

static void close_port(struct sl_object_port *port)
{
    struct sl_s3 *s3 = (struct sl_s3 *)port;
    sl_client_clean_up(&s3->client);
    sl_arena_destroy(s3->arena);
    free(s3);
}

/* "Bucket naming rules": 3 to 63 lower-case letters, digits, '.', '-', no two dots, no address. */
static bool is_bucket(struct sl_span name)
{
    bool has_letter = false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool at_end = i == 0 || i + 1 == name.len;
        if (!is_alnum && (at_end || (c != '.' && c != '-') || (c == '.' && name.ptr[i - 1] == '.')))
            return false;
        has_letter = has_letter || (c >= 'a' && c <= 'z') || c == '-';
    }
    return name.len >= 3 && name.len <= 63 && has_letter;
}

static const char *text_param(struct sl_s3 *s3, struct sl_url *url, const char *name)
{
    struct sl_span value = sl_url_param(url, name);
    return value.len ? sl_arena_copy(s3->arena, value) : NULL;
}

/* "k=v,k2=v2" as S3 wants it: "k=v&k2=v2", encoded. A target's '&' separates its parameters. */
static enum sl_status read_tags(struct sl_s3 *s3, struct sl_url *url, struct sl_error *error)
{
    struct sl_span text = sl_url_param(url, "tags"), rest = text;
    struct sl_buffer out;
    size_t n = 0;
    bool good = true;
    if (!text.len)
        return SL_OK;
    sl_buffer_init(&out, 8192);
    while (rest.len && good) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        struct sl_span pair = sl_span(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);
        const char *eq = memchr(pair.ptr, '=', pair.len);
        good = eq && eq > pair.ptr && n < TAGS;
        if (good) {
            sl_buffer_add_str(&out, n++ ? "&" : "");
            sl_uri_encode(&out, sl_span(pair.ptr, (size_t)(eq - pair.ptr)), '\0');
            sl_buffer_add_char(&out, '=');
            sl_uri_encode(&out, sl_span_from(pair, (size_t)(eq - pair.ptr) + 1), '\0');
        }
        rest = sl_span_from(rest, pair.len + 1);
    }
    s3->tags = sl_arena_copy(s3->arena, sl_buffer_span(&out));
    sl_buffer_clean_up(&out);
    return good ? SL_OK
                : sl_fail(error, SL_FATAL, "InvalidTarget",
                          "target %.*s: tags= is a list name=value,name=value of at most %d",
                          SL_ARG(url->shown), TAGS);
}

static bool is_word(const char *text)
{
    for (const char *p = text; p && *p; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return true;
}

static bool is_one_of(const char *text, const char *const *list)
{
    for (; text && *list; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return !text;
}

static enum sl_status read_options(struct sl_s3 *s3, struct sl_url *url, struct sl_error *error)
{
    static const char *const styles[] = {"path", "virtual", NULL}, *const flags[] = {"0", "1", NULL};
    static const char *const sses[] = {"AES256", "aws:kms", "aws:kms:dsse", NULL};
    const char *style = text_param(s3, url, "style"), *once = text_param(s3, url, "if_none_match");
    s3->storage_class = text_param(s3, url, "storage_class");
    s3->sse = text_param(s3, url, "sse");
    s3->kms_key = text_param(s3, url, "kms_key");
    if (s3->kms_key && !s3->sse)
        s3->sse = "aws:kms";
    const char *wrong = !is_one_of(style, styles)   ? "style= is path or virtual"
                        : !is_one_of(once, flags)   ? "if_none_match= is 0 or 1"
                        : !is_one_of(s3->sse, sses) ? "sse= is AES256, aws:kms or aws:kms:dsse"
                        : s3->kms_key && strcmp(s3->sse, "AES256") == 0 ? "kms_key= goes with sse=aws:kms"
                        : !is_word(s3->storage_class) ? "storage_class= is one word of ASCII"
                        : !is_word(s3->kms_key)       ? "kms_key= is one word of ASCII"
                                                      : NULL;
    if (wrong)
        return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: %s", SL_ARG(url->shown), wrong);
    s3->never_replace = once && *once == '1';
    /* With a dot in the name, the certificate for *.s3.region.amazonaws.com does not match. */
    s3->client.has_label_everywhere = style && *style == 'v';
    s3->by_path = (style && *style == 'p') || (!style && memchr(s3->bucket.ptr, '.', s3->bucket.len));
    return read_tags(s3, url, error);
}

static enum sl_status read_place(struct sl_s3 *s3, struct sl_url *url, struct sl_error *error)
{
    struct sl_span rest = url->rest;
    const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    s3->bucket = sl_span(rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len);
    s3->prefix = sl_span_from(rest, s3->bucket.len + 1);
    while (s3->prefix.len && s3->prefix.ptr[s3->prefix.len - 1] == '/')
        s3->prefix.len--;
    if (!url->has_slashes || !is_bucket(s3->bucket))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: \"%.*s\" is not a bucket name (3 to 63 lower-case letters, digits, '-', '.'); "
            "write it as s3://BUCKET/PREFIX",
            SL_ARG(url->shown), SL_ARG(s3->bucket));
    static const struct {
        const char *ends, *what;
    } others[] = {{"--x-s3", "a directory bucket"},
                  {"--xa-s3", "an access point of a directory bucket"},
                  {"--op-s3", "an access point of S3 on Outposts"},
                  {".mrap", "a multi-region access point"}};
    for (size_t i = 0; i < SL_COUNT(others); i++)
        if (sl_span_ends(s3->bucket, sl_span_str(others[i].ends)))
            return sl_fail(
                error, SL_FATAL, "InvalidTarget",
                "target %.*s: %s has hosts and signatures of its own, which are not known here; name "
                "a general purpose bucket, or its access point alias",
                SL_ARG(url->shown), others[i].what);
    if (s3->prefix.len && (s3->prefix.len >= SL_OBJECT_KEY_BYTES || sl_object_key_problem(s3->prefix)))
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: a prefix has at most 1,023 bytes and no empty, \".\" or \"..\" segment",
                       SL_ARG(url->shown));
    return SL_OK;
}

static enum sl_status open_s3(struct sl_s3 *s3, struct sl_sinks *sinks, struct sl_span url_text,
                              struct sl_error *error)
{
    struct sl_url url;
    struct sl_span text = sl_span(sl_arena_copy(s3->arena, url_text), url_text.len);
    if (sl_url_parse(text, s3->arena, &url, error) != SL_OK || read_place(s3, &url, error) != SL_OK ||
        sl_client_init(&s3->client, sl_sinks_aws(sinks),
                       &(struct sl_client_options){.service = &sl_service_s3, .url = &url}, error) != SL_OK ||
        read_options(s3, &url, error) != SL_OK)
        return SL_FATAL;
    if (!s3->by_path)
        s3->client.label = s3->bucket;
    return sl_url_done(&url, PARAMS, error);
}

enum sl_status sl_s3_open(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                          struct sl_error *error)
{
    struct sl_s3 *s3 = calloc(1, sizeof(*s3));
    if (!s3)
        sl_die("out of memory: an object store");
    s3->arena = sl_arena_new(1024);
    s3->port = (struct sl_object_port){.size = sizeof(s3->port),
                                       .max_body_bytes = SL_S3_OBJECT_BYTES,
                                       .apply = sl_s3_put,
                                       .close = close_port,
                                       .read = sl_s3_read,
                                       .list = sl_s3_list,
                                       .remove = sl_s3_remove};
    if (open_s3(s3, sinks, url, error) != SL_OK) {
        close_port(&s3->port);
        return SL_FATAL;
    }
    *out = &s3->port;
    return SL_OK;
}
