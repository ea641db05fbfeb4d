/* gzip: compressed by libdeflate or zlib, expanded by zlib. */
#include "base/gzip.h"

#include <assert.h>
#include <stdlib.h>
#include <zlib.h>
#ifdef SL_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

/* zlib counts in unsigned int; longer input goes in by pieces. */
#define PIECE_BYTES   ((size_t)1 << 30)
#define WINDOW_BYTES  ((size_t)64 * 1024)
#define TRAILER_BYTES 8

static void add_header(struct sl_buffer *out, int level)
{
    unsigned char effort = level == 9 ? 2 : level == 1 ? 4 : 0;
    const unsigned char header[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, effort, 255};
    sl_buffer_add(out, header, sizeof(header));
}

static void add_le32(struct sl_buffer *out, uint32_t n)
{
    const unsigned char bytes[4] = {n & 0xFF, n >> 8 & 0xFF, n >> 16 & 0xFF, n >> 24};
    sl_buffer_add(out, bytes, sizeof(bytes));
}

#ifdef SL_HAVE_LIBDEFLATE

uint32_t sl_crc32(uint32_t crc, struct sl_span bytes)
{
    return bytes.len ? libdeflate_crc32(crc, bytes.ptr, bytes.len) : crc;
}

/* libdeflate wants its input in one piece. NULL when `parts` is one already. */
static char *join(const struct sl_span *parts, size_t n, size_t total)
{
    if (n <= 1)
        return NULL;
    char *joined = malloc(total ? total : 1), *at = joined;
    if (!joined)
        sl_die("out of memory: %zu bytes to compress", total);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].len)
            memcpy(at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    return joined;
}

static void deflate_parts(struct sl_buffer *out, const struct sl_span *parts, size_t n, size_t total,
                          int level)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    if (!c)
        sl_die("out of memory: a compressor");
    char *joined = join(parts, n, total);
    const char *in = joined ? joined : n ? parts[0].ptr : NULL;
    size_t bound = libdeflate_deflate_compress_bound(c, total);
    size_t left = out->failed ? 0 : out->max - out->len;
    size_t room = bound < left ? bound : left;
    char *end = sl_buffer_reserve(out, room);
    size_t made = end && room ? libdeflate_deflate_compress(c, in ? in : "", total, end, room) : 0;
    out->len += made;
    out->failed |= made == 0;
    free(joined);
    libdeflate_free_compressor(c);
}

#else

uint32_t sl_crc32(uint32_t crc, struct sl_span bytes)
{
    return bytes.len ? (uint32_t)crc32_z(crc, (const Bytef *)bytes.ptr, bytes.len) : crc;
}

static size_t piece(size_t left)
{
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

/* Runs the encoder until it has taken its input and, when finishing, given everything. */
static void pump(z_stream *z, int flush, struct sl_buffer *out)
{
    int rc = Z_OK;
    while (!out->failed && (z->avail_in || flush == Z_FINISH) && rc != Z_STREAM_END) {
        size_t left = out->max - out->len;
        size_t room = left > WINDOW_BYTES ? WINDOW_BYTES : left ? left : 1;
        char *end = sl_buffer_reserve(out, room);
        if (!end)
            return;
        z->next_out = (Bytef *)end;
        z->avail_out = (uInt)room;
        rc = deflate(z, flush);
        out->len += room - z->avail_out;
    }
}

static void deflate_parts(struct sl_buffer *out, const struct sl_span *parts, size_t n, size_t total,
                          int level)
{
    (void)total;
    z_stream z = {0};
    if (deflateInit2(&z, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        sl_die("out of memory: a compressor");
    for (size_t i = 0; i < n; i++)
        for (size_t at = 0; at < parts[i].len; at += piece(parts[i].len - at)) {
            z.next_in = (Bytef *)(uintptr_t)(parts[i].ptr + at);
            z.avail_in = (uInt)piece(parts[i].len - at);
            pump(&z, Z_NO_FLUSH, out);
        }
    pump(&z, Z_FINISH, out);
    deflateEnd(&z);
}

#endif

void sl_gzip_add(struct sl_buffer *out, const struct sl_span *parts, size_t n, int level)
{
    assert(level >= 1 && level <= 9);
    size_t before = out->len, total = 0;
    uint32_t crc = 0;
    for (size_t i = 0; i < n; i++) {
        crc = sl_crc32(crc, parts[i]);
        total += parts[i].len;
    }
    add_header(out, level);
    deflate_parts(out, parts, n, total, level);
    add_le32(out, crc);
    add_le32(out, (uint32_t)total);
    if (out->failed)
        out->len = before;
}

bool sl_gzip_is(struct sl_span bytes)
{
    return bytes.len >= 2 && (unsigned char)bytes.ptr[0] == 0x1F && (unsigned char)bytes.ptr[1] == 0x8B;
}

enum place { IN_MEMBER, AFTER_MEMBER, IN_PADDING };

struct sl_inflater {
    z_stream z;
    enum place place;
    bool is_half_begun; /* of the member's first two bytes only one has come */
    uint64_t taken;     /* of all input */
    uint64_t member;    /* where the member, or the padding, began */
};

struct sl_inflater *sl_inflater_new(void)
{
    struct sl_inflater *x = calloc(1, sizeof(*x));
    if (!x || inflateInit2(&x->z, MAX_WBITS + 16) != Z_OK)
        sl_die("out of memory: a decompressor");
    return x;
}

void sl_inflater_destroy(struct sl_inflater *x)
{
    if (!x)
        return;
    inflateEnd(&x->z);
    free(x);
}

void sl_inflater_reset(struct sl_inflater *x)
{
    inflateReset(&x->z);
    x->place = IN_MEMBER;
    x->is_half_begun = false;
    x->taken = x->member = 0;
}

static enum sl_status no_member(const struct sl_inflater *x, struct sl_error *error)
{
    return sl_fail_at(error, SL_REJECT, "InvalidGzip", x->member, "gzip: no gzip member begins at byte %llu",
                      (unsigned long long)x->member);
}

static enum sl_status damaged(const struct sl_inflater *x, int rc, struct sl_error *error)
{
    if (rc == Z_MEM_ERROR)
        sl_die("out of memory: a decompressor");
    return sl_fail_at(error, SL_REJECT, "InvalidGzip", x->taken, "gzip: member at byte %llu: %s",
                      (unsigned long long)x->member, x->z.msg ? x->z.msg : "a preset dictionary");
}

static void take(struct sl_inflater *x, struct sl_span *in, size_t n)
{
    *in = sl_span_from(*in, n);
    x->taken += n;
}

/* Checks the two bytes that every member begins with: zlib says less clearly what is wrong with them. */
static enum sl_status begin_member(struct sl_inflater *x, struct sl_span in, struct sl_error *error)
{
    uint64_t seen = x->taken - x->member;
    bool is_wrong = (seen == 0 && (unsigned char)in.ptr[0] != 0x1F) ||
                    (seen == 0 && in.len > 1 && !sl_gzip_is(in)) ||
                    (x->is_half_begun && (unsigned char)in.ptr[0] != 0x8B);
    x->is_half_begun = seen == 0 && in.len == 1;
    return is_wrong ? no_member(x, error) : SL_OK;
}

/* One call of the decoder: input and output both have room. */
static enum sl_status inflate_some(struct sl_inflater *x, struct sl_span *in, size_t room,
                                   struct sl_buffer *out, struct sl_error *error)
{
    size_t window = room < WINDOW_BYTES ? room : WINDOW_BYTES;
    size_t fed = in->len < PIECE_BYTES ? in->len : PIECE_BYTES;
    char *end = sl_buffer_reserve(out, window);
    x->z.next_in = (Bytef *)(uintptr_t)in->ptr;
    x->z.avail_in = (uInt)fed;
    x->z.next_out = (Bytef *)end;
    x->z.avail_out = (uInt)window;
    int rc = inflate(&x->z, Z_NO_FLUSH);
    out->len += window - x->z.avail_out;
    take(x, in, fed - x->z.avail_in);
    if (rc == Z_STREAM_END) {
        inflateReset(&x->z);
        x->place = AFTER_MEMBER;
        x->member = x->taken;
    }
    return rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR ? SL_OK : damaged(x, rc, error);
}

static enum sl_status skip_padding(struct sl_inflater *x, struct sl_span *in, struct sl_error *error)
{
    size_t n = 0;
    while (n < in->len && in->ptr[n] == 0)
        n++;
    take(x, in, n);
    return in->len ? no_member(x, error) : SL_OK;
}

enum sl_status sl_inflater_add(struct sl_inflater *x, struct sl_span *in, size_t room, struct sl_buffer *out,
                               struct sl_error *error)
{
    enum sl_status status = SL_OK;
    size_t most = out->max - out->len < room ? out->max : out->len + room;
    bool is_waiting = true; /* output may wait in the decoder although all input was taken */
    while (status == SL_OK && !out->failed && out->len < most && (in->len || is_waiting)) {
        if (in->len && x->place == AFTER_MEMBER)
            x->place = in->ptr[0] ? IN_MEMBER : IN_PADDING;
        if (x->place != IN_MEMBER) {
            status = in->len ? skip_padding(x, in, error) : SL_OK;
            break;
        }
        if (in->len && x->taken - x->member < 2)
            status = begin_member(x, *in, error);
        size_t left = in->len, len = out->len;
        if (status == SL_OK && (in->len || x->taken > x->member))
            status = inflate_some(x, in, most - out->len, out, error);
        is_waiting = in->len < left || out->len > len;
    }
    return status;
}

enum sl_status sl_inflater_end(const struct sl_inflater *x, struct sl_error *error)
{
    if (x->place != IN_MEMBER)
        return SL_OK;
    return sl_fail_at(error, SL_REJECT, "TruncatedGzip", x->taken,
                      "gzip: ends inside the member that begins at byte %llu; the file is cut off",
                      (unsigned long long)x->member);
}

/* At the maximum one byte more is asked for, to tell "exactly full" from "too large". */
static enum sl_status check_full(struct sl_inflater *x, struct sl_span *in, struct sl_buffer *out,
                                 struct sl_error *error)
{
    struct sl_buffer spill;
    sl_buffer_init(&spill, 1);
    enum sl_status status = SL_OK;
    if (!out->failed)
        status = sl_inflater_add(x, in, 1, &spill, error);
    out->failed |= spill.len > 0;
    sl_buffer_clean_up(&spill);
    if (status == SL_OK && out->failed)
        status = sl_fail_at(error, SL_REJECT, "TooLarge", x->taken,
                            "gzip: more than %zu bytes when unpacked; split the file or unpack it first",
                            out->max);
    return status;
}

enum sl_status sl_gzip_expand(struct sl_span bytes, struct sl_buffer *out, struct sl_error *error)
{
    struct sl_inflater *x = sl_inflater_new();
    size_t before = out->len;
    enum sl_status status = sl_inflater_add(x, &bytes, SIZE_MAX - out->len, out, error);
    if (status == SL_OK && (out->failed || out->len == out->max))
        status = check_full(x, &bytes, out, error);
    if (status == SL_OK)
        status = sl_inflater_end(x, error);
    sl_inflater_destroy(x);
    if (status != SL_OK)
        out->len = before;
    return status;
}
