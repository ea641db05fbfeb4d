/* `sluice manifest PREFIX`: turns what `archive` wrote below that folder, in format export, into an
 * incremental export in DynamoDB's own layout.
 *
 * An export has one line per item: what it was before the window, and what it is after it. So the lines of an
 * item are folded into one (none for an item that was created and removed within the window) and written to
 * AWSDynamoDB/data, with the manifests and checksums that readers of exports expect. The same lines always
 * make the same files with the same names, in whatever order they are read.
 *
 * An archive need not fit into memory: its lines are sorted by item in files of TMPDIR. Each line goes in
 * twice, since the sorter keeps of a key the last body alone: as what the item is after it, and, in reversed
 * order and under a key that comes right after, as what it was before it. */
#include "base/arn.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/gzip.h"
#include "base/json.h"
#include "base/disk.h"
#include "base/json_write.h"
#include "base/sha256.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "data/sorter.h"
#include "live/sandbox/paths.h"
#include "live/source/input.h"
#include "streams/record.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

/* Items of one data file: AWS's own files hold about as many. */
#define FILE_ITEMS 100000
#define FOLDER     "AWSDynamoDB"
#define LINE_BYTES (8 * 1024 * 1024) /* two images of 400 KB, each byte escaped to six at worst */

/* A sequence number, and which line of equal ones was read first. */
#define ORDER_DIGITS 40
#define TIE_DIGITS   8
#define TIES         100000000u

/* Of an entry: the images that its line has; and the last bit of the key tells the two entries of a line
 * apart. */
enum { HAS_NEW = 1, HAS_OLD = 2 };
#define IS_BEFORE 1u

/* One change of an item: a line of the archive. */
struct line {
    struct sl_span metadata, keys, new_image, old_image;
    struct sl_span order; /* digits without leading zeros */
    int64_t micros;
};

/* The item whose entries are being read. */
struct item {
    bool is_begun;
    unsigned char key[SL_SORTER_KEY_BYTES];
    uint64_t first, last;    /* what the first and the last line have: HAS_NEW, HAS_OLD */
    struct sl_buffer after;  /* the members of the last line */
    struct sl_buffer before; /* the old image of the first line */
};

struct manifest {
    const char *folder, *bucket, *s3_prefix, *table_arn;
    struct sl_arena *arena;
    struct sl_error error;
    char **names; /* of the archive's objects, in order */
    size_t n_names, room_names;
    char *temp;
    struct sl_sorter *sorter;
    struct sl_sha256 sha;
    struct sl_buffer text;
    int64_t oldest_micros, newest_micros;
    bool has_old_images;
    size_t n_lines, n_kept;
    struct sl_buffer files; /* manifest-files.json */
    EVP_MD_CTX *digest;     /* of all data */
};

static enum sl_status fail(struct manifest *m, const char *what, const char *path)
{
    return sl_fail(&m->error, SL_FATAL, "File", "%s: cannot be %s: %s", path, what, strerror(errno));
}

/* ---- the archive's objects ---- */

static bool is_export_name(const char *name)
{
    struct sl_span text = sl_span_str(name);
    return sl_span_ends(text, SL_LIT(".json")) || sl_span_ends(text, SL_LIT(".json.gz"));
}

static void add_name(struct manifest *m, const char *path)
{
    if (!(SL_PUSH(m->names, m->n_names, m->room_names, "names") = strdup(path)))
        sl_die("out of memory");
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Skips what an earlier manifest wrote. */
static enum sl_status find_objects(struct manifest *m)
{
    char *roots[] = {(char *)(uintptr_t)m->folder, NULL};
    enum sl_status status = SL_OK;
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (!walk) { /* an empty name, too */
        (void)fail(m, "read", m->folder[0] ? m->folder : "the archive's folder (its name is empty)");
        return SL_REJECT;
    }
    for (FTSENT *entry; status == SL_OK && (entry = fts_read(walk));) {
        bool is_ours =
            strcmp(entry->fts_name, FOLDER) == 0 || (entry->fts_level > 0 && entry->fts_name[0] == '.');
        if (entry->fts_info == FTS_D && is_ours)
            fts_set(walk, entry, FTS_SKIP);
        else if (entry->fts_info == FTS_F && is_export_name(entry->fts_name))
            add_name(m, entry->fts_path);
        else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS) {
            errno = entry->fts_errno;
            status = fail(m, "read", entry->fts_path);
            if (entry->fts_level == 0) /* nothing was begun */
                status = SL_REJECT;
        }
    }
    fts_close(walk);
    if (status == SL_OK && m->n_names == 0)
        return sl_fail(
            &m->error, SL_REJECT, "NoExport",
            "%s: no object of format export (*.json.gz) is below this folder; set \"format\": \"export\" in "
            "the archive's route, and copy the objects here (aws s3 sync)",
            m->folder);
    return status;
}

/* ---- lines ---- */

/* Lines are ordered by the sequence number that the archive wrote; in AWS's own exports, by the time of the
 * write. */
static bool read_metadata(struct sl_span raw, struct sl_arena *arena, struct line *line)
{
    struct sl_span found = sl_json_find(raw, "Metadata");
    json_t *metadata = json_loadb(found.ptr ? found.ptr : "", found.len, 0, NULL);
    const char *micros = NULL, *sequence = NULL;
    json_unpack(metadata, "{s:{s:s}}", "WriteTimestampMicros", "N", &micros);
    json_unpack(metadata, "{s:{s:s}}", "SequenceNumber", "S", &sequence);
    bool is_line = micros != NULL;
    if (is_line) {
        char *text = json_dumps(metadata, JSON_COMPACT);
        line->micros = strtoll(micros, NULL, 10);
        line->order = sl_span_str(sl_arena_copy(arena, sl_span_str(sequence ? sequence : micros)));
        line->order = sl_span_without_zeros(line->order);
        line->metadata = sl_span_str(sl_arena_copy(arena, sl_span_str(text)));
        free(text);
    }
    json_decref(metadata);
    return is_line;
}

/* Of equal lines the first one read counts: it is the last one in both orders. */
static void set_order(struct sl_sorter_entry *entry, const struct line *line, size_t number, bool is_reversed)
{
    char digits[ORDER_DIGITS + TIE_DIGITS + 1];
    size_t n = line->order.len, zeros = is_reversed ? ORDER_DIGITS - n : 0;
    memset(digits, '0', zeros);
    memcpy(digits + zeros, line->order.ptr, n);
    n += zeros;
    for (size_t i = 0; is_reversed && i < n; i++)
        digits[i] = (char)('9' - digits[i] + '0');
    snprintf(digits + n, TIE_DIGITS + 1, "%0*u", TIE_DIGITS, (unsigned)(TIES - 1 - number % TIES));
    entry->order_bytes = (uint32_t)(n + TIE_DIGITS);
    memcpy(entry->order, digits, entry->order_bytes);
}

/* A temporary file's error says what it is for. */
static enum sl_status sorted(struct manifest *m, enum sl_status status)
{
    if (status != SL_OK)
        sl_error_context(&m->error, "%s", m->folder);
    return status;
}

static enum sl_status take_line(struct manifest *m, struct sl_span key, const struct line *line)
{
    struct sl_sorter_entry entry = {.flags = (line->new_image.len ? HAS_NEW : 0) |
                                             (line->old_image.len ? HAS_OLD : 0)};
    sl_sha256_parts(&m->sha, &key, 1, entry.key);
    unsigned char *last = &entry.key[SL_SORTER_KEY_BYTES - 1];
    *last &= (unsigned char)~IS_BEFORE;
    set_order(&entry, line, m->n_lines, false);
    sl_buffer_reset(&m->text);
    sl_json_add_raw(&m->text, "Metadata", line->metadata);
    sl_json_add_raw(&m->text, "Keys", line->keys);
    if (line->new_image.len)
        sl_json_add_raw(&m->text, "NewImage", line->new_image);
    enum sl_status status = sorted(m, sl_sorter_add(m->sorter, &entry, sl_buffer_span(&m->text), &m->error));
    *last |= IS_BEFORE;
    set_order(&entry, line, m->n_lines, true);
    if (status == SL_OK)
        status = sorted(m, sl_sorter_add(m->sorter, &entry, line->old_image, &m->error));
    m->oldest_micros = m->n_lines && m->oldest_micros < line->micros ? m->oldest_micros : line->micros;
    m->newest_micros = line->micros > m->newest_micros ? line->micros : m->newest_micros;
    m->has_old_images = m->has_old_images || (line->old_image.len && line->new_image.len);
    m->n_lines++;
    return status;
}

static enum sl_status take_object(struct manifest *m, const char *name, struct sl_arena *arena)
{
    const struct sl_decode_options options = {.any_shape = true};
    struct sl_input input;
    enum sl_status status = sl_input_read(name, &options, arena, &input, &m->error);
    for (size_t i = 0; i < input.batch.n && status == SL_OK; i++) {
        const struct sl_record *r = sl_batch_record(&input.batch, i);
        struct line line = {.keys = sl_record_image(r, SL_KEYS).raw,
                            .new_image = sl_record_image(r, SL_NEW_IMAGE).raw,
                            .old_image = sl_record_image(r, SL_OLD_IMAGE).raw};
        if (!read_metadata(sl_record_text(r, SL_FIELD_RAW), arena, &line))
            return sl_fail(&m->error, SL_REJECT, "NoExport",
                           "%s: line %zu is not a line of an incremental export: its "
                           "Metadata.WriteTimestampMicros is missing",
                           name, i + 1);
        if (!sl_span_is_digits(line.order) || line.order.len > ORDER_DIGITS)
            return sl_fail(
                &m->error, SL_REJECT, "NoExport",
                "%s: line %zu: its Metadata.SequenceNumber, or WriteTimestampMicros, is not a number "
                "of up to %d digits",
                name, i + 1, ORDER_DIGITS);
        status = take_line(m, sl_record_item_key(r, arena), &line);
    }
    return status;
}

static enum sl_status take_objects(struct manifest *m)
{
    struct sl_arena *arena = sl_arena_new(1 << 20);
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < m->n_names && status == SL_OK; i++) {
        status = take_object(m, m->names[i], arena);
        sl_arena_reset(arena);
    }
    sl_arena_destroy(arena);
    return status;
}

/* ---- writing ---- */

static enum sl_status write_file(struct manifest *m, const char *path, struct sl_span bytes)
{
    errno = sl_disk_replace_path(path, bytes);
    return errno ? fail(m, "written", path) : SL_OK;
}

static struct sl_span md5_of(struct sl_span bytes, unsigned char out[16])
{
    unsigned n = 16;
    if (EVP_Digest(bytes.ptr ? bytes.ptr : "", bytes.len, out, &n, EVP_md5(), NULL) != 1)
        sl_die("OpenSSL has no MD5, which the manifests of an export need");
    return sl_span((const char *)out, n);
}

static void add_hex(struct sl_buffer *out, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sl_buffer_printf(out, "%02x", bytes[i]);
}

/* The key in the bucket of the file at `path` below the folder. */
static void add_s3_key(const struct manifest *m, struct sl_buffer *out, const char *name, const char *path)
{
    bool has_prefix = m->s3_prefix[0] != '\0';
    char *key = sl_arena_printf(m->arena, "%s%s%s", m->s3_prefix, has_prefix ? "/" : "", path);
    sl_json_add_member(out, name, sl_span_str(key));
}

static void add_line(struct sl_buffer *out, const struct item *item)
{
    sl_buffer_add_char(out, '{');
    sl_buffer_add_span(out, sl_buffer_span(&item->after));
    if (item->first & HAS_OLD)
        sl_json_add_raw(out, "OldImage", sl_buffer_span(&item->before));
    sl_buffer_add_str(out, "}\n");
}

/* Created and removed within the window. Only a stream with both images shows it. */
static bool leaves_nothing(const struct item *item)
{
    return (item->first & HAS_NEW) && !(item->first & HAS_OLD) && !(item->last & HAS_NEW) &&
           (item->last & HAS_OLD);
}

static enum sl_status write_data(struct manifest *m, const struct sl_buffer *lines, size_t n)
{
    struct sl_buffer file, name;
    unsigned char digest[EVP_MAX_MD_SIZE], md5[16];
    sl_buffer_init(&file, SIZE_MAX / 4);
    sl_buffer_init_in(&name, m->arena, 4096);
    struct sl_span text = sl_buffer_span(lines);
    sl_gzip_add(&file, &text, 1, 6);
    EVP_Digest(text.ptr, text.len, digest, NULL, EVP_sha256(), NULL);
    EVP_DigestUpdate(m->digest, digest, 32);
    sl_buffer_add_str(&name, FOLDER "/data/");
    add_hex(&name, digest, 13);
    sl_buffer_add(&name, ".json.gz", sizeof(".json.gz"));
    struct sl_span sum = md5_of(sl_buffer_span(&file), md5);
    sl_buffer_add_char(&m->files, '{');
    sl_json_add_integer(&m->files, "itemCount", (int64_t)n);
    sl_json_add_member(&m->files, "md5Checksum", sl_base64_encode(sum, m->arena));
    sl_buffer_add_str(&m->files, ",\"etag\":\"");
    add_hex(&m->files, md5, 16);
    sl_buffer_add_str(&m->files, "-1\"");
    add_s3_key(m, &m->files, "dataFileS3Key", name.ptr);
    sl_buffer_add_str(&m->files, "}\n");
    enum sl_status status =
        write_file(m, sl_arena_printf(m->arena, "%s/%s", m->folder, name.ptr), sl_buffer_span(&file));
    sl_buffer_clean_up(&file);
    return status;
}

/* The lines of one data file. */
struct data {
    struct sl_buffer lines;
    size_t n;
};

static enum sl_status end_item(struct manifest *m, const struct item *item, struct data *data)
{
    if (!item->is_begun || leaves_nothing(item))
        return SL_OK;
    add_line(&data->lines, item);
    m->n_kept++;
    if (++data->n < FILE_ITEMS)
        return SL_OK;
    enum sl_status status = write_data(m, &data->lines, data->n);
    sl_buffer_reset(&data->lines);
    data->n = 0;
    return status;
}

static bool is_of_item(const struct item *item, const struct sl_sorter_entry *entry)
{
    size_t last = SL_SORTER_KEY_BYTES - 1;
    return item->is_begun && memcmp(item->key, entry->key, last) == 0 &&
           (item->key[last] | IS_BEFORE) == (entry->key[last] | IS_BEFORE);
}

/* Of each key the last entry counts, and it has the body. */
static void take_entry(struct item *item, const struct sl_sorter_entry *entry, struct sl_span body)
{
    bool is_before = entry->key[SL_SORTER_KEY_BYTES - 1] & IS_BEFORE;
    struct sl_buffer *text = is_before ? &item->before : &item->after;
    *(is_before ? &item->first : &item->last) = entry->flags;
    sl_buffer_reset(text);
    if (body.len)
        sl_buffer_add_span(text, body);
}

static enum sl_status fold(struct manifest *m, struct item *item, struct data *data)
{
    struct sl_sorter_entry entry;
    struct sl_span body;
    bool has = true;
    enum sl_status status = SL_OK;
    while (status == SL_OK && has) {
        status = sorted(m, sl_sorter_next(m->sorter, &entry, &body, &has, &m->error));
        if (status != SL_OK || !has)
            break;
        if (!is_of_item(item, &entry)) {
            status = end_item(m, item, data);
            item->is_begun = true;
            memcpy(item->key, entry.key, sizeof(item->key));
        }
        take_entry(item, &entry, body);
    }
    return status == SL_OK ? end_item(m, item, data) : status;
}

static enum sl_status write_all_data(struct manifest *m)
{
    struct item item = {.is_begun = false};
    struct data data = {.n = 0};
    bool is_ready = false;
    enum sl_status status = SL_OK;
    sl_buffer_init(&item.after, LINE_BYTES);
    sl_buffer_init(&item.before, LINE_BYTES);
    sl_buffer_init(&data.lines, SIZE_MAX / 4);
    while (status == SL_OK && !is_ready)
        status = sorted(m, sl_sorter_merge(m->sorter, SIZE_MAX, &is_ready, &m->error));
    if (status == SL_OK)
        status = fold(m, &item, &data);
    if (status == SL_OK && (data.n > 0 || m->n_kept == 0))
        status = write_data(m, &data.lines, data.n);
    sl_buffer_clean_up(&item.after);
    sl_buffer_clean_up(&item.before);
    sl_buffer_clean_up(&data.lines);
    return status;
}

/* A manifest, and its checksum under both names: the one in AWS's documentation, and the one that readers
 * use. */
static enum sl_status write_manifest(struct manifest *m, const char *folder, const char *name,
                                     struct sl_span text)
{
    unsigned char md5[16];
    struct sl_span sum = sl_base64_encode(md5_of(text, md5), m->arena);
    enum sl_status status = write_file(m, sl_arena_printf(m->arena, "%s/%s.json", folder, name), text);
    if (status == SL_OK)
        status = write_file(m, sl_arena_printf(m->arena, "%s/%s.md5", folder, name), sum);
    if (status == SL_OK)
        status = write_file(m, sl_arena_printf(m->arena, "%s/%s.checksum", folder, name), sum);
    return status;
}

static void add_time(struct sl_buffer *out, const char *name, int64_t micros)
{
    char text[SL_TIME_BYTES];
    sl_time_text(micros * 1000, text);
    sl_json_add_member(out, name, sl_span_str(text));
}

/* What nobody said is null, as DynamoDB writes what an export does not have. */
static void add_text(struct sl_buffer *out, const char *name, const char *text)
{
    if (text)
        sl_json_add_member(out, name, sl_span_str(text));
    else
        sl_json_add_raw(out, name, SL_LIT("null"));
}

/* The end of the window is exclusive; streams have whole seconds. */
static void make_summary(const struct manifest *m, const char *id, struct sl_buffer *out)
{
    int64_t from = m->oldest_micros / 1000000 * 1000000, to = (m->newest_micros / 1000000 + 1) * 1000000;
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, "version", SL_LIT("2023-08-01"));
    add_text(out, "exportArn",
             m->table_arn ? sl_arena_printf(m->arena, "%s/export/%s", m->table_arn, id) : NULL);
    add_time(out, "startTime", to);
    add_time(out, "endTime", to);
    add_text(out, "tableArn", m->table_arn);
    sl_json_add_raw(out, "tableId", SL_LIT("null"));
    sl_json_add_raw(out, "exportTime", SL_LIT("null"));
    add_time(out, "exportFromTime", from);
    add_time(out, "exportToTime", to);
    add_text(out, "s3Bucket", m->bucket);
    sl_json_add_member(out, "s3Prefix", sl_span_str(m->s3_prefix));
    sl_json_add_member(out, "s3SseAlgorithm", SL_LIT("AES256"));
    sl_json_add_raw(out, "s3SseKmsKeyId", SL_LIT("null"));
    add_s3_key(m, out, "manifestFilesS3Key", sl_arena_printf(m->arena, FOLDER "/%s/manifest-files.json", id));
    sl_json_add_integer(out, "billedSizeBytes", 0);
    sl_json_add_integer(out, "itemCount", (int64_t)m->n_kept);
    sl_json_add_member(out, "outputFormat", SL_LIT("DYNAMODB_JSON"));
    sl_json_add_member(out, "outputView",
                       m->has_old_images ? SL_LIT("NEW_AND_OLD_IMAGES") : SL_LIT("NEW_IMAGE"));
    sl_json_add_member(out, "exportType", SL_LIT("INCREMENTAL_EXPORT"));
    sl_buffer_add_char(out, '}');
}

static enum sl_status write_manifests(struct manifest *m)
{
    struct sl_buffer id, summary;
    unsigned char digest[EVP_MAX_MD_SIZE];
    sl_buffer_init_in(&id, m->arena, 128);
    sl_buffer_init_in(&summary, m->arena, LINE_BYTES);
    EVP_DigestFinal_ex(m->digest, digest, NULL);
    sl_buffer_printf(&id, "%014" PRId64 "-", m->newest_micros / 1000);
    add_hex(&id, digest, 4);
    sl_buffer_add_char(&id, '\0');
    char *folder = sl_arena_printf(m->arena, "%s/" FOLDER "/%s", m->folder, id.ptr);
    enum sl_status status = sl_disk_make_folder(folder, &m->error);
    if (status == SL_OK)
        status = write_file(m, sl_arena_printf(m->arena, "%s/_started", folder), sl_span("", 0));
    if (status == SL_OK)
        status = write_manifest(m, folder, "manifest-files", sl_buffer_span(&m->files));
    make_summary(m, id.ptr, &summary);
    if (status == SL_OK)
        status = write_manifest(m, folder, "manifest-summary", sl_buffer_span(&summary));
    if (status == SL_OK)
        printf("%s: %zu items of %zu lines in %zu objects\n", folder, m->n_kept, m->n_lines, m->n_names);
    return status;
}

/* ---- the verb ---- */

static enum sl_status check_arn(struct manifest *m)
{
    struct sl_span arn = sl_span_str(m->table_arn), name = sl_arn_part(arn, 5);
    if (!m->table_arn ||
        (sl_span_is(sl_arn_part(arn, 2), "dynamodb") && sl_span_starts(name, SL_LIT("table/")) &&
         !memchr(name.ptr + strlen("table/"), '/', name.len - strlen("table/"))))
        return SL_OK;
    return sl_fail(&m->error, SL_REJECT, "BadFlag",
                   "--table-arn %s: is not a table's ARN: write arn:aws:dynamodb:REGION:ACCOUNT:table/NAME",
                   m->table_arn);
}

/* Readers of DynamoDB's exports may look there. */
static void say_missing(const struct manifest *m)
{
    if (!m->table_arn || !m->bucket)
        fprintf(
            stderr,
            "sluice manifest: manifest-summary.json does not name the %s: give %s if a program reads it\n",
            !m->table_arn && !m->bucket ? "table and the bucket"
            : m->table_arn              ? "bucket"
                                        : "table",
            !m->table_arn && !m->bucket ? "--table-arn and --bucket"
            : m->table_arn              ? "--bucket"
                                        : "--table-arn");
}

static enum sl_status open_sorter(struct manifest *m)
{
    const struct sl_vars vars = sl_command_environment();
    const char *folder = sl_vars_or(&vars, "TMPDIR", "/tmp");
    m->temp = sl_paths_make_temp(folder);
    if (!m->temp)
        return sorted(m,
                      sl_fail(&m->error, SL_FATAL, "File", "%s: cannot make a folder for temporary files: %s",
                              folder, strerror(errno)));
    m->sorter = sl_sorter_open(m->temp, 0);
    sl_sha256_init(&m->sha);
    sl_buffer_init(&m->text, LINE_BYTES);
    return SL_OK;
}

static void close_sorter(struct manifest *m)
{
    sl_sorter_close(m->sorter);
    if (m->temp) {
        sl_paths_remove_temp(m->temp);
        sl_sha256_clean_up(&m->sha);
        sl_buffer_clean_up(&m->text);
    }
    free(m->temp);
}

static enum sl_status run(struct manifest *m)
{
    enum sl_status status = check_arn(m);
    if (status == SL_OK)
        status = find_objects(m);
    if (status == SL_OK)
        status = open_sorter(m);
    if (status == SL_OK)
        status = take_objects(m);
    if (status == SL_OK)
        status = sl_disk_make_folder(sl_arena_printf(m->arena, "%s/" FOLDER "/data", m->folder), &m->error);
    if (status == SL_OK) {
        sl_disk_sweep_path(sl_arena_printf(m->arena, "%s/" FOLDER "/data/", m->folder));
        status = write_all_data(m);
    }
    return status == SL_OK ? write_manifests(m) : status;
}

int sl_verb_manifest(int argc, char **argv)
{
    struct manifest m = {.s3_prefix = "", .error = SL_NO_ERROR};
    const struct sl_flag flags[] = {
        {"bucket", SL_FLAG_TEXT, &m.bucket, "NAME",
         "the bucket to which the folder will be copied (null without it)"},
        {"s3-prefix", SL_FLAG_TEXT, &m.s3_prefix, "PATH",
         "the folder's key prefix in the bucket: the manifests name data files with it"},
        {"table-arn", SL_FLAG_TEXT, &m.table_arn, "ARN",
         "the table, for manifest-summary.json (null without it)"},
        {.type = SL_FLAG_END},
    };
    const struct sl_usage usage = {
        .line = "manifest [flags] PREFIX",
        .summary = "Turns an archive in format export into an incremental export, as DynamoDB writes it: one "
                   "line per item, manifests and checksums, in PREFIX/AWSDynamoDB. PREFIX is a folder; copy "
                   "an archive from S3 with `aws s3 sync`, and copy PREFIX/AWSDynamoDB back in the same way.",
        .example = "sluice manifest archive/orders",
        .flags = flags,
        .operand = "PREFIX",
        .least = 1,
        .most = 1,
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    m.folder = argv[1];
    m.arena = sl_arena_new(1 << 20);
    m.digest = EVP_MD_CTX_new();
    sl_buffer_init(&m.files, SIZE_MAX / 4);
    EVP_DigestInit_ex(m.digest, EVP_sha256(), NULL);
    enum sl_status status = run(&m);
    if (status != SL_OK)
        (void)sl_flags_complain("manifest", &m.error);
    else
        say_missing(&m);
    for (size_t i = 0; i < m.n_names; i++)
        free(m.names[i]);
    free(m.names);
    close_sorter(&m);
    EVP_MD_CTX_free(m.digest);
    sl_buffer_clean_up(&m.files);
    sl_arena_destroy(m.arena);
    return status == SL_OK ? SL_EXIT_OK : status == SL_REJECT ? SL_EXIT_BAD : SL_EXIT_FAILED;
}
