/* Reads the answer of a function: partial failures, and the state of a window. */
#include "esm/esm_private.h"

#include <jansson.h>

/* The position of the record with this id; the number of records when it is not in the batch. The search
 * begins at `from`: most answers name records in their order. */
static size_t position(const struct sl_esm_invocation *inv, struct sl_span id, size_t from)
{
    for (size_t i = 0; i < inv->n; i++)
        if (sl_span_eq(inv->records[(from + i) % inv->n]->id, id))
            return (from + i) % inv->n;
    return inv->n;
}

static bool read_list(struct sl_esm_lane *lane, const json_t *failures, size_t *failed)
{
    const uint32_t *index = lane->index + sl_esm_top(lane)->from;
    size_t i, at = 0;
    const json_t *failure;
    json_array_foreach(failures, i, failure)
    {
        const json_t *id = json_object_get(failure, "itemIdentifier");
        if (!json_is_string(id))
            return false;
        at = position(&lane->inv, sl_span(json_string_value(id), json_string_length(id)), at);
        if (at == lane->inv.n)
            return false;
        *sl_esm_mark_at(lane->shard, index[at]) |= SL_ESM_BLAMED;
        *failed = at < *failed ? at : *failed;
    }
    return true;
}

/* The most common answer needs no parser. */
static bool is_plain_success(struct sl_span answer)
{
    return answer.len == 0 || sl_span_is(answer, "{\"batchItemFailures\":[]}");
}

bool sl_esm_read_failures(struct sl_esm_lane *lane, size_t *failed)
{
    struct sl_span answer = sl_buffer_span(&lane->body);
    *failed = lane->inv.n;
    if (is_plain_success(answer))
        return true;
    json_t *root = json_loadb(answer.ptr, answer.len, JSON_DECODE_ANY, NULL);
    const json_t *failures = json_object_get(root, "batchItemFailures");
    bool is_valid;
    if (json_is_object(root))
        is_valid = !failures || json_is_null(failures) ||
                   (json_is_array(failures) && read_list(lane, failures, failed));
    else
        is_valid = json_is_null(root) || (json_is_array(root) && json_array_size(root) == 0) ||
                   (json_is_string(root) && json_string_length(root) == 0);
    json_decref(root);
    return is_valid;
}

bool sl_esm_names_failures(struct sl_span answer)
{
    if (is_plain_success(answer) || !memmem(answer.ptr, answer.len, "batchItemFailures", 17))
        return false;
    json_t *root = json_loadb(answer.ptr, answer.len, 0, NULL);
    bool does = json_array_size(json_object_get(root, "batchItemFailures")) > 0;
    json_decref(root);
    return does;
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
