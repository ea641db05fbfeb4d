/* Mail of a bucket's prefix or a folder: an object is a message. */
#include "base/buffer.h"
#include "base/gzip.h"
#include "cli/redrive/mailbox.h"
#include "data/source/store.h"

#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 60000
#define READS      16 /* in flight together */

struct objects {
    struct sl_mailbox box;
    const struct sl_mailbox_options *options;
    struct sl_store *store;
    struct sl_arena *listed; /* the page of the listing, and `after` */
    struct sl_object_page page;
    size_t at; /* of the page: the next entry */
    bool is_listed, is_last;
};

static struct sl_call call_of(const struct objects *o, struct sl_arena *arena)
{
    struct sl_clock *clock = o->options->sinks->clock;
    return (struct sl_call){.arena = arena, .deadline_ms = clock->now_ms(clock) + TIMEOUT_MS};
}

/* ---- listing ---- */

static enum sl_status list_more(struct objects *o, struct sl_error *error)
{
    struct sl_object_port *port = sl_store_port(o->store);
    struct sl_arena *fresh = sl_arena_new(64 * 1024);
    const struct sl_call call = call_of(o, fresh);
    const struct sl_object_list list = {.prefix = SL_LIT(""),
                                        .after = o->is_listed ? o->page.next : (struct sl_span){NULL, 0}};
    struct sl_object_page page;
    port->list(port, &list, &page, &call);
    if (page.result.status != SL_OK) {
        enum sl_status status = sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
        sl_arena_destroy(fresh);
        return status;
    }
    sl_arena_destroy(o->listed);
    o->listed = fresh;
    o->page = page;
    o->at = 0;
    o->is_listed = true;
    o->is_last = !page.next.ptr;
    return SL_OK;
}

/* ---- reading ---- */

/* How many of the next entries are read together: as many as fit, one at least. */
static size_t plan(const struct objects *o, size_t bytes)
{
    size_t n = 0;
    while (n < READS && o->at + n < o->page.n && (n == 0 || bytes < SL_MAIL_PAGE_BYTES))
        bytes += (size_t)o->page.entries[o->at + n++].bytes;
    return n;
}

/* What is in gzip, in the arena. */
static struct sl_span unpacked(struct sl_span bytes, struct sl_arena *arena, const char **why)
{
    struct sl_buffer text;
    struct sl_error error = SL_NO_ERROR;
    if (!sl_gzip_is(bytes))
        return bytes;
    sl_buffer_init_in(&text, arena, SL_MAIL_BYTES);
    if (sl_gzip_expand(bytes, &text, &error) != SL_OK)
        *why = sl_arena_printf(arena, "bad gzip at byte %zu: %s", error.offset, error.text);
    return sl_buffer_span(&text);
}

static void take(const struct sl_object_entry *entry, const struct sl_object_piece *piece,
                 struct sl_arena *arena, struct sl_mail *mail)
{
    mail->id = sl_arena_copy(arena, entry->key);
    if (entry->bytes > SL_MAIL_BYTES)
        mail->unreadable = sl_arena_printf(arena, "the object has %llu bytes; a message has %zu at most",
                                           (unsigned long long)entry->bytes, SL_MAIL_BYTES);
    else if (entry->bytes && piece->result.status != SL_OK)
        mail->unreadable = piece->result.text;
    else if (entry->bytes)
        mail->body = unpacked(piece->bytes, arena, &mail->unreadable);
    mail->tag = entry->bytes ? piece->etag : sl_span(sl_arena_copy(arena, entry->etag), entry->etag.len);
}

/* Reads the next `n` entries. An object that is gone or was replaced since it was listed is unreadable; that
 * none can be read ends the run. */
static enum sl_status read_some(struct objects *o, size_t n, struct sl_arena *arena, struct sl_mail_page *out,
                                struct sl_error *error)
{
    struct sl_object_read reads[READS];
    struct sl_object_piece pieces[READS], all[READS] = {{.object_bytes = 0}};
    struct sl_object_port *port = sl_store_port(o->store);
    const struct sl_call call = call_of(o, arena);
    const struct sl_object_entry *entries = o->page.entries + o->at;
    size_t n_reads = 0, from[READS];
    for (size_t i = 0; i < n; i++) {
        if (entries[i].bytes == 0 || entries[i].bytes > SL_MAIL_BYTES)
            continue;
        from[n_reads] = i;
        reads[n_reads++] = (struct sl_object_read){
            .key = entries[i].key, .max_bytes = (size_t)entries[i].bytes, .etag = entries[i].etag};
    }
    port->read(port, reads, n_reads, pieces, &call);
    for (size_t i = 0; i < n_reads; i++) {
        const struct sl_result *result = &pieces[i].result;
        if (result->status == SL_RETRY || result->status == SL_FATAL)
            return sl_fail(error, result->status, result->code, "%s", result->text);
        all[from[i]] = pieces[i];
    }
    for (size_t i = 0; i < n; i++)
        take(&entries[i], &all[i], arena, sl_mailbox_add(out, arena));
    o->at += n;
    return SL_OK;
}

static size_t bytes_of(const struct sl_mail_page *page)
{
    size_t bytes = 0;
    for (size_t i = 0; i < page->n; i++)
        bytes += page->list[i].body.len;
    return bytes;
}

static enum sl_status next(struct sl_mailbox *box, struct sl_arena *arena, struct sl_mail_page *out,
                           struct sl_error *error)
{
    struct objects *o = (struct objects *)box;
    enum sl_status status = SL_OK;
    while (status == SL_OK && !*o->options->stop && out->n < SL_MAIL_PAGE &&
           bytes_of(out) < SL_MAIL_PAGE_BYTES) {
        bool is_at_end = !o->is_listed || o->at == o->page.n;
        out->is_last = is_at_end && o->is_listed && o->is_last;
        if (out->is_last)
            break;
        status = is_at_end ? list_more(o, error) : read_some(o, plan(o, bytes_of(out)), arena, out, error);
    }
    return status;
}

/* ---- afterwards ---- */

static void settle(struct sl_mailbox *box, struct sl_arena *arena, struct sl_mail_page *page, bool removes)
{
    struct objects *o = (struct objects *)box;
    struct sl_object_port *port = sl_store_port(o->store);
    struct sl_object_removal *removals = sl_arena_zalloc(arena, (page->n + 1) * sizeof(*removals));
    struct sl_result *results = sl_arena_zalloc(arena, (page->n + 1) * sizeof(*results));
    struct sl_mail **of = sl_arena_alloc(arena, (page->n + 1) * sizeof(*of));
    const struct sl_call call = call_of(o, arena);
    size_t n = 0;
    for (size_t i = 0; i < page->n && removes; i++) {
        struct sl_mail *mail = &page->list[i];
        if (!sl_mail_is_done(mail))
            continue;
        removals[n] = (struct sl_object_removal){.key = sl_span_str(mail->id), .etag = mail->tag};
        of[n++] = mail;
    }
    if (n)
        port->remove(port, removals, n, results, &call);
    for (size_t i = 0; i < n; i++) {
        of[i]->removal = results[i].status == SL_OK ? SL_MAIL_REMOVED : SL_MAIL_NOT_REMOVED;
        of[i]->removal_code = results[i].code;
    }
}

static void close_box(struct sl_mailbox *box)
{
    struct objects *o = (struct objects *)box;
    sl_store_close(o->store);
    sl_arena_destroy(o->listed);
    free(o);
}

enum sl_status sl_mailbox_objects(const struct sl_mailbox_options *options, const char *place,
                                  struct sl_mailbox **out, struct sl_error *error)
{
    struct objects *o = calloc(1, sizeof(*o));
    if (!o)
        sl_die("out of memory: a folder of messages");
    *o = (struct objects){.options = options,
                          .box = {.name = place,
                                  .can_remove = true,
                                  .next = next,
                                  .settle = settle,
                                  .keep = sl_mailbox_keep_nothing,
                                  .finish = sl_mailbox_finish_nothing,
                                  .close = close_box}};
    enum sl_status status = sl_store_open(options->sinks, place, &o->store, error);
    if (status != SL_OK) {
        o->store = NULL;
        close_box(&o->box);
        return status;
    }
    *out = &o->box;
    return SL_OK;
}
