/* Answers in JSON: see aws/answer.h. */
#include "aws/answer.h"

#include "base/array.h"
#include "base/json.h"

#include <strings.h>

/* Names are compared as they are written: no service escapes these. */
bool sl_answer_is_error_member(struct sl_span name)
{
    static const char *const names[] = {"__type", "message", "code", "errorcode", "errormessage"};
    for (size_t i = 0; i < SL_COUNT(names); i++)
        if (name.len == strlen(names[i]) && strncasecmp(name.ptr, names[i], name.len) == 0)
            return true;
    return false;
}

bool sl_answer_is_json(struct sl_span text)
{
    return sl_json_check_loose(text, NULL) == SL_OK && sl_json_is_unique(text);
}

bool sl_answer_object(const struct sl_job *job, struct sl_span *out)
{
    *out = sl_buffer_span(&job->answer->body);
    if (!sl_answer_is_json(*out))
        return false;
    struct sl_json_walk walk = sl_json_walk(*out);
    struct sl_span name, value;
    while (walk.is_object && sl_json_walk_next(&walk, &name, &value))
        if (sl_answer_is_error_member(name))
            return false;
    return walk.is_object;
}

enum sl_job_next sl_answer_is_object(struct sl_job *job)
{
    struct sl_span ignored;
    return sl_answer_object(job, &ignored) ? SL_JOB_DONE : SL_JOB_BROKEN;
}

struct sl_span sl_answer_text(struct sl_span object, const char *name)
{
    struct sl_span value = sl_json_walk_member(object, sl_span_str(name));
    return value.len >= 2 && *value.ptr == '"' ? sl_span(value.ptr + 1, value.len - 2) : sl_span(NULL, 0);
}

struct sl_span sl_answer_container(struct sl_span object, const char *name, char opens)
{
    struct sl_span value = sl_json_walk_member(object, sl_span_str(name));
    return value.len && *value.ptr == opens ? value : sl_span(NULL, 0);
}
