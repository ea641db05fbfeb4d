/* SQLite whose Nth operation fails: reads, writes, syncs, locks and maps of its files, and steps of its
 * statements. */
#ifndef SL_TESTS_SUPPORT_SQLITE_FAULT_H
#define SL_TESTS_SUPPORT_SQLITE_FAULT_H

#include <stdbool.h>

struct sqlite_fault {
    int left; /* operations until the one that fails; 0: none does */
    int code; /* with which it fails: SQLITE_IOERR, SQLITE_FULL */
};

extern struct sqlite_fault sqlite_fault;

/* Databases that are opened from now on are such ones. */
void sqlite_fault_begin(bool of_steps);
void sqlite_fault_end(void);

/* Instead: the Nth look at what a statement is about fails (SQLITE_AUTH), and so its preparation; what begins
 * and ends transactions is a statement, too. */
void sqlite_fault_begin_statements(void);
void sqlite_fault_end_statements(void);

#endif
