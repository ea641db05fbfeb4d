/* A line that is a template, and below it a record (or none: then one of our own). Rendered for paths, what
 * no literal part brought in cannot leave its segment; the escape of any text is one segment. */
#include "base/json.h"
#include "base/number.h"
#include "streams/decode/batch.h"
#include "streams/template/template.h"
#include "tests/fuzz/fuzz.h"

#define MAX_BYTES ((size_t)1 << 20)

static const char own[] =
    "{\"eventID\":\"e1\",\"eventName\":\"MODIFY\",\"awsRegion\":\"eu-central-1\",\"dynamodb\":{"
    "\"ApproximateCreationDateTime\":1700003045,\"Keys\":{\"PK\":{\"S\":\"../"
    "a\"}},\"NewImage\":{\"PK\":{\"S\":\"../a\"},"
    "\"n\":{\"N\":\"1\"},\"l\":{\"L\":[{\"M\":{\"a\":{\"S\":\"1\"}}}]},\"a.b\":{\"S\":\"\\u00e9\"}}}}";

static void check_escape(struct sl_span text, struct sl_buffer *out)
{
    sl_buffer_reset(out);
    sl_escape_text(text, SL_ESCAPE_PATH, out);
    FUZZ_CHECK(out->failed || (out->len > 0 && out->ptr[0] != '.'));
    for (size_t i = 0; i < out->len; i++)
        FUZZ_CHECK(out->ptr[i] > ' ' && out->ptr[i] < 0x7F && out->ptr[i] != '/' && out->ptr[i] != '\\');
}

/* A made value is one that ports take: its JSON is JSON, and a number is a number. */
static void check_value(const struct sl_template *t, const struct sl_rendering *how)
{
    struct sl_value v = {.type = SL_NONE};
    struct sl_number number;
    if (sl_template_make(t, how, MAX_BYTES, &v, NULL) != SL_OK)
        return;
    FUZZ_CHECK(sl_template_type(t) == SL_NONE || v.type == sl_template_type(t));
    FUZZ_CHECK(sl_json_check(sl_value_json(v, how->scratch), NULL) == SL_OK);
    FUZZ_CHECK(v.type != SL_N || !sl_number_parse(v.raw, &number));
}

static void render(const struct sl_template *t, const struct sl_record *r, struct sl_arena *arena,
                   struct sl_buffer *out)
{
    for (enum sl_escape escape = SL_ESCAPE_NONE; escape <= SL_ESCAPE_PATH; escape++)
        for (enum sl_image image = SL_KEYS; image <= SL_ANY_IMAGE; image++) {
            struct sl_error error = SL_NO_ERROR;
            const struct sl_rendering how = {.record = r, .image = image, .escape = escape, .scratch = arena};
            sl_buffer_reset(out);
            if (sl_template_render(t, &how, out, &error) != SL_OK)
                FUZZ_CHECK(out->len == 0 && error.text[0]);
            sl_buffer_reset(out);
            sl_template_render_or(t, &how, SL_LIT("-"), out);
            (void)sl_template_value(t, r, image);
            check_value(t, &how);
        }
}

static const char *const variables[] = {"KEY=k", NULL};
static const struct sl_vars vars = {.list = variables};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_span input = sl_span((const char *)data, size);
    const char *line = size ? memchr(data, '\n', size) : NULL;
    struct sl_span text = line ? sl_span(input.ptr, (size_t)(line - input.ptr)) : input;
    struct sl_decode_options options = {.any_shape = true};
    struct sl_batch batch = {.n = 0};
    struct sl_buffer out;
    struct sl_template *t;
    struct sl_error error = SL_NO_ERROR;
    sl_buffer_init(&out, MAX_BYTES);
    check_escape(text, &out);
    if (!line || sl_batch_decode(sl_span_from(input, text.len + 1), arena, &options, &batch, NULL) != SL_OK)
        FUZZ_CHECK(sl_batch_decode(SL_LIT(own), arena, &options, &batch, NULL) == SL_OK);
    if (sl_template_compile(text, &vars, arena, &t, &error) != SL_OK)
        FUZZ_CHECK(error.offset <= text.len);
    else if (batch.n)
        render(t, sl_batch_record(&batch, 0), arena, &out);
    sl_buffer_clean_up(&out);
    sl_arena_destroy(arena);
    return 0;
}
