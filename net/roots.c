/* A store of trusted certificates that parses each when it is asked for: see net/roots.h. */
#include "net/roots.h"

#include "base/array.h"
#include "base/error.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>

struct root {
    X509_NAME *subject;
    unsigned char *der;
    long len;
    bool is_added; /* to the store, or broken */
};

struct list {
    struct root *roots;
    size_t n, room;
};

/* ---- reading ---- */

/* Enters the next value if it has this tag, else steps over it. False: it is no DER. */
static bool step(const unsigned char **at, const unsigned char *end, int wanted)
{
    long len;
    int tag, class;
    int flags = ASN1_get_object(at, &len, &tag, &class, end - *at);
    if (flags & (0x80 | 1)) /* broken; without a length, which DER does not allow */
        return false;
    if (tag != wanted)
        *at += len;
    return true;
}

/* RFC 5280, 4.1: Certificate and TBSCertificate are sequences; before the subject are the version (which
 * version 1 leaves out), the serial number, the algorithm, the issuer and the validity. */
static X509_NAME *read_subject(const unsigned char *der, long len)
{
    const unsigned char *at = der, *end = der + len;
    const unsigned char explicit_0 = V_ASN1_CONTEXT_SPECIFIC | V_ASN1_CONSTRUCTED;
    if (!step(&at, end, V_ASN1_SEQUENCE) || !step(&at, end, V_ASN1_SEQUENCE))
        return NULL;
    int before = at < end && *at == explicit_0 ? 5 : 4;
    for (int i = 0; i < before; i++)
        if (at >= end || !step(&at, end, -1))
            return NULL;
    return at < end ? d2i_X509_NAME(NULL, &at, end - at) : NULL;
}

static bool add_root(struct list *list, unsigned char *der, long len)
{
    X509_NAME *subject = read_subject(der, len);
    if (!subject)
        return false;
    SL_PUSH(list->roots, list->n, list->room, "root certificates") =
        (struct root){.subject = subject, .der = der, .len = len};
    return true;
}

/* One that says itself what it is trusted for: OpenSSL's own form, and rare. */
static bool add_trusted(X509_STORE *store, const unsigned char *der, long len)
{
    X509 *certificate = d2i_X509_AUX(NULL, &der, len);
    bool is_added = certificate && X509_STORE_add_cert(store, certificate);
    X509_free(certificate);
    return is_added;
}

/* Takes the block, or frees it. */
static bool take_block(X509_STORE *store, struct list *list, const char *name, unsigned char *der, long len)
{
    bool is_good = true;
    if (strcmp(name, PEM_STRING_X509) == 0 || strcmp(name, PEM_STRING_X509_OLD) == 0) {
        if (add_root(list, der, len))
            return true;
        is_good = false;
    } else if (strcmp(name, PEM_STRING_X509_TRUSTED) == 0) {
        is_good = add_trusted(store, der, len);
    }
    OPENSSL_free(der);
    return is_good;
}

/* False: a block is broken. */
static bool read_blocks(BIO *file, X509_STORE *store, struct list *list)
{
    char *name, *header;
    unsigned char *der;
    long len;
    bool is_good = true;
    while (is_good && PEM_read_bio(file, &name, &header, &der, &len)) {
        is_good = take_block(store, list, name, der, len);
        OPENSSL_free(name);
        OPENSSL_free(header);
    }
    unsigned long why = ERR_peek_last_error();
    bool is_end = ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return is_good && is_end;
}

/* ---- the store's lookup ---- */

static void free_list(X509_LOOKUP *lookup)
{
    struct list *list = X509_LOOKUP_get_method_data(lookup);
    for (size_t i = 0; i < list->n; i++) {
        X509_NAME_free(list->roots[i].subject);
        OPENSSL_free(list->roots[i].der);
    }
    free(list->roots);
    free(list);
}

static X509 *add_to_store(X509_STORE *store, struct root *root)
{
    const unsigned char *at = root->der;
    X509 *certificate = root->is_added ? NULL : d2i_X509(NULL, &at, root->len);
    root->is_added = true;
    if (certificate && X509_STORE_add_cert(store, certificate))
        return certificate;
    X509_free(certificate);
    return NULL;
}

/* Adds all of that name to the store, and returns one. OpenSSL calls it when the store has none, and looks
 * among all that the store has afterwards. It takes a reference of its own to the result. */
static int find_subject(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name, X509_OBJECT *out)
{
    struct list *list = X509_LOOKUP_get_method_data(lookup);
    int found = 0;
    for (size_t i = 0; type == X509_LU_X509 && i < list->n; i++) {
        if (X509_NAME_cmp(list->roots[i].subject, name) != 0)
            continue;
        X509 *certificate = add_to_store(X509_LOOKUP_get_store(lookup), &list->roots[i]);
        if (certificate && !found && X509_OBJECT_set1_X509(out, certificate)) {
            X509_free(certificate); /* what `out` holds is borrowed from the store */
            found = 1;
        }
        X509_free(certificate);
    }
    return found;
}

/* One for the process, as OpenSSL's own are: a store refers to it as long as it lives. */
static X509_LOOKUP_METHOD *method(void)
{
    static X509_LOOKUP_METHOD *made;
    if (made)
        return made;
    made = X509_LOOKUP_meth_new("the certificates of a file, by subject");
    if (!made || !X509_LOOKUP_meth_set_get_by_subject(made, find_subject) ||
        !X509_LOOKUP_meth_set_free(made, free_list))
        sl_die("out of memory: the lookup of root certificates");
    return made;
}

/* ---- the store ---- */

static X509_STORE *new_store(struct list **list)
{
    X509_STORE *store = X509_STORE_new();
    X509_LOOKUP *lookup = store ? X509_STORE_add_lookup(store, method()) : NULL;
    *list = calloc(1, sizeof(**list));
    if (!lookup || !*list || !X509_LOOKUP_set_method_data(lookup, *list))
        sl_die("out of memory: a store of root certificates");
    /* As libcurl sets its own: an intermediate certificate in the file is trusted as it is. */
    X509_STORE_set_flags(store, X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN);
    return store;
}

void sl_roots_clean_up(struct sl_roots *roots)
{
    X509_STORE_free(roots->store);
    *roots = (struct sl_roots){.store = NULL};
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static const char *read_again(struct sl_roots *roots, const char *path, const struct stat *now)
{
    struct list *list;
    BIO *file = BIO_new_file(path, "r");
    if (!file) {
        ERR_clear_error();
        return "it cannot be read";
    }
    X509_STORE *store = new_store(&list);
    const char *problem = !read_blocks(file, store, list) ? "it is not a file of certificates in PEM"
                          : !list->n && !sk_X509_OBJECT_num(X509_STORE_get0_objects(store))
                              ? "it has no certificate"
                              : NULL;
    BIO_free(file);
    if (problem) {
        X509_STORE_free(store);
        return problem;
    }
    sl_roots_clean_up(roots);
    *roots = (struct sl_roots){.store = store, .file = *now};
    return NULL;
}

const char *sl_roots_read(struct sl_roots *roots, const char *path)
{
    struct stat now;
    bool is_there = stat(path, &now) == 0;
    if (roots->store && (!is_there || is_same_file(&now, &roots->file)))
        return NULL;
    const char *problem = !is_there              ? "it cannot be read"
                          : S_ISDIR(now.st_mode) ? "it is a folder; name a file of certificates in PEM"
                                                 : read_again(roots, path, &now);
    return roots->store ? NULL : problem;
}
