/* Writes events of letters, and reads their answers. */
#include "live/source/letters.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"

struct sl_span sl_letters_event(const struct sl_letters_message *messages, size_t n, struct sl_arena *arena)
{
    struct sl_buffer b;
    sl_buffer_init_in(&b, arena, UINT32_MAX);
    sl_buffer_add_str(&b, "{\"Records\":[");
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(&b, i ? ",{" : "{");
        sl_json_add_member(&b, "messageId", sl_span_str(messages[i].id));
        sl_json_add_member(&b, "body", messages[i].body);
        sl_json_add_member(&b, "eventSource", SL_LIT("aws:sqs"));
        sl_buffer_add_char(&b, '}');
    }
    sl_buffer_add_str(&b, "]}");
    return sl_buffer_span(&b);
}

struct sl_span sl_letters_run(struct sl_runner *runner, uint64_t number,
                              const struct sl_letters_message *messages, size_t n, struct sl_arena *arena)
{
    const char *id = sl_arena_printf(arena, "00000000-0000-4000-8000-%012llx", (unsigned long long)number);
    struct sl_esm_result result = {.outcome = SL_ESM_FAILED};
    struct sl_esm_invocation inv = {
        .request_id = id, .payload = sl_letters_event(messages, n, arena), .attempt = 1};
    sl_runner_begin(runner, &inv);
    sl_runner_collect(runner, &inv, &result);
    sl_notes_forget(sl_runner_notes(runner), id);
    return result.outcome == SL_ESM_ANSWERED ? sl_span(sl_arena_copy(arena, result.body), result.body.len)
                                             : sl_span(NULL, 0);
}

static size_t number_of(const struct sl_letters_message *messages, size_t n, struct sl_span id)
{
    size_t i = 0;
    while (i < n &&
           !(id.len >= 2 && sl_json_text_is(sl_span(id.ptr + 1, id.len - 2), sl_span_str(messages[i].id))))
        i++;
    return i;
}

bool sl_letters_is_done(struct sl_span answer, const struct sl_letters_message *messages, size_t n, size_t i)
{
    struct sl_span failures, one;
    if (!answer.len || sl_json_check(answer, NULL) != SL_OK ||
        !(failures = sl_json_find(answer, "batchItemFailures")).ptr || failures.ptr[0] != '[')
        return false;
    struct sl_json_walk walk = sl_json_walk(failures);
    bool is_done = true;
    while (sl_json_walk_next(&walk, NULL, &one)) {
        size_t k = number_of(messages, n, sl_json_find(one, "itemIdentifier"));
        if (k == n)
            return false;
        is_done = is_done && k != i;
    }
    return is_done;
}
