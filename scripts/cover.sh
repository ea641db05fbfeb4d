#!/bin/bash
# Branch coverage of the decoder's files by its own tests and fuzz corpora (gcov, no optimization). Prints a table, names every
# branch that no test takes, and fails below GATE percent (100).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}/cover
files=(base/json.c base/json_text.c base/json_path.c base/json_walk.c base/json_write.c base/base64.c base/time.c streams/decode/batch.c streams/decode/batch_object.c streams/decode/batch_record.c
    streams/decode/batch_add.c streams/decode/batch_draft.c streams/decode/batch_kinesis.c base/number.c streams/record.c streams/record_scan.c streams/record_index.c streams/record_time.c
    streams/record_item.c streams/value.c streams/value_canonical.c streams/value_equal.c streams/value_size.c streams/decode/batch_value.c)
headers=(base/hex.h base/json.h base/scan.h base/utf8.h streams/decode/form.h)
programs=(tests/base/test_{base,json,base64,number} tests/streams/test_{batch,record,record_scan,value,oracle} tests/fuzz/fuzz_{json,event,value,number})

find "$build" -name '*.gcda' -delete 2>/dev/null || true
make -s -j"$(nproc)" BUILD="$build" WARN=-w CFLAGS="-O0 -g --coverage" LDFLAGS=--coverage "${programs[@]/#/$build/}" >/dev/null
for program in "${programs[@]}"; do
    "$build/$program" >/dev/null 2>&1 || { echo "cover: $program fails" >&2; exit 1; }
done

python3 - "$build" "${files[@]}" -- "${headers[@]}" <<'END'
import gzip, json, os, subprocess, sys
build, names = sys.argv[1], sys.argv[2:]
headers = names[names.index('--') + 1:]
files = names[:names.index('--')]
taken = {}  # file -> (line, place) -> count, over all objects that hold it
for root, _, found in os.walk(build):
    for name in found:
        if not name.endswith('.gcda'):
            continue
        out = subprocess.run(['gcov', '-b', '-c', '--json-format', '-t', os.path.join(root, name)], capture_output=True, check=True).stdout
        for line in out.splitlines():
            for unit in json.loads(line)['files']:
                if unit['file'] not in files + headers:
                    continue
                for at in unit['lines']:
                    for i, branch in enumerate(at['branches']):
                        key = at['line_number'], at.get('function_name'), i
                        counts = taken.setdefault(unit['file'], {})
                        counts[key] = counts.get(key, 0) + branch['count']
all_of, all_taken = 0, 0
for name in files + headers:
    counts = taken.get(name, {})
    good = sum(1 for count in counts.values() if count)
    all_of, all_taken = all_of + len(counts), all_taken + good
    print(f'{name:30} {good:4} of {len(counts):4} branches')
    for line in sorted({key[0] for key, count in counts.items() if not count}):
        print(f'    not taken: {name}:{line}: {open(name).read().splitlines()[line - 1].strip()}')
print(f'cover: {all_taken} of {all_of} branches, {100 * all_taken / all_of:.1f} %')
sys.exit(all_taken < all_of * float(os.environ.get('GATE', '100')) / 100)
END
