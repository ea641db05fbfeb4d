/* Parses the command line of a verb, and prints its help. */
#include "cli/flags.h"

#include "aws/endpoint.h"
#include "base/array.h"
#include "base/nearest.h"
#include "base/span.h"
#include "net/uri.h"

#include <errno.h>
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int left_column(const struct sl_flag *f, char *out, size_t room)
{
    return snprintf(out, room, "  --%s%s%s", f->name, f->value ? " " : "", f->value ? f->value : "");
}

#define WIDE        80 /* columns of the help */
#define WIDEST_LEFT 28

/* Words, from column `indent` on, in lines that begin there. */
static void print_words(const char *text, size_t indent)
{
    size_t at = indent;
    bool is_first = true;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (!is_first && at + 1 + n > WIDE) {
            printf("\n%*s", (int)indent, "");
            at = indent;
            is_first = true;
        }
        printf("%s%.*s", is_first ? "" : " ", (int)n, text);
        at += n + !is_first;
        is_first = false;
        text += n;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_flag(const struct sl_flag *f, size_t width)
{
    char left[128];
    if (f->type == SL_FLAG_HEADING) {
        printf("\n%s:\n", f->name);
        return;
    }
    size_t n = (size_t)left_column(f, left, sizeof(left));
    printf("%s", left);
    if (n > width) {
        putchar('\n');
        n = 0;
    }
    printf("%*s", (int)(width + 2 - n), "");
    print_words(f->help, width + 2);
}

static void print_help(const struct sl_usage *usage)
{
    char left[128];
    size_t width = 0;
    for (const struct sl_flag *f = usage->flags; f->type != SL_FLAG_END; f++) {
        size_t n = f->type == SL_FLAG_HEADING ? 0 : (size_t)left_column(f, left, sizeof(left));
        width = n > width && n <= WIDEST_LEFT ? n : width;
    }
    printf("usage: sluice %s\n\n", usage->line);
    print_words(usage->summary, 0);
    if (usage->flags->type != SL_FLAG_END && usage->flags->type != SL_FLAG_HEADING)
        putchar('\n');
    for (const struct sl_flag *f = usage->flags; f->type != SL_FLAG_END; f++)
        print_flag(f, width);
    if (usage->example)
        printf("\nexample:\n  %s\n", usage->example);
}

int sl_flags_complain(const char *verb, const struct sl_error *error)
{
    fprintf(stderr, "sluice %s: %s\n", verb, error->text);
    return SL_EXIT_BAD;
}

static enum sl_status SL_PRINTF(2, 3) refuse(const char *verb, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "sluice %s: ", verb);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (see sluice %s --help)\n", verb);
    return SL_REJECT;
}

static const struct sl_flag *find(const struct sl_flag *flags, struct sl_span name, bool *is_negated)
{
    struct sl_span positive = sl_span_starts(name, SL_LIT("no-")) ? sl_span_from(name, 3) : sl_span(NULL, 0);
    for (const struct sl_flag *f = flags; f->type != SL_FLAG_END; f++) {
        *is_negated = f->type == SL_FLAG_BOOL && positive.len && sl_span_is(positive, f->name);
        if (f->type != SL_FLAG_HEADING && (*is_negated || sl_span_is(name, f->name)))
            return f;
    }
    return NULL;
}

static bool read_integer(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return false;
    *out = value;
    return true;
}

bool sl_flags_span(const char *text, int64_t *number, int64_t *unit_s)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    *unit_s = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : *end == 'd' ? 86400 : 0;
    return !errno && end > text && *unit_s && end[1] == '\0';
}

static bool read_seconds(const struct sl_flag *f, const char *text)
{
    int64_t number, unit_s;
    return f->value && strcmp(f->value, "S") == 0 && sl_flags_span(text, &number, &unit_s) &&
           !__builtin_mul_overflow(number, unit_s, (int64_t *)f->out);
}

static enum sl_status set_integer(const struct sl_usage *usage, const char *verb, const struct sl_flag *f,
                                  const char *value)
{
    if (!read_integer(value, f->out) && !read_seconds(f, value))
        return refuse(verb, "--%s needs a whole number, not \"%s\"", f->name, value);
    int64_t number = *(const int64_t *)f->out;
    const struct sl_flag_range *r = usage->ranges;
    while (r->name && strcmp(r->name, f->name) != 0)
        r++;
    assert(r->name);
    if (number < r->least || number > r->most)
        return refuse(verb, "--%s %s is out of range; write a number from %" PRId64 " to %" PRId64, f->name,
                      value, r->least, r->most);
    return SL_OK;
}

static enum sl_status set_checked(const char *verb, const struct sl_flag *f, const char *value)
{
    struct sl_uri unused;
    *(const char **)f->out = value;
    if (f->type == SL_FLAG_REGION && !sl_endpoint_is_region(sl_span_str(value)))
        return refuse(verb, "--%s \"%s\" is not an AWS Region such as us-west-2", f->name, value);
    if (f->type == SL_FLAG_URL && !sl_uri_parse(value, &unused))
        return refuse(verb, "--%s \"%s\" is not a URL such as http://host:port or https://host", f->name,
                      value);
    return SL_OK;
}

static enum sl_status set(const struct sl_usage *usage, const char *verb, const struct sl_flag *f,
                          const char *value)
{
    struct sl_flag_list *list = f->out;
    if (!*value)
        return refuse(verb, "--%s needs a value, and this one is empty", f->name);
    if (f->type == SL_FLAG_TEXT) {
        *(const char **)f->out = value;
    } else if (f->type == SL_FLAG_INTEGER) {
        return set_integer(usage, verb, f, value);
    } else if (f->type == SL_FLAG_REGION || f->type == SL_FLAG_URL) {
        return set_checked(verb, f, value);
    } else {
        if (list->n == SL_COUNT(list->values))
            return refuse(verb, "--%s is given too often", f->name);
        list->values[list->n++] = value;
    }
    return SL_OK;
}

static enum sl_status refuse_unknown(const struct sl_usage *usage, const char *verb, const char *arg,
                                     struct sl_span name)
{
    struct sl_nearest search = sl_nearest_begin(name);
    for (const struct sl_flag *f = usage->flags; f->type != SL_FLAG_END; f++)
        if (f->type != SL_FLAG_HEADING)
            sl_nearest_consider(&search, f->name);
    return search.best ? refuse(verb, "unknown flag %s: did you mean --%s?", arg, search.best)
                       : refuse(verb, "unknown flag %s", arg);
}

/* Reads the flag at argv[*i]; `*i` ends on its last argument. Of a flag that is given twice the last one
 * counts. */
static enum sl_status read_flag(const struct sl_usage *usage, int argc, char **argv, int *i)
{
    const char *text = argv[*i] + 2;
    const char *equals = strchr(text, '=');
    struct sl_span name = sl_span(text, equals ? (size_t)(equals - text) : strlen(text));
    bool is_negated;
    const struct sl_flag *f = find(usage->flags, name, &is_negated);
    if (!f)
        return refuse_unknown(usage, argv[0], argv[*i], name);
    if (f->type == SL_FLAG_BOOL) {
        *(bool *)f->out = !is_negated;
        return equals ? refuse(argv[0], "--%s takes no value", f->name) : SL_OK;
    }
    if (equals)
        return set(usage, argv[0], f, equals + 1);
    if (*i + 1 == argc || strncmp(argv[*i + 1], "--", 2) == 0)
        return refuse(argv[0], "--%s needs a value", f->name);
    return set(usage, argv[0], f, argv[++*i]);
}

static enum sl_status check_operands(const struct sl_usage *usage, char **argv, int n)
{
    if (n < usage->least)
        return refuse(argv[0], "%s is missing", usage->operand);
    if (!usage->operand && n)
        return refuse(argv[0], "takes no operand, but has \"%s\"", argv[1]);
    if (usage->most && n > usage->most)
        return refuse(argv[0], "takes only one %s, but also has \"%s\"", usage->operand,
                      argv[usage->most + 1]);
    return SL_OK;
}

enum sl_status sl_flags_read(const struct sl_usage *usage, int argc, char **argv, int *n_operands,
                             int *exit_status)
{
    bool ended = false;
    *n_operands = 0;
    *exit_status = SL_EXIT_BAD;
    for (int i = 1; i < argc; i++) {
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (!ended && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            print_help(usage);
            *exit_status = SL_EXIT_OK;
            return SL_REJECT;
        } else if (ended || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[++*n_operands] = argv[i];
        } else if (argv[i][1] != '-') {
            return refuse(argv[0], "unknown flag %s", argv[i]);
        } else if (read_flag(usage, argc, argv, &i) != SL_OK) {
            return SL_REJECT;
        }
    }
    return check_operands(usage, argv, *n_operands);
}

int sl_flags_end(const char *verb, int result)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return result;
    fprintf(stderr, "sluice %s: standard output cannot be written: %s\n", verb, strerror(errno));
    return SL_EXIT_FAILED;
}
