/* Files and folders of this machine: the few operations that several rooms need, and what an errno means. */
#ifndef SL_BASE_DISK_H
#define SL_BASE_DISK_H

#include "base/error.h"
#include "base/span.h"

/* Creates the folder and those above it; one that exists is fine. SL_FATAL with the reason when it cannot be
 * created. */
enum sl_status sl_disk_make_folder(const char *path, struct sl_error *error) SL_MUST_USE;

/* Creates the folder that the file at `path` is to be in, likewise. */
enum sl_status sl_disk_make_parent(const char *path, struct sl_error *error) SL_MUST_USE;

/* Opens /dev/null in the place of each of the descriptors 0, 1 and 2 that the caller of this program closed:
 * 0 for writing, 1 and 2 for reading, so that using them stays an error, and no file or connection of ours
 * gets their numbers. To be called first in main(). */
void sl_disk_fill_standard(void);

/* Writes all the bytes; returns 0 or an errno. */
int sl_disk_write(int fd, struct sl_span bytes) SL_MUST_USE;

/* ---- replacing a file ---- */

/* The names of files that are being written: SL_DISK_ASIDE and 16 random hexadecimal digits. */
#define SL_DISK_ASIDE ".sluice-"

/* Gives the file `name` in `folder` these bytes, whether it exists or not. They are written to a file of its
 * own name in the folder `aside` (of the same file system; it may be the same folder), synced, and renamed;
 * then `folder` is synced. So a reader sees the old file or the new one, whole; a crash leaves one of the
 * two; and any number of processes and machines may replace files through one folder at the same time.
 * Returns 0 or an errno; after an errno nothing has changed, unless only the last sync failed. */
int sl_disk_replace(int aside, int folder, const char *name, struct sl_span bytes) SL_MUST_USE;

/* The same for a path; `aside` is the file's folder. */
int sl_disk_replace_path(const char *path, struct sl_span bytes) SL_MUST_USE;

/* How long nobody has written to a file that is swept. */
#define SL_DISK_SWEEP_S 3600

/* Removes what killed writers left in the folder `aside`: regular files whose names begin with `prefix`, that
 * nobody has locked, and that nobody has written to for SL_DISK_SWEEP_S. A writer holds the lock until the
 * rename. The age is for file systems whose locks do not reach other machines. */
void sl_disk_sweep(int aside, const char *prefix);

/* The same for the folder in which sl_disk_replace_path replaces the file. */
void sl_disk_sweep_path(const char *path);

/* ---- errors ---- */

/* What an errno means for the next attempt: SL_FATAL when nothing similar can succeed here (no permission,
 * read-only), SL_REJECT when this name cannot (too long), else SL_RETRY (disk full, I/O error). */
enum sl_status sl_disk_status(int err) SL_MUST_USE;

/* A stable code for an errno: "NoSpace", "AccessDenied", ... */
const char *sl_disk_code(int err);

#endif
