/* Archives and exports in a bucket whose answers fail, are cut, are short, or are of another object than
 * before: every record comes once, and what cannot be read is told with its object. */
#include "tests/support/events.h"
#include "tests/support/export.h"
#include "tests/support/fake_s3.h"
#include "tests/data/source/pieces.h"

#include "base/buffer.h"
#include "base/gzip.h"
#include "streams/record.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_BYTES ((size_t)1 << 24)
#define LARGE     ((size_t)2 << 20)

enum mode { REFUSED_FOR_NOW, CUT, SHORT, DENIED, GONE, MODES };

static struct service {
    struct fake_s3 *fake;
    struct scripted_server *server;
    char *folder, *export;
    unsigned requests, fails; /* this one does; 0: none */
    enum mode mode;
    char path[300];       /* of the one that failed */
    const char *replaces; /* this object is another one when its second part is read */
} s;

static void refuse(struct scripted_reply *reply, int status, const char *code)
{
    static char body[200];
    snprintf(body, sizeof(body), "<Error><Code>%s</Code><Message>by script</Message></Error>", code);
    *reply = (struct scripted_reply){.status = status, .body = sl_span_str(body)};
}

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    if (s.replaces && strstr(request->path, "large") && strstr(request->head, "f-match"))
        fake_s3_put(s.fake, s.replaces, SL_LIT("another one"));
    fake_s3_answer(s.fake, request, reply);
    if (++s.requests != s.fails)
        return;
    snprintf(s.path, sizeof(s.path), "%s", request->path);
    if (s.mode == REFUSED_FOR_NOW)
        refuse(reply, 503, "SlowDown");
    else if (s.mode == DENIED)
        refuse(reply, 403, "AccessDenied");
    else if (s.mode == GONE)
        refuse(reply, 404, "NoSuchKey");
    else if (s.mode == CUT)
        reply->cut = 20;
    else if (reply->body.len)
        reply->body.len--;
}

/* ---- reading ---- */

typedef enum sl_status (*open_source_fn)(struct sl_source **out, struct sl_error *error);

static enum sl_status open_archive(struct sl_source **out, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    const struct sl_source_options options = {.sinks = &test_sinks};
    const struct sl_source_archive what = {.place = "s3://bucket/archive/"};
    enum sl_status status = sl_source_open_archive(&options, &what, &call, out, error);
    sl_arena_destroy(arena);
    return status;
}

static bool verifies;

static enum sl_status open_export(struct sl_source **out, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_call call = test_call(arena);
    const struct sl_source_options options = {.sinks = &test_sinks,
                                              .keys = {.names = {SL_LIT("PK"), SL_LIT("SK")}, .n = 2}};
    const struct sl_source_export what = {.place = "s3://bucket/export", .verify_first = verifies};
    enum sl_status status = sl_source_open_export(&options, &what, &call, out, error);
    sl_arena_destroy(arena);
    return status;
}

struct read {
    struct sl_buffer text;
    size_t n, failures;
    enum sl_status status;
    struct sl_error error; /* the last one */
};

static void read_piece(struct read *r, struct sl_source *source, struct sl_arena *arena, bool *is_last)
{
    struct sl_call call = test_call(arena);
    struct sl_source_piece piece;
    r->status = sl_source_pull(source, (size_t)1 << 20, &call, &piece, &r->error);
    if (r->status != SL_OK)
        return;
    for (size_t i = 0; i < piece.batch.n; i++)
        sl_buffer_add_span(&r->text, sl_record_text(sl_batch_record(&piece.batch, i), SL_FIELD_RAW));
    r->n += piece.batch.n;
    *is_last = piece.is_last;
}

/* Over all failures that may be repeated. */
static struct read read_all(open_source_fn open)
{
    struct read r = {.error = SL_NO_ERROR};
    struct sl_source *source = NULL;
    struct sl_arena *arena = sl_arena_new(4096);
    bool is_last = false;
    sl_buffer_init(&r.text, MAX_BYTES);
    s.requests = 0;
    while (!is_last && r.failures < 5) {
        struct sl_error before = r.error;
        sl_error_clear(&r.error);
        if (source)
            read_piece(&r, source, arena, &is_last);
        else
            r.status = open(&source, &r.error);
        r.failures += r.status != SL_OK;
        if (r.status > SL_RETRY)
            break;
        if (r.status == SL_OK)
            r.error = before;
        sl_arena_reset(arena);
    }
    sl_source_close(source);
    sl_arena_destroy(arena);
    return r;
}

/* The nth request fails in each way, n = 1 until there is none: the text is the same in the end, or the error
 * names what failed, and the place not twice. */
static void sweep(open_source_fn open, const char *place)
{
    const char *twice = json_printf("%s: %s:", place, place);
    s.fails = 0;
    struct read whole = read_all(open);
    if (whole.status != SL_OK)
        fail_msg("%s", whole.error.text);
    unsigned requests = s.requests;
    assert_true(whole.n > 10 && requests > 3);
    for (s.mode = 0; s.mode < MODES; s.mode++)
        for (s.fails = 1; s.fails <= requests; s.fails++) {
            struct read r = read_all(open);
            bool is_same = sl_span_eq(sl_buffer_span(&r.text), sl_buffer_span(&whole.text));
            if (r.status == SL_OK ? !is_same || r.n != whole.n : s.mode < DENIED)
                fail_msg("mode %d, request %u, %s: %s", (int)s.mode, s.fails, s.path, r.error.text);
            if (r.failures && (!strstr(r.error.text, place) || strstr(r.error.text, twice)))
                fail_msg("mode %d, %s: %s: %s", (int)s.mode, s.path, r.error.code, r.error.text);
            sl_buffer_clean_up(&r.text);
        }
    s.fails = 0;
    sl_buffer_clean_up(&whole.text);
}

static void an_archive_is_read_over_failures(void **state)
{
    (void)state;
    sweep(open_archive, "s3://bucket/archive");
}

static void an_export_is_read_over_failures(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        verifies = i;
        sweep(open_export, "s3://bucket/export");
    }
}

/* Of an object that is replaced while it is read, nothing of both is mixed. */
static void an_object_that_is_replaced_is_refused(void **state)
{
    (void)state;
    struct sl_span before = fake_s3_object(s.fake, "bucket/archive/d-large.jsonl");
    char *copy = malloc(before.len);
    memcpy(copy, before.ptr, before.len);
    s.replaces = "bucket/archive/d-large.jsonl";
    struct read r = read_all(open_archive);
    s.replaces = NULL;
    fake_s3_put(s.fake, "bucket/archive/d-large.jsonl", sl_span(copy, before.len));
    free(copy);
    if (r.status == SL_OK || !strstr(r.error.text, "d-large.jsonl"))
        fail_msg("%d %s: %s", (int)r.status, r.error.code, r.error.text);
    assert_null(memmem(r.text.ptr, r.text.len, "another one", 11));
    sl_buffer_clean_up(&r.text);
}

/* ---- the bucket ---- */

static void put(const char *key, struct sl_span text)
{
    struct sl_buffer packed;
    sl_buffer_init(&packed, MAX_BYTES);
    if (sl_span_ends(sl_span_str(key), SL_LIT(".gz")))
        sl_gzip_add(&packed, &text, 1, 1);
    else
        sl_buffer_add_span(&packed, text);
    fake_s3_put(s.fake, key, sl_buffer_span(&packed));
    sl_buffer_clean_up(&packed);
}

static void fill_archive(void)
{
    struct sl_buffer large;
    for (int i = 0; i < 12; i++)
        put(json_printf("bucket/archive/%c.jsonl%s", 'e' + i, i % 2 ? ".gz" : ""),
            sl_span_str(json_printf(RECORD("INSERT", "%d", KEYS(PK("a")) NEW(PK("a"))) "\n", i, i)));
    sl_buffer_init(&large, MAX_BYTES);
    for (int i = 0; large.len < LARGE; i++)
        sl_buffer_add_str(&large, json_printf(RECORD("MODIFY", "9%05d",
                                                     KEYS(PK("b")) NEW(PK("b") ",'v':" S("%099000d"))) "\n",
                                              i, i, i));
    put("bucket/archive/d-large.jsonl", sl_buffer_span(&large));
    sl_buffer_clean_up(&large);
}

static void copy_folder(const char *from, const char *to)
{
    DIR *dir = opendir(from);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        size_t len;
        char *text =
            entry->d_type == DT_REG ? test_read(json_printf("%s/%s", from, entry->d_name), &len) : NULL;
        if (text)
            fake_s3_put(s.fake, json_printf("%s/%s", to, entry->d_name), sl_span(text, len));
        free(text);
    }
    closedir(dir);
}

static void fill_export(void)
{
    char *lines[3];
    struct test_export_file files[3];
    static const char *const names[] = {"a.json.gz", "b.json.gz", "c.json"};
    for (size_t i = 0; i < 3; i++) {
        lines[i] = test_export_lines(10 * i, 10, 100);
        files[i] = (struct test_export_file){names[i], sl_span_str(lines[i])};
    }
    s.export = test_export_write(&(struct test_export){.files = files, .n = 3}, s.folder);
    for (size_t i = 0; i < 3; i++)
        free(lines[i]);
    copy_folder(s.export, "bucket/export");
    copy_folder(json_printf("%s/data", s.export), "bucket/export/data");
}

static int set_up(void **state)
{
    s.folder = test_folder_in_memory();
    s.fake = fake_s3_open();
    s.server = scripted_server_start(answer, NULL);
    setenv("AWS_ACCESS_KEY_ID", "x", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "x", 1);
    setenv("AWS_REGION", "us-east-1", 1);
    setenv("AWS_MAX_ATTEMPTS", "1", 1);
    setenv("AWS_ENDPOINT_URL", scripted_server_url(s.server), 1);
    fill_archive();
    fill_export();
    return sinks_set_up(state);
}

static int clean_up(void **state)
{
    sinks_clean_up(state);
    scripted_server_stop(s.server);
    fake_s3_close(s.fake);
    test_folder_remove(s.folder);
    free(s.export);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_archive_is_read_over_failures),
        cmocka_unit_test(an_export_is_read_over_failures),
        cmocka_unit_test(an_object_that_is_replaced_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, clean_up);
}
