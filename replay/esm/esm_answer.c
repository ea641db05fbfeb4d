/* Reads the answer of a function: partial failures, and the state of a window. */
#include "replay/esm/esm_private.h"

#include <jansson.h>

/* The position of the record with this id; `n` when it is not in the batch. */
static size_t position(struct sl_span id, const struct sl_esm_record *const *records, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sl_span_eq(records[i]->id, id))
            return i;
    return n;
}

static bool lowest(const json_t *failures, const struct sl_esm_record *const *records, size_t n,
                   size_t *failed)
{
    size_t i;
    const json_t *failure;
    json_array_foreach(failures, i, failure)
    {
        const json_t *id = json_object_get(failure, "itemIdentifier");
        if (!json_is_string(id))
            return false;
        size_t at = position(sl_span(json_string_value(id), json_string_length(id)), records, n);
        if (at == n)
            return false;
        *failed = at < *failed ? at : *failed;
    }
    return true;
}

/* The most common answer needs no parser. */
static bool is_plain_success(struct sl_span answer)
{
    return answer.len == 0 || sl_span_is(answer, "{\"batchItemFailures\":[]}");
}

bool sl_esm_read_failures(struct sl_span answer, const struct sl_esm_record *const *records, size_t n,
                          size_t *failed)
{
    *failed = n;
    if (is_plain_success(answer))
        return true;
    json_t *root = json_loadb(answer.ptr, answer.len, JSON_DECODE_ANY, NULL);
    const json_t *failures = json_object_get(root, "batchItemFailures");
    bool is_valid;
    if (json_is_object(root))
        is_valid = !failures || json_is_null(failures) ||
                   (json_is_array(failures) && lowest(failures, records, n, failed));
    else
        is_valid = json_is_null(root) || (json_is_array(root) && json_array_size(root) == 0) ||
                   (json_is_string(root) && json_string_length(root) == 0);
    json_decref(root);
    return is_valid;
}

bool sl_esm_read_state(struct sl_span answer, struct sl_buffer *out)
{
    json_t *root = answer.len ? json_loadb(answer.ptr, answer.len, 0, NULL) : NULL;
    const json_t *state = json_object_get(root, "state");
    char *text = json_is_object(state) ? json_dumps(state, JSON_COMPACT) : NULL;
    if (text) {
        sl_buffer_reset(out);
        sl_buffer_add_str(out, text);
    }
    free(text);
    json_decref(root);
    return text != NULL;
}
