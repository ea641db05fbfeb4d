/* The handler that does nothing, built in; build/bench/empty.so is the same as a plugin. */
#ifndef SL_BENCH_SUPPORT_EMPTY_HANDLER_H
#define SL_BENCH_SUPPORT_EMPTY_HANDLER_H

#include "handlers/handler.h"

extern const struct sl_handler bench_empty_handler;

#endif
