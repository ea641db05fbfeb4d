/* Signature Version 4 in its three steps. */
#include "aws/sigv4.h"

#include "base/array.h"
#include "base/url.h"
#include "net/uri.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <time.h>

/* Canonical requests hold headers and path, never a body: a session token is 1 to 2 KB, S3 keys up to 1 KB.
 */
#define CANONICAL_BYTES (256 * 1024)
/* Of a query's name or value, encoded: S3's longest key with each byte as %XX. */
#define PARAM_BYTES (3 * 1024)

void sl_sigv4_init(struct sl_sigv4 *signer, struct sl_sha256 *sha)
{
    *signer = (struct sl_sigv4){.sha = sha};
    sl_buffer_init(&signer->canonical, CANONICAL_BYTES);
    sl_buffer_init(&signer->signed_names, CANONICAL_BYTES);
    sl_buffer_init(&signer->to_sign, CANONICAL_BYTES);
    sl_buffer_init(&signer->scratch, CANONICAL_BYTES);
    signer->canonical.is_secret = true; /* it holds the session token */
}

void sl_sigv4_clean_up(struct sl_sigv4 *signer)
{
    sl_sha256_key_clean_up(&signer->key);
    sl_buffer_clean_up(&signer->canonical);
    sl_buffer_clean_up(&signer->signed_names);
    sl_buffer_clean_up(&signer->to_sign);
    sl_buffer_clean_up(&signer->scratch);
}

void sl_sigv4_date(int64_t epoch_s, char out[SL_SIGV4_DATE_BYTES])
{
    time_t seconds = (time_t)epoch_s;
    struct tm tm = {.tm_year = 70, .tm_mday = 1};
    gmtime_r(&seconds, &tm);
    if (strftime(out, SL_SIGV4_DATE_BYTES, "%Y%m%dT%H%M%SZ", &tm) == 0)
        memcpy(out, "19700101T000000Z", SL_SIGV4_DATE_BYTES);
}

/* ---- path ---- */

static struct sl_span next_segment(struct sl_span *rest)
{
    size_t n = 0;
    while (n < rest->len && rest->ptr[n] != '/')
        n++;
    struct sl_span segment = sl_span(rest->ptr, n);
    *rest = sl_span_from(*rest, n < rest->len ? n + 1 : n);
    return segment;
}

/* RFC 3986, 5.2.4, and without empty segments: "//a/./b/.." is "/a". */
static void normalize(struct sl_buffer *out, struct sl_span path)
{
    bool closed = sl_span_ends(path, SL_LIT("/"));
    struct sl_span rest = path;
    while (rest.len) {
        struct sl_span segment = next_segment(&rest);
        if (segment.len == 0 || sl_span_is(segment, "."))
            continue;
        if (sl_span_is(segment, "..")) {
            while (out->len && out->ptr[--out->len] != '/') {
            }
            continue;
        }
        sl_buffer_add_char(out, '/');
        sl_buffer_add_span(out, segment);
    }
    if (closed || out->len == 0)
        sl_buffer_add_char(out, '/');
}

static void add_path(struct sl_sigv4 *signer, const struct sl_sigv4_request *request)
{
    struct sl_span path = request->path;
    if (path.len == 0)
        path = SL_LIT("/");
    if (request->normalize_path && path.len > 1) {
        sl_buffer_reset(&signer->scratch);
        normalize(&signer->scratch, path);
        path = sl_buffer_span(&signer->scratch);
    }
    if (request->encode_path)
        sl_uri_encode(&signer->canonical, path, '/');
    else
        sl_buffer_add_span(&signer->canonical, path);
}

/* ---- query ---- */

struct param {
    size_t name, value, end; /* offsets in scratch: a growing buffer moves */
};

static void recode(struct sl_buffer *out, struct sl_span text)
{
    char raw[PARAM_BYTES];
    struct sl_buffer decoded = {.ptr = raw, .room = sizeof(raw), .max = sizeof(raw)};
    assert(text.len <= sizeof(raw));
    sl_url_decode(&decoded, text);
    sl_uri_encode(out, sl_buffer_span(&decoded), '\0');
}

static struct param add_param(struct sl_buffer *scratch, struct sl_span text)
{
    const char *equals = memchr(text.ptr, '=', text.len);
    size_t n = equals ? (size_t)(equals - text.ptr) : text.len;
    struct param param = {.name = scratch->len};
    recode(scratch, sl_span(text.ptr, n));
    param.value = scratch->len;
    recode(scratch, sl_span_from(text, n + 1));
    param.end = scratch->len;
    return param;
}

static int compare_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_params(const char *base, const struct param *a, const struct param *b)
{
    int order = compare_text(base + a->name, a->value - a->name, base + b->name, b->value - b->name);
    return order ? order
                 : compare_text(base + a->value, a->end - a->value, base + b->value, b->end - b->value);
}

static void add_query(struct sl_sigv4 *signer, struct sl_span query)
{
    struct param params[SL_SIGV4_PARAMS];
    size_t n = 0;
    sl_buffer_reset(&signer->scratch);
    while (query.len) {
        const char *amp = memchr(query.ptr, '&', query.len);
        size_t len = amp ? (size_t)(amp - query.ptr) : query.len;
        if (len) {
            assert(n < SL_SIGV4_PARAMS);
            params[n++] = add_param(&signer->scratch, sl_span(query.ptr, len));
        }
        query = sl_span_from(query, len + 1);
    }
    const char *base = signer->scratch.ptr;
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && compare_params(base, &params[k - 1], &params[k]) > 0; k--) {
            struct param swap = params[k];
            params[k] = params[k - 1];
            params[k - 1] = swap;
        }
    for (size_t i = 0; i < n; i++) {
        if (i)
            sl_buffer_add_char(&signer->canonical, '&');
        sl_buffer_add(&signer->canonical, base + params[i].name, params[i].value - params[i].name);
        sl_buffer_add_char(&signer->canonical, '=');
        sl_buffer_add(&signer->canonical, base + params[i].value, params[i].end - params[i].value);
    }
}

/* ---- header fields ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int compare_names(struct sl_span a, struct sl_span b)
{
    for (size_t i = 0; i < a.len && i < b.len; i++)
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return (unsigned char)lower(a.ptr[i]) - (unsigned char)lower(b.ptr[i]);
    return (a.len > b.len) - (a.len < b.len);
}

/* What proxies and clients may add or change on the way. */
static bool is_signed(struct sl_span name)
{
    static const char *const never[] = {
        "connection",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "x-amzn-trace-id",
    };
    for (size_t i = 0; i < SL_COUNT(never); i++)
        if (compare_names(name, sl_span_str(never[i])) == 0)
            return false;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Trimmed, and blanks inside collapsed to one space. */
static void add_value(struct sl_buffer *out, struct sl_span value)
{
    bool gap = false, any = false;
    for (size_t i = 0; i < value.len; i++) {
        if (is_blank(value.ptr[i])) {
            gap = any;
            continue;
        }
        size_t run = i;
        while (run < value.len && !is_blank(value.ptr[run]))
            run++;
        if (gap)
            sl_buffer_add_char(out, ' ');
        sl_buffer_add(out, value.ptr + i, run - i);
        gap = false;
        any = true;
        i = run - 1;
    }
}

static void add_lower(struct sl_buffer *out, struct sl_span name)
{
    char *end = sl_buffer_reserve(out, name.len);
    for (size_t i = 0; end && i < name.len; i++)
        end[i] = lower(name.ptr[i]);
    if (end)
        out->len += name.len;
}

/* Insertion sort: it keeps fields of one name in their order, and ours are nearly sorted. */
static size_t sort_fields(const struct sl_sigv4_request *request, const struct sl_sigv4_field **sorted)
{
    size_t n = 0;
    assert(request->n_fields <= SL_SIGV4_FIELDS);
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct sl_sigv4_field *field = &request->fields[i];
        if (!is_signed(field->name))
            continue;
        size_t k = n++;
        for (; k > 0 && compare_names(sorted[k - 1]->name, field->name) > 0; k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = field;
    }
    return n;
}

static void add_fields(struct sl_sigv4 *signer, const struct sl_sigv4_request *request)
{
    const struct sl_sigv4_field *sorted[SL_SIGV4_FIELDS];
    size_t n = sort_fields(request, sorted);
    for (size_t i = 0; i < n; i++) {
        if (i && compare_names(sorted[i - 1]->name, sorted[i]->name) == 0) {
            signer->canonical.len--; /* its value is added to the line before */
            sl_buffer_add_char(&signer->canonical, ',');
        } else {
            if (i)
                sl_buffer_add_char(&signer->signed_names, ';');
            add_lower(&signer->signed_names, sorted[i]->name);
            add_lower(&signer->canonical, sorted[i]->name);
            sl_buffer_add_char(&signer->canonical, ':');
        }
        add_value(&signer->canonical, sorted[i]->value);
        sl_buffer_add_char(&signer->canonical, '\n');
    }
}

/* ---- the steps ---- */

void sl_sigv4_canonical(struct sl_sigv4 *signer, const struct sl_sigv4_request *request)
{
    struct sl_buffer *out = &signer->canonical;
    sl_buffer_reset(out);
    sl_buffer_reset(&signer->signed_names);
    sl_buffer_add_span(out, request->method);
    sl_buffer_add_char(out, '\n');
    add_path(signer, request);
    sl_buffer_add_char(out, '\n');
    add_query(signer, request->query);
    sl_buffer_add_char(out, '\n');
    add_fields(signer, request);
    sl_buffer_add_char(out, '\n');
    sl_buffer_add_span(out, sl_buffer_span(&signer->signed_names));
    sl_buffer_add_char(out, '\n');
    sl_buffer_add_str(out, request->payload_hash);
    assert(!out->failed);
}

static void add_scope(struct sl_buffer *out, const struct sl_sigv4_identity *who, const char *date)
{
    sl_buffer_add(out, date, 8);
    sl_buffer_add_char(out, '/');
    sl_buffer_add_str(out, who->region);
    sl_buffer_add_char(out, '/');
    sl_buffer_add_str(out, who->service);
    sl_buffer_add_str(out, "/aws4_request");
}

void sl_sigv4_to_sign(struct sl_sigv4 *signer, const struct sl_sigv4_identity *who, const char *date)
{
    unsigned char digest[SL_SHA256_BYTES];
    char hex[SL_SHA256_HEX];
    struct sl_span canonical = sl_buffer_span(&signer->canonical);
    sl_sha256_parts(signer->sha, &canonical, 1, digest);
    sl_sha256_hex(digest, hex);
    struct sl_buffer *out = &signer->to_sign;
    sl_buffer_reset(out);
    sl_buffer_add_str(out, "AWS4-HMAC-SHA256\n");
    sl_buffer_add_str(out, date);
    sl_buffer_add_char(out, '\n');
    add_scope(out, who, date);
    sl_buffer_add_char(out, '\n');
    sl_buffer_add(out, hex, SL_SHA256_HEX - 1);
}

static void derive_key(struct sl_sigv4 *signer, const struct sl_sigv4_identity *who, const char *date)
{
    char first[4 + 256];
    unsigned char digest[SL_SHA256_BYTES];
    int n = snprintf(first, sizeof(first), "AWS4%s", who->secret_key);
    assert(n > 0 && (size_t)n < sizeof(first));
    const struct sl_span texts[] = {sl_span(date, 8), sl_span_str(who->region), sl_span_str(who->service),
                                    SL_LIT("aws4_request")};
    sl_sha256_key_set(signer->sha, &signer->key, sl_span(first, (size_t)n));
    for (size_t i = 0; i < SL_COUNT(texts); i++) {
        sl_sha256_hmac(signer->sha, &signer->key, texts[i], digest);
        sl_sha256_key_set(signer->sha, &signer->key, sl_span((const char *)digest, sizeof(digest)));
    }
    OPENSSL_cleanse(first, sizeof(first));
    OPENSSL_cleanse(digest, sizeof(digest));
    memcpy(signer->day, date, 8);
    signer->day[8] = '\0';
    signer->serial = who->serial;
    signer->keys_made++;
}

void sl_sigv4_signature(struct sl_sigv4 *signer, const struct sl_sigv4_identity *who, const char *date,
                        char out[SL_SHA256_HEX])
{
    unsigned char digest[SL_SHA256_BYTES];
    if (signer->serial != who->serial || memcmp(signer->day, date, 8) != 0)
        derive_key(signer, who, date);
    sl_sha256_hmac(signer->sha, &signer->key, sl_buffer_span(&signer->to_sign), digest);
    sl_sha256_hex(digest, out);
}

void sl_sigv4_authorize(struct sl_sigv4 *signer, const struct sl_sigv4_identity *who,
                        const struct sl_sigv4_request *request, const char *date, struct sl_buffer *out)
{
    char signature[SL_SHA256_HEX];
    sl_sigv4_canonical(signer, request);
    sl_sigv4_to_sign(signer, who, date);
    sl_sigv4_signature(signer, who, date, signature);
    sl_buffer_add_str(out, "AWS4-HMAC-SHA256 Credential=");
    sl_buffer_add_str(out, who->access_key);
    sl_buffer_add_char(out, '/');
    add_scope(out, who, date);
    sl_buffer_add_str(out, ", SignedHeaders=");
    sl_buffer_add_span(out, sl_buffer_span(&signer->signed_names));
    sl_buffer_add_str(out, ", Signature=");
    sl_buffer_add(out, signature, SL_SHA256_HEX - 1);
}
