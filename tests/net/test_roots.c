/* The store of roots answers as OpenSSL's own of the same file does, for each of the system's certificates
 * and for chains of every kind; and text of any kind is read or refused. */
#include "tests/support/test.h"

#include "net/roots.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the two stores of one file ---- */

struct pair {
    char path[32];
    struct sl_roots ours;
    X509_STORE *theirs;
};

static void write_file(struct pair *pair, const char *text, size_t len)
{
    snprintf(pair->path, sizeof(pair->path), "/tmp/roots-XXXXXX");
    int fd = mkstemp(pair->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    close(fd);
}

static void open_pair(struct pair *pair, const char *path)
{
    pair->theirs = X509_STORE_new();
    assert_int_equal(X509_STORE_load_file(pair->theirs, path), 1);
    X509_STORE_set_flags(pair->theirs, X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN);
    assert_null(sl_roots_read(&pair->ours, path));
}

static void close_pair(struct pair *pair)
{
    sl_roots_clean_up(&pair->ours);
    X509_STORE_free(pair->theirs);
}

static int verify(X509_STORE *store, X509 *leaf, STACK_OF(X509) * sent)
{
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    assert_int_equal(X509_STORE_CTX_init(context, store, leaf, sent), 1);
    X509_STORE_CTX_set_default(context, "ssl_server");
    int good = X509_verify_cert(context), error = X509_STORE_CTX_get_error(context);
    assert_int_equal(good == 1, error == X509_V_OK);
    X509_STORE_CTX_free(context);
    return error;
}

static void the_system_s_roots_are_the_same(void **state)
{
    (void)state;
    const char *path = "/etc/ssl/certs/ca-certificates.crt";
    struct pair pair = {.theirs = NULL};
    if (access(path, R_OK) != 0)
        skip();
    open_pair(&pair, path);
    BIO *file = BIO_new_file(path, "r");
    X509 *certificate;
    size_t n = 0, good = 0;
    for (; (certificate = PEM_read_bio_X509(file, NULL, NULL, NULL)) != NULL; n++) {
        for (int twice = 0; twice < 2; twice++) {
            int error = verify(pair.ours.store, certificate, NULL);
            assert_int_equal(error, verify(pair.theirs, certificate, NULL));
            good += error == X509_V_OK;
        }
        X509_free(certificate);
    }
    assert_true(n > 50 && good > 20);
    BIO_free(file);
    close_pair(&pair);
}

/* ---- chains ---- */

static EVP_PKEY *keys[2];

enum kind { LEAF, AUTHORITY };

/* Signed with the issuer's key; a string that is no PrintableString is the same name in another form. */
static X509 *make(enum kind kind, const char *subject, const char *issuer, int key, int signer, int string)
{
    static long serial;
    X509 *x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", string, (const unsigned char *)subject, -1, -1,
                               0);
    X509_NAME_add_entry_by_txt(X509_get_issuer_name(x), "CN", MBSTRING_ASC, (const unsigned char *)issuer, -1,
                               -1, 0);
    X509_set_pubkey(x, keys[key]);
    X509_EXTENSION *is_ca = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints,
                                                kind == LEAF ? "CA:FALSE" : "critical,CA:TRUE");
    X509_add_ext(x, is_ca, -1);
    X509_EXTENSION_free(is_ca);
    assert_true(X509_sign(x, keys[signer], EVP_sha256()) > 0);
    return x;
}

static void add_pem(BIO *out, X509 *certificate)
{
    assert_int_equal(PEM_write_bio_X509(out, certificate), 1);
}

/* Each of the certificates alone and all of them in the file, each of them the leaf, the others sent or not.
 */
static void chains_are_judged_alike(void **state)
{
    (void)state;
    keys[0] = EVP_EC_gen("P-256");
    keys[1] = EVP_EC_gen("P-256");
    X509 *all[] = {
        make(AUTHORITY, "Root", "Root", 0, 0, MBSTRING_ASC),
        make(AUTHORITY, "Root", "Root", 1, 1, MBSTRING_ASC),        /* the same name, another key */
        make(AUTHORITY, "root  ", "Root", 0, 0, V_ASN1_UTF8STRING), /* the same name in another form */
        make(AUTHORITY, "Between", "Root", 1, 0, MBSTRING_ASC),
        make(LEAF, "Leaf", "Between", 0, 1, MBSTRING_ASC),
        make(LEAF, "Direct", "Root", 1, 0, MBSTRING_ASC),
        make(LEAF, "Alone", "Alone", 1, 1, MBSTRING_ASC),
        make(LEAF, "Stranger", "Nobody", 1, 0, MBSTRING_ASC),
    };
    enum { N = sizeof(all) / sizeof(all[0]) };
    size_t trusted = 0;
    for (unsigned in_file = 1; in_file < 1u << N; in_file++) {
        struct pair pair = {.theirs = NULL};
        BIO *text = BIO_new(BIO_s_mem());
        char *at;
        for (unsigned i = 0; i < N; i++)
            if (in_file >> i & 1)
                add_pem(text, all[i]);
        long len = BIO_get_mem_data(text, &at);
        write_file(&pair, at, (size_t)len);
        open_pair(&pair, pair.path);
        unlink(pair.path);
        STACK_OF(X509) *sent = sk_X509_new_null();
        for (unsigned i = 0; i < N; i++)
            sk_X509_push(sent, all[i]);
        for (unsigned leaf = 0; leaf < N; leaf++)
            for (int with = 0; with < 2; with++) {
                int error = verify(pair.ours.store, all[leaf], with ? sent : NULL);
                assert_int_equal(error, verify(pair.theirs, all[leaf], with ? sent : NULL));
                trusted += error == X509_V_OK;
            }
        sk_X509_free(sent);
        BIO_free(text);
        close_pair(&pair);
    }
    assert_true(trusted > 500);
    for (unsigned i = 0; i < N; i++)
        X509_free(all[i]);
    EVP_PKEY_free(keys[0]);
    EVP_PKEY_free(keys[1]);
}

/* ---- text of any kind ---- */

static void any_text_is_read_or_refused(void **state)
{
    (void)state;
    static char own[4096], copy[4096];
    FILE *file = fopen("tests/net/tls/ca.pem", "r");
    assert_non_null(file);
    size_t len = fread(own, 1, sizeof(own), file);
    uint64_t seed = 1;
    fclose(file);
    for (size_t i = 0; i < 2000; i++) {
        struct pair pair = {.theirs = NULL};
        struct sl_roots roots = {.store = NULL};
        size_t n = i < len ? i : len;
        memcpy(copy, own, len);
        for (size_t k = len; k < i && k < len + 4; k++) { /* beyond the cuts: changed bytes */
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            copy[(seed >> 33) % len] = (char)(seed >> 25);
        }
        write_file(&pair, copy, n);
        const char *problem = sl_roots_read(&roots, pair.path);
        assert_int_equal(problem == NULL, roots.store != NULL);
        unlink(pair.path);
        sl_roots_clean_up(&roots);
    }
}

static void what_is_no_file_is_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"tests/net/tls", "it is a folder; name a file of certificates in PEM"},
        {"tests/net/tls/missing.pem", "it cannot be read"},
        {"/dev/null", "it has no certificate"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_roots roots = {.store = NULL};
        const char *problem = sl_roots_read(&roots, cases[i][0]);
        assert_string_equal(problem, cases[i][1]);
        assert_null(roots.store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_s_roots_are_the_same),
        cmocka_unit_test(chains_are_judged_alike),
        cmocka_unit_test(any_text_is_read_or_refused),
        cmocka_unit_test(what_is_no_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
