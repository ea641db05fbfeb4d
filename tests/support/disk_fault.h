/* A disk, and what else the system gives a process, of which the Nth operation fails.
 *
 * The functions in disk_fault.c take the place of libc's in every test program: they count, and fail when it
 * is their turn. What libraries do (SQLite, libcurl) counts, too. The state is shared with forks (verbs.h):
 * one fault comes once in all of them, and the test can ask which it was. */
#ifndef SL_TESTS_SUPPORT_DISK_FAULT_H
#define SL_TESTS_SUPPORT_DISK_FAULT_H

#include <stdbool.h>
#include <sys/types.h>

struct disk_fault {
    int left;                       /* operations until the one that fails, itself included; 0: none does */
    int times;                      /* how many fail from there on; 0: one */
    int err;                        /* with which they fail; 0: nothing is read or written any more */
    const char *only;               /* the function that counts; NULL: all but access and what waits */
    pid_t spared;                   /* what this process does neither fails nor counts; 0: none is spared */
    bool short_reads, short_writes; /* a byte at a time */
    char came[16];                  /* the function that failed first; "": none has */
    bool skips_sleep;               /* a sleep ends at once, and the clocks go on by it */
    long long skipped_ns;           /* how far the clocks are ahead */
};

/* Never NULL. */
extern struct disk_fault *disk_fault;

/* The nth operation from now on fails, of this function or (NULL) of all. */
void disk_fault_begin(int n, int err, const char *only);
/* Nothing fails any more. */
void disk_fault_end(void);
/* What this process does from now on neither fails nor counts: it is about to end. */
void disk_fault_leave(void);
/* Whether one has failed since the last begin. */
bool disk_fault_came(void);

#endif
