/* Any bytes as the manifests of an export: refused in one line, or facts that can be relied on: a folder's
 * name that is one, files that stay below the export's folder, an MD5. */
#include "tests/fuzz/fuzz.h"
#include "data/source/manifest.h"
#include "data/source/store.h"

static void check_refusal(const struct sl_error *error, size_t size)
{
    FUZZ_CHECK(error->status == SL_REJECT && error->code[0] && error->text[0]);
    FUZZ_CHECK(!strchr(error->text, '\n'));
    FUZZ_CHECK(error->offset == SL_NO_OFFSET || error->offset <= size);
}

static void check_summary(struct sl_span text, struct sl_arena *arena)
{
    struct sl_manifest_summary summary;
    struct sl_error error = SL_NO_ERROR;
    if (sl_manifest_read_summary(text, arena, &summary, &error) != SL_OK) {
        check_refusal(&error, text.len);
        return;
    }
    FUZZ_CHECK(summary.id.len && !memchr(summary.id.ptr, '/', summary.id.len));
    FUZZ_CHECK(summary.table_arn.len && summary.time_ms >= 0);
    FUZZ_CHECK(sl_manifest_is_of(summary.table_arn, summary.table_arn));
}

static void check_line(struct sl_span line, struct sl_arena *arena)
{
    static const struct sl_span id = SL_LIT("01795212250003-c22a2da7");
    struct sl_manifest_file file;
    struct sl_error error = SL_NO_ERROR;
    if (sl_manifest_read_file(line, id, arena, &file, &error) != SL_OK)
        check_refusal(&error, line.len);
    else
        FUZZ_CHECK(sl_store_is_key(file.key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_span text = sl_span((const char *)data, size);
    struct sl_arena *arena = sl_arena_new(4096);
    unsigned char md5[SL_MANIFEST_MD5_BYTES];
    check_summary(text, arena);
    check_line(text, arena);
    (void)!sl_manifest_read_md5(text, md5);
    sl_arena_destroy(arena);
    return 0;
}
