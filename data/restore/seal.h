/* What a folded archive is bound to: the objects that it was made of, and its own text. A fold that is kept
 * for a later run is used again only while both are as they were. */
#ifndef SL_DATA_RESTORE_SEAL_H
#define SL_DATA_RESTORE_SEAL_H

#include "sinks/target.h"

#define SL_SEAL_BYTES 65 /* a SHA-256 as hexadecimal text, with the NUL */

/* Of the key, size and etag of every object below the places (as struct sl_source_archive and
 * struct sl_source_export have them), in their order. Reads no object. */
enum sl_status sl_seal_objects(struct sl_sinks *sinks, const char *const *places, size_t n,
                               char out[SL_SEAL_BYTES], struct sl_error *error) SL_MUST_USE;

/* Of a file's bytes and its length. SL_FATAL: it cannot be read. */
enum sl_status sl_seal_file(const char *path, char out[SL_SEAL_BYTES], struct sl_error *error) SL_MUST_USE;

#endif
