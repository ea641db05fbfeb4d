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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

/* ---- blocks of every kind ---- */

/* Reads the text as ours, and as OpenSSL does. */
static void open_text(struct pair *pair, BIO *text)
{
    char *at;
    long len = BIO_get_mem_data(text, &at);
    write_file(pair, at, (size_t)len);
    open_pair(pair, pair->path);
    unlink(pair->path);
    BIO_free(text);
}

static void add_block(BIO *out, const char *name, X509 *certificate, long len)
{
    unsigned char *der = NULL;
    int whole = i2d_X509(certificate, &der);
    assert_true(whole > 0 && PEM_write_bio(out, name, "", der, len < 0 ? whole : len) > 0);
    OPENSSL_free(der);
}

/* The old name of a certificate, OpenSSL's own form of one, and what is no certificate. */
static void every_form_of_a_certificate_counts(void **state)
{
    (void)state;
    static const char *const names[] = {PEM_STRING_X509, PEM_STRING_X509_OLD, PEM_STRING_X509_TRUSTED};
    keys[0] = EVP_EC_gen("P-256");
    for (size_t form = 0; form < sizeof(names) / sizeof(names[0]); form++)
        for (long version = 0; version <= 2; version += 2) { /* the first has no field of its version */
            X509 *root = make(AUTHORITY, "Root", "Root", 0, 0, MBSTRING_ASC);
            struct pair pair = {.theirs = NULL};
            BIO *text = BIO_new(BIO_s_mem());
            if (version == 0)
                X509_EXTENSION_free(X509_delete_ext(root, 0));
            X509_set_version(root, version);
            assert_true(X509_sign(root, keys[0], EVP_sha256()) > 0);
            assert_int_equal(PEM_write_bio_PUBKEY(text, keys[0]), 1); /* stepped over */
            add_block(text, names[form], root, -1);
            open_text(&pair, text);
            X509 *leaf = make(LEAF, "Leaf", "Root", 0, 0, MBSTRING_ASC);
            assert_int_equal(verify(pair.ours.store, leaf, NULL), X509_V_OK);
            assert_int_equal(verify(pair.theirs, leaf, NULL), X509_V_OK);
            X509_free(leaf);
            X509_free(root);
            close_pair(&pair);
        }
    EVP_PKEY_free(keys[0]);
}

/* The certificate, cut after so many bytes of what its outermost `depth` sequences hold, with the sequences'
 * lengths as the rest has them. */
static long cut_inside(X509 *certificate, int depth, long len, unsigned char *out)
{
    unsigned char *der = NULL, *at = out;
    int whole = i2d_X509(certificate, &der), tag, class;
    const unsigned char *from = der;
    long content = whole;
    for (int i = 0; i < depth; i++)
        ASN1_get_object(&from, &content, &tag, &class, content);
    if (len >= content) {
        OPENSSL_free(der);
        return 0;
    }
    int outer = depth == 2 ? ASN1_object_size(1, (int)len, V_ASN1_SEQUENCE) : (int)len;
    if (depth > 0)
        ASN1_put_object(&at, 1, outer, V_ASN1_SEQUENCE, V_ASN1_UNIVERSAL);
    if (depth > 1)
        ASN1_put_object(&at, 1, (int)len, V_ASN1_SEQUENCE, V_ASN1_UNIVERSAL);
    memcpy(at, from, (size_t)len);
    OPENSSL_free(der);
    return (at - out) + len;
}

static void assert_not_trusted(const char *name, const unsigned char *der, long len, X509 *leaf)
{
    struct pair pair = {.theirs = NULL};
    BIO *text = BIO_new(BIO_s_mem());
    char *at;
    assert_true(PEM_write_bio(text, name, "", der, len) > 0);
    long bytes = BIO_get_mem_data(text, &at);
    write_file(&pair, at, (size_t)bytes);
    const char *problem = sl_roots_read(&pair.ours, pair.path);
    unlink(pair.path);
    assert_int_equal(problem == NULL, pair.ours.store != NULL);
    if (problem)
        assert_string_equal(problem, "it is not a file of certificates in PEM");
    for (int twice = 0; twice < 2 && !problem; twice++)
        assert_int_not_equal(verify(pair.ours.store, leaf, NULL), X509_V_OK);
    BIO_free(text);
    sl_roots_clean_up(&pair.ours);
}

/* However it is cut: the file is refused, or (where only the rest is gone, which is not read at first)
 * nothing is trusted because of it. */
static void a_broken_certificate_is_never_trusted(void **state)
{
    (void)state;
    static const char *const names[] = {PEM_STRING_X509, PEM_STRING_X509_TRUSTED};
    keys[0] = EVP_EC_gen("P-256");
    X509 *root = make(AUTHORITY, "Root", "Root", 0, 0, MBSTRING_ASC);
    X509 *leaf = make(LEAF, "Leaf", "Root", 0, 0, MBSTRING_ASC);
    unsigned char der[4096];
    assert_true(i2d_X509(root, NULL) < 1000);
    for (size_t form = 0; form < 2; form++)
        for (int depth = 0; depth <= 2; depth++)
            for (long len = depth ? 0 : 1, n; (n = cut_inside(root, depth, len, der)) > 0; len++)
                assert_not_trusted(names[form], der, n, leaf);
    X509_free(root);
    X509_free(leaf);
    EVP_PKEY_free(keys[0]);
}

/* Lists of revoked certificates are not asked of it, and it has none. */
static void hundreds_are_kept_and_no_revocations(void **state)
{
    (void)state;
    enum { N = 600 };
    static X509 *all[N];
    struct pair pair = {.theirs = NULL};
    BIO *text = BIO_new(BIO_s_mem());
    char name[16];
    keys[0] = EVP_EC_gen("P-256");
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "Root %d", i);
        all[i] = make(AUTHORITY, name, name, 0, 0, MBSTRING_ASC);
        add_pem(text, all[i]);
    }
    open_text(&pair, text);
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    X509_OBJECT *none = X509_OBJECT_new();
    assert_int_equal(X509_STORE_CTX_init(context, pair.ours.store, all[0], NULL), 1);
    assert_int_not_equal(
        X509_STORE_CTX_get_by_subject(context, X509_LU_CRL, X509_get_subject_name(all[0]), none), 1);
    X509_OBJECT_free(none);
    X509_STORE_CTX_free(context);
    for (int i = 0; i < N; i++) {
        assert_int_equal(verify(pair.ours.store, all[i], NULL), X509_V_OK);
        X509_free(all[i]);
    }
    close_pair(&pair);
    EVP_PKEY_free(keys[0]);
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

/* ---- which file was read ---- */

struct change {
    const char *what;
    bool is_new, is_longer;
    int64_t by_ns; /* later than the first */
};

/* The same file is not read again; another is, whatever alone of it is another: which file it is, its length,
 * its time. */
static void a_file_that_changed_is_read_again(void **state)
{
    (void)state;
    static const struct change cases[] = {
        {"nothing", false, false, 0},          {"a new file", true, false, 0},
        {"its length", false, true, 0},        {"its time by a second", false, false, 1000000000},
        {"its time by less", false, false, 1}, {"its time by both", false, false, 1000000001},
    };
    char *folder = test_folder(), *good = test_read("tests/net/tls/ca.pem", NULL);
    const char *path = json_printf("%s/roots.pem", folder), *next = json_printf("%s/next.pem", folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct change *c = &cases[i];
        struct timespec times[2] = {{1700000000, 5}, {1700000000, 5}};
        struct sl_roots roots = {.store = NULL};
        test_write(path, good);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        assert_null(sl_roots_read(&roots, path));
        X509_STORE *before = roots.store;
        X509_STORE_up_ref(before); /* so that its address is not used again */
        test_write(next, json_printf("%s%s", good, c->is_longer ? "\n" : ""));
        if (c->is_new)
            assert_int_equal(rename(next, path), 0);
        else
            test_write(path, json_printf("%s%s", good, c->is_longer ? "\n" : ""));
        times[1].tv_sec += c->by_ns / 1000000000;
        times[1].tv_nsec += c->by_ns % 1000000000;
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        assert_null(sl_roots_read(&roots, path));
        if ((roots.store == before) != (i == 0))
            fail_msg("changed: %s", c->what);
        X509_STORE_free(before);
        sl_roots_clean_up(&roots);
    }
    free(good);
    test_folder_remove(folder);
}

/* A socket: it is there, and nobody can open it. */
static void a_file_that_cannot_be_opened_is_named(void **state)
{
    (void)state;
    char *folder = test_folder();
    struct sl_roots roots = {.store = NULL};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", folder);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    const char *problem = sl_roots_read(&roots, at.sun_path);
    assert_string_equal(problem, "it cannot be read");
    assert_null(roots.store);
    close(fd);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_s_roots_are_the_same),
        cmocka_unit_test(chains_are_judged_alike),
        cmocka_unit_test(every_form_of_a_certificate_counts),
        cmocka_unit_test(a_broken_certificate_is_never_trusted),
        cmocka_unit_test(hundreds_are_kept_and_no_revocations),
        cmocka_unit_test(any_text_is_read_or_refused),
        cmocka_unit_test(what_is_no_file_is_named),
        cmocka_unit_test(a_file_that_changed_is_read_again),
        cmocka_unit_test(a_file_that_cannot_be_opened_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
