/* What a text that holds no records is, so that the reader of the error knows what to do; and the texts of an
 * export's manifests. */
#include "tests/support/test.h"
#include "data/source/kind.h"
#include "data/source/manifest.h"
#include "data/source/store.h"

#include <stdio.h>
#include <string.h>

static void what_is_no_record_is_named(void **state)
{
    (void)state;
    char tar[600] = "name";
    memcpy(tar + 257, "ustar", 5);
#define TEXT(text) SL_LIT(text)
    const struct {
        struct sl_span text;
        const char *kind; /* NULL: it is not known */
    } cases[] = {
        {TEXT(""), "is empty: it holds no record"},
        {TEXT(" \n"), "is empty: it holds no record"},
        {TEXT("\xEF\xBB\xBF\n"), "is empty: it holds no record"},
        {TEXT("PK\x03\x04..."), "is a zip archive"},
        {TEXT("\x28\xB5\x2F\xFD.."), "is packed with zstd"},
        {TEXT("\xFD"
              "7zXZ.."),
         "is packed with xz"},
        {TEXT("BZh9"), "is packed with bzip2"},
        {TEXT("\x04\x22\x4D\x18"), "is packed with lz4"},
        {TEXT("\x1F\x8B\x08"), "is packed with gzip twice"},
        {TEXT("SQLite format 3"), "is an SQLite database"},
        {TEXT("\xFF\xFE{"), "is UTF-16"},
        {TEXT("\xFE\xFF{"), "is UTF-16"},
        {TEXT("{\0\"\0"), "iconv -f UTF-16LE"},
        {TEXT("\0{\0\""), "iconv -f UTF-16BE"},
        {TEXT("[\0"), "iconv -f UTF-16LE"},
        {TEXT("\0["), "iconv -f UTF-16BE"},
        {sl_span(tar, 512), "is a tar archive"},
        {sl_span(tar, 262), NULL},
        {TEXT("<?xml version='1.0'?>"), "is XML or HTML"},
        {TEXT("\xEF\xBB\xBF <html>"), "is XML or HTML"},
        {TEXT("{Item:{PK:\"a\"}}"), "is Ion text"},
        {TEXT("{ _Item : {PK:\"a\"}}"), "is Ion text"},
        {TEXT("{Item"), NULL},
        {TEXT("{Item "), NULL},
        {TEXT("{Item}"), NULL},
        {TEXT("{:1}"), NULL},
        {TEXT("PK,SK\na,b\n"), "is CSV"},
        {TEXT("PK\tSK\na\tb\tc"), "is CSV"},
        {TEXT("PK;SK"), "is CSV"},
        {TEXT("PK,SK\nmore"), NULL},
        {TEXT("PK,SK\n{\"a\":1,\"b\":2}"), NULL},
        {TEXT("[1,2"), NULL},
        {TEXT("words"), NULL},
        {json_span("{'Records':[{'PartitionKey':'a'}]}"), "is what `aws kinesis get-records` prints"},
        {json_span("{'Items':[],'Count':0}"), "is what a scan or a query returned"},
        {json_span("{'manifestFilesS3Key':'a'}"), "manifest-summary.json"},
        {json_span("{'dataFileS3Key':'a'}"), "manifest-files.json"},
        {json_span("{'DDBStreamBatchInfo':{}}"), "see sluice redrive"},
        {json_span("{'KinesisBatchInfo':{}}"), "see sluice redrive"},
        {json_span("{'Records':[{'s3':{}}]}"), "is an event of S3"},
        {json_span("{'Records':[{'Sns':{}}]}"), "is an event of SNS"},
        {json_span("{'Records':[{'receiptHandle':'a'}]}"), "is an event of SQS"},
        {json_span("{'a':1}"), NULL},
        {json_span("{'Items':["), NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *kind = sl_text_kind(cases[i].text, 0);
        if (cases[i].kind ? !kind || !strstr(kind, cases[i].kind) : kind != NULL)
            fail_msg("case %zu: %s, not %s", i, kind ? kind : "-", cases[i].kind ? cases[i].kind : "-");
    }
    /* After a record, it is the record's error that counts. */
    struct sl_span lines = json_span(" {'Items':[]}\nPK,SK\n");
    assert_non_null(sl_text_kind(lines, 3));
    assert_null(sl_text_kind(lines, 15));
}

/* ---- manifests ---- */

static void a_checksum_is_base64_or_hex(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_one;
    } cases[] = {
        {"AAECAwQFBgcICQoLDA0ODw==", true},
        {" \t\r\nAAECAwQFBgcICQoLDA0ODw==\n", true},
        {"000102030405060708090a0b0c0d0e0f", true},
        {"000102030405060708090A0B0C0D0E0F\r\n", true},
        {"000102030405060708090a0b0c0d0e0g", false},
        {"00010203040506070809 a0b0c0d0e0f", false},
        {"g00102030405060708090a0b0c0d0e0f", false},
        {"000102030405060708090a0b0c0d0e0", false},
        {"AAECAwQFBgcICQoLDA0ODxA=", false}, /* 17 bytes */
        {"AAECAwQFBgcICQoLDA0ODw=*", false},
        {"AAECAwQFBgcICQoLDA0ODw", false},
        {"", false},
        {" ", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char md5[SL_MANIFEST_MD5_BYTES] = {0};
        if (sl_manifest_read_md5(sl_span_str(cases[i].text), md5) != cases[i].is_one)
            fail_msg("\"%s\"", cases[i].text);
        for (unsigned char k = 0; cases[i].is_one && k < SL_MANIFEST_MD5_BYTES; k++)
            assert_int_equal(md5[k], k);
    }
}

static void a_table_has_a_name_an_arn_and_streams(void **state)
{
    (void)state;
    static const char arn[] = "arn:aws:dynamodb:eu-west-1:1:table/orders";
    static const struct {
        const char *table;
        bool is_of;
    } cases[] = {
        {"orders", true},
        {"arn:aws:dynamodb:eu-west-1:1:table/orders", true},
        {"arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026", true},
        {"arn:aws:dynamodb:eu-west-1:1:table/orders/index/a", false},
        {"arn:aws:dynamodb:eu-west-1:1:table/orders2", false},
        {"arn:aws:dynamodb:eu-west-1:2:table/orders", false},
        {"order", false},
        {"table/orders", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (sl_manifest_is_of(sl_span_str(arn), sl_span_str(cases[i].table)) != cases[i].is_of)
            fail_msg("%s", cases[i].table);
    assert_true(sl_manifest_is_of(SL_LIT("orders"), SL_LIT("orders")));
}

/* Each member of it, as it should be and otherwise. */
static void a_summary_says_what_it_is_of(void **state)
{
    (void)state;
    static const char *const good[] = {"'a'",
                                       "'t'",
                                       "'DYNAMODB_JSON'",
                                       "'FULL_EXPORT'",
                                       "'p/AWSDynamoDB/ID/manifest-files.json'",
                                       "'2026-11-20T10:00:00.250Z'",
                                       "7"};
    static const char *const names[] = {"exportArn",          "tableArn",   "outputFormat", "exportType",
                                        "manifestFilesS3Key", "exportTime", "itemCount"};
    static const struct {
        size_t member;
        const char *value, *why; /* NULL: it is fine */
    } cases[] = {
        {0, "'b'", NULL},
        {1, "''", "has no tableArn"},
        {1, "7", "has no tableArn"},
        {2, "'ION'", "in the format ION"},
        {2, "null", "in the format (none)"},
        {3, "null", NULL},
        {3, "'INCREMENTAL_EXPORT'", "is an export of type INCREMENTAL_EXPORT"},
        {4, "'AWSDynamoDB/ID/manifest-files.json'", NULL},
        {4, "'AWSDynamoDB/x/AWSDynamoDB/ID/manifest-files.json'", NULL},
        {4, "'manifest-files.json'", "has no manifestFilesS3Key"},
        {4, "'AWSDynamoDB/manifest-files.json'", "has no manifestFilesS3Key"},
        {4, "'AWSDynamoDB//manifest-files.json'", "has no manifestFilesS3Key"},
        {4, "'AWSDynamoDB/ID/manifest-summary.json'", "has no manifestFilesS3Key"},
        {4, "'xAWSDynamoDB/ID/manifest-files.json'", "has no manifestFilesS3Key"},
        {4, "'AWSDynamoDB/'", "has no manifestFilesS3Key"},
        {4, "''", "has no manifestFilesS3Key"},
        {5, "''", "has no exportTime"},
        {5, "'yesterday'", "has no exportTime"},
        {5, "'1969-01-01T00:00:00Z'", "has no exportTime"},
        {5, "7", "has no exportTime"},
        {6, "123456789012345678", NULL},
        {6, "1234567890123456789", "has no itemCount"},
        {6, "-1", "has no itemCount"},
        {6, "7.5", "has no itemCount"},
        {6, "'7'", "has no itemCount"},
        {6, "", "is not JSON, at byte "},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_manifest_summary summary;
        struct sl_error error = SL_NO_ERROR;
        char text[2000] = "{";
        for (size_t k = 0; k < 7; k++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s'%s':%s", k ? "," : "", names[k],
                     k == cases[i].member ? cases[i].value : good[k]);
        enum sl_status status =
            sl_manifest_read_summary(json_span(json_printf("%s}", text)), arena, &summary, &error);
        if (cases[i].why ? !strstr(error.text, cases[i].why) : status != SL_OK)
            fail_msg("%s: %s", text, error.text);
        if (status != SL_OK)
            continue;
        assert_span_is(summary.id, "ID");
        assert_span_is(summary.table_arn, "t");
        assert_int_equal(summary.items, cases[i].member == 6 ? 123456789012345678 : 7);
        assert_int_equal(summary.time_ms, 1795168800250);
    }
    struct sl_manifest_summary none;
    assert_int_equal(sl_manifest_read_summary(SL_LIT("{}"), arena, &none, NULL), SL_REJECT);
    sl_arena_destroy(arena);
}

/* ---- keys ---- */

static void a_key_stays_below_its_place(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "a/b", "..a", "a..", "a/.b", "..."};
    static const char *const bad[] = {"", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(sl_store_is_key(sl_span_str(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(sl_store_is_key(sl_span_str(bad[i])));
    assert_false(sl_store_is_key(SL_LIT("a\0b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_record_is_named),
        cmocka_unit_test(a_checksum_is_base64_or_hex),
        cmocka_unit_test(a_table_has_a_name_an_arn_and_streams),
        cmocka_unit_test(a_summary_says_what_it_is_of),
        cmocka_unit_test(a_key_stays_below_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
