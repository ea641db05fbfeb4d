#include "replay/flags.h"

#include "base/span.h"
#include "replay/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int left_column(const struct sl_flag *f, char *out, size_t room)
{
    return snprintf(out, room, "  --%s%s%s", f->name, f->value ? " " : "", f->value ? f->value : "");
}

static void print_help(const struct sl_usage *usage)
{
    char left[128];
    int width = 0;
    for (const struct sl_flag *f = usage->flags; f->type != SL_FLAG_END; f++) {
        int n = left_column(f, left, sizeof(left));
        width = n > width ? n : width;
    }
    printf("usage: sluice %s\n\n%s\n", usage->line, usage->summary);
    if (usage->flags->type != SL_FLAG_END)
        putchar('\n');
    for (const struct sl_flag *f = usage->flags; f->type != SL_FLAG_END; f++) {
        left_column(f, left, sizeof(left));
        printf("%-*s  %s\n", width, left, f->help);
    }
}

static enum sl_status complain(const char *verb, const char *what, const char *name)
{
    fprintf(stderr, "sluice %s: %s%s (see sluice %s --help)\n", verb, what, name, verb);
    return SL_REJECT;
}

static const struct sl_flag *find(const struct sl_flag *flags, struct sl_span name, bool *is_negated)
{
    struct sl_span positive = sl_span_starts(name, SL_LIT("no-")) ? sl_span_from(name, 3) : sl_span(NULL, 0);
    for (const struct sl_flag *f = flags; f->type != SL_FLAG_END; f++) {
        *is_negated = f->type == SL_FLAG_BOOL && positive.len && sl_span_is(positive, f->name);
        if (*is_negated || sl_span_is(name, f->name))
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

static enum sl_status set(const char *verb, const struct sl_flag *f, const char *value)
{
    struct sl_flag_list *list = f->out;
    if (f->type == SL_FLAG_TEXT) {
        *(const char **)f->out = value;
    } else if (f->type == SL_FLAG_INTEGER) {
        if (!read_integer(value, f->out))
            return complain(verb, "not a whole number: --", f->name);
    } else {
        if (list->n == sizeof(list->values) / sizeof(list->values[0]))
            return complain(verb, "given too often: --", f->name);
        list->values[list->n++] = value;
    }
    return SL_OK;
}

/* Reads the flag at argv[*i]; `*i` ends on its last argument. */
static enum sl_status read_flag(const struct sl_usage *usage, int argc, char **argv, int *i)
{
    const char *text = argv[*i] + 2;
    const char *equals = strchr(text, '=');
    struct sl_span name = sl_span(text, equals ? (size_t)(equals - text) : strlen(text));
    bool is_negated;
    const struct sl_flag *f = find(usage->flags, name, &is_negated);
    if (!f)
        return complain(argv[0], "unknown flag ", argv[*i]);
    if (f->type == SL_FLAG_BOOL) {
        *(bool *)f->out = !is_negated;
        return equals ? complain(argv[0], "takes no value: --", f->name) : SL_OK;
    }
    if (equals)
        return set(argv[0], f, equals + 1);
    if (*i + 1 == argc || strncmp(argv[*i + 1], "--", 2) == 0)
        return complain(argv[0], "wants a value: --", f->name);
    return set(argv[0], f, argv[++*i]);
}

enum sl_status sl_flags_read(const struct sl_usage *usage, int argc, char **argv, int *n_operands,
                             int *exit_status)
{
    bool ended = false;
    *n_operands = 0;
    for (int i = 1; i < argc; i++) {
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (!ended && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            print_help(usage);
            *exit_status = SL_EXIT_OK;
            return SL_REJECT;
        } else if (ended || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[++*n_operands] = argv[i];
        } else if (argv[i][1] != '-' || read_flag(usage, argc, argv, &i) != SL_OK) {
            if (argv[i][1] != '-')
                complain(argv[0], "unknown flag ", argv[i]);
            *exit_status = SL_EXIT_BAD;
            return SL_REJECT;
        }
    }
    return SL_OK;
}
