/* What a plugin's file says of itself, read from its bytes. */
#ifndef SL_HANDLERS_PIPELINE_LOADER_PRIVATE_H
#define SL_HANDLERS_PIPELINE_LOADER_PRIVATE_H

#include "base/error.h"
#include "handlers/handler.h"

struct sl_loader_facts {
    bool has_abi; /* false: the file has no section table to look in; ask the dynamic linker */
    struct sl_abi abi;
};

/* `path` is for the messages. Codes: those of loader.h from "HandlerNotElf" to "HandlerNoSymbol". */
enum sl_status sl_loader_inspect(const char *path, struct sl_span bytes, struct sl_loader_facts *out,
                                 struct sl_error *error) SL_MUST_USE;

#endif
