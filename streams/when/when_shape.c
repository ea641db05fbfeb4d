/* What a record is made of, as Lambda delivers it, and whether a leaf of a pattern can match any. AWS takes
 * patterns that cannot, and such a mapping or route silently takes nothing.
 *
 * Fields: docs/RECORDS.md. Kinesis' form has some more, and `aws dynamodbstreams` spells two in capitals. */
#include "streams/when/when_private.h"

#include "base/json.h"
#include "base/nearest.h"
#include "streams/value.h"

#include <stdarg.h>
#include <stdio.h>

/* Names of one leaf's path; a longer one is not judged. */
#define MAX_NAMES 128

enum kind { ANY, TEXT, NUMBER, OBJECT, KEYS, IMAGE };

struct field {
    const char *name;
    enum kind kind;
    const char *const *values; /* TEXT: all that there are; NULL: others too */
    const struct field *below; /* OBJECT */
};

#define WORDS(...)                                                                                           \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }
#define END                                                                                                  \
    {                                                                                                        \
        NULL, ANY, NULL, NULL                                                                                \
    }

static const struct field identity_fields[] = {
    {"type", TEXT, WORDS("Service"), NULL},
    {"principalId", TEXT, WORDS("dynamodb.amazonaws.com"), NULL},
    {"Type", TEXT, WORDS("Service"), NULL},
    {"PrincipalId", TEXT, WORDS("dynamodb.amazonaws.com"), NULL},
    END,
};

static const struct field change_fields[] = {
    {"ApproximateCreationDateTime", ANY, NULL, NULL}, /* a number; a date in the AWS CLI's output */
    {"ApproximateCreationDateTimePrecision", TEXT, WORDS("MILLISECOND", "MICROSECOND"), NULL},
    {"Keys", KEYS, NULL, NULL},
    {"NewImage", IMAGE, NULL, NULL},
    {"OldImage", IMAGE, NULL, NULL},
    {"SequenceNumber", TEXT, NULL, NULL},
    {"SizeBytes", NUMBER, NULL, NULL},
    {"StreamViewType", TEXT, WORDS("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"), NULL},
    END,
};

static const struct field record_fields[] = {
    {"eventID", TEXT, NULL, NULL},
    {"eventName", TEXT, WORDS("INSERT", "MODIFY", "REMOVE"), NULL},
    {"eventVersion", TEXT, NULL, NULL},
    {"eventSource", TEXT, WORDS("aws:dynamodb"), NULL},
    {"awsRegion", TEXT, NULL, NULL},
    {"eventSourceARN", TEXT, NULL, NULL},
    {"userIdentity", OBJECT, NULL, identity_fields},
    {"dynamodb", OBJECT, NULL, change_fields},
    {"tableName", TEXT, NULL, NULL},
    {"recordFormat", TEXT, NULL, NULL},
    END,
};

/* ---- findings ---- */

enum sl_status sl_when_never(const struct sl_when_parse *parse, struct sl_span at, const char *format, ...)
{
    char why[SL_ERROR_TEXT_BYTES];
    struct sl_error error = SL_NO_ERROR;
    struct sl_when_parse quiet = *parse;
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    if (!parse->found)
        return sl_when_fail(parse, at, "can never match: %s", why);
    quiet.error = &error;
    enum sl_status status = sl_when_fail(&quiet, at, "can never match: %s", why);
    parse->found(parse->found_arg, error.text);
    return status == SL_REJECT ? SL_OK : status;
}

/* ---- the leaf's path ---- */

struct name {
    struct sl_span text;
    bool is_joined; /* the one before it is in the same name of the pattern: "a.b" */
};

struct path {
    struct name names[MAX_NAMES];
    size_t n;
};

static bool add_name(struct path *path, struct sl_span text, bool is_joined)
{
    if (path->n == MAX_NAMES)
        return false;
    path->names[path->n++] = (struct name){text, is_joined};
    return true;
}

/* The names from the pattern's top to `place`. */
static bool read_path(const struct sl_when_parse *parse, const struct sl_when_place *place, struct path *path)
{
    if (place == parse->top)
        return true;
    if (!read_path(parse, place->parent, path))
        return false;
    if (!place->name.ptr || (!parse->or_is_field && sl_json_text_is(place->name, SL_LIT("$or"))))
        return true;
    struct sl_span rest = sl_json_unescape(place->name, parse->scratch);
    for (bool is_joined = false;; is_joined = true) {
        const char *dot = rest.len ? memchr(rest.ptr, '.', rest.len) : NULL;
        size_t n = dot ? (size_t)(dot - rest.ptr) : rest.len;
        if (!add_name(path, sl_span(rest.ptr, n), is_joined) || !dot)
            return path->n < MAX_NAMES;
        rest = sl_span_from(rest, n + 1);
    }
}

/* ---- values ---- */

static bool is_text_test(const struct sl_when_test *test)
{
    return test->op != SL_WHEN_NUMERIC && (test->op != SL_WHEN_EQUALS || test->kind == SL_WHEN_STRING);
}

static bool is_number_test(const struct sl_when_test *test)
{
    return test->op == SL_WHEN_EXISTS || test->op == SL_WHEN_ANYTHING_BUT || test->op == SL_WHEN_NUMERIC ||
           (test->op == SL_WHEN_EQUALS && test->kind == SL_WHEN_NUMBER);
}

static bool any(const struct sl_when_leaf *leaf, bool (*may)(const struct sl_when_test *test))
{
    for (size_t i = 0; i < leaf->n; i++)
        if (may(&leaf->tests[i]))
            return true;
    return leaf->absent_ok;
}

/* Each test has to let one of the values through. */
static enum sl_status judge_values(struct sl_when_parse *parse, const struct sl_when_leaf *leaf,
                                   const struct field *field, struct sl_span list)
{
    for (size_t i = 0; i < leaf->n; i++) {
        bool may = false;
        char known[128] = "";
        struct sl_nearest near = sl_nearest_begin(leaf->tests[i].text);
        for (const char *const *v = field->values; *v; v++) {
            const struct sl_when_value value = {.text = sl_span_str(*v)};
            may = may || sl_when_test_value(&leaf->tests[i], 1, value, parse->scratch);
            sl_nearest_list(known, sizeof(known), *v);
            sl_nearest_consider(&near, *v);
        }
        if (!may)
            return sl_when_never(parse, list, "%s is %s%s%s", field->name, known,
                                 near.best ? "; did you mean " : "", near.best ? near.best : "");
    }
    return SL_OK;
}

static enum sl_status judge_field(struct sl_when_parse *parse, const struct sl_when_leaf *leaf,
                                  const struct field *field, struct sl_span list)
{
    if (field->kind == TEXT && !any(leaf, is_text_test))
        return sl_when_never(parse, list, "%s is a text", field->name);
    if (field->kind == NUMBER && !any(leaf, is_number_test))
        return sl_when_never(parse, list, "%s is a number", field->name);
    if (field->values)
        return judge_values(parse, leaf, field, list);
    return SL_OK;
}

/* An N is a number as text. */
static bool may_be_number_text(const struct sl_when_test *test)
{
    struct sl_number unused;
    return is_text_test(test) && (test->op != SL_WHEN_EQUALS || !sl_number_parse(test->text, &unused));
}

static bool may_be_word(const struct sl_when_leaf *leaf, struct sl_span word, struct sl_arena *scratch)
{
    const struct sl_when_value value = {.kind = SL_WHEN_WORD, .text = word};
    return sl_when_test_value(leaf->tests, leaf->n, value, scratch);
}

static enum sl_status judge_type(struct sl_when_parse *parse, const struct sl_when_leaf *leaf,
                                 enum sl_type type, struct sl_span list)
{
    bool is_true = leaf->absent_ok || may_be_word(leaf, SL_LIT("true"), parse->scratch);
    if ((type == SL_N || type == SL_NS) && !any(leaf, may_be_number_text))
        return sl_when_never(
            parse, list,
            "the value of an N is a string in the record: \"numeric\" and bare numbers match none. "
            "List the values (\"N\": [\"1\", \"2\"]); a route's \"item\" compares by value");
    if (type == SL_BOOL && !is_true && !may_be_word(leaf, SL_LIT("false"), parse->scratch))
        return sl_when_never(parse, list, "a BOOL is true or false, without quotes");
    if (type == SL_NULL && !is_true)
        return sl_when_never(parse, list, "the value of a NULL is true");
    if (type != SL_BOOL && type != SL_NULL && !any(leaf, is_text_test))
        return sl_when_never(parse, list, "the value is a string in the record");
    return SL_OK;
}

/* ---- attributes ---- */

/* Where a path below an image leads: to a value of this type; or it leads nowhere, for this reason. */
struct found {
    enum sl_type type;
    const char *why; /* NULL: to `type` */
};

#define TYPES "a type (S, N, B, BOOL, NULL, SS, NS, BS, L or M)"

static struct found find_attribute(const struct path *path, size_t i, bool is_key);

static enum sl_type tag_at(const struct path *path, size_t i)
{
    struct sl_span name = i < path->n ? path->names[i].text : sl_span("", 0);
    return sl_value_tag(name.ptr, name.len);
}

/* From a type on. */
static struct found find_type(const struct path *path, size_t i, bool is_key)
{
    enum sl_type type = tag_at(path, i);
    bool is_end = i + 1 == path->n;
    if (type == SL_NONE)
        return (struct found){SL_NONE, TYPES " is missing between the attribute's name and its value"};
    if (is_key && type > SL_B)
        return (struct found){SL_NONE, "a key attribute is an S, an N or a B"};
    if (type < SL_L)
        return (struct found){type, is_end ? NULL : "nothing is below a value that is no L or M"};
    if (is_end)
        return (struct found){SL_NONE, type == SL_L
                                           ? "the elements of a list have types: write {\"L\": {\"S\": "
                                             "[...]}}"
                                           : "a map has members with types: write {\"M\": {\"name\": "
                                             "{\"S\": [...]}}}"};
    return type == SL_L ? find_type(path, i + 1, false) : find_attribute(path, i + 1, false);
}

/* A name with dots is one attribute's or several steps: both are looked up. */
static struct found find_attribute(const struct path *path, size_t i, bool is_key)
{
    struct found first = {.why = NULL};
    for (size_t k = i + 1; k == i + 1 || (k <= path->n && path->names[k - 1].is_joined); k++) {
        struct found found = find_type(path, k, is_key);
        if (!found.why)
            return found;
        first = first.why ? first : found;
    }
    return first;
}

static enum sl_status judge_attribute(struct sl_when_parse *parse, const struct sl_when_leaf *leaf,
                                      const struct path *path, size_t i, struct sl_span list)
{
    struct found found = {SL_NONE, "an image is no value: name an attribute and its type"};
    if (i < path->n)
        found = find_attribute(path, i, sl_span_is(path->names[i - 1].text, "Keys"));
    if (!found.why)
        return judge_type(parse, leaf, found.type, list);
    return leaf->absent_ok ? SL_OK : sl_when_never(parse, list, "%s", found.why);
}

/* ---- records ---- */

static enum sl_status no_field(struct sl_when_parse *parse, const struct field *fields, struct sl_span name,
                               struct sl_span list)
{
    char known[256] = "";
    struct sl_nearest near = sl_nearest_begin(name);
    for (const struct field *f = fields; f->name; f++) {
        sl_nearest_list(known, sizeof(known), f->name);
        sl_nearest_consider(&near, f->name);
    }
    return sl_when_never(parse, list, "no record has \"%.*s\" here%s%s%s; there are %s", SL_ARG(name),
                         near.best ? " (did you mean \"" : "", near.best ? near.best : "",
                         near.best ? "\"?)" : "", known);
}

enum sl_status sl_when_judge(struct sl_when_parse *parse, const struct sl_when_leaf *leaf,
                             struct sl_span list)
{
    struct path path = {.n = 0};
    const struct field *fields = record_fields, *field = NULL;
    if (!read_path(parse, parse->place, &path))
        return SL_OK;
    for (size_t i = 0; i < path.n; i++) {
        for (field = fields; field->name && !sl_span_is(path.names[i].text, field->name);)
            field++;
        if (!field->name)
            return no_field(parse, fields, path.names[i].text, list);
        if (field->kind == KEYS || field->kind == IMAGE)
            return judge_attribute(parse, leaf, &path, i + 1, list);
        if (field->kind != OBJECT && i + 1 < path.n)
            return sl_when_never(parse, list, "%s is a single value; nothing is below it", field->name);
        fields = field->below;
    }
    if (field && field->kind == OBJECT)
        return leaf->absent_ok
                   ? SL_OK
                   : sl_when_never(parse, list, "%s is no value: name a field of it", field->name);
    return field ? judge_field(parse, leaf, field, list) : SL_OK;
}
