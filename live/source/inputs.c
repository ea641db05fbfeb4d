/* Opens inputs as a source, and keeps what can be read only once. */
#include "live/source/inputs.h"

#include "live/source/spool.h"
#include "data/source/reader.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)1024 * 1024)

enum sl_status sl_inputs_check(const struct sl_inputs *inputs, struct sl_error *error)
{
    struct stat st;
    for (size_t i = 0; i < inputs->n; i++) {
        const char *name = inputs->names[i];
        if (strcmp(name, "-") == 0)
            continue;
        if (access(name, R_OK) != 0)
            return sl_fail(error, SL_REJECT, "CannotRead", "%s: cannot be opened: %s", name, strerror(errno));
        if (stat(name, &st) == 0 && S_ISDIR(st.st_mode))
            return sl_fail(error, SL_REJECT, "NotAFile", "%s: is a folder; name the files in it", name);
    }
    return SL_OK;
}

/* Standard input counts as one, whatever it is: it is not read from its beginning again. */
static bool is_pipe(const char *name)
{
    struct stat st;
    return strcmp(name, "-") == 0 || (stat(name, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static enum sl_status keep(const char *name, struct sl_arena *arena, int *out, struct sl_error *error)
{
    struct sl_reader *reader;
    struct sl_spool *spool = sl_spool_new(arena);
    struct sl_span bytes;
    struct sl_error why = SL_NO_ERROR;
    const struct sl_call call = {.deadline_ms = INT64_MAX};
    enum sl_status status = sl_reader_open(name, &reader, error);
    if (status != SL_OK)
        return status;
    do {
        status = reader->next(reader, &call, &bytes, &why);
        if (status == SL_OK)
            sl_spool_add(spool, bytes);
    } while (status == SL_OK && bytes.len);
    sl_reader_close(reader);
    if (status == SL_OK)
        status = sl_spool_file(spool, out, &why);
    return status == SL_OK ? SL_OK : sl_fail(error, status, why.code, "%s: %s", name, why.text);
}

enum sl_status sl_inputs_keep(struct sl_inputs *inputs, struct sl_arena *arena, struct sl_error *error)
{
    int *kept = sl_arena_alloc(arena, (inputs->n + 1) * sizeof(*kept));
    for (size_t i = 0; i < inputs->n; i++) {
        bool is_text = inputs->texts && inputs->texts[i].ptr;
        kept[i] = -1;
        if (!is_text && is_pipe(inputs->names[i]) && keep(inputs->names[i], arena, &kept[i], error) != SL_OK)
            return SL_REJECT;
    }
    inputs->kept = kept;
    return SL_OK;
}

enum sl_status sl_inputs_open(const struct sl_inputs *inputs, const char *ttl_attribute,
                              struct sl_source **out, struct sl_error *error)
{
    static struct sl_sinks sinks; /* a source of files needs the clock alone */
    sinks.clock = sl_clock_system();
    const struct sl_source_options options = {
        .sinks = &sinks, .ttl_attribute = sl_span_str(ttl_attribute), .as_received = true};
    const struct sl_source_files what = {.names = inputs->names,
                                         .texts = inputs->texts,
                                         .open_files = inputs->kept,
                                         .n = inputs->n,
                                         .document_bytes = SL_INPUTS_DOCUMENT_BYTES,
                                         .reads_ahead = true};
    const struct sl_call call = {.deadline_ms = INT64_MAX};
    return sl_source_open_files(&options, &what, &call, out, error);
}

enum sl_status sl_inputs_each(const struct sl_inputs *inputs, const char *ttl_attribute, sl_inputs_fn each,
                              void *arg, struct sl_error *error)
{
    struct sl_source *source = NULL;
    struct sl_arena *pieces = sl_arena_new(2 * PIECE_BYTES);
    const struct sl_call call = {.arena = pieces, .deadline_ms = INT64_MAX};
    struct sl_source_piece piece = {.is_last = false};
    bool is_enough = false;
    enum sl_status status = sl_inputs_open(inputs, ttl_attribute, &source, error);
    while (status == SL_OK && !piece.is_last && !is_enough) {
        sl_arena_reset(pieces);
        status = sl_source_pull(source, PIECE_BYTES, &call, &piece, error);
        if (status == SL_OK)
            status = each(arg, &piece.batch, &is_enough, error);
    }
    sl_source_close(source);
    sl_arena_destroy(pieces);
    return status;
}
