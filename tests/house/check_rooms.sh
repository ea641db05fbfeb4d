#!/bin/bash
# The table of rooms in scripts/lint.sh allows what it should, and refuses the rest.
set -euo pipefail
cd "$(dirname "$0")/../.."
passed=0
check() { # check allowed|refused FILE INCLUDE
    local is=refused
    ! scripts/lint.sh --may "$2" "$3" || is=allowed
    [ "$is" = "$1" ] || { echo "FAIL $2 includes $3: $is"; exit 1; }
    passed=$((passed + 1))
}
check allowed base/a.c base/span.h
check refused base/a.c streams/types.h
check allowed net/a.c base/span.h
check refused net/a.c aws/aws.h
check allowed streams/when/a.c streams/template/template.h
check refused streams/a.c sinks/port.h
check allowed sinks/a.c streams/value.h
check refused sinks/a.c streams/record.h
check allowed sinks/s3/a.c sinks/port.h
check refused sinks/s3/a.c sinks/file/file.h
check refused sinks/a.c handlers/handler.h
check allowed handlers/handler.h base/types.h
check refused handlers/handler.h base/span.h
check allowed handlers/builtin/aggregate/write/a.c handlers/builtin/aggregate/aggregate_private.h
check allowed handlers/builtin/notify/a.c handlers/builtin/toolkit/list.h
check refused handlers/builtin/notify/a.c handlers/builtin/replicate/replicate.h
check refused handlers/builtin/notify/a.c handlers/dispatch/dispatch.h
check refused handlers/builtin/notify/a.c sinks/target.h
check allowed handlers/dispatch/a.c handlers/pipeline/pipeline.h
check refused handlers/pipeline/a.c handlers/dispatch/dispatch.h
check allowed data/verify/a.c data/source/source.h
check refused data/source/a.c handlers/handler.h
check refused data/verify/a.c aws/aws.h
check allowed runtime/work/a.c data/backfill/backfill.h
check refused runtime/a.c live/tail/engine.h
check refused runtime/api/a.c streams/types.h
check refused runtime/lambda/a.c runtime/serve.h
check allowed esm/a.c streams/record.h
check refused esm/a.c data/source/source.h
check allowed live/tail/a.c esm/esm.h
check refused live/tail/a.c cli/flags.h
check refused live/tail/a.c runtime/serve.h
check allowed cli/watch/a.c live/tail/engine.h
check refused cli/a.c runtime/serve.h
check refused nowhere/a.c base/span.h
echo "$passed passed"
