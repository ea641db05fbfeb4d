#include "sinks/aws/answer.h"

#include "base/json.h"

#include <jansson.h>
#include <stdio.h>

/* A body up to this size is searched for the words of an error's message. */
#define MASK_BODY_BYTES (1024 * 1024)

static void put(char *out, size_t room, struct sl_span text)
{
    struct sl_error tidy = {.status = SL_OK};
    (void)sl_fail(&tidy, SL_REJECT, "", "%.*s", (int)(text.len < 480 ? text.len : 480), text.ptr);
    snprintf(out, room, "%.*s", (int)room - 1, tidy.text);
}

/* "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException" and "InternalFailure:http://..." */
static void put_code(struct sl_answer_error *out, struct sl_span text)
{
    for (size_t i = text.len; i > 0; i--)
        if (text.ptr[i - 1] == '#') {
            text = sl_span_from(text, i);
            break;
        }
    const char *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
    if (colon)
        text.len = (size_t)(colon - text.ptr);
    if (text.len)
        put(out->code, sizeof(out->code), text);
}

static struct sl_span json_text(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return sl_span(json_string_value(value), json_string_length(value));
}

static struct sl_span first_of(const json_t *object, const char *const *names)
{
    for (; *names; names++) {
        struct sl_span text = json_text(object, *names);
        if (text.len)
            return text;
    }
    return sl_span(NULL, 0);
}

static void read_json(struct sl_span body, struct sl_answer_error *out)
{
    static const char *const codes[] = {"__type", "code", "Code", NULL};
    static const char *const messages[] = {"message", "Message", "errorMessage", NULL};
    json_t *root = json_loadb(body.ptr, body.len, 0, NULL);
    if (!root)
        return;
    struct sl_span message = first_of(root, messages);
    put_code(out, first_of(root, codes));
    if (message.len)
        put(out->message, sizeof(out->message), message);
    json_decref(root);
}

static void read_xml(struct sl_span body, struct sl_answer_error *out)
{
    char raw[SL_ANSWER_MESSAGE_BYTES];
    struct sl_buffer text = {.ptr = raw, .room = sizeof(raw), .max = sizeof(raw)};
    struct sl_span message = sl_answer_tag(body, "Message");
    put_code(out, sl_answer_tag(body, "Code"));
    if (message.len > sizeof(raw))
        message.len = sizeof(raw);
    sl_answer_add_text(&text, message);
    if (text.len)
        put(out->message, sizeof(out->message), sl_buffer_span(&text));
}

void sl_answer_read_error(const struct sl_http_exchange *exchange, struct sl_answer_error *out)
{
    *out = (struct sl_answer_error){.code = ""};
    struct sl_span body = sl_buffer_span(&exchange->body);
    size_t i = 0;
    while (i < body.len && (unsigned char)body.ptr[i] <= ' ')
        i++;
    if (i < body.len && body.ptr[i] == '<')
        read_xml(body, out);
    else if (i < body.len)
        read_json(body, out);
    if (!out->code[0])
        put_code(out, sl_http_header(exchange, "x-amzn-errortype"));
    if (!out->code[0])
        snprintf(out->code, sizeof(out->code), "Http%d", exchange->status);
}

/* ---- XML ---- */

/* Where "<name" begins, with a '>' or a blank behind it; NULL when nowhere. */
static const char *find_open(struct sl_span xml, const char *name)
{
    size_t n = strlen(name);
    while (xml.len > n + 1) {
        const char *open = memchr(xml.ptr, '<', xml.len);
        if (!open)
            return NULL;
        xml = sl_span_from(xml, (size_t)(open - xml.ptr) + 1);
        if (xml.len > n && memcmp(xml.ptr, name, n) == 0 && strchr("> \t\r\n/", xml.ptr[n]))
            return open;
    }
    return NULL;
}

struct sl_span sl_answer_next_tag(struct sl_span *rest, const char *name)
{
    const struct sl_span none = {NULL, 0};
    char close[80];
    int n = snprintf(close, sizeof(close), "</%s>", name);
    const char *open = rest->len ? find_open(*rest, name) : NULL;
    if (!open || n < 0 || (size_t)n >= sizeof(close))
        return none;
    struct sl_span behind = sl_span(open, (size_t)(rest->ptr + rest->len - open));
    const char *mark = memchr(behind.ptr, '>', behind.len);
    if (!mark)
        return none;
    behind = sl_span_from(behind, (size_t)(mark - behind.ptr) + 1);
    if (mark[-1] == '/') {
        *rest = behind;
        return sl_span(behind.ptr, 0);
    }
    const char *end = memmem(behind.ptr, behind.len, close, (size_t)n);
    if (!end)
        return none;
    struct sl_span text = sl_span(behind.ptr, (size_t)(end - behind.ptr));
    *rest = sl_span_from(behind, text.len + (size_t)n);
    return text;
}

struct sl_span sl_answer_tag(struct sl_span xml, const char *name)
{
    return sl_answer_next_tag(&xml, name);
}

void sl_answer_add_text(struct sl_buffer *out, struct sl_span text)
{
    static const struct {
        struct sl_span entity;
        char is;
    } entities[] = {
        {SL_LIT("&amp;"), '&'},  {SL_LIT("&lt;"), '<'},    {SL_LIT("&gt;"), '>'},
        {SL_LIT("&quot;"), '"'}, {SL_LIT("&apos;"), '\''}, {SL_LIT("&#39;"), '\''},
    };
    while (text.len) {
        size_t i = 0;
        while (i < sizeof(entities) / sizeof(entities[0]) && !sl_span_starts(text, entities[i].entity))
            i++;
        bool found = i < sizeof(entities) / sizeof(entities[0]);
        sl_buffer_add_char(out, found ? entities[i].is : *text.ptr);
        text = sl_span_from(text, found ? entities[i].entity.len : 1);
    }
}

/* ---- JSON ---- */

struct sl_answer_walk sl_answer_walk(struct sl_span json)
{
    const char *end = json.ptr + json.len;
    const char *p = json.ptr ? sl_json_space(json.ptr, end) : end;
    if (p < end && (*p == '{' || *p == '['))
        return (struct sl_answer_walk){sl_json_space(p + 1, end), end, *p == '{'};
    return (struct sl_answer_walk){end, end, false};
}

bool sl_answer_step(struct sl_answer_walk *walk, struct sl_span *name, struct sl_span *value)
{
    const char *p = walk->p, *end = walk->end;
    bool escaped;
    if (p == end || *p == '}' || *p == ']' || walk->is_object != (name != NULL))
        return false;
    if (name) {
        const char *close = sl_json_string_end(p + 1, end, &escaped);
        *name = sl_span(p + 1, (size_t)(close - p - 1));
        p = sl_json_space(sl_json_space(close + 1, end) + 1, end);
    }
    const char *behind = sl_json_value_end(p, end);
    *value = sl_span(p, (size_t)(behind - p));
    p = sl_json_space(behind, end);
    walk->p = p < end && *p == ',' ? sl_json_space(p + 1, end) : p;
    return true;
}

struct sl_span sl_answer_member(struct sl_span json, struct sl_span name)
{
    struct sl_answer_walk walk = sl_answer_walk(json);
    struct sl_span have, value;
    while (sl_answer_step(&walk, &have, &value))
        if (sl_json_text_is(have, name))
            return value;
    return sl_span(NULL, 0);
}

/* ---- values in messages ---- */

static bool is_word_char(char c)
{
    return !strchr(" ,;:=()[]{}<>'\"\t\\", c);
}

/* Whether a word of one of the pieces begins with `text`: services cut what they quote, but not at its front.
 */
static bool is_in(struct sl_span text, const struct sl_span *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *at = parts[i].ptr, *end = at + parts[i].len;
        while (parts[i].len && (at = memmem(at, (size_t)(end - at), text.ptr, text.len)) != NULL) {
            if (at == parts[i].ptr || !is_word_char(at[-1]))
                return true;
            at++;
        }
    }
    return false;
}

/* An attribute's name is written with its colon: "PK": */
static bool is_value(struct sl_span word, const struct sl_span *parts, size_t n)
{
    char name[SL_ANSWER_MESSAGE_BYTES + 4];
    int len = snprintf(name, sizeof(name), "\"%.*s\":", SL_ARG(word));
    return is_in(word, parts, n) && !is_in(sl_span(name, (size_t)len), parts, n);
}

void sl_answer_mask(char *message, const struct sl_span *parts, size_t n_parts)
{
    char out[SL_ANSWER_MESSAGE_BYTES];
    struct sl_buffer masked = {.ptr = out, .room = sizeof(out), .max = sizeof(out) - 1};
    size_t body = 0;
    for (size_t i = 0; i < n_parts; i++)
        body += parts[i].len;
    for (const char *p = message; *p && body <= MASK_BODY_BYTES;) {
        size_t n = 0;
        while (p[n] && is_word_char(p[n]))
            n++;
        struct sl_span word = sl_span(p, n);
        /* A sentence's full stop is not part of the word. */
        if (n > 1 && p[n - 1] == '.')
            word.len--;
        if (word.len > 1 && is_value(word, parts, n_parts))
            sl_buffer_add_str(&masked, "...");
        else
            sl_buffer_add_span(&masked, word);
        if (!p[word.len])
            break;
        sl_buffer_add_char(&masked, p[word.len]);
        p += word.len + 1;
    }
    memcpy(message, out, masked.len);
    message[masked.len] = '\0';
}
