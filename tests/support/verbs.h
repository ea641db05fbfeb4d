/* The verbs of the command line in a test: each call is a fork of the test that runs the verb's function in a
 * folder of the test's own, and ends. So it costs a few milliseconds, what the verb keeps in static memory is
 * new each time, and `make cover` and `make mutate` see its code.
 *
 * In the environment are credentials and a Region, and nothing else of AWS. */
#ifndef SL_TESTS_SUPPORT_VERBS_H
#define SL_TESTS_SUPPORT_VERBS_H

#include <stdbool.h>

struct verbs;

struct verbs *verbs_new(void);
void verbs_destroy(struct verbs *v); /* removes the folder */
const char *verbs_folder(const struct verbs *v);

/* Runs "check --mapping 'a file.json' sluice.json": words between spaces, or in apostrophes as in a shell.
 * Returns the exit status, or minus the signal that the verb died of. */
int verb(struct verbs *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, killed after so many milliseconds if it still runs (then -SIGKILL). */
int verb_cut(struct verbs *v, unsigned ms, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What the last one wrote to standard output and standard error, until the next one. */
const char *verb_out(const struct verbs *v);
const char *verb_err(const struct verbs *v);

/* What the next ones read from standard input; nothing at first. */
void verb_input(struct verbs *v, const char *text);

/* "NAME=value" in the environment of the next ones; the text is the caller's until the end. */
void verb_set(struct verbs *v, const char *variable);

/* The nth operation (disk_fault.h) of the next one fails. Afterwards disk_fault_came says whether it had so
 * many. */
void verb_fault(struct verbs *v, int n, int err, const char *only);

/* The next ones' time runs so many times as fast (haste.h); not that of sandboxes. */
void verb_haste(struct verbs *v, unsigned factor);

/* A file in the folder; ' stands for " in what is written. The text that is read lives until the end; "": no
 * such file. */
void verb_write(struct verbs *v, const char *name, const char *text);
const char *verb_read(struct verbs *v, const char *name);

/* Ends it with SIGTERM after so many milliseconds. */
int verb_stop(struct verbs *v, unsigned ms, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Sends a signal to the one that runs; for the thread of a server that it asks. */
void verb_signal(const struct verbs *v, int number);

/* For verbs that start sandboxes: makes a link "bootstrap" beside the test's program, as in an installation.
 * The test's main then is what a sandbox starts, too, and verbs_is_bootstrap says so: its result is
 * sl_start's. One test program a folder. */
void verbs_link_bootstrap(void);
bool verbs_is_bootstrap(int argc, char **argv);

/* Fails the test, and shows what the last one wrote, unless `status` is what `wanted` says and its standard
 * output and error together have the text. */
void verb_assert(struct verbs *v, int status, int wanted, const char *text);

#endif
