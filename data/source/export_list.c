/* Reads the manifests of an export, and looks for its files. */
#include "data/source/export_list.h"

#include "base/array.h"
#include "base/buffer.h"

#include <openssl/evp.h>
#include <stdlib.h>

/* AWS's summaries have less than 1 KB. */
#define SUMMARY_BYTES ((size_t)1024 * 1024)
#define LINE_BYTES    ((size_t)16 * 1024)

#define SUMMARY "manifest-summary.json"
#define FILES   "manifest-files.json"

struct listing {
    struct sl_store *store;
    struct sl_arena *arena;
    const struct sl_call *call;
    const char *name; /* of the place */
    struct sl_export_list *out;
};

/* ---- the manifests ---- */

/* Both names are in use: AWS's guide has .checksum, S3 itself .md5. */
static enum sl_status read_checksum(struct listing *e, const char *name,
                                    unsigned char md5[SL_MANIFEST_MD5_BYTES], struct sl_error *error)
{
    static const char *const endings[] = {"checksum", "md5"};
    for (size_t i = 0; i < 2; i++) {
        struct sl_error why = SL_NO_ERROR;
        struct sl_span text;
        const char *key = sl_arena_printf(e->arena, "manifest-%s.%s", name, endings[i]);
        enum sl_status status =
            sl_store_read_all(e->store, sl_span_str(key), SUMMARY_BYTES, e->call, &text, &why);
        if (status == SL_OK && sl_manifest_read_md5(text, md5))
            return SL_OK;
        if (status == SL_OK)
            return sl_fail(error, SL_REJECT, "NoChecksum", "%s/%s: is not an MD5 in base64", e->name, key);
        if (strcmp(why.code, "NoSuchKey") != 0)
            return sl_fail(error, status, why.code, "%s", why.text);
    }
    return sl_fail(error, SL_REJECT, "NoChecksum",
                   "%s: has manifest-%s.json, but neither manifest-%s.checksum nor manifest-%s.md5; copy the "
                   "whole folder",
                   e->name, name, name, name);
}

static enum sl_status check_sum(struct listing *e, const char *name,
                                const unsigned char found[SL_MANIFEST_MD5_BYTES], struct sl_error *error)
{
    unsigned char wanted[SL_MANIFEST_MD5_BYTES];
    enum sl_status status = read_checksum(e, name, wanted, error);
    if (status == SL_OK && memcmp(wanted, found, SL_MANIFEST_MD5_BYTES) != 0)
        return sl_fail(
            error, SL_REJECT, "WrongChecksum",
            "%s/manifest-%s.json: is damaged: its MD5 is not the one in its checksum file; copy it "
            "again",
            e->name, name);
    return status;
}

static enum sl_status read_summary(struct listing *e, struct sl_manifest_summary *summary,
                                   struct sl_error *error)
{
    struct sl_span text;
    struct sl_error why = SL_NO_ERROR;
    unsigned char md5[EVP_MAX_MD_SIZE];
    const char *name = e->name;
    enum sl_status status = sl_store_read_all(e->store, SL_LIT(SUMMARY), SUMMARY_BYTES, e->call, &text, &why);
    if (status != SL_OK && strcmp(why.code, "NoSuchKey") == 0)
        return sl_fail(error, SL_REJECT, "NoSummary",
                       "%s: has no " SUMMARY
                       ": name the folder of one export, AWSDynamoDB/ID (without the file, "
                       "the export is not complete yet)",
                       name);
    if (status != SL_OK)
        return sl_fail(error, status, why.code, "%s", why.text);
    EVP_Digest(text.ptr, text.len, md5, NULL, EVP_md5(), NULL);
    status = check_sum(e, "summary", md5, error);
    if (status == SL_OK && sl_manifest_read_summary(text, e->arena, summary, &why) != SL_OK)
        return sl_fail(error, SL_REJECT, why.code, "%s/" SUMMARY ": %s", name, why.text);
    return status;
}

/* Takes the whole lines of `text`; returns the bytes of the rest. At the end the rest is a line too. */
static enum sl_status take_lines(struct listing *e, struct sl_buffer *text, bool is_end,
                                 struct sl_error *error)
{
    size_t at = 0;
    struct sl_error why = SL_NO_ERROR;
    while (at < text->len) {
        const char *newline = memchr(text->ptr + at, '\n', text->len - at);
        if (!newline && !is_end)
            break;
        size_t end = newline ? (size_t)(newline - text->ptr) : text->len;
        struct sl_manifest_file file;
        struct sl_span line = sl_span(text->ptr + at, end - at);
        bool is_empty = line.len == 0 || (line.len == 1 && line.ptr[0] == '\r');
        if (!is_empty && sl_manifest_read_file(line, e->out->summary.id, e->arena, &file, &why) != SL_OK)
            return sl_fail(error, SL_REJECT, why.code, "%s/" FILES ": line %zu %s", e->name, e->out->n + 1,
                           why.text);
        if (!is_empty)
            sl_export_list_add(e->out, &file);
        at = newline ? end + 1 : end;
    }
    memmove(text->ptr, text->ptr + at, text->len - at);
    text->len -= at;
    return SL_OK;
}

static enum sl_status read_lines(struct listing *e, struct sl_reader *reader,
                                 unsigned char md5[EVP_MAX_MD_SIZE], struct sl_error *error)
{
    struct sl_buffer text;
    struct sl_span bytes;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    enum sl_status status = SL_OK;
    sl_buffer_init(&text, LINE_BYTES + SL_READER_MOST_BYTES);
    if (!digest || EVP_DigestInit_ex(digest, EVP_md5(), NULL) != 1)
        sl_die("OpenSSL has no MD5 here, which the manifests of exports need");
    do {
        struct sl_error why = SL_NO_ERROR;
        status = reader->next(reader, e->call, &bytes, &why);
        if (status != SL_OK) {
            sl_fail(error, status, why.code, "%s/" FILES ": %s", e->name, why.text);
            break;
        }
        EVP_DigestUpdate(digest, bytes.ptr, bytes.len);
        sl_buffer_add_span(&text, bytes);
        status = take_lines(e, &text, bytes.len == 0, error);
        if (status == SL_OK && text.len > LINE_BYTES)
            status = sl_fail(error, SL_REJECT, "NoManifest",
                             "%s/" FILES ": line %zu is too long for a manifest", e->name, e->out->n + 1);
    } while (status == SL_OK && bytes.len);
    EVP_DigestFinal_ex(digest, md5, NULL);
    EVP_MD_CTX_free(digest);
    sl_buffer_clean_up(&text);
    return status;
}

static enum sl_status read_files(struct listing *e, struct sl_error *error)
{
    struct sl_reader *reader;
    unsigned char md5[EVP_MAX_MD_SIZE];
    enum sl_status status = sl_store_read(e->store, SL_LIT(FILES), &reader, error);
    if (status != SL_OK)
        return status;
    status = read_lines(e, reader, md5, error);
    sl_reader_close(reader);
    return status == SL_OK ? check_sum(e, "files", md5, error) : status;
}

/* ---- the files ---- */

static int by_key(const void *a, const void *b)
{
    const struct sl_manifest_file *x = a, *y = b;
    return sl_span_compare(x->key, y->key);
}

/* Each file once, and as many items in all as the summary says. */
static enum sl_status check_files(struct listing *e, uint64_t items, struct sl_error *error)
{
    uint64_t sum = 0;
    if (e->out->n)
        qsort(e->out->files, e->out->n, sizeof(*e->out->files), by_key);
    for (size_t i = 0; i < e->out->n; i++) {
        sum += e->out->files[i].items;
        if (i && sl_span_eq(e->out->files[i].key, e->out->files[i - 1].key))
            return sl_fail(error, SL_REJECT, "NamedTwice", "%s/" FILES ": names the file %.*s twice", e->name,
                           SL_ARG(e->out->files[i].key));
    }
    if (sum != items)
        return sl_fail(error, SL_REJECT, "WrongCount",
                       "%s: " SUMMARY " counts %llu items, the files in " FILES " have %llu", e->name,
                       (unsigned long long)items, (unsigned long long)sum);
    return SL_OK;
}

static enum sl_status missing(const struct listing *e, size_t first, size_t n, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "NoSuchKey",
                   "%s: %zu of %zu data files are missing or empty, the first is %.*s; copy "
                   "them again (aws s3 sync)",
                   e->name, n, e->out->n, SL_ARG(e->out->files[first].key));
}

/* A file of no items is a packed text of nothing, so it has bytes too. */
static enum sl_status measure(struct listing *e, struct sl_error *error)
{
    size_t first = 0, n = 0;
    e->out->entries = calloc(e->out->n + 1, sizeof(*e->out->entries));
    if (!e->out->entries)
        sl_die("out of memory: an export of %zu files", e->out->n);
    for (size_t i = 0; i < e->out->n; i++)
        e->out->entries[i].key = e->out->files[i].key;
    enum sl_status status =
        sl_store_measure(e->store, SL_LIT("data/"), e->out->entries, e->out->n, e->call, error);
    for (size_t i = e->out->n; i-- > 0 && status == SL_OK;) {
        bool is_there = e->out->entries[i].bytes != SL_STORE_ABSENT &&
                        (e->out->entries[i].bytes || !e->out->files[i].items);
        first = is_there ? first : i;
        n += !is_there;
        e->out->bytes += is_there ? e->out->entries[i].bytes : 0;
    }
    return status == SL_OK && n ? missing(e, first, n, error) : status;
}

/* ---- all of it ---- */

void sl_export_list_add(struct sl_export_list *list, const struct sl_manifest_file *file)
{
    SL_PUSH(list->files, list->n, list->room, "files of an export") = *file;
}

static enum sl_status check_table(struct listing *e, const char *table, struct sl_error *error)
{
    struct sl_span arn = e->out->summary.table_arn;
    if (!table || sl_manifest_is_of(arn, sl_span_str(table)))
        return SL_OK;
    return sl_fail(error, SL_REJECT, "AnotherTable", "%s: is an export of the table %.*s, not of %s", e->name,
                   SL_ARG(arn), table);
}

enum sl_status sl_export_list_read(const struct sl_export_list_options *options, struct sl_export_list *out,
                                   struct sl_error *error)
{
    struct listing e = {.store = options->store,
                        .arena = options->arena,
                        .call = options->call,
                        .name = sl_store_name(options->store),
                        .out = out};
    *out = (struct sl_export_list){.n = 0};
    enum sl_status status = read_summary(&e, &out->summary, error);
    if (status == SL_OK)
        status = check_table(&e, options->table, error);
    if (status == SL_OK)
        status = read_files(&e, error);
    if (status == SL_OK)
        status = check_files(&e, out->summary.items, error);
    return status == SL_OK ? measure(&e, error) : status;
}

void sl_export_list_clean_up(struct sl_export_list *list)
{
    free(list->files);
    free(list->entries);
    *list = (struct sl_export_list){.n = 0};
}
