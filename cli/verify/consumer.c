/* The consumers' progress, read from where it is kept. */
#include "cli/verify/consumer.h"

#include <jansson.h>

/* Tail writes its file once a second at most. */
#define READ_EVERY_MS 250

/* {"stream":...,"through":"2026-11-20T21:04:00.123Z",...}; `is_own`: it is of the table's stream. */
static enum sl_status read_file(const struct sl_consumers *c, const char *path, int64_t *through_ms,
                                bool *is_own, struct sl_error *error)
{
    json_error_t why;
    int64_t ns = 0, step_ns;
    json_t *root = json_load_file(path, 0, &why);
    const char *text = json_string_value(json_object_get(root, "through"));
    const char *stream = json_string_value(json_object_get(root, "stream"));
    *is_own = *is_own || (stream && sl_span_is(c->stream, stream));
    bool is_good = text && sl_time_parse(sl_span_str(text), &ns, &step_ns);
    *through_ms = ns / 1000000;
    enum sl_status status = SL_OK;
    if (!root)
        status = sl_fail(error, SL_REJECT, "BadCheckpoint", "--consumer %s: %s", path, why.text);
    else if (!is_good)
        status = sl_fail(error, SL_REJECT, "BadCheckpoint",
                         "--consumer %s: it does not say how far its consumer is (\"through\"); give the "
                         "checkpoint file of a running sluice tail",
                         path);
    json_decref(root);
    return status;
}

static enum sl_status read_all(struct sl_consumers *c, int64_t *through_ms, struct sl_error *error)
{
    int64_t wall_ms = c->clock->wall_ns(c->clock) / 1000000;
    *through_ms = c->max_lag_s >= 0 ? wall_ms - c->max_lag_s * 1000 : c->n_files ? INT64_MAX : 0;
    bool is_own = c->n_files == 0 || !c->stream.ptr;
    for (size_t i = 0; i < c->n_files; i++) {
        int64_t one = 0;
        enum sl_status status = read_file(c, c->files[i], &one, &is_own, error);
        if (status != SL_OK)
            return status;
        one -= SL_CONSUMER_SKEW_MS;
        /* Nobody has handled what is made after now, so one of the clocks is wrong: it might as well be a
         * consumer that is late. */
        if (one > wall_ms)
            return sl_fail(error, SL_REJECT, "Clocks",
                           "--consumer %s: it is %lld s ahead of this machine's clock: set the clocks right",
                           c->files[i], (long long)((one - wall_ms) / 1000 + 1));
        *through_ms = one < *through_ms ? one : *through_ms;
    }
    return is_own
               ? SL_OK
               : sl_fail(error, SL_REJECT, "OtherStream",
                         "--consumer %s: it is not of the table's stream, %.*s; give the checkpoint file of "
                         "the sluice tail that consumes this one",
                         c->files[0], SL_ARG(c->stream));
}

enum sl_status sl_consumers_check(struct sl_consumers *c, struct sl_error *error)
{
    int64_t through_ms;
    return read_all(c, &through_ms, error);
}

int64_t sl_consumers_through(struct sl_consumers *c)
{
    struct sl_error error = SL_NO_ERROR;
    int64_t now_ms = c->clock->now_ms(c->clock);
    if (c->read_ms && now_ms - c->read_ms < READ_EVERY_MS && c->n_files)
        return c->through_ms;
    c->read_ms = now_ms;
    if (read_all(c, &c->through_ms, &error) != SL_OK)
        c->through_ms = 0;
    return c->through_ms;
}
