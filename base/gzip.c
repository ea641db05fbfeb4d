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

/* One run of the decoder over its own window. zlib is fed all that is left, so needing more means truncated.
 * */
struct expander {
    z_stream z;
    struct sl_span bytes;
    size_t fed; /* bytes handed to zlib so far, taken or not */
    size_t member;
    struct sl_buffer *out;
    struct sl_error *error;
};

static size_t taken(const struct expander *x)
{
    return x->fed - x->z.avail_in;
}

static void feed(struct expander *x)
{
    size_t left = x->bytes.len - x->fed, n = left < PIECE_BYTES ? left : PIECE_BYTES;
    if (x->z.avail_in || n == 0)
        return;
    x->z.next_in = (Bytef *)(uintptr_t)(x->bytes.ptr + x->fed);
    x->z.avail_in = (uInt)n;
    x->fed += n;
}

static enum sl_status fail(const struct expander *x, int rc)
{
    const struct sl_buffer *out = x->out;
    if (rc == Z_MEM_ERROR)
        sl_die("out of memory: a decompressor");
    if (rc == Z_DATA_ERROR || rc == Z_NEED_DICT)
        return sl_fail_at(x->error, SL_REJECT, "InvalidGzip", taken(x), "gzip: member at byte %zu: %s",
                          x->member, x->z.msg ? x->z.msg : "a preset dictionary");
    if (out->failed)
        return sl_fail_at(x->error, SL_REJECT, "TooLarge", taken(x),
                          "gzip: more than %zu bytes when unpacked; split the file or unpack it first",
                          out->max);
    return sl_fail_at(x->error, SL_REJECT, "TruncatedGzip", x->bytes.len,
                      "gzip: ends inside the member that begins at byte %zu; the file is cut off", x->member);
}

/* At the maximum one byte more is asked for into `spill`, to tell "exactly full" from "too large". */
static int step(struct expander *x)
{
    char spill;
    size_t left = x->out->max - x->out->len, room = left < WINDOW_BYTES ? left : WINDOW_BYTES;
    char *end = room ? sl_buffer_reserve(x->out, room) : &spill;
    if (!end)
        return Z_BUF_ERROR;
    feed(x);
    x->z.next_out = (Bytef *)end;
    x->z.avail_out = room ? (uInt)room : 1;
    int rc = inflate(&x->z, Z_NO_FLUSH);
    if (room)
        x->out->len += room - x->z.avail_out;
    else if (x->z.avail_out == 0)
        x->out->failed = true;
    return x->out->failed ? Z_BUF_ERROR : rc;
}

static enum sl_status expand_member(struct expander *x)
{
    int rc;
    do
        rc = step(x);
    while (rc == Z_OK);
    return rc == Z_STREAM_END ? SL_OK : fail(x, rc);
}

static bool is_padding(struct sl_span rest)
{
    for (size_t i = 0; i < rest.len; i++)
        if (rest.ptr[i] != 0)
            return false;
    return true;
}

static enum sl_status expand_members(struct expander *x)
{
    do {
        x->member = taken(x);
        struct sl_span rest = sl_span_from(x->bytes, x->member);
        if (rest.len && (rest.ptr[0] != 0x1F || (rest.len > 1 && !sl_gzip_is(rest))))
            return sl_fail_at(x->error, SL_REJECT, "InvalidGzip", x->member,
                              "gzip: no gzip member begins at byte %zu", x->member);
        enum sl_status status = expand_member(x);
        if (status != SL_OK)
            return status;
        inflateReset(&x->z);
    } while (!is_padding(sl_span_from(x->bytes, taken(x))));
    return SL_OK;
}

enum sl_status sl_gzip_expand(struct sl_span bytes, struct sl_buffer *out, struct sl_error *error)
{
    struct expander x = {.bytes = bytes, .out = out, .error = error};
    size_t before = out->len;
    if (inflateInit2(&x.z, MAX_WBITS + 16) != Z_OK)
        sl_die("out of memory: a decompressor");
    enum sl_status status = expand_members(&x);
    inflateEnd(&x.z);
    if (status != SL_OK)
        out->len = before;
    return status;
}
