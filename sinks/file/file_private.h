/* Objects as files below a folder: what its files share. */
#ifndef SL_SINKS_FILE_FILE_PRIVATE_H
#define SL_SINKS_FILE_FILE_PRIVATE_H

#include "base/sha256.h"
#include "sinks/port.h"

/* The folder of files that are being written; no object's name. */
#define SL_FILE_PARTIAL ".partial"

struct sl_file {
    struct sl_object_port port;
    int root;    /* the folder */
    int partial; /* folder/.partial */
    char *path;  /* for messages */
};

void sl_file_put(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                 struct sl_result *results, const struct sl_call *call);
void sl_file_read(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                  struct sl_object_piece *pieces, const struct sl_call *call);
void sl_file_list(struct sl_object_port *port, const struct sl_object_list *list, struct sl_object_page *page,
                  const struct sl_call *call);
void sl_file_remove(struct sl_object_port *port, const struct sl_object_removal *removals, size_t n,
                    struct sl_result *results, const struct sl_call *call);

/* The folder in which the object is, and the object's name in it: no segment of the path is followed when it
 * is a link. Nothing is created. Returns a descriptor, or -1 and errno; `key` is changed meanwhile. */
int sl_file_folder(const struct sl_file *file, char *key, char **name);

/* Whether the key can be a file's; if not, the result says why. */
bool sl_file_key_is_good(const struct sl_file *file, struct sl_span key, struct sl_result *result,
                         struct sl_arena *arena);

/* A key holds an item's values: texts name it by its digest. */
const char *sl_file_digest(struct sl_span key, char out[SL_SHA256_HEX]);

/* The file's inode, size and time of change as a text: another one after each write. */
struct stat;
struct sl_span sl_file_etag(const struct stat *info, struct sl_arena *arena);

#endif
