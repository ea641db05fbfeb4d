/* Finds the verb and runs it. */
#include "cli/verbs.h"

#include "base/array.h"
#include "base/disk.h"
#include "base/nearest.h"
#include "base/span.h"
#include "base/version.h"
#include "cli/flags.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const struct verb {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"replay", "run recorded records through bootstrap, as Lambda would", sl_verb_replay},
    {"check", "print what each route does, and what would lose data", sl_verb_check},
    {"test", "run cases: records, and what has to leave for them", sl_verb_test},
    {"new-test", "write a first case from a recording", sl_verb_new_test},
    {"try", "print what a template or a condition makes of records", sl_verb_try},
    {"decode", "print the records of any input, one JSON line each", sl_verb_decode},
    {"tail", "run the handlers on a live stream, with a checkpoint file", sl_verb_tail},
    {"backfill", "bring the items that a table already has through the routes", sl_verb_backfill},
    {"leases", "carry the places of an application of KCL 3 over, or back", sl_verb_leases},
    {"redrive", "run what ended in a failure queue, topic or bucket again", sl_verb_redrive},
    {"manifest", "turn an archive into an incremental export of DynamoDB", sl_verb_manifest},
    {"verify", "compare what the routes made with what they should have made", sl_verb_verify},
    {"repair", "set right what differs from it", sl_verb_repair},
    {"history", "print what happened to an item, from an archive", sl_verb_history},
    {"erase", "forget items: archives, rows, parked copies", sl_verb_erase},
    {"new-handler", "create a folder with a handler to start from", sl_verb_new_handler},
};

#define N_VERBS SL_COUNT(verbs)

static int print_help(FILE *out, int result)
{
    fputs("usage: sluice VERB [flags] [INPUT...]\n\n", out);
    for (size_t i = 0; i < N_VERBS; i++)
        fprintf(out, "  %-12s %s\n", verbs[i].name, verbs[i].summary);
    fputs("\n`sluice VERB --help` lists the flags of a verb, and what its exit status says: 0\n"
          "all handled, 1 something failed or was discarded, 2 bad usage or input; verify,\n"
          "repair, redrive, history and erase have others, too. Seconds may be written as\n"
          "90s, 5m, 2h, 7d.\n"
          "`sluice --version` prints the version.\n",
          out);
    return result;
}

static int print_version(void)
{
    printf("sluice %s\n", sl_version);
    return SL_EXIT_OK;
}

static const struct verb *verb_named(const char *name)
{
    for (size_t i = 0; i < N_VERBS; i++)
        if (strcmp(name, verbs[i].name) == 0)
            return &verbs[i];
    return NULL;
}

static int refuse_verb(const char *name)
{
    struct sl_nearest search = sl_nearest_begin(sl_span_str(name));
    for (size_t i = 0; i < N_VERBS; i++)
        sl_nearest_consider(&search, verbs[i].name);
    if (search.best)
        fprintf(stderr, "sluice: there is no verb \"%s\": did you mean %s? (see sluice --help)\n", name,
                search.best);
    else
        fprintf(stderr, "sluice: there is no verb \"%s\" (see sluice --help)\n", name);
    return SL_EXIT_BAD;
}

/* `sluice help VERB` is `sluice VERB --help`. */
static int help_of(const char *name)
{
    char flag[] = "--help", *argv[] = {(char *)(uintptr_t)name, flag, NULL};
    const struct verb *verb = verb_named(name);
    return verb ? verb->run(2, argv) : refuse_verb(name);
}

int sl_sluice(int argc, char **argv)
{
    /* A reader that went away, or a file at the process's limit, is an error of that write. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sl_disk_fill_standard();
    if (argc < 2)
        return print_help(stderr, SL_EXIT_BAD);
    if (strcmp(argv[1], "help") == 0 && argc > 2)
        return help_of(argv[2]);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
        return print_help(stdout, SL_EXIT_OK);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0)
        return print_version();
    const struct verb *verb = verb_named(argv[1]);
    return verb ? verb->run(argc - 1, argv + 1) : refuse_verb(argv[1]);
}
