/* The checkpoint file of a long job: {"sluiceBackfill":1,"source":"...","content":"...","state":{...}}. */
#include "cli/backfill/checkpoint.h"

#include "base/disk.h"
#include "base/json_write.h"
#include "base/span.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT     1
#define FILE_BYTES ((size_t)32 * 1024 * 1024) /* the state of a backfill, and names */

static struct sl_span text_of(const json_t *value, struct sl_arena *arena)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    struct sl_span kept = {NULL, 0};
    if (text)
        kept = sl_span_str(sl_arena_copy(arena, sl_span_str(text)));
    free(text);
    return kept;
}

static enum sl_status take_file(struct sl_checkpoint *c, const json_t *root, struct sl_arena *arena,
                                struct sl_error *error)
{
    const json_t *state = json_object_get(root, "state");
    const char *source = json_string_value(json_object_get(root, "source"));
    if (json_integer_value(json_object_get(root, "sluiceBackfill")) != FORMAT || !source ||
        !json_is_object(state))
        return sl_fail(error, SL_REJECT, "BadCheckpoint",
                       "%s: is not the checkpoint of a backfill; name another file", c->path);
    if (strcmp(source, c->source) != 0)
        return sl_fail(error, SL_REJECT, "OtherSource",
                       "%s: is the checkpoint of another source, %s; this one is %s. Name another file",
                       c->path, source, c->source);
    const char *content = json_string_value(json_object_get(root, "content"));
    c->content = content ? sl_arena_copy(arena, sl_span_str(content)) : NULL;
    c->is_done = json_is_true(json_object_get(root, "done"));
    c->state = text_of(state, arena);
    c->place = text_of(json_object_get(state, "place"), arena);
    return SL_OK;
}

/* Else this would be known only when there is progress to save. */
static enum sl_status check_folder(const struct sl_checkpoint *c, struct sl_arena *arena,
                                   struct sl_error *error)
{
    const char *slash = strrchr(c->path, '/');
    size_t len = slash ? (size_t)(slash - c->path) : 0;
    const char *folder = !slash ? "." : sl_arena_copy(arena, sl_span(len ? c->path : "/", len ? len : 1));
    struct stat info;
    if (stat(c->path, &info) == 0 && !S_ISREG(info.st_mode))
        return sl_fail(error, SL_REJECT, "BadCheckpoint", "%s: is no file; name one", c->path);
    if (access(folder, W_OK | X_OK) == 0 && stat(folder, &info) == 0 && S_ISDIR(info.st_mode))
        return SL_OK;
    return sl_fail(error, SL_REJECT, "CheckpointNotSaved",
                   "%s: the checkpoint cannot be written: nothing can be created in %s: %s", c->path, folder,
                   strerror(errno));
}

enum sl_status sl_checkpoint_open(struct sl_checkpoint *c, struct sl_arena *arena, struct sl_error *error)
{
    json_error_t why;
    if (c->path && check_folder(c, arena, error) != SL_OK)
        return SL_REJECT;
    if (c->path)
        sl_disk_sweep_path(c->path);
    if (!c->path || (access(c->path, F_OK) != 0 && errno == ENOENT))
        return SL_OK;
    json_t *root = json_load_file(c->path, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    enum sl_status status =
        root ? take_file(c, root, arena, error)
             : sl_fail(error, SL_REJECT, "BadCheckpoint",
                       "--checkpoint %s: is not a checkpoint of sluice backfill: %s (byte %d); name "
                       "another file, or remove it to begin anew",
                       c->path, why.text, why.position);
    json_decref(root);
    return status;
}

enum sl_status sl_checkpoint_bind(struct sl_checkpoint *c, const char *content, struct sl_error *error)
{
    bool is_same = c->content && strcmp(c->content, content) == 0;
    c->content = content;
    if (!c->state.ptr || is_same)
        return SL_OK;
    return sl_fail(
        error, SL_REJECT, "OtherSource",
        "%s: is the checkpoint of other items than those that are to be written now: begin anew with "
        "an empty table, and name another file",
        c->path);
}

enum sl_status sl_checkpoint_save(const struct sl_checkpoint *c, struct sl_span state, struct sl_error *error)
{
    struct sl_buffer text;
    if (!c->path)
        return SL_OK;
    sl_buffer_init(&text, FILE_BYTES);
    sl_buffer_add_char(&text, '{');
    sl_json_add_integer(&text, "sluiceBackfill", FORMAT);
    sl_json_add_member(&text, "source", sl_span_str(c->source));
    if (c->content)
        sl_json_add_member(&text, "content", sl_span_str(c->content));
    if (c->is_done)
        sl_json_add_raw(&text, "done", SL_LIT("true"));
    sl_json_add_raw(&text, "state", state);
    sl_buffer_add_str(&text, "}\n");
    int err = text.failed ? ENOSPC : sl_disk_replace_path(c->path, sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    if (!err)
        return SL_OK;
    return sl_fail(error, SL_FATAL, "CheckpointNotSaved", "%s: the checkpoint cannot be written: %s", c->path,
                   strerror(err));
}
