/* A file system for SQLite, in front of the real one, of which one call fails. */
#include "tests/support/sqlite_fault.h"

#include <sqlite3.h>
#include <stdlib.h>

struct sqlite_fault sqlite_fault;

static struct {
    sqlite3_vfs vfs, *real;
} files;

static bool fails_now(void)
{
    return sqlite_fault.left > 0 && --sqlite_fault.left == 0;
}

struct faulty_file {
    sqlite3_file file;
    sqlite3_file *real;
};

#define REAL(file) (((struct faulty_file *)(file))->real)
#define PASS(call) return fails_now() ? sqlite_fault.code : REAL(file)->pMethods->call

static int faulty_close(sqlite3_file *file)
{
    int code = REAL(file)->pMethods ? REAL(file)->pMethods->xClose(REAL(file)) : SQLITE_OK;
    free(REAL(file));
    return code;
}
static int faulty_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    PASS(xRead)(REAL(file), to, n, at);
}
static int faulty_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
    PASS(xWrite)(REAL(file), from, n, at);
}
static int faulty_truncate(sqlite3_file *file, sqlite3_int64 n)
{
    PASS(xTruncate)(REAL(file), n);
}
static int faulty_sync(sqlite3_file *file, int flags)
{
    PASS(xSync)(REAL(file), flags);
}
static int faulty_size(sqlite3_file *file, sqlite3_int64 *n)
{
    PASS(xFileSize)(REAL(file), n);
}
static int faulty_lock(sqlite3_file *file, int level)
{
    PASS(xLock)(REAL(file), level);
}
static int faulty_unlock(sqlite3_file *file, int level)
{
    return REAL(file)->pMethods->xUnlock(REAL(file), level);
}
static int faulty_reserved(sqlite3_file *file, int *out)
{
    PASS(xCheckReservedLock)(REAL(file), out);
}
static int faulty_control(sqlite3_file *file, int op, void *arg)
{
    return REAL(file)->pMethods->xFileControl(REAL(file), op, arg);
}
static int faulty_sector(sqlite3_file *file)
{
    return REAL(file)->pMethods->xSectorSize(REAL(file));
}
static int faulty_device(sqlite3_file *file)
{
    return REAL(file)->pMethods->xDeviceCharacteristics(REAL(file));
}
static int faulty_shm_map(sqlite3_file *file, int i, int n, int extend, void volatile **out)
{
    PASS(xShmMap)(REAL(file), i, n, extend, out);
}
static int faulty_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    if (flags & SQLITE_SHM_UNLOCK)
        return REAL(file)->pMethods->xShmLock(REAL(file), at, n, flags);
    PASS(xShmLock)(REAL(file), at, n, flags);
}
static void faulty_shm_barrier(sqlite3_file *file)
{
    REAL(file)->pMethods->xShmBarrier(REAL(file));
}
static int faulty_shm_unmap(sqlite3_file *file, int flag)
{
    return REAL(file)->pMethods->xShmUnmap(REAL(file), flag);
}

static const sqlite3_io_methods faulty_methods = {
    .iVersion = 2,
    .xClose = faulty_close,
    .xRead = faulty_read,
    .xWrite = faulty_write,
    .xTruncate = faulty_truncate,
    .xSync = faulty_sync,
    .xFileSize = faulty_size,
    .xLock = faulty_lock,
    .xUnlock = faulty_unlock,
    .xCheckReservedLock = faulty_reserved,
    .xFileControl = faulty_control,
    .xSectorSize = faulty_sector,
    .xDeviceCharacteristics = faulty_device,
    .xShmMap = faulty_shm_map,
    .xShmLock = faulty_shm_lock,
    .xShmBarrier = faulty_shm_barrier,
    .xShmUnmap = faulty_shm_unmap,
};

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    (void)vfs;
    if (fails_now())
        return SQLITE_CANTOPEN;
    struct faulty_file *mine = (struct faulty_file *)file;
    mine->real = calloc(1, (size_t)files.real->szOsFile);
    int code = files.real->xOpen(files.real, name, mine->real, flags, out);
    mine->file.pMethods = &faulty_methods;
    if (code != SQLITE_OK) {
        free(mine->real);
        mine->file.pMethods = NULL;
    }
    return code;
}

static int step_fails(void *arg)
{
    (void)arg;
    return fails_now();
}

/* Every database that is opened: some of its steps count too. */
#define EACH_STEPS 5

static int count_steps(sqlite3 *db, const char **message, const struct sqlite3_api_routines *api)
{
    (void)message;
    (void)api;
    sqlite3_progress_handler(db, EACH_STEPS, step_fails, NULL);
    return SQLITE_OK;
}

/* ---- what a statement needs to be made ---- */

static int is_denied(void *arg, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)arg;
    (void)action;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return fails_now() ? SQLITE_DENY : SQLITE_OK;
}

static int deny_some(sqlite3 *db, const char **message, const struct sqlite3_api_routines *api)
{
    (void)message;
    (void)api;
    sqlite3_set_authorizer(db, is_denied, NULL);
    return SQLITE_OK;
}

void sqlite_fault_begin_statements(void)
{
    sqlite3_auto_extension((void (*)(void))deny_some);
}

void sqlite_fault_end_statements(void)
{
    sqlite_fault.left = 0;
    sqlite3_reset_auto_extension();
}

void sqlite_fault_begin(bool of_steps)
{
    files.real = sqlite3_vfs_find(NULL);
    files.vfs = *files.real;
    files.vfs.zName = "faulty";
    files.vfs.pNext = NULL;
    files.vfs.szOsFile = sizeof(struct faulty_file);
    files.vfs.xOpen = faulty_open;
    sqlite3_vfs_register(&files.vfs, 1);
    if (of_steps)
        sqlite3_auto_extension((void (*)(void))count_steps);
}

void sqlite_fault_end(void)
{
    sqlite_fault.left = 0;
    sqlite3_reset_auto_extension();
    sqlite3_vfs_unregister(&files.vfs);
}
