/* Knows formats by how they begin. */
#include "data/source/kind.h"

#include "base/array.h"
#include "base/json.h"

#include <string.h>

/* ---- by their first bytes ---- */

static const struct {
    struct sl_span bytes;
    const char *text;
} magic[] = {
    {SL_LIT("\xE0\x01\x00\xEA"), "is binary Ion: make the export again with ExportFormat DYNAMODB_JSON"},
    {SL_LIT("$ion_1_0"), "is Ion text: make the export again with ExportFormat DYNAMODB_JSON"},
    {SL_LIT("PAR1"), "is Parquet, whose columns hold no stream records: name what it was made from"},
    {SL_LIT("Obj\x01"), "is Avro: write its records as JSON, one a line (avro-tools tojson)"},
    {SL_LIT("PK\x03\x04"), "is a zip archive: unpack it first (unzip -p FILE | sluice ... -)"},
    {SL_LIT("\x28\xB5\x2F\xFD"), "is packed with zstd: unpack it first (zstd -dc FILE | sluice ... -)"},
    {SL_LIT("\xFD"
            "7zXZ"),
     "is packed with xz: unpack it first (xz -dc FILE | sluice ... -)"},
    {SL_LIT("BZh"), "is packed with bzip2: unpack it first (bzip2 -dc FILE | sluice ... -)"},
    {SL_LIT("\x04\x22\x4D\x18"), "is packed with lz4: unpack it first (lz4 -dc FILE | sluice ... -)"},
    {SL_LIT("\x1F\x8B"), "is packed with gzip twice: unpack it once (gzip -dc FILE | sluice ... -)"},
    {SL_LIT("SQLite format 3"), "is an SQLite database, which holds no stream records"},
    {SL_LIT("\xFF\xFE"), "is UTF-16: make it UTF-8 (iconv -f UTF-16 -t UTF-8 FILE | sluice ... -)"},
    {SL_LIT("\xFE\xFF"), "is UTF-16: make it UTF-8 (iconv -f UTF-16 -t UTF-8 FILE | sluice ... -)"},
    {SL_LIT("{\0"), "is UTF-16: make it UTF-8 (iconv -f UTF-16LE -t UTF-8 FILE | sluice ... -)"},
    {SL_LIT("\0{"), "is UTF-16: make it UTF-8 (iconv -f UTF-16BE -t UTF-8 FILE | sluice ... -)"},
    {SL_LIT("[\0"), "is UTF-16: make it UTF-8 (iconv -f UTF-16LE -t UTF-8 FILE | sluice ... -)"},
    {SL_LIT("\0["), "is UTF-16: make it UTF-8 (iconv -f UTF-16BE -t UTF-8 FILE | sluice ... -)"},
};

static const char *by_magic(struct sl_span begin)
{
    for (size_t i = 0; i < SL_COUNT(magic); i++)
        if (sl_span_starts(begin, magic[i].bytes))
            return magic[i].text;
    if (begin.len > 262 && memcmp(begin.ptr + 257, "ustar", 5) == 0)
        return "is a tar archive: unpack it first (tar -xOf FILE | sluice ... -)";
    return NULL;
}

/* ---- JSON of other kinds, by a member ---- */

static const struct {
    const char *path;
    const char *text;
} members[] = {
    {"Records[0].PartitionKey",
     "is what `aws kinesis get-records` prints: write each record as Lambda has it (jq -c '.Records[] | "
     "{kinesis:{sequenceNumber:.SequenceNumber,data:.Data}}')"},
    {"Items", "is what a scan or a query returned: write one item a line (jq -c '.Items[] | {Item:.}')"},
    {"manifestFilesS3Key", "is an export's manifest-summary.json: name the files in the export's data/, or "
                           "its folder with sluice backfill --export"},
    {"dataFileS3Key", "is an export's manifest-files.json: name the files in the export's data/, or its "
                      "folder with sluice backfill --export"},
    {"DDBStreamBatchInfo",
     "is a failure record of Lambda, which names records and does not hold them: see sluice redrive"},
    {"KinesisBatchInfo",
     "is a failure record of Lambda, which names records and does not hold them: see sluice redrive"},
    {"Records[0].s3", "is an event of S3, not of a stream"},
    {"Records[0].Sns", "is an event of SNS, not of a stream"},
    {"Records[0].receiptHandle",
     "is an event of SQS, not of a stream: for failure records see sluice redrive"},
};

static const char *by_member(struct sl_span text)
{
    struct sl_json_scan scan = {.end = sl_span_end(text)};
    const char *next = sl_json_value(&scan, text.ptr);
    if (!next)
        return NULL;
    for (size_t i = 0; i < SL_COUNT(members); i++)
        if (sl_json_find(sl_span(text.ptr, (size_t)(next - text.ptr)), members[i].path).ptr)
            return members[i].text;
    return NULL;
}

/* ---- other text ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* {Item:{PK:"a"}}: names without quotes. */
static bool is_ion(struct sl_span text)
{
    const char *end = sl_span_end(text), *p = text.ptr;
    if (*p != '{')
        return false;
    p = sl_json_space(p + 1, end);
    const char *name = p;
    while (p < end && is_letter(*p))
        p++;
    const char *colon = sl_json_space(p, end);
    return p > name && colon < end && *colon == ':';
}

static struct sl_span line_of(struct sl_span text)
{
    const char *newline = text.len ? memchr(text.ptr, '\n', text.len) : NULL;
    return newline ? sl_span(text.ptr, (size_t)(newline - text.ptr)) : text;
}

static size_t count(struct sl_span line, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < line.len; i++)
        n += line.ptr[i] == c;
    return n;
}

static bool is_json_line(struct sl_span line)
{
    return line.len && memchr("{[", line.ptr[0], 2);
}

/* Two lines with as many separators, or one alone, that do not begin as JSON does. */
static bool is_table(struct sl_span text, char separator)
{
    struct sl_span first = line_of(text);
    struct sl_span second = line_of(sl_span_from(text, first.len < text.len ? first.len + 1 : text.len));
    size_t n = count(first, separator);
    return n && !is_json_line(first) && !is_json_line(second) &&
           (second.len == 0 || count(second, separator) >= n);
}

/* Whether what is wrong comes after something that may be a record. */
static bool is_after_object(struct sl_span begin, size_t offset)
{
    struct sl_json_scan scan = {.end = sl_span_end(begin)};
    const char *p = begin.len ? sl_json_space(begin.ptr, scan.end) : begin.ptr;
    const char *next = begin.len && p < scan.end && *p == '{' ? sl_json_value(&scan, p) : NULL;
    return next && (size_t)(next - begin.ptr) <= offset && next < scan.end;
}

const char *sl_text_kind(struct sl_span begin, size_t offset)
{
    if (is_after_object(begin, offset))
        return NULL;
    const char *text = begin.len ? by_magic(begin) : NULL;
    if (sl_span_starts(begin, SL_LIT("\xEF\xBB\xBF")))
        begin = sl_span_from(begin, 3);
    const char *p = begin.len ? sl_json_space(begin.ptr, sl_span_end(begin)) : begin.ptr;
    begin = sl_span_from(begin, (size_t)(p - begin.ptr));
    if (text || begin.len == 0)
        return text ? text : "is empty: it holds no record";
    if (*p == '<')
        return "is XML or HTML: it may be an error page in the place of the file";
    if (is_ion(begin))
        return "is Ion text (its names have no quotes): make the export again with ExportFormat "
               "DYNAMODB_JSON";
    if (is_table(begin, ',') || is_table(begin, '\t') || is_table(begin, ';'))
        return "is CSV, which says neither the types nor the kind of a change: name the export or the "
               "records that "
               "it was made from";
    return *p == '{' ? by_member(begin) : NULL;
}
