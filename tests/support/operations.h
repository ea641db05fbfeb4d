/* The operations of services that our sources ask for. */
#ifndef SL_TESTS_SUPPORT_OPERATIONS_H
#define SL_TESTS_SUPPORT_OPERATIONS_H

/* Fails the test when a source below the folder, or the one source, names an operation ("PutItem") that is not in `names`, which
 * NULL ends: a new sink has to be added to the tables of the tests. */
void operations_are_known(const char *folder, const char *const *names);

#endif
