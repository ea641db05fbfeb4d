/* Writes table exports. */
#include "tests/support/export.h"

#include "base/base64.h"
#include "base/buffer.h"
#include "base/disk.h"
#include "base/gzip.h"
#include "tests/support/test.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#define ID        "01795212250003-c22a2da7"
#define MAX_BYTES ((size_t)1 << 30)

static void write_bytes(const char *path, struct sl_span bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.ptr ? bytes.ptr : "", 1, bytes.len, file), bytes.len);
    assert_int_equal(fclose(file), 0);
}

static void md5_text(struct sl_span bytes, char out[32])
{
    unsigned char md5[EVP_MAX_MD_SIZE];
    assert_int_equal(EVP_Digest(bytes.ptr ? bytes.ptr : "", bytes.len, md5, NULL, EVP_md5(), NULL), 1);
    out[sl_base64_encode_to(sl_span((const char *)md5, 16), out)] = '\0';
}

void test_export_manifest(const char *path, const char *name, struct sl_span text)
{
    char file[1000], md5[32];
    snprintf(file, sizeof(file), "%s/manifest-%s.json", path, name);
    write_bytes(file, text);
    snprintf(file, sizeof(file), "%s/manifest-%s.md5", path, name);
    md5_text(text, md5);
    write_bytes(file, sl_span_str(md5));
}

static size_t count(struct sl_span lines)
{
    size_t n = 0;
    for (size_t i = 0; i < lines.len; i++)
        n += lines.ptr[i] == '\n';
    return n + (lines.len && lines.ptr[lines.len - 1] != '\n');
}

static void write_data(const struct test_export *what, const struct test_export_file *file, const char *path,
                       struct sl_buffer *manifest)
{
    struct sl_buffer packed;
    char target[1000], md5[32];
    bool is_packed = sl_span_ends(sl_span_str(file->name), SL_LIT(".gz"));
    sl_buffer_init(&packed, MAX_BYTES);
    if (is_packed)
        sl_gzip_add(&packed, &file->lines, 1, 1);
    else
        sl_buffer_add_span(&packed, file->lines);
    snprintf(target, sizeof(target), "%s/data/%s", path, file->name);
    write_bytes(target, sl_buffer_span(&packed));
    md5_text(sl_buffer_span(&packed), md5);
    sl_buffer_printf(manifest,
                     "{\"itemCount\":%zu,\"md5Checksum\":\"%s\",\"etag\":\"0-1\",\"dataFileS3Key\":\"%s"
                     "AWSDynamoDB/" ID "/data/%s\"}\n",
                     count(file->lines), md5, what->prefix ? what->prefix : "", file->name);
    sl_buffer_clean_up(&packed);
}

char *test_export_write(const struct test_export *what, const char *folder)
{
    struct sl_buffer text;
    char *path;
    size_t items = 0;
    assert_true(asprintf(&path, "%s/AWSDynamoDB/" ID, folder) > 0);
    char *data;
    assert_true(asprintf(&data, "%s/data", path) > 0);
    assert_int_equal(sl_disk_make_folder(data, NULL), SL_OK);
    free(data);
    sl_buffer_init(&text, MAX_BYTES);
    for (size_t i = 0; i < what->n; i++) {
        write_data(what, &what->files[i], path, &text);
        items += count(what->files[i].lines);
    }
    test_export_manifest(path, "files", sl_buffer_span(&text));
    sl_buffer_reset(&text);
    const char *arn = what->table_arn ? what->table_arn : TEST_EXPORT_ARN;
    sl_buffer_printf(
        &text,
        "{\"version\":\"2023-08-01\",\"exportArn\":\"%s/export/" ID "\",\"tableArn\":\"%s\","
        "\"exportTime\":\"%s\",\"s3Prefix\":\"%s\",\"manifestFilesS3Key\":\"%sAWSDynamoDB/" ID
        "/manifest-files.json\",\"itemCount\":%zu,\"outputFormat\":\"%s\",\"exportType\":\"%s\"}",
        arn, arn, what->time ? what->time : "2026-11-20T10:00:00.250Z", what->prefix ? what->prefix : "",
        what->prefix ? what->prefix : "", items + (size_t)what->more_items,
        what->format ? what->format : "DYNAMODB_JSON", what->type ? what->type : "FULL_EXPORT");
    test_export_manifest(path, "summary", sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    return path;
}

char *test_export_lines(size_t first, size_t n, size_t bytes)
{
    struct sl_buffer text;
    sl_buffer_init(&text, MAX_BYTES);
    for (size_t i = first; i < first + n; i++) {
        size_t begin = text.len;
        sl_buffer_printf(&text,
                         "{\"Item\":{\"PK\":{\"S\":\"p-%06zu\"},\"SK\":{\"N\":\"%zu\"},\"text\":{\"S\":\"",
                         i / 10, i);
        while (text.len - begin + 5 < bytes)
            sl_buffer_add_char(&text, (char)('a' + (i * 7 + text.len * 13) % 26));
        sl_buffer_add_str(&text, "\"}}}\n");
    }
    sl_buffer_add_char(&text, '\0');
    return text.ptr;
}
