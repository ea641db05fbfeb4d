/* Reads the texts of manifests. */
#include "data/source/manifest.h"

#include "base/base64.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/time.h"
#include "data/source/store.h"

#define FOLDER "AWSDynamoDB/"

static struct sl_span text_of(struct sl_span json, const char *name, struct sl_arena *arena)
{
    struct sl_span text = sl_json_text(json, name, arena);
    return text.ptr ? sl_span(sl_arena_copy(arena, text), text.len) : text;
}

/* A whole number of 18 digits at most. */
static bool count_of(struct sl_span json, const char *name, uint64_t *out)
{
    struct sl_span raw = sl_json_find(json, name);
    *out = 0;
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.ptr[i] < '0' || raw.ptr[i] > '9' || i == 18)
            return false;
        *out = 10 * *out + (uint64_t)(raw.ptr[i] - '0');
    }
    return raw.len > 0;
}

/* What follows the last "AWSDynamoDB/" of a key, which may have any prefix: absent when it has none. */
static struct sl_span below_folder(struct sl_span key)
{
    for (size_t at = key.len; at-- > 0;) {
        struct sl_span rest = sl_span_from(key, at);
        if (sl_span_starts(rest, SL_LIT(FOLDER)) && (at == 0 || key.ptr[at - 1] == '/'))
            return sl_span_from(rest, sizeof(FOLDER) - 1);
    }
    return sl_span(NULL, 0);
}

/* The export's folder: AWSDynamoDB/ID/manifest-files.json has its name. */
static struct sl_span id_of(struct sl_span manifest_key)
{
    struct sl_span rest = below_folder(manifest_key);
    const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    if (!slash || slash == rest.ptr ||
        !sl_span_is(sl_span_from(rest, (size_t)(slash - rest.ptr)), "/manifest-files.json"))
        return sl_span(NULL, 0);
    return sl_span(rest.ptr, (size_t)(slash - rest.ptr));
}

static enum sl_status check_kind(struct sl_span json, struct sl_arena *arena, struct sl_error *error)
{
    struct sl_span format = text_of(json, "outputFormat", arena), type = text_of(json, "exportType", arena);
    if (type.ptr && !sl_span_is(type, "FULL_EXPORT"))
        return sl_fail(
            error, SL_REJECT, "NotReadable",
            "is an export of type %.*s, which holds changes, not the table's items; make a full export "
            "(aws dynamodb export-table-to-point-in-time)",
            SL_ARG(type));
    if (!sl_span_is(format, "DYNAMODB_JSON"))
        return sl_fail(
            error, SL_REJECT, "NotReadable",
            "is an export in the format %.*s; export the table again with --export-format DYNAMODB_JSON",
            SL_ARG(format.ptr ? format : SL_LIT("(none)")));
    return SL_OK;
}

enum sl_status sl_manifest_read_summary(struct sl_span text, struct sl_arena *arena,
                                        struct sl_manifest_summary *out, struct sl_error *error)
{
    *out = (struct sl_manifest_summary){.items = 0};
    struct sl_error why = SL_NO_ERROR;
    if (sl_json_check(text, &why) != SL_OK)
        return sl_fail_at(error, SL_REJECT, "NoSummary", why.offset, "is not JSON, at byte %zu: %s",
                          why.offset, why.text);
    if (sl_json_find(text, "exportArn").ptr == NULL)
        return sl_fail(error, SL_REJECT, "NoSummary", "is not the summary of an export: it has no exportArn");
    if (check_kind(text, arena, error) != SL_OK)
        return SL_REJECT;
    int64_t ns, step_ns;
    struct sl_span time = text_of(text, "exportTime", arena);
    out->table_arn = text_of(text, "tableArn", arena);
    out->id = id_of(text_of(text, "manifestFilesS3Key", arena));
    const char *missing = !out->table_arn.len                                          ? "tableArn"
                          : !out->id.len                                               ? "manifestFilesS3Key"
                          : !time.ptr || !sl_time_parse(time, &ns, &step_ns) || ns < 0 ? "exportTime"
                          : !count_of(text, "itemCount", &out->items)                  ? "itemCount"
                                                                                       : NULL;
    if (missing)
        return sl_fail(error, SL_REJECT, "NoSummary", "has no %s as DynamoDB writes it", missing);
    out->time_ms = ns / 1000000;
    return SL_OK;
}

enum sl_status sl_manifest_read_file(struct sl_span line, struct sl_span id, struct sl_arena *arena,
                                     struct sl_manifest_file *out, struct sl_error *error)
{
    *out = (struct sl_manifest_file){.items = 0};
    struct sl_error why = SL_NO_ERROR;
    if (sl_json_check(line, &why) != SL_OK)
        return sl_fail_at(error, SL_REJECT, "NoManifest", why.offset, "is not JSON, at byte %zu: %s",
                          why.offset, why.text);
    struct sl_span key = text_of(line, "dataFileS3Key", arena), below = below_folder(key);
    if (!below.ptr)
        return sl_fail(error, SL_REJECT, "NoManifest", "has no dataFileS3Key below " FOLDER);
    bool is_ours = sl_span_starts(below, id) && below.len > id.len && below.ptr[id.len] == '/';
    out->key = is_ours ? sl_span_from(below, id.len + 1) : sl_span(NULL, 0);
    if (!is_ours || !sl_store_is_key(out->key))
        return sl_fail(error, SL_REJECT, "NoManifest",
                       "names the file %.*s, which is not in the export's folder %.*s", SL_ARG(key),
                       SL_ARG(id));
    if (!count_of(line, "itemCount", &out->items))
        return sl_fail(error, SL_REJECT, "NoManifest", "has no itemCount for %.*s", SL_ARG(key));
    if (!sl_manifest_read_md5(text_of(line, "md5Checksum", arena), out->md5))
        return sl_fail(error, SL_REJECT, "NoManifest", "has no md5Checksum for %.*s", SL_ARG(key));
    return SL_OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct sl_span trimmed(struct sl_span text)
{
    while (text.len && is_space(text.ptr[0]))
        text = sl_span_from(text, 1);
    while (text.len && is_space(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

static bool read_hex(struct sl_span text, unsigned char *out)
{
    for (size_t i = 0; i < text.len; i += 2) {
        int high = sl_hex_digit(text.ptr[i]), low = sl_hex_digit(text.ptr[i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i / 2] = (unsigned char)(16 * high + low);
    }
    return true;
}

bool sl_manifest_read_md5(struct sl_span text, unsigned char out[SL_MANIFEST_MD5_BYTES])
{
    text = trimmed(text);
    if (text.len == 2 * SL_MANIFEST_MD5_BYTES)
        return read_hex(text, out);
    return text.len == 24 && sl_base64_is_valid(text) &&
           sl_base64_decoded_bytes(text) == SL_MANIFEST_MD5_BYTES && sl_base64_decode(text, out);
}

bool sl_manifest_is_of(struct sl_span table_arn, struct sl_span table)
{
    struct sl_span name = table_arn;
    for (size_t at = table_arn.len; at-- > 0 && name.len == table_arn.len;)
        if (table_arn.ptr[at] == '/')
            name = sl_span_from(table_arn, at + 1);
    bool is_stream = sl_span_starts(table, table_arn) &&
                     sl_span_starts(sl_span_from(table, table_arn.len), SL_LIT("/stream/"));
    return sl_span_eq(table, table_arn) || sl_span_eq(table, name) || is_stream;
}
