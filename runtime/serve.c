/* The loop of one process: an event, its batch, its answer. */
#include "runtime/serve.h"

#include "base/version.h"
#include "handlers/dispatch/drain.h"
#include "runtime/account.h"
#include "runtime/api/client.h"
#include "runtime/contain/contain.h"
#include "runtime/contain/crash.h"
#include "runtime/report.h"
#include "runtime/shutdown.h"
#include "handlers/tracing/tracing.h"
#include "runtime/work/work.h"
#include "sinks/queues/letterbox.h"
#include "streams/record.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* First chunk of the invocation's arena. A batch of 100 records fits into it, and it is kept between events.
 */
#define ARENA_BYTES (256 * 1024)

/* The longest that an invocation can last: 90 minutes on managed instances. A deadline header that says more,
 * or is absent, must not keep a batch for ever. */
#define LONGEST_MS (90 * 60 * 1000)
#define ABSENT_MS  (15 * 60 * 1000)

/* A Runtime API that answers wrongly is asked at most five times a second (two tries a round), and given up
 * after about 10 s. */
#define FIRST_PAUSE_MS 400
#define MAX_FAILURES   5

/* How often a drain asks whether its mapping still reports item failures. */
#define MAPPING_MS      ((int64_t)24 * 3600 * 1000)
#define MAPPING_WAIT_MS 5000

#define TYPE_BYTES 96 /* "Function." and an error's code */

struct server {
    const struct sl_settings *settings;
    struct sl_clock *clock;
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_contain *contain;
    struct sl_pipeline_options options;
    struct sl_pipeline *pipeline;
    struct sl_drain *drain;
    struct sl_letterbox *letterbox; /* of the queue that letters came from; NULL: none did */
    int64_t mapping_due_ms;         /* when its mapping is to be asked about */
    struct sl_work *work; /* NULL: stream events are taken, work items refused; else the other way round */
    struct sl_runtime *rt, *ruined_rt; /* `ruined_rt`: is not used any more */
    struct sl_arena *arena;
    struct sl_account *account;
    struct sl_tracing *tracing;   /* NULL: no spans are made */
    struct sl_trace_links *links; /* of the event; NULL likewise */
    struct sl_traced traced;      /* likewise */
    bool is_traced;               /* the event was dispatched */
    bool notes_attributes;        /* see struct sl_decode_options */
    struct sl_shutdown shutdown;
    struct sl_answer answer;
    int stop_fd;
    int failures;                      /* of the Runtime API, in a row */
    bool is_ruined, lacks_descriptors; /* of this process alone, not of the Runtime API */
};

/* ---- one event ---- */

/* Lambda keeps a type only if it is "Function." and letters, the first of them a capital. */
static void error_type(const char *code, char out[TYPE_BYTES])
{
    size_t n = 0;
    char letters[TYPE_BYTES];
    static_assert(SL_ERROR_CODE_BYTES <= 64, "a code is a part of the type");
    for (const char *c = code; *c; c++)
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'))
            letters[n++] = *c;
    letters[n] = '\0';
    if (letters[0] >= 'a')
        letters[0] = (char)(letters[0] - 'a' + 'A');
    snprintf(out, TYPE_BYTES, "Function.%.64s", n ? letters : "Error");
}

static int64_t deadline_of(struct server *s, const struct sl_runtime_event *event)
{
    int64_t wall_ms = s->clock->wall_ns(s->clock) / 1000000;
    int64_t left = event->deadline_epoch_ms ? event->deadline_epoch_ms - wall_ms : ABSENT_MS;
    left = left < 0 ? 0 : left > LONGEST_MS ? LONGEST_MS : left;
    return s->clock->now_ms(s->clock) + left;
}

static enum sl_status post_failure(struct server *s, const struct sl_runtime_event *event,
                                   const struct sl_error *why, struct sl_error *error)
{
    char type[TYPE_BYTES];
    error_type(why->code, type);
    sl_log(&s->log, SL_ERROR, "%s: %s", type, why->text);
    return sl_runtime_fail(s->rt, event->request_id, type, sl_span_str(why->text), error);
}

/* A shard's records come in the order of their time, so the first that has one is the oldest. */
static int64_t oldest_ns(const struct sl_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        int64_t ns = sl_record_created_ns(sl_batch_record(batch, i));
        if (ns)
            return ns;
    }
    return 0;
}

static void account(struct server *s, const struct sl_batch *batch, uint64_t decode_ns)
{
    const struct sl_answer *a = &s->answer;
    const struct sl_invoked invoked = {
        .records = batch->n,
        .created_ns = oldest_ns(batch),
        .decode_ns = decode_ns,
        .parked = a->parked,
        .set_aside = a->set_aside,
        .is_failed = a->checkpoint < batch->n || a->is_error,
    };
    if (s->settings->report_fd >= 0)
        sl_report_batch(s->settings->report_fd, s->pipeline, s->log.request_id, batch->n, a);
    sl_account_add(s->account, &invoked);
    s->is_traced = true;
    s->traced.records = batch->n;
    s->traced.error = invoked.is_failed ? a->error.code : NULL;
    if (batch->n)
        s->traced.table = sl_record_text(sl_batch_record(batch, 0), SL_FIELD_TABLE);
}

/* Descriptors were closed that are ours, and may be open as something else by now: nothing is written to the
 * log any more, and libcurl, which would take what another file has to say for its own, begins anew. */
static void distrust_descriptors(struct server *s)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_runtime *fresh = NULL;
    s->is_ruined = true;
    s->log.fd = -1;
    if (sl_runtime_open(s->settings->endpoint, sl_user_agent, &fresh, &error) != SL_OK)
        return;
    s->ruined_rt = s->rt;
    s->rt = fresh;
}

/* Nothing that this process did since its last answer can be trusted. */
static enum sl_status give_up(struct server *s, const struct sl_runtime_event *event, struct sl_error *error)
{
    distrust_descriptors(s);
    (void)post_failure(s, event, &s->answer.error, error);
    return SL_FATAL;
}

static void begin_answer(struct sl_answer *a)
{
    sl_buffer_reset(&a->body);
    a->is_ruined = a->is_error = false;
    a->checkpoint = a->parked = a->set_aside = 0;
    sl_error_clear(&a->error);
}

static struct sl_invocation invocation_of(struct server *s, const struct sl_runtime_event *event)
{
    return (struct sl_invocation){
        .request_id = event->request_id,
        .function_arn = event->function_arn,
        .trace_id = event->trace_id,
        .links = s->links,
        .deadline_ms = deadline_of(s, event),
        .arena = s->arena,
    };
}

static enum sl_status respond(struct server *s, const struct sl_runtime_event *event, struct sl_error *error)
{
    return sl_runtime_respond(s->rt, event->request_id, sl_buffer_span(&s->answer.body), "application/json",
                              error);
}

static enum sl_status answer_batch(struct server *s, const struct sl_runtime_event *event,
                                   const struct sl_batch *batch, uint64_t decode_ns, struct sl_error *error)
{
    const struct sl_invocation invocation = invocation_of(s, event);
    struct sl_answer *a = &s->answer;
    begin_answer(a);
    sl_dispatch(s->pipeline, batch, &invocation, a);
    if (a->is_ruined)
        return give_up(s, event, error);
    account(s, batch, decode_ns);
    s->notes_attributes |= sl_batch_is_looked_into(batch);
    if (a->is_error)
        return post_failure(s, event, &a->error, error);
    if (a->error.status != SL_OK)
        sl_log(&s->log, SL_WARN, "records from %zu of %zu on will be delivered again", a->checkpoint + 1,
               batch->n);
    return respond(s, event, error);
}

static enum sl_status answer_work(struct server *s, const struct sl_runtime_event *event,
                                  struct sl_span payload, struct sl_error *error)
{
    const struct sl_invocation invocation = invocation_of(s, event);
    struct sl_answer *a = &s->answer;
    begin_answer(a);
    enum sl_status status = sl_work_is_item(payload) ? sl_work_do(s->work, payload, &invocation, a, &a->error)
                                                     : sl_work_refuse_event(&a->error);
    if (!sl_contain_is_whole(s->contain))
        return give_up(s, event, error);
    sl_account_add(s->account, &(struct sl_invoked){.is_work = true});
    return status == SL_OK ? respond(s, event, error) : post_failure(s, event, &a->error, error);
}

/* ---- letters ---- */

static void hide_letter(void *arg, struct sl_span queue, struct sl_span receipt, int64_t seconds,
                        const struct sl_invocation *invocation)
{
    struct server *s = arg;
    const struct sl_call call = {.arena = invocation->arena, .deadline_ms = invocation->deadline_ms};
    if (s->letterbox && sl_letterbox_is_of(s->letterbox, queue))
        sl_letterbox_hide(s->letterbox, receipt, seconds, &call);
}

/* At the first letters, and daily. Where Lambda may not be asked, the configuration's word counts. */
static enum sl_status check_mapping(struct server *s, struct sl_span event,
                                    const struct sl_invocation *invocation, struct sl_error *error)
{
    struct sl_span queue = sl_drain_queue(event);
    struct sl_error why = SL_NO_ERROR;
    const int64_t now = s->clock->now_ms(s->clock), end = now + MAPPING_WAIT_MS;
    const struct sl_call call = {
        .arena = s->arena, .deadline_ms = end < invocation->deadline_ms ? end : invocation->deadline_ms};
    if (!queue.ptr || !invocation->function_arn[0] ||
        (s->letterbox && sl_letterbox_is_of(s->letterbox, queue) && now < s->mapping_due_ms))
        return SL_OK;
    sl_letterbox_close(s->letterbox);
    s->letterbox = NULL;
    enum sl_status status = sl_letterbox_open(&s->sinks, queue, &s->letterbox, error);
    if (status != SL_OK)
        return status;
    status = sl_letterbox_check_mapping(s->letterbox, invocation->function_arn, &call, &why);
    if (status == SL_REJECT) {
        s->mapping_due_ms = now;
        return sl_fail(error, status, why.code, "%s", why.text);
    }
    s->mapping_due_ms = now + (status == SL_RETRY ? 60000 : MAPPING_MS);
    if (status != SL_OK)
        sl_log(&s->log, SL_WARN, "nobody could tell whether the mapping reports item failures: %s: %s",
               why.code, why.text);
    return SL_OK;
}

static enum sl_status answer_letters(struct server *s, const struct sl_runtime_event *event,
                                     struct sl_span payload, struct sl_error *error)
{
    const struct sl_invocation invocation = invocation_of(s, event);
    struct sl_answer *a = &s->answer;
    struct sl_error why = SL_NO_ERROR;
    struct sl_drained drained = {.letters = 0};
    begin_answer(a);
    enum sl_status status = check_mapping(s, payload, &invocation, &why);
    if (status == SL_OK)
        status = sl_drain_event(s->drain, payload, &invocation, a, &drained, &why);
    if (a->is_ruined)
        return give_up(s, event, error);
    bool is_failed = drained.done < drained.letters || status != SL_OK;
    sl_account_add(s->account,
                   &(struct sl_invoked){.records = drained.records,
                                        .letters = drained.letters,
                                        .letter_age_ms = drained.oldest_ms > 0 ? drained.oldest_ms : 0,
                                        .is_failed = is_failed});
    s->is_traced = true;
    s->traced.records = drained.records;
    if (is_failed)
        s->traced.error = sl_arena_copy(s->arena, sl_span_str(why.code[0] ? why.code : "LettersLeft"));
    return status == SL_OK ? respond(s, event, error) : post_failure(s, event, &why, error);
}

/* One buffer is reused for all events. In a debug build each event has its own, so that a handler is caught
 * that keeps text of a record beyond its life. */
static struct sl_span payload_of(struct server *s, const struct sl_runtime_event *event)
{
#ifdef SL_ARENA_DEBUG
    return sl_span(sl_arena_copy(s->arena, event->payload), event->payload.len);
#else
    (void)s;
    return event->payload;
#endif
}

static enum sl_status take_event(struct server *s, const struct sl_runtime_event *event,
                                 struct sl_error *error)
{
    const struct sl_decode_options options = {.ttl_attribute = sl_pipeline_ttl_attribute(s->pipeline),
                                              .notes_attributes = s->notes_attributes};
    struct sl_batch batch;
    struct sl_error why = SL_NO_ERROR;
    const struct sl_span payload = payload_of(s, event);
    if (s->work || sl_work_is_item(payload))
        return answer_work(s, event, payload, error);
    if (sl_drain_is_event(payload))
        return answer_letters(s, event, payload, error);
    const int64_t began_ns = s->clock->now_ns(s->clock);
    enum sl_status status = sl_batch_decode(payload, s->arena, &options, &batch, &why);
    const uint64_t decode_ns = (uint64_t)(s->clock->now_ns(s->clock) - began_ns);
    if (status == SL_OK)
        return answer_batch(s, event, &batch, decode_ns, error);
    if (why.offset != SL_NO_OFFSET)
        sl_error_context(&why, "byte %zu of the event", why.offset);
    sl_account_add(s->account, &(struct sl_invoked){.decode_ns = decode_ns, .is_failed = true});
    return post_failure(s, event, &why, error);
}

static enum sl_status serve_event(struct server *s, const struct sl_runtime_event *event,
                                  struct sl_error *error)
{
    snprintf(s->log.request_id, sizeof(s->log.request_id), "%s", event->request_id);
    sl_contain_own_connection(s->contain, sl_runtime_connection(s->rt));
    sl_runtime_export_trace_id(event->trace_id);
    sl_sinks_trace(&s->sinks, event->trace_id);
    sl_pipeline_stats_reset(s->pipeline);
    s->links = sl_tracing_begin(s->tracing, event->trace_id);
    s->is_traced = false;
    s->traced = (struct sl_traced){.request_id = event->request_id, .function_arn = event->function_arn};
    enum sl_status status = take_event(s, event, error);
    if (s->is_traced && status == SL_OK) {
        sl_tracing_end(s->tracing, &s->traced);
        sl_tracing_send(s->tracing, deadline_of(s, event), s->arena);
    }
    sl_arena_reset(s->arena);
    sl_contain_own_connection(s->contain, -1);
    return status;
}

/* ---- the pipeline, and what stands on it ---- */

static enum sl_status open_work(struct server *s, struct sl_error *error)
{
    const struct sl_work_options options = {
        .vars = &s->settings->vars,
        .clock = s->clock,
        .log = &s->log,
        .sinks = &s->sinks,
        .pipeline = s->pipeline,
    };
    return sl_work_open(&options, &s->work, error);
}

static enum sl_status open_pipeline(struct server *s, struct sl_error *error)
{
    enum sl_status status = sl_pipeline_open(&s->options, &s->pipeline, error);
    if (status == SL_OK)
        status = open_work(s, error);
    if (status != SL_OK)
        return status;
    s->drain =
        sl_drain_new(&(struct sl_drain_options){.pipeline = s->pipeline, .hide = hide_letter, .arg = s});
    s->account = sl_account_open(s->settings, &s->log, s->pipeline);
    s->tracing = sl_tracing_open(&s->settings->vars, &s->log, s->pipeline);
    sl_sinks_prepare(&s->sinks);
    return SL_OK;
}

static void close_pipeline(struct server *s)
{
    sl_account_close(s->account); /* first: little time is left after SIGTERM */
    sl_tracing_close(s->tracing, !s->is_ruined);
    sl_work_close(s->work);
    sl_drain_destroy(s->drain);
    sl_pipeline_close(s->pipeline);
    s->account = NULL;
    s->tracing = NULL;
    s->work = NULL;
    s->drain = NULL;
    s->pipeline = NULL;
}

/* A secret was changed, and a target has refused the old one. */
static enum sl_status renew_secrets(struct server *s, struct sl_error *error)
{
    if (!sl_sinks_secrets_changed(&s->sinks))
        return SL_OK;
    close_pipeline(s);
    return open_pipeline(s, error) == SL_OK ? SL_OK : SL_FATAL;
}

/* ---- the loop ---- */

static enum sl_status one_round(struct server *s, struct sl_error *error)
{
    struct sl_runtime_event event;
    enum sl_status status = sl_runtime_next(s->rt, &event, error);
    if (status == SL_OK) {
        status = serve_event(s, &event, error);
        if (status == SL_OK)
            status = renew_secrets(s, error);
    } else if (status == SL_REJECT) {
        struct sl_error why = *error;
        sl_error_clear(error);
        sl_account_add(s->account, &(struct sl_invoked){.is_failed = true});
        status = post_failure(s, &event, &why, error);
    }
    return status;
}

/* After a round with an error: logs it, waits, and returns whether to go on. */
static bool recover(struct server *s, enum sl_status status, const struct sl_error *error)
{
    bool is_idle = strcmp(error->code, "NoEvent") == 0;
    bool is_lost = status == SL_RETRY && !is_idle;
    s->failures = is_lost ? s->failures + 1 : 0;
    s->lacks_descriptors = strcmp(error->code, SL_RUNTIME_NO_DESCRIPTORS) == 0;
    if (!is_idle)
        sl_log(&s->log, status == SL_FATAL ? SL_ERROR : SL_WARN, "%s: %s", error->code, error->text);
    if (status == SL_FATAL)
        return false;
    if (s->failures >= MAX_FAILURES) {
        sl_log(&s->log, SL_ERROR, "the Runtime API failed %d times in a row: exiting", s->failures);
        return false;
    }
    s->clock->sleep_ms(s->clock, FIRST_PAUSE_MS << (s->failures ? s->failures - 1 : 0));
    return true;
}

static int loop(struct server *s)
{
    for (;;) {
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = one_round(s, &error);
        if (status == SL_FATAL && strcmp(error.code, "Stopped") == 0)
            return 0;
        if (status == SL_OK && error.status == SL_OK)
            s->failures = 0;
        else if (!recover(s, status, &error))
            return s->is_ruined || s->lacks_descriptors || !s->pipeline ? 1 : SL_SERVE_NO_API;
        s->log.request_id[0] = '\0';
    }
}

/* ---- init ---- */

/* SIGTERM makes a descriptor readable: the current event is finished and answered, then the handlers are
 * closed in order. Without a descriptor it ends the process, as it does by default. */
static int open_stop_fd(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (fd < 0)
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    return fd;
}

static int fail_init(struct server *s, bool posts_init_error, const struct sl_error *why)
{
    char type[TYPE_BYTES];
    error_type(why->code, type);
    /* Lambda shows only an init error's type, so its text is logged; `sluice replay` shows the whole text. */
    if (s->settings->report_fd < 0)
        sl_log(&s->log, SL_ERROR, "cannot start: %s", why->text);
    struct sl_error error = SL_NO_ERROR;
    if (posts_init_error && s->rt &&
        sl_runtime_init_error(s->rt, type, sl_span_str(why->text), &error) != SL_OK)
        sl_log(&s->log, SL_ERROR, "%s", error.text);
    return 1;
}

static enum sl_status init(struct server *s, struct sl_error *error)
{
    if (!s->settings->endpoint)
        return sl_fail(
            error, SL_FATAL, "NoRuntimeApi",
            "AWS_LAMBDA_RUNTIME_API is not set: bootstrap runs inside Lambda only; on any other machine use "
            "`sluice replay`");
    enum sl_status status = sl_runtime_open(s->settings->endpoint, sl_user_agent, &s->rt, error);
    sl_contain_own_all(s->contain);
    if (status == SL_OK && s->settings->workers == 1) { /* else the parent of the workers does it */
        sl_shutdown_open(&s->shutdown, s->settings, &s->log);
        sl_runtime_beside(s->rt, &s->shutdown.beside);
    }
    if (status == SL_OK)
        status = open_pipeline(s, error);
    if (sl_contain_is_whole(s->contain))
        return status;
    distrust_descriptors(s);
    return sl_fail(error, SL_FATAL, "HandlerClosedDescriptors",
                   "a handler closed descriptors that are not its own while it was opened");
}

static void clean_up(struct server *s)
{
    s->log.request_id[0] = '\0';
    close_pipeline(s);
    sl_letterbox_close(s->letterbox);
    sl_contain_close(s->contain);
    sl_sinks_clean_up(&s->sinks);
    sl_runtime_close(s->rt);
    sl_runtime_close(s->ruined_rt);
    sl_shutdown_close(&s->shutdown);
    sl_buffer_clean_up(&s->answer.body);
    sl_arena_destroy(s->arena);
    sl_crash_report(NULL);
    sl_log_clean_up(&s->log);
    if (s->stop_fd >= 0)
        close(s->stop_fd);
}

int sl_serve(const struct sl_settings *settings, bool posts_init_error, int ready_fd)
{
    struct server s = {.settings = settings, .clock = sl_clock_system(), .stop_fd = open_stop_fd()};
    sl_log_init(&s.log, STDERR_FILENO, settings->log_level, settings->log_format, s.clock);
    s.log.no_metrics = settings->metrics_ms == SL_METRICS_OFF;
    for (size_t i = 0; i < settings->n_wrong; i++)
        sl_log(&s.log, SL_WARN, "%s; its default is used", settings->wrong[i]);
    sl_crash_report(&s.log);
    sl_sinks_init(&s.sinks, s.clock, &s.log, &settings->vars);
    s.options = (struct sl_pipeline_options){
        .config_path = settings->config_path,
        .vars = &settings->vars,
        .clock = s.clock,
        .log = &s.log,
        .sinks = &s.sinks,
        .handler_path = settings->handler_path,
        .function_name = settings->function_name,
    };
    s.contain = sl_contain_open(settings->temp_folder, &s.options);
    s.options.watch = sl_contain_watch(s.contain);
    sl_buffer_init(&s.answer.body, SL_ANSWER_BYTES);
    s.arena = sl_arena_new(ARENA_BYTES);
    struct sl_error error = SL_NO_ERROR;
    int result;
    if (init(&s, &error) != SL_OK) {
        result = fail_init(&s, posts_init_error, &error);
    } else {
        sl_runtime_stop_on(s.rt, s.stop_fd);
        if (ready_fd >= 0)
            (void)!write(ready_fd, "r", 1);
        result = loop(&s);
    }
    clean_up(&s);
    return result;
}
