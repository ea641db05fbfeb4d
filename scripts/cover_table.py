#!/usr/bin/env python3
"""Prints the table of scripts/cover.sh: cover_table.py TITLE GATE GCOVR_JSON NOT_TAKEN. A row for each folder, a line for the whole;
writes each branch that was not taken to NOT_TAKEN; fails below GATE percent."""
import collections, json, os, sys

title, gate, path, not_taken = sys.argv[1:]
rooms, missing = collections.defaultdict(lambda: [0, 0]), []
for file in json.load(open(path))['files']:
    name = file['file']
    source = open(name).read().splitlines()
    for line in file['lines']:
        taken = [branch['count'] > 0 for branch in line['branches']]
        # What ends the process (out of memory) cannot be tested in it: one side of the condition before it does not count.
        if not all(taken) and source[line['line_number']].strip().startswith('sl_die('):
            taken.remove(False)
        rooms[os.path.dirname(name)][0] += sum(taken)
        rooms[os.path.dirname(name)][1] += len(taken)
        if not all(taken):
            missing.append(f'{name}:{line["line_number"]}: {sum(taken)} of {len(taken)}: {source[line["line_number"] - 1].strip()}')
with open(not_taken, 'w') as out:
    out.write('\n'.join(missing) + '\n' if missing else '')
for room, (good, of) in sorted(rooms.items()):
    if of:
        print(f'{room:32} {good:5} of {of:5} branches {100 * good / of:6.1f} %')
good, of = (sum(counts[i] for counts in rooms.values()) for i in (0, 1))
print(f'cover: {title}: {good} of {of} branches, {100 * good / of:.1f} %')
if good * 100 < of * float(gate):
    print(f'cover: {title} is below {gate} %; what no test takes:')
    print('\n'.join(missing[:40] + ([f'and {len(missing) - 40} lines more in {not_taken}'] if len(missing) > 40 else [])))
    sys.exit(1)
