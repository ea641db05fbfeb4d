/* The memory of answers: whose body may grow, and who waits until another answer was used. */
#include "net/http_private.h"

void sl_http_give_back(struct sl_http_exchange *exchange)
{
    if (!exchange->hold)
        return;
    exchange->hold->held -= exchange->held_bytes;
    exchange->held_bytes = 0;
    exchange->hold = NULL;
}

/* Grants the exchange `bytes` in all. What alone is on its way goes on, whatever it needs. */
static bool grant(struct sl_http_transfer *t, size_t bytes)
{
    struct sl_http_hold *hold = &t->http->hold;
    struct sl_http_exchange *exchange = t->exchange;
    size_t others = hold->held - exchange->held_bytes;
    bool fits = others <= hold->most && bytes <= hold->most - others;
    if (!fits && hold->receiving > t->is_receiving)
        return false;
    hold->receiving += !t->is_receiving;
    t->is_receiving = true;
    hold->held = others + bytes;
    exchange->held_bytes = bytes;
    exchange->hold = hold;
    return true;
}

static void stop_receiving(struct sl_http_transfer *t)
{
    t->http->hold.receiving -= t->is_receiving;
    t->is_receiving = false;
}

/* Behind those that wait already. */
static void queue(struct sl_http_transfer *t, size_t bytes)
{
    struct sl_http_transfer **last = &t->http->hold.paused;
    while (*last)
        last = &(*last)->next;
    *last = t;
    t->next = NULL;
    t->wanted_bytes = bytes;
    stop_receiving(t);
}

/* What the body needs for `len` bytes: where the server has said its length all of that, else as it doubles.
 * SIZE_MAX: more than it may have. */
static size_t needed(struct sl_http_transfer *t, size_t len)
{
    const struct sl_buffer *body = &t->exchange->body;
    size_t room = body->room ? body->room : body->max < SL_HTTP_SMALL_BYTES ? body->max : SL_HTTP_SMALL_BYTES;
    curl_off_t said = -1;
    curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &said);
    if (len > body->max || (said > 0 && (uint64_t)said > body->max))
        return SIZE_MAX;
    if (said > 0)
        return (size_t)said;
    while (room < len)
        room = room > body->max / 2 ? body->max : 2 * room;
    return room;
}

/* As much as is counted: exactly, where nothing came yet. */
static void reserve(struct sl_buffer *body, size_t bytes)
{
    if (body->room >= bytes)
        return;
    if (body->len == 0)
        sl_buffer_clean_up(body);
    (void)sl_buffer_reserve(body, bytes - body->len);
}

bool sl_http_hold(struct sl_http_transfer *t, size_t n)
{
    struct sl_buffer *body = &t->exchange->body;
    size_t len = body->len + n, bytes = t->exchange->held_bytes;
    if (!t->is_receiving || len > bytes) {
        bytes = needed(t, len);
        if (bytes == SIZE_MAX) {
            body->failed = true;
            return true;
        }
        if (bytes > SL_HTTP_SMALL_BYTES && ((!t->is_receiving && t->http->hold.paused) || !grant(t, bytes))) {
            queue(t, bytes);
            return false;
        }
    }
    reserve(body, bytes);
    return true;
}

struct sl_http_transfer *sl_http_next_to_resume(struct sl_http *http)
{
    struct sl_http_transfer *t = http->hold.paused;
    if (!t || !grant(t, t->wanted_bytes))
        return NULL;
    http->hold.paused = t->next;
    return t;
}

void sl_http_hold_end(struct sl_http_transfer *t)
{
    struct sl_http_transfer **at = &t->http->hold.paused;
    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    stop_receiving(t);
}
