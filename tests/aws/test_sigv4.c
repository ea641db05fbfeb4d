/* The signer against the examples that AWS's own signing pages work through, step by step. */
#include "tests/support/test.h"

#include "aws/sigv4.h"
#include "base/url.h"
#include "net/uri.h"

#include <stdio.h>

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static struct sl_sha256 sha;
static struct sl_sigv4 signer;

static int set_up(void **state)
{
    (void)state;
    sl_sha256_init(&sha);
    sl_sigv4_init(&signer, &sha);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sl_sigv4_clean_up(&signer);
    sl_sha256_clean_up(&sha);
    return 0;
}

static const struct sl_sigv4_identity iam = {
    .access_key = "AKIDEXAMPLE",
    .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    .region = "us-east-1",
    .service = "iam",
    .serial = 1,
};

static const struct sl_sigv4_identity s3 = {
    .access_key = "AKIAIOSFODNN7EXAMPLE",
    .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    .region = "us-east-1",
    .service = "s3",
    .serial = 2,
};

static const struct sl_sigv4_field iam_fields[] = {
    {SL_LIT("Host"), SL_LIT("iam.amazonaws.com")},
    {SL_LIT("Content-Type"), SL_LIT("application/x-www-form-urlencoded; charset=utf-8")},
    {SL_LIT("X-Amz-Date"), SL_LIT("20150830T123600Z")},
    {SL_LIT("User-Agent"), SL_LIT("never signed")},
};

static const struct sl_sigv4_request list_users = {
    .method = SL_LIT("GET"),
    .path = SL_LIT("/"),
    .query = SL_LIT("Version=2010-05-08&Action=ListUsers"),
    .fields = iam_fields,
    .n_fields = 4,
    .payload_hash = EMPTY_HASH,
    .encode_path = true,
    .normalize_path = true,
};

static void the_documented_example_agrees_at_each_step(void **state)
{
    (void)state;
    sl_sigv4_canonical(&signer, &list_users);
    assert_span_is(sl_buffer_span(&signer.canonical),
                   "GET\n/\nAction=ListUsers&Version=2010-05-08\n"
                   "content-type:application/x-www-form-urlencoded; charset=utf-8\n"
                   "host:iam.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
                   "content-type;host;x-amz-date\n" EMPTY_HASH);
    sl_sigv4_to_sign(&signer, &iam, "20150830T123600Z");
    assert_span_is(sl_buffer_span(&signer.to_sign),
                   "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n"
                   "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59");
    char signature[SL_SHA256_HEX];
    sl_sigv4_signature(&signer, &iam, "20150830T123600Z", signature);
    assert_string_equal(signature, "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
}

static void the_authorization_is_put_together(void **state)
{
    (void)state;
    struct sl_buffer out;
    sl_buffer_init(&out, 4096);
    sl_sigv4_authorize(&signer, &iam, &list_users, "20150830T123600Z", &out);
    assert_span_is(sl_buffer_span(&out),
                   "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
                   "SignedHeaders=content-type;host;x-amz-date, "
                   "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
    sl_buffer_clean_up(&out);
}

static void assert_s3(const char *method, const char *path, const char *query, const char *hash,
                      const struct sl_sigv4_field *fields, size_t n, const char *signature)
{
    struct sl_sigv4_request request = {
        .method = sl_span_str(method),
        .path = sl_span_str(path),
        .query = sl_span_str(query),
        .fields = fields,
        .n_fields = n,
        .payload_hash = hash,
    };
    struct sl_buffer out;
    sl_buffer_init(&out, 4096);
    sl_sigv4_authorize(&signer, &s3, &request, "20130524T000000Z", &out);
    assert_span_is(sl_span_from(sl_buffer_span(&out), out.len - 64), signature);
    sl_buffer_clean_up(&out);
}

/* S3 signs the path as it is sent, encoded once. */
static void the_examples_of_s3_agree(void **state)
{
    (void)state;
#define PUT_HASH "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
    const struct sl_sigv4_field put[] = {
        {SL_LIT("Date"), SL_LIT("Fri, 24 May 2013 00:00:00 GMT")},
        {SL_LIT("x-amz-storage-class"), SL_LIT("REDUCED_REDUNDANCY")},
        {SL_LIT("x-amz-date"), SL_LIT("20130524T000000Z")},
        {SL_LIT("x-amz-content-sha256"), SL_LIT(PUT_HASH)},
        {SL_LIT("host"), SL_LIT("examplebucket.s3.amazonaws.com")},
    };
    const struct sl_sigv4_field list[] = {
        {SL_LIT("host"), SL_LIT("examplebucket.s3.amazonaws.com")},
        {SL_LIT("x-amz-content-sha256"), SL_LIT(EMPTY_HASH)},
        {SL_LIT("x-amz-date"), SL_LIT("20130524T000000Z")},
    };
    unsigned char digest[SL_SHA256_BYTES];
    char hex[SL_SHA256_HEX];
    sl_sha256_parts(&sha, (const struct sl_span[]){SL_LIT("Welcome to"), SL_LIT(" Amazon S3.")}, 2, digest);
    sl_sha256_hex(digest, hex);
    assert_string_equal(hex, PUT_HASH);
    assert_s3("PUT", "/test%24file.text", "", hex, put, 5,
              "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    assert_s3("GET", "/", "lifecycle", EMPTY_HASH, list, 3,
              "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    assert_s3("GET", "/", "max-keys=2&prefix=J", EMPTY_HASH, list, 3,
              "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void assert_canonical(const char *path, const char *query, bool normalize, const char *line2,
                             const char *line3)
{
    struct sl_sigv4_request request = {
        .method = SL_LIT("GET"),
        .path = sl_span_str(path),
        .query = sl_span_str(query),
        .payload_hash = "",
        .encode_path = true,
        .normalize_path = normalize,
    };
    char wanted[512];
    snprintf(wanted, sizeof(wanted), "GET\n%s\n%s\n\n\n", line2, line3);
    sl_sigv4_canonical(&signer, &request);
    assert_span_is(sl_buffer_span(&signer.canonical), wanted);
}

static void paths_and_queries_are_normalized(void **state)
{
    (void)state;
    assert_canonical("", "", true, "/", "");
    assert_canonical("//", "", true, "/", "");
    assert_canonical("//", "", false, "//", "");
    assert_canonical("/a/./b/../c//", "", true, "/a/c/", "");
    assert_canonical("/../..", "", true, "/", "");
    assert_canonical("/a b/%24", "", true, "/a%20b/%2524", "");
    assert_canonical("/", "b=2&a&b=1&=x&&a%2fb=%7e+", true, "/", "=x&a=&a%2Fb=~%2B&b=1&b=2");
    assert_canonical("/", "a-3=1&a=2&A=3", true, "/", "A=3&a=2&a-3=1");
    assert_canonical("/", "a=%&b=%4&c=%zz", true, "/", "a=%25&b=%254&c=%25zz");
}

static void fields_are_trimmed_merged_and_sorted(void **state)
{
    (void)state;
    const struct sl_sigv4_field fields[] = {
        {SL_LIT("X-B"), SL_LIT("  one\n\t two  ")}, {SL_LIT("x-meta-test-two"), SL_LIT("t")},
        {SL_LIT("x-meta-test"), SL_LIT("")},        {SL_LIT("x-b"), SL_LIT("three")},
        {SL_LIT("Transfer-Encoding"), SL_LIT("x")}, {SL_LIT("host"), SL_LIT("h:80")},
    };
    struct sl_sigv4_request request = {
        .method = SL_LIT("PUT"), .path = SL_LIT("/"), .fields = fields, .n_fields = 6, .payload_hash = "H"};
    sl_sigv4_canonical(&signer, &request);
    assert_span_is(
        sl_buffer_span(&signer.canonical),
        "PUT\n/\n\nhost:h:80\nx-b:one two,three\nx-meta-test:\nx-meta-test-two:t\n\nhost;x-b;x-meta-test;"
        "x-meta-test-two\nH");
}

static void key_is_derived_once_a_day(void **state)
{
    (void)state;
    char date[SL_SIGV4_DATE_BYTES], first[SL_SHA256_HEX], again[SL_SHA256_HEX];
    signer.day[0] = '\0';
    unsigned before = signer.keys_made;
    sl_sigv4_canonical(&signer, &list_users);
    sl_sigv4_date(1440938160, date);
    assert_string_equal(date, "20150830T123600Z");
    sl_sigv4_to_sign(&signer, &iam, date);
    sl_sigv4_signature(&signer, &iam, date, first);
    sl_sigv4_signature(&signer, &iam, date, again);
    assert_string_equal(first, again);
    assert_int_equal(signer.keys_made - before, 1);
    sl_sigv4_signature(&signer, &iam, "20150831T000000Z", again);
    assert_string_not_equal(first, again);
    struct sl_sigv4_identity renewed = iam;
    renewed.serial = 77;
    renewed.secret_key = "another";
    sl_sigv4_signature(&signer, &renewed, date, again);
    assert_string_not_equal(first, again);
    assert_int_equal(signer.keys_made - before, 3);
}

/* RFC 4231, cases 1, 2 and 6 (a key longer than a block). */
static void hmac_agrees_with_the_published_vectors(void **state)
{
    (void)state;
    char long_key[131];
    memset(long_key, 0xaa, sizeof(long_key));
    const struct {
        struct sl_span key, text;
        const char *hex;
    } cases[] = {
        {SL_LIT("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"),
         SL_LIT("Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {SL_LIT("Jefe"), SL_LIT("what do ya want for nothing?"),
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {sl_span(long_key, sizeof(long_key)),
         SL_LIT("Test Using Larger Than Block-Size Key - Hash Key First"),
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };
    struct sl_sha256_key key = {0};
    for (size_t i = 0; i < 3; i++) {
        unsigned char digest[SL_SHA256_BYTES];
        char hex[SL_SHA256_HEX];
        sl_sha256_key_set(&sha, &key, cases[i].key);
        sl_sha256_hmac(&sha, &key, cases[i].text, digest);
        sl_sha256_hex(digest, hex);
        assert_string_equal(hex, cases[i].hex);
    }
    sl_sha256_key_clean_up(&key);
}

static void every_byte_survives_encoding(void **state)
{
    (void)state;
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    struct sl_buffer encoded, decoded;
    sl_buffer_init(&encoded, 1024);
    sl_buffer_init(&decoded, 1024);
    sl_uri_encode(&encoded, sl_span(all, 256), '\0');
    assert_int_equal(encoded.len, 66 + 3 * 190);
    sl_url_decode(&decoded, sl_buffer_span(&encoded));
    assert_true(sl_span_eq(sl_buffer_span(&decoded), sl_span(all, 256)));
    sl_buffer_clean_up(&encoded);
    sl_buffer_clean_up(&decoded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_example_agrees_at_each_step),
        cmocka_unit_test(the_authorization_is_put_together),
        cmocka_unit_test(the_examples_of_s3_agree),
        cmocka_unit_test(paths_and_queries_are_normalized),
        cmocka_unit_test(fields_are_trimmed_merged_and_sorted),
        cmocka_unit_test(key_is_derived_once_a_day),
        cmocka_unit_test(hmac_agrees_with_the_published_vectors),
        cmocka_unit_test(every_byte_survives_encoding),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
