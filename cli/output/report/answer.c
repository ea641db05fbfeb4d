/* Says an answer in words. */
#include "cli/output/report/answer.h"

#include "base/span.h"
#include "cli/output/report/html.h"

#include <jansson.h>

#define MOST_IDS 5 /* the page has to stay small */

static void add_member(struct sl_buffer *out, const json_t *object, const char *name, const char *before)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value) || json_string_length(value) == 0)
        return;
    if (out->len)
        sl_buffer_add_str(out, before);
    sl_buffer_add(out, json_string_value(value), json_string_length(value));
}

static void say_failures(const json_t *list, bool counts, struct sl_buffer *out)
{
    size_t n = json_array_size(list);
    if (n == 0) {
        sl_buffer_add_str(out, "Success: it names no record");
        return;
    }
    sl_buffer_printf(out, "Names %zu record%s as failed:", n, n == 1 ? "" : "s");
    for (size_t i = 0; i < n && i < MOST_IDS; i++) {
        const json_t *id = json_object_get(json_array_get(list, i), "itemIdentifier");
        sl_buffer_add_str(out, i ? ", " : " ");
        sl_buffer_add_str(out, json_is_string(id) ? json_string_value(id) : "?");
    }
    if (n > MOST_IDS)
        sl_buffer_printf(out, " and %zu more", n - MOST_IDS);
    if (!counts)
        sl_buffer_add_str(out, " (ignored: ReportBatchItemFailures is off)");
}

static void cut(struct sl_buffer *out)
{
    if (out->len <= SL_ANSWER_TEXT_BYTES)
        return;
    out->len = sl_html_shorten(sl_buffer_span(out), SL_ANSWER_TEXT_BYTES).len;
    sl_buffer_add_str(out, "\xE2\x80\xA6");
}

void sl_answer_say(const struct sl_esm_result *result, bool counts, struct sl_buffer *out)
{
    json_t *root =
        result->body.len ? json_loadb(result->body.ptr, result->body.len, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *failures = json_object_get(root, "batchItemFailures");
    if (result->outcome == SL_ESM_ANSWERED && json_is_array(failures)) {
        say_failures(failures, counts, out);
    } else if (result->outcome != SL_ESM_ANSWERED) {
        add_member(out, root, "errorType", "");
        add_member(out, root, "errorMessage", ": ");
    }
    if (out->len == 0)
        sl_buffer_add_span(out, result->body);
    if (out->len == 0)
        sl_buffer_add_str(out, "An empty answer");
    json_decref(root);
    cut(out);
}
