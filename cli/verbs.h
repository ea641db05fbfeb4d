/* The sluice command and its verbs, one file each.
 *
 * A verb's argv[0] is its name. Each verb reads its own flags (cli/flags.h), writes results to standard
 * output and everything else to standard error, and returns the exit status: 0 all handled, 1 something
 * failed or was discarded, 2 bad usage or input. */
#ifndef SL_CLI_VERBS_H
#define SL_CLI_VERBS_H

/* The command: argv[1] is the verb. Ignores SIGPIPE and SIGXFSZ in the process. */
int sl_sluice(int argc, char **argv);

int sl_verb_replay(int argc, char **argv);
int sl_verb_check(int argc, char **argv);
int sl_verb_decode(int argc, char **argv);
int sl_verb_backfill(int argc, char **argv);
int sl_verb_redrive(int argc, char **argv);
int sl_verb_tail(int argc, char **argv);
int sl_verb_leases(int argc, char **argv);
int sl_verb_manifest(int argc, char **argv);
int sl_verb_erase(int argc, char **argv);
int sl_verb_history(int argc, char **argv);
int sl_verb_verify(int argc, char **argv);
int sl_verb_repair(int argc, char **argv);
int sl_verb_new_handler(int argc, char **argv);
int sl_verb_test(int argc, char **argv);
int sl_verb_new_test(int argc, char **argv);
int sl_verb_try(int argc, char **argv);

#endif
