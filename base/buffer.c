/* A buffer that grows by doubling from what it first had to hold, up to its maximum. */
#include "base/buffer.h"

#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sl_buffer_init(struct sl_buffer *b, size_t max)
{
    *b = (struct sl_buffer){.max = max};
}

void sl_buffer_init_in(struct sl_buffer *b, struct sl_arena *arena, size_t max)
{
    *b = (struct sl_buffer){.max = max, .arena = arena};
}

void sl_buffer_clean_up(struct sl_buffer *b)
{
    if (!b)
        return;
    sl_buffer_reset(b);
    if (!b->arena)
        free(b->ptr);
    *b = (struct sl_buffer){.max = b->max, .is_secret = b->is_secret};
}

void sl_buffer_reset(struct sl_buffer *b)
{
    if (b->is_secret && b->ptr)
        explicit_bzero(b->ptr, b->len);
    b->len = 0;
    b->failed = false;
}

static char *moved(char *old, size_t len, size_t room)
{
    char *longer = malloc(room);
    if (longer && len)
        memcpy(longer, old, len);
    if (old)
        explicit_bzero(old, len);
    free(old);
    return longer;
}

static void grow(struct sl_buffer *b, size_t room)
{
    if (b->arena) {
        char *longer = sl_arena_alloc(b->arena, room);
        if (b->len > 0)
            memcpy(longer, b->ptr, b->len);
        b->ptr = longer;
    } else {
        b->ptr = b->is_secret ? moved(b->ptr, b->len, room) : realloc(b->ptr, room);
        if (!b->ptr)
            sl_die("out of memory: %zu bytes for a buffer", room);
    }
    b->room = room;
}

char *sl_buffer_reserve(struct sl_buffer *b, size_t n)
{
    if (b->failed || n > b->max - b->len) {
        b->failed = true;
        return NULL;
    }
    if (n > b->room - b->len || !b->ptr) {
        size_t least = b->arena ? 64 : 256, room = b->room ? b->room : n > least ? n : least;
        while (room - b->len < n)
            room = room > b->max / 2 ? b->max : room * 2;
        grow(b, room);
    }
    return b->ptr + b->len;
}

void sl_buffer_add(struct sl_buffer *b, const void *bytes, size_t n)
{
    char *end = sl_buffer_reserve(b, n);
    if (!end || n == 0)
        return;
    memcpy(end, bytes, n);
    b->len += n;
}

void sl_buffer_add_span(struct sl_buffer *b, struct sl_span span)
{
    sl_buffer_add(b, span.ptr, span.len);
}

void sl_buffer_add_str(struct sl_buffer *b, const char *text)
{
    sl_buffer_add(b, text, strlen(text));
}

void sl_buffer_add_char(struct sl_buffer *b, char c)
{
    sl_buffer_add(b, &c, 1);
}

/* Faster than printf: metrics have dozens of numbers for each invocation. */
void sl_buffer_add_integer(struct sl_buffer *b, int64_t number)
{
    char digits[24];
    size_t at = sizeof(digits);
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (number < 0)
        digits[--at] = '-';
    sl_buffer_add(b, digits + at, sizeof(digits) - at);
}

void sl_buffer_add_thousandths(struct sl_buffer *b, uint64_t number)
{
    unsigned part = (unsigned)(number % 1000);
    const char digits[] = {'.', (char)('0' + part / 100), (char)('0' + part / 10 % 10),
                           (char)('0' + part % 10)};
    sl_buffer_add_integer(b, (int64_t)(number / 1000));
    if (part)
        sl_buffer_add(b, digits, part % 10 ? 4 : part % 100 ? 3 : 2);
}

void sl_buffer_printf(struct sl_buffer *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    /* Into the room that is there, which is mostly enough. */
    size_t left = b->ptr ? b->room - b->len : 0;
    int n = vsnprintf(left ? b->ptr + b->len : NULL, left, format, args);
    char *end = n < 0 ? NULL : sl_buffer_reserve(b, (size_t)n + 1);
    if (end && (size_t)n >= left)
        vsnprintf(end, (size_t)n + 1, format, again);
    b->len += end ? (size_t)n : 0;
    va_end(again);
    va_end(args);
}
