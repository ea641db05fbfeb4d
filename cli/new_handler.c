/* `sluice new-handler NAME`: creates a folder with a handler that builds and replays at once. */
#include "base/arena.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/disk.h"
#include "base/embed.h"
#include "handlers/pipeline/builtins.h"
#include "cli/flags.h"
#include "live/sandbox/paths.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 64
#define FILE_BYTES (64u * 1024) /* the largest is the handler, some 5 KB */

/* The files of examples/ themselves, so that what is written is what the tests build. */
SL_EMBED(sl_text_handler, "examples/handler_template.c");
SL_EMBED(sl_text_makefile, "examples/skeleton/Makefile");
SL_EMBED(sl_text_config, "examples/skeleton/sluice.json");
SL_EMBED(sl_text_events, "examples/skeleton/events.jsonl");

static enum sl_status check_name(const char *name, struct sl_error *error)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    bool starts_well = (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z');
    if (!starts_well || name[n] || n > NAME_BYTES)
        return sl_fail(
            error, SL_REJECT, "BadName",
            "\"%s\" cannot be the name of a handler: use a letter, then letters, digits and '_', at most %d",
            name, NAME_BYTES);
    if (sl_builtin_named(name)->handler)
        return sl_fail(
            error, SL_REJECT, "BadName",
            "%s is a built-in handler, and built-in handlers come before plugins; choose another name", name);
    return SL_OK;
}

/* ---- one file ---- */

/* A mark in a text, and what replaces it. */
struct place {
    const char *mark, *text;
};

static void fill_in(const char *text, const struct place *places, size_t n, struct sl_buffer *out)
{
    while (*text) {
        size_t i = 0;
        while (i < n && strncmp(text, places[i].mark, strlen(places[i].mark)) != 0)
            i++;
        if (i == n) {
            sl_buffer_add_char(out, *text++);
            continue;
        }
        sl_buffer_add_str(out, places[i].text);
        text += strlen(places[i].mark);
    }
}

static enum sl_status write_file(const char *path, struct sl_span bytes, struct sl_error *error)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return sl_fail(error, SL_FATAL, "CannotWrite", "%s cannot be written: %s", path, strerror(errno));
    int failed = sl_disk_write(fd, bytes);
    if (close(fd) != 0 && !failed)
        failed = errno;
    return failed
               ? sl_fail(error, SL_FATAL, "CannotWrite", "%s cannot be written: %s", path, strerror(failed))
               : SL_OK;
}

/* ---- all of them ---- */

/* The folder of <sluice/handler.h>: beside the built executable, or below PREFIX when it is installed. */
static const char *include_folder(struct sl_arena *arena)
{
    const char *own = sl_paths_own_folder(arena);
    const char *built = sl_arena_printf(arena, "%s/include", own);
    bool is_built = access(sl_arena_printf(arena, "%s/sluice/handler.h", built), R_OK) == 0;
    return is_built ? built : sl_arena_printf(arena, "%s/../../include", own);
}

static enum sl_status write_all(const char *name, struct sl_arena *arena, struct sl_error *error)
{
    const struct place places[] = {
        {"@NAME@", name},
        {"@INCLUDE@", include_folder(arena)},
        {"@SLUICE@", sl_arena_printf(arena, "%s/sluice", sl_paths_own_folder(arena))},
        {"handler_template", name}};
    const struct {
        const char *path, *text;
    } files[] = {{sl_arena_printf(arena, "%s/%s.c", name, name), sl_text_handler},
                 {sl_arena_printf(arena, "%s/Makefile", name), sl_text_makefile},
                 {sl_arena_printf(arena, "%s/sluice.json", name), sl_text_config},
                 {sl_arena_printf(arena, "%s/events.jsonl", name), sl_text_events}};
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < SL_COUNT(files) && status == SL_OK; i++) {
        struct sl_buffer text;
        sl_buffer_init(&text, FILE_BYTES);
        fill_in(files[i].text, places, SL_COUNT(places), &text);
        status = write_file(files[i].path, sl_buffer_span(&text), error);
        sl_buffer_clean_up(&text);
    }
    return status;
}

static enum sl_status make(const char *name, struct sl_arena *arena, struct sl_error *error)
{
    enum sl_status status = check_name(name, error);
    if (status != SL_OK)
        return status;
    if (mkdir(name, 0755) != 0)
        return sl_fail(error, SL_FATAL, "CannotWrite", "%s cannot be created: %s%s", name, strerror(errno),
                       errno == EEXIST ? "; nothing was written; choose another name" : "");
    status = write_all(name, arena, error);
    if (status != SL_OK)
        sl_paths_remove_temp(name); /* this has just made it: the next try begins anew */
    return status;
}

int sl_verb_new_handler(int argc, char **argv)
{
    const struct sl_flag flags[] = {{0}};
    const struct sl_usage usage = {
        .line = "new-handler NAME",
        .summary =
            "Creates the folder NAME with a handler to start from: NAME.c, a Makefile, records to replay, "
            "and sluice.json. It builds and replays at once; <sluice/handler.h> is the manual.",
        .example = "sluice new-handler mine && cd mine && make try",
        .flags = flags,
        .operand = "NAME",
        .least = 1,
        .most = 1,
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    struct sl_error error = SL_NO_ERROR;
    struct sl_arena *arena = sl_arena_new(4096);
    enum sl_status status = make(argv[1], arena, &error);
    if (status == SL_OK)
        printf("%s/: %s.c, Makefile, sluice.json, events.jsonl\nnext: cd %s && make try\n", argv[1], argv[1],
               argv[1]);
    else
        (void)sl_flags_complain("new-handler", &error);
    sl_arena_destroy(arena);
    return status == SL_OK ? SL_EXIT_OK : SL_EXIT_BAD;
}
