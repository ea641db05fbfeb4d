/* Which files an export has: its manifests, read, checked against their checksums and against what is there.
 */
#ifndef SL_DATA_SOURCE_EXPORT_LIST_H
#define SL_DATA_SOURCE_EXPORT_LIST_H

#include "data/source/manifest.h"
#include "data/source/store.h"

struct sl_export_list {
    struct sl_manifest_summary summary;
    struct sl_manifest_file *files; /* in the order of their keys */
    struct sl_store_entry *entries; /* their sizes; NULL: not known */
    size_t n, room;
    uint64_t bytes; /* of all */
};

/* `table`: name or ARN of the table that the export has to be of; NULL: any. Texts live in `arena`, the rest
 * until sl_export_list_clean_up, which is called after a failure too. `call` is of the reading. */
struct sl_export_list_options {
    struct sl_store *store;
    struct sl_arena *arena;
    const char *table;
    const struct sl_call *call;
};

enum sl_status sl_export_list_read(const struct sl_export_list_options *options, struct sl_export_list *out,
                                   struct sl_error *error) SL_MUST_USE;
void sl_export_list_add(struct sl_export_list *list, const struct sl_manifest_file *file);
void sl_export_list_clean_up(struct sl_export_list *list);

#endif
