/* Reads the lease table, and notes when each counter moved. */
#include "live/lease/book_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one row ---- */

/* The row of a lease that is ours: it stays so unless the row names another. What a write of ours left open
 * is found by the next write. */
static bool is_still_ours(const struct sl_book *book, const struct sl_book_entry *entry,
                          const struct sl_lease *row)
{
    return entry->hold && row->owner && strcmp(row->owner, book->options.worker) == 0;
}

static bool has_moved(const struct sl_lease *before, const struct sl_lease *row)
{
    bool same_owner =
        before->owner && row->owner ? strcmp(before->owner, row->owner) == 0 : !before->owner && !row->owner;
    return before->counter != row->counter || !same_owner;
}

static void merge(struct sl_book *book, const struct sl_lease *row)
{
    struct sl_book_entry *entry = sl_book_find(book, row->key);
    if (!entry)
        entry = sl_book_add(book, row);
    entry->was_seen = true;
    if (entry->hold && !is_still_ours(book, entry, row))
        sl_book_lose(book, entry);
    if (entry->hold)
        return;
    if (entry->is_bad || has_moved(&entry->lease, row))
        entry->moved_ms = sl_book_now(book);
    entry->is_bad = false;
    sl_book_take_over(entry, row);
}

/* A row that is not a lease keeps its shard's children waiting: nobody knows how far the shard is handled. */
static void note_bad(struct sl_book *book, const struct sl_lease *row, const struct sl_error *why)
{
    if (row->key) {
        struct sl_book_entry *entry = sl_book_find(book, row->key);
        struct sl_lease nothing = {.key = row->key,
                                   .checkpoint = sl_lease_checkpoint(SL_LEASE_TRIM_HORIZON, NULL)};
        if (!entry)
            entry = sl_book_add(book, &nothing);
        sl_book_lose(book, entry);
        entry->is_bad = entry->was_seen = true;
    }
    if (!book->trouble)
        book->trouble = strdup(why->text);
}

static enum sl_status read_row(struct sl_book *book, struct sl_span item, bool is_first,
                               struct sl_arena *arena, struct sl_error *error)
{
    struct sl_lease row;
    struct sl_error why = SL_NO_ERROR;
    bool is_ours = false;
    enum sl_status status = sl_lease_read(item, arena, &row, &why);
    if (status == SL_OK)
        status = sl_book_check_stream(book, &row, &is_ours, &why);
    if (status == SL_OK && is_first && !is_ours && !sl_lease_is_done(&row))
        status =
            sl_fail(&why, SL_REJECT, "AnotherStream",
                    "the row %s is of the stream %s, which is not read to its end. Read it with --stream, "
                    "or delete its rows",
                    row.key, row.stream);
    if (status != SL_OK && is_first)
        return sl_fail(error, status, why.code, "%s: %s", book->options.table, why.text);
    if (status != SL_OK)
        note_bad(book, &row, &why);
    else if (is_ours)
        merge(book, &row);
    return SL_OK;
}

/* ---- all of them ---- */

static enum sl_status read_page(struct sl_book *book, struct sl_span *after, bool is_first,
                                struct sl_arena *arena, struct sl_error *error)
{
    const struct sl_call call = sl_book_call(book, arena);
    const struct sl_table_scan scan = {.after = *after, .is_consistent = true};
    struct sl_table_page page = {.n = 0};
    book->options.port->scan(book->options.port, &scan, 1, &page, &call);
    if (page.result.status != SL_OK)
        return sl_fail(error, page.result.status, page.result.code, "%s cannot be read: %s",
                       book->options.table, page.result.text);
    for (size_t i = 0; i < page.n; i++) {
        enum sl_status status = read_row(book, page.items[i], is_first, arena, error);
        if (status != SL_OK)
            return status;
    }
    *after = page.next;
    if (book->n > SL_BOOK_LEASES_MAX)
        return sl_fail(error, SL_REJECT, "NotALease", "%s has more than %d rows: it is not a lease table",
                       book->options.table, SL_BOOK_LEASES_MAX);
    return SL_OK;
}

/* Rows that are gone. */
static void forget_unseen(struct sl_book *book)
{
    size_t kept = 0;
    for (size_t i = 0; i < book->n; i++) {
        if (book->list[i].was_seen) {
            book->list[kept++] = book->list[i];
            continue;
        }
        sl_book_lose(book, &book->list[i]);
        sl_book_clean_up_entry(&book->list[i]);
    }
    book->n = kept;
}

enum sl_status sl_book_look(struct sl_book *book, bool is_first, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    struct sl_span after = {NULL, 0};
    enum sl_status status;
    for (size_t i = 0; i < book->n; i++)
        book->list[i].was_seen = false;
    free(book->trouble);
    book->trouble = NULL;
    do {
        status = read_page(book, &after, is_first, arena, error);
    } while (status == SL_OK && after.ptr);
    if (status == SL_OK) {
        forget_unseen(book);
        book->has_made = false;
    }
    sl_arena_destroy(arena);
    return status;
}
