/* What a service says when it refuses, read from each of its shapes. */
#include "aws/refusal.h"

#include "aws/xml.h"
#include "base/json.h"
#include "base/json_walk.h"

#include <stdio.h>

bool sl_refusal_is_code(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!is_letter && (i == 0 || !((c >= '0' && c <= '9') || c == '.')))
            return false;
    }
    return text.len > 0 && text.len < SL_REFUSAL_CODE_BYTES;
}

/* "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException" and "InternalFailure:http://..." */
static void put_code(struct sl_refusal *out, struct sl_span text)
{
    const char *hash = text.len ? memrchr(text.ptr, '#', text.len) : NULL;
    if (hash)
        text = sl_span_from(text, (size_t)(hash - text.ptr) + 1);
    const char *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
    if (colon)
        text.len = (size_t)(colon - text.ptr);
    if (sl_refusal_is_code(text))
        snprintf(out->code, sizeof(out->code), "%.*s", SL_ARG(text));
}

static void put_message(struct sl_refusal *out, struct sl_span text)
{
    size_t n = text.len < sizeof(out->message) ? text.len : sizeof(out->message) - 1;
    for (size_t i = 0; i < n; i++)
        out->message[i] = text.ptr[i] ? text.ptr[i] : '\1';
    out->message[n] = '\0';
}

/* The text of the first of these members that is one, as it is written between its quotes. */
static struct sl_span first_of(struct sl_span object, const char *const *names)
{
    for (; *names; names++) {
        struct sl_span value = sl_json_walk_member(object, sl_span_str(*names));
        if (value.len > 2 && *value.ptr == '"')
            return sl_span(value.ptr + 1, value.len - 2);
    }
    return sl_span(NULL, 0);
}

/* Our own scanner: some answers hold items, and items hold what other parsers refuse (NUL). */
static void read_json(struct sl_span body, struct sl_refusal *out)
{
    static const char *const codes[] = {"__type", "code", "Code", NULL};
    static const char *const messages[] = {"message", "Message", "errorMessage", NULL};
    struct sl_buffer text;
    sl_buffer_init(&text, body.len + 1);
    put_code(out, sl_json_unescape_in(first_of(body, codes), &text));
    put_message(out, sl_json_unescape_in(first_of(body, messages), &text));
    sl_buffer_clean_up(&text);
}

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

/* The document's outermost element. */
static bool is_element(struct sl_span xml, const char *name)
{
    const char *p = xml.ptr, *end = sl_span_end(xml);
    while (p < end && (is_blank(*p) || sl_span_starts(sl_span(p, (size_t)(end - p)), SL_LIT("<?")))) {
        const char *close = is_blank(*p) ? p : memchr(p, '>', (size_t)(end - p));
        p = close ? close + 1 : end;
    }
    size_t n = strlen(name);
    return (size_t)(end - p) > n + 1 && *p == '<' && memcmp(p + 1, name, n) == 0 &&
           strchr("> \t\r\n", p[n + 1]);
}

static void read_xml(struct sl_span body, struct sl_refusal *out)
{
    struct sl_buffer text;
    if (!is_element(body, "Error") && !is_element(body, "ErrorResponse"))
        return;
    sl_buffer_init(&text, body.len + 1);
    put_code(out, sl_xml_tag(body, "Code"));
    sl_xml_add_text(&text, sl_xml_tag(body, "Message"));
    put_message(out, sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
}

static bool is_html(struct sl_span body)
{
    size_t n = body.len < 1024 ? body.len : 1024;
    return memmem(body.ptr, n, "<html", 5) || memmem(body.ptr, n, "<HTML", 5) ||
           memmem(body.ptr, n, "<!DOCTYPE html", 14) || memmem(body.ptr, n, "<!doctype html", 14);
}

/* Nothing of a body is quoted that the service did not write. */
static void describe(const struct sl_http_exchange *exchange, const char *type, struct sl_refusal *out)
{
    snprintf(out->code, sizeof(out->code), "Http%d", exchange->status);
    if (!exchange->body.len)
        snprintf(out->message, sizeof(out->message), "the answer is empty");
    else
        snprintf(out->message, sizeof(out->message), "the answer is %s of %zu bytes, not a service's error",
                 type, exchange->body.len);
    out->is_ours = true;
}

void sl_refusal_read(const struct sl_http_exchange *exchange, struct sl_refusal *out)
{
    struct sl_span body = sl_buffer_span(&exchange->body);
    const char *type = "text";
    out->code[0] = out->message[0] = '\0';
    out->is_ours = false;
    while (body.len && is_blank(*body.ptr))
        body = sl_span_from(body, 1);
    bool may_name_it_above = !body.len;
    if (body.len && *body.ptr == '<') {
        type = is_html(body) ? "HTML" : "XML";
        read_xml(body, out);
    } else if (body.len && sl_json_check_loose(body, NULL) == SL_OK) {
        type = "JSON";
        may_name_it_above = *body.ptr == '{';
        read_json(body, out);
    }
    if (!out->code[0] && may_name_it_above)
        put_code(out, sl_http_header(exchange, "x-amzn-errortype"));
    if (!out->code[0])
        describe(exchange, type, out);
}
