/* Writes a request for libcurl: its header lines and its body. */
#include "base/array.h"
#include "net/http_private.h"

#include <stdio.h>
#include <strings.h>

/* ---- a body in pieces ---- */

size_t sl_http_on_read(char *out, size_t size, size_t n, void *arg)
{
    struct sl_http_transfer *t = arg;
    size_t room = size * n, done = 0;
    while (done < room && t->part < t->exchange->n_parts) {
        struct sl_span left = sl_span_from(t->exchange->parts[t->part], t->offset);
        size_t take = left.len < room - done ? left.len : room - done;
        if (take)
            memcpy(out + done, left.ptr, take);
        done += take;
        t->offset += take;
        if (take == left.len) {
            t->part++;
            t->offset = 0;
        }
    }
    return done;
}

/* libcurl sends again from the start when a kept connection turns out to be closed. */
int sl_http_on_seek(void *arg, curl_off_t offset, int origin)
{
    struct sl_http_transfer *t = arg;
    if (origin != SEEK_SET || offset != 0)
        return CURL_SEEKFUNC_CANTSEEK;
    t->part = 0;
    t->offset = 0;
    return CURL_SEEKFUNC_OK;
}

/* ---- header lines ---- */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Whether one of the eight bytes is a control byte: below a space, or 0x7F. */
static bool has_control_byte(uint64_t bytes)
{
    uint64_t delete = bytes ^ EACH(0x7F);
    return (((bytes - EACH(' ')) & ~bytes) | ((delete - EACH(1)) & ~delete)) & EACH(0x80);
}

static bool is_broken(const char *line)
{
    size_t n = strlen(line), i = 0;
    uint64_t bytes;
    for (; n - i >= sizeof(bytes); i += sizeof(bytes)) {
        memcpy(&bytes, line + i, sizeof(bytes));
        if (has_control_byte(bytes))
            return true;
    }
    bytes = EACH(' ');
    memcpy(&bytes, line + i, n - i);
    return has_control_byte(bytes);
}

/* The number of the header that cannot be written: a control byte in it would begin another. */
static size_t find_broken_header(const struct sl_http_exchange *exchange)
{
    for (size_t i = 0; i < exchange->n_headers; i++)
        if (is_broken(exchange->headers[i]))
            return i;
    return SIZE_MAX;
}

bool sl_http_is_sendable(struct sl_http_exchange *exchange)
{
    size_t i = find_broken_header(exchange);
    if (i == SIZE_MAX)
        return true;
    const char *line = exchange->headers[i];
    exchange->outcome = SL_HTTP_UNSENDABLE;
    snprintf(exchange->problem, sizeof(exchange->problem), "the header %.*s holds a control character",
             (int)strcspn(line, ":;"), line);
    return false;
}

/* libcurl looks through all lines for each of the names that it knows, and for each line again for some: it
 * takes a tenth of a request's processor time with ten lines. So what it does not look for goes out as one
 * line for it, with line ends inside, which find_broken_header has made sure that we alone write. */
static bool is_looked_for(const char *line)
{
    static const char *const names[] = {
        "accept", "connection", "content-", "cookie",  "date", "expect",    "host",    "if-",
        "mime-",  "proxy-",     "range",    "referer", "te:",  "transfer-", "upgrade",
    };
    for (size_t i = 0; i < SL_COUNT(names); i++)
        if ((*line | 0x20) == *names[i] && strncasecmp(line, names[i], strlen(names[i])) == 0)
            return true;
    return line[strcspn(line, ":;")] == ';'; /* without a value: libcurl has to rewrite it */
}

static void add_line(struct sl_http_transfer *t, size_t *n, const char *line)
{
    t->lines[(*n)++].data = (char *)(uintptr_t)line;
}

/* Joins the lines that libcurl does not look for. False: they are too long for that. */
static bool join_lines(struct sl_http_transfer *t, const bool *is_apart)
{
    const struct sl_http_exchange *exchange = t->exchange;
    sl_buffer_reset(&t->line);
    for (size_t i = 0; i < exchange->n_headers; i++) {
        if (is_apart[i])
            continue;
        sl_buffer_add_str(&t->line, t->line.len ? "\r\n" : "");
        sl_buffer_add_str(&t->line, exchange->headers[i]);
    }
    sl_buffer_add_char(&t->line, '\0');
    return !t->line.failed;
}

static void set_lines(struct sl_http_transfer *t)
{
    const struct sl_http_exchange *exchange = t->exchange;
    bool is_apart[SL_HTTP_HEADERS];
    for (size_t i = 0; i < exchange->n_headers; i++)
        is_apart[i] = is_looked_for(exchange->headers[i]);
    bool is_joined = join_lines(t, is_apart);
    size_t n = 0;
    for (size_t i = 0; i < exchange->n_headers; i++)
        if (!is_joined || is_apart[i])
            add_line(t, &n, exchange->headers[i]);
    if (is_joined && t->line.len > 1)
        add_line(t, &n, t->line.ptr);
    /* An Expect may cost a second; libcurl does not think of it for a body that goes out with the head. */
    if (exchange->body_bytes > SL_HTTP_JOINED_BYTES)
        add_line(t, &n, "Expect:");
    add_line(t, &n, "Accept:");
    for (size_t i = 0; i < n; i++)
        t->lines[i].next = i + 1 < n ? &t->lines[i + 1] : NULL;
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->lines);
}

/* ---- the body ---- */

/* What libcurl can send from where it is; NULL: it asks for the pieces. */
static const char *whole_body(struct sl_http_transfer *t)
{
    const struct sl_http_exchange *exchange = t->exchange;
    if (exchange->n_parts <= 1)
        return exchange->body_bytes ? exchange->parts[0].ptr : "";
    if (exchange->body_bytes > SL_HTTP_JOINED_BYTES)
        return NULL;
    t->body.is_secret = exchange->is_secret;
    sl_buffer_reset(&t->body);
    for (size_t i = 0; i < exchange->n_parts; i++)
        sl_buffer_add_span(&t->body, exchange->parts[i]);
    return t->body.len ? t->body.ptr : "";
}

static void set_body(struct sl_http_transfer *t)
{
    const struct sl_http_exchange *exchange = t->exchange;
    bool is_get = strcmp(exchange->method, "GET") == 0;
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, NULL);
    if (is_get) {
        curl_easy_setopt(t->easy, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, NULL);
        return;
    }
    curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, exchange->method);
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body_bytes);
    const char *whole = whole_body(t);
    if (whole)
        curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, whole);
}

void sl_http_write_request(struct sl_http_transfer *t)
{
    set_lines(t);
    set_body(t);
}
