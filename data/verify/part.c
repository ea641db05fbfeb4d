/* Heads of objects that are read by shares. */
#include "data/verify/part.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/span.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t sl_part_workers(uint64_t n, uint64_t each)
{
    return n / each < SL_PART_SHARES ? n / each + 1 : SL_PART_SHARES;
}

/* ---- writing ---- */

void sl_part_add_hex(struct sl_buffer *out, const char *name, uint64_t n)
{
    char text[17];
    snprintf(text, sizeof(text), "%" PRIx64, n);
    sl_json_add_member(out, name, sl_span_str(text));
}

void sl_part_begin(struct sl_buffer *out)
{
    sl_buffer_printf(out, "%*s\n", (int)SL_PART_HEAD_BYTES - 1, "");
}

uint64_t sl_part_bytes(const struct sl_buffer *out)
{
    return out->len - SL_PART_HEAD_BYTES;
}

enum sl_status sl_part_end(const struct sl_part_head *head, struct sl_arena *arena, struct sl_buffer *out,
                           struct sl_error *error)
{
    struct sl_buffer text;
    sl_buffer_init_in(&text, arena, SL_PART_HEAD_BYTES);
    sl_buffer_add_char(&text, '{');
    if (head->before.ptr)
        sl_json_add_member(&text, "before", head->before);
    sl_part_add_hex(&text, "digest", head->digest);
    sl_json_add_raw(&text, "ends", SL_LIT("["));
    for (size_t i = 0; i < SL_PART_SHARES; i++) {
        sl_buffer_add_str(&text, i ? "," : "");
        sl_buffer_add_integer(&text, (int64_t)head->ends[i]);
    }
    sl_buffer_add_str(&text, "]}");
    if (text.failed || out->failed)
        return sl_fail(error, SL_FATAL, "PartTooLong",
                       "what a turn found needs more than an object may have");
    memcpy(out->ptr, text.ptr, text.len);
    return SL_OK;
}

/* ---- reading ---- */

bool sl_part_read_hex(struct sl_span json, uint64_t *out)
{
    char text[18];
    char *end;
    if (json.len < 3 || json.len > sizeof(text) || json.ptr[0] != '"')
        return false;
    memcpy(text, json.ptr + 1, json.len - 2);
    text[json.len - 2] = '\0';
    *out = strtoull(text, &end, 16);
    return *end == '\0';
}

bool sl_part_read_count(struct sl_span json, uint64_t *out)
{
    *out = 0;
    if (json.len > 15 || !sl_span_is_digits(json))
        return false;
    for (size_t i = 0; i < json.len; i++)
        *out = *out * 10 + (uint64_t)(json.ptr[i] - '0');
    return true;
}

static enum sl_status bad(const char *what, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "BadPart", "an object of a turn: %s", what);
}

enum sl_status sl_part_head_read(struct sl_span text, struct sl_arena *arena, struct sl_part_head *out,
                                 struct sl_error *error)
{
    size_t n = 0;
    struct sl_span number;
    *out = (struct sl_part_head){.digest = 0};
    if (text.len != SL_PART_HEAD_BYTES || sl_json_check(text, error) != SL_OK)
        return bad("it has no head", error);
    out->before = sl_json_text(text, "before", arena);
    struct sl_json_walk ends = sl_json_walk(sl_json_walk_member(text, SL_LIT("ends")));
    while (n < SL_PART_SHARES && sl_json_walk_next(&ends, NULL, &number)) {
        if (!sl_part_read_count(number, &out->ends[n]) || (n && out->ends[n] < out->ends[n - 1]))
            break;
        n++;
    }
    return n == SL_PART_SHARES && sl_part_read_hex(sl_json_walk_member(text, SL_LIT("digest")), &out->digest)
               ? SL_OK
               : bad("its head does not say where the shares end", error);
}
