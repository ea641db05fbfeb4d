#!/usr/bin/env python3
"""Mutation test: changes one token at a time in a copy of the tree and says which changes no unit test notices.

`make mutate` calls it; the settings are environment variables:
  TIME=600       begin no mutant after so many seconds      COUNT=n   exactly n mutants instead
  FILES='a b'    files or patterns (default: every room)    SEED=n    the same seed, tree and FILES: the same mutants
  ONLY='base'    build these rooms and their tests alone    JOBS=n    so many mutants at a time (default: the cores)
  GATE=percent   fail below this rate
`scripts/mutate.py --known` only looks for stale entries of tests/mutate/equivalent; lint calls it.

The unit tests of the copy link one shared library of all rooms, so that a mutant costs one compilation and one link. Each test runs
once on an instrumented library first, which tells the functions that it enters, in all its processes. A mutant meets the tests that
enter its function (the others cannot notice it): those that have noticed most in its file and the quick ones first; then those that
were measured with an older library. A mutant whose object file is the same as the original's, byte by byte, is equivalent and does
not count; nor do those in tests/mutate/equivalent."""
import concurrent.futures as futures
import filecmp, fnmatch, hashlib, os, pathlib, random, re, resource, shlex, shutil, signal, subprocess, sys, tempfile, threading, time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = (TOP / os.environ.get('BUILD', 'build') / 'mutate').resolve()
TREE, CC = BUILD / 'tree', shlex.split(os.environ.get('CC', 'cc'))
EQUIVALENT = TOP / 'tests/mutate/equivalent'
ROOMS = os.environ.get('ONLY', '').split()
JOBS = int(os.environ.get('JOBS') or os.cpu_count())
PROGRAMS = ('runtime/bootstrap.c', 'cli/sluice.c')  # the two mains: no unit test runs them
SHARED = '-g0 -fPIC -fvisibility=default -fplt -w'     # (the last flag wins over the Makefile's)

# ---- mutants ----

# What is found outside of comments and strings, and what takes its place.
TOKENS = [(r' < ', [' <= ']), (r' <= ', [' < ']), (r' > ', [' >= ']), (r' >= ', [' > ']), (r' == ', [' != ']), (r' != ', [' == ']),
          (r' && ', [' || ']), (r' \|\| ', [' && ']), (r' \+ 1\b', [' + 2']), (r' - 1\b', [' - 0']), (r'\btrue\b', ['false']),
          (r'\bfalse\b', ['true']), (r'\breturn SL_OK\b', ['return SL_RETRY']), (r'\bSL_RETRY\b', ['SL_REJECT']),
          (r'\bSL_REJECT\b', ['SL_RETRY']), (r'\bSL_FATAL\b', ['SL_REJECT']), (r'\+\+', ['--']), (r'(?<!-)--(?!-)', ['++']),
          (r' \+= ', [' -= ']), (r' -= ', [' += '])]
CALL = re.compile(r'^( +)[a-z_]+\([^;{}]*\);$')
NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
SKIPPED = re.compile(r'\s*(#|assert\(|static const|case |sl_die\(|sl_log)')
# By rule: an allocation that is larger does the same; memory that is not given back is seen by the instrumented tests, and in the rooms
# of LEAK_CHECKED (LEAKS in the Makefile) by the unit tests.
LARGER = re.compile(r'alloc\(|sl_array_new\(|\bchar \w+\[|sizeof')
GIVEN_BACK = re.compile(r'(free|\w+_clean_up|\w+_destroy|json_decref)\(')
LEAK_CHECKED = ('base/', 'streams/', 'handlers/')


class Mutant:
    """One change: `text` is the whole changed file."""

    def __init__(self, path, source, masked, start, end, new):
        self.path, self.line = path, masked.count('\n', 0, start) + 1
        self.text = source[:start] + new + source[end:]
        lines = slice(self.line - 1, self.line - 1 + source.count('\n', start, end) + 1)
        self.before, self.after = (' '.join(' '.join(t.split('\n')[lines]).split()) for t in (source, self.text))
        self.function = enclosing(masked, start)
        self.key = path, self.function, self.before, self.after

    def __str__(self):
        return f'{self.path}:{self.line}: {self.before} -> {self.after}'


def enclosing(masked, at):
    names = re.findall(r'^[A-Za-z][^;={}\n]*?(\w+)\([^;]*?\)\s*\{', masked[:at + 1], re.M)
    return names[-1] if names else ''


def closing(text, at):
    """Where the bracket that opens at `at` closes."""
    depth = 0
    for i in range(at, len(text)):
        depth += {'(': 1, ')': -1}.get(text[i], 0)
        if depth == 0:
            return i
    return -1


def mutants_of(path):
    source = (TOP / path).read_text()
    masked = NOT_CODE.sub(lambda m: re.sub(r'[^\n]', ' ' if m[0][0] == '/' else 'x', m[0]), source)
    found, offset, inside = [], 0, False
    for line in masked.split('\n'):
        inside = line == '{' or (inside and line != '}')
        if inside and not SKIPPED.match(line):
            for pattern, news in TOKENS:
                found += [(offset + m.start(), offset + m.end(), new) for m in re.finditer(pattern, line) for new in news
                          if not (new == ' + 2' and LARGER.search(line))]
            for m in re.finditer(r'\bif \(', line):
                end = closing(masked, offset + m.end() - 1)
                if end > 0:
                    found.append((offset + m.start(), end + 1, f'if (!{source[offset + m.end() - 1:end + 1]})'))
            if CALL.match(line) and (path.startswith(LEAK_CHECKED) or not GIVEN_BACK.match(line.lstrip())):
                found.append((offset + len(CALL.match(line)[1]), offset + len(line), '(void)0;'))
        offset += len(line) + 1
    return [(path, source, masked, *site) for site in found]


def equivalents():
    """{(file, function, before, after)}: lines `file function: before -> after`, each with its reason, indented, below. Tells the
    stale ones."""
    known, lines = {}, EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []
    for i, line in enumerate(lines):
        if line and not line.startswith(('#', ' ')):
            entry = re.fullmatch(r'(\S+) (\w+): (.*) -> (.*)', line)
            if not entry:
                sys.exit(f'mutate: {EQUIVALENT.name}:{i + 1}: FILE FUNCTION: BEFORE -> AFTER is expected')
            if not (i + 1 < len(lines) and lines[i + 1].startswith('    ')):
                sys.exit(f'mutate: {EQUIVALENT.name}:{i + 1}: the reason is missing; write it, indented, on the next line')
            known[entry.groups()] = i + 1
    there = {Mutant(*site).key for path in {entry[0] for entry in known} if (TOP / path).exists() for site in mutants_of(path)}
    stale = [entry for entry in known if entry not in there]
    for entry in stale:
        print(f'mutate: {EQUIVALENT.relative_to(TOP)}:{known[entry]} is stale: {entry[1]} in {entry[0]} has no such code; remove the entry')
    return known, len(stale)


# ---- the copy and its builds ----

def run(command, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith(('MAKE', 'MFLAGS'))}
    done = subprocess.run(command, cwd=TREE, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode:
        sys.exit(f'mutate: this fails in the copy of the tree:\n{done.stdout[-4000:]}')
    return done.stdout


def copy_tree():
    """What git has or would add; files that are the same keep their times, for make."""
    names = subprocess.check_output(['git', 'ls-files', '-co', '--exclude-standard'], cwd=TOP, text=True).splitlines()
    names = {n for n in names if (TOP / n).is_file()}
    for old in [p for p in TREE.rglob('*') if p.is_file() or p.is_symlink()]:
        if str(old.relative_to(TREE)) not in names and '__pycache__' not in old.parts:
            old.unlink()
    for name in names:
        source, copy = TOP / name, TREE / name
        if not copy.exists() or not filecmp.cmp(source, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            copy.chmod(source.stat().st_mode)


def in_rooms(path, below=''):
    return not ROOMS or any(path.startswith(f'{below}{room}/') for room in ROOMS)


def below(pattern, *rooms):
    return sorted(str(p.relative_to(TREE)) for room in rooms for p in (TREE / room).rglob(pattern))


class Build:
    """The objects, the shared library and the programs of the tests."""

    def __init__(self):
        everything = below('*.c', 'base', 'net', 'streams', 'aws', 'sinks', 'handlers', 'data', 'runtime', 'esm', 'live', 'cli')
        self.sources = [s for s in everything if s not in PROGRAMS and in_rooms(s)]
        tests = [t for t in below('test_*.c', 'tests') if in_rooms(t, 'tests/')]
        self.tests = [t[:-2] for t in tests + ([] if ROOMS else below('fuzz_*.c', 'tests'))]
        self.libs, self.base = [], []

    def make(self, where, flags, *targets):
        run(['make', '-s', f'-j{JOBS}', f'BUILD={where}', f'CC={shlex.join(CC)}', f'CFLAGS={flags} {SHARED}', *targets])

    def link(self, objects, out):
        listed = pathlib.Path(f'{out}.objects')
        listed.write_text('\n'.join(map(str, objects)))
        run([*CC[-1:], '-shared', '-Wl,-soname,libsluice.so', '-o', str(out), f'@{listed}', *self.libs])

    def objects(self, where):
        return [BUILD / where / s.replace('.c', '.o') for s in self.sources]

    def everything(self):
        for folder in ('run', 'reach'):
            (BUILD / folder).mkdir(parents=True, exist_ok=True)
        asked = 'include Makefile\nmutate-asks:\n\t@echo $(LIBS) $(TOOL_LIBS)\n\t@echo $(BASE) $(DEFLATE)\n'
        libs, base = run(['make', '-s', '-f', '-', 'mutate-asks'], input=asked).splitlines()
        self.libs, self.base = libs.split(), [f for f in base.split() if f not in ('-MMD', '-MP')]
        self.make('../run', '-O2', *(f'../run/{s[:-2]}.o' for s in self.sources))
        library = BUILD / 'run/libsluice.so'
        self.link(self.objects('run'), library)
        self.make('../reach', '-O0 -finstrument-functions', *(f'../reach/{s[:-2]}.o' for s in [*self.sources, 'tests/mutate/reach.c']))
        self.link([*self.objects('reach'), BUILD / 'reach/tests/mutate/reach.o'], BUILD / 'reach/libsluice.so')
        # (Without -o, make would put an archive of the objects in its place.)
        self.make('../run', '-O2', '-o', '../run/libsluice.so', 'LIBRARY=../run/libsluice.so', 'TOOL_OBJ=', *(f'../run/{t}' for t in self.tests), 'handlers')

    def users(self, path):
        """The sources that hold the code of this file."""
        if path.endswith('.c'):
            return [path]
        return [s for s in self.sources if path in (BUILD / 'run' / s.replace('.c', '.d')).read_text().split()]


# ---- the tests ----

class Test:
    def __init__(self, name):
        self.name, self.digest, self.seconds, self.enters, self.noticed = name, '', 0.0, set(), {}
        self.library = ''  # the digest of the one that `enters` is of


def limits(cpu_s):
    def set_limits():
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))  # (the leak checker reserves addresses without end)
    return set_limits


def passes(test, library, wall_s, cpu_s, **more):
    """Whether the test passes with this library; it is ended, with all that it began, at its limits."""
    with tempfile.TemporaryDirectory(dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None, ignore_cleanup_errors=True) as tmp:
        env = {**os.environ, 'LD_LIBRARY_PATH': str(library), 'TMPDIR': tmp, **more}
        process = subprocess.Popen([str(BUILD / 'run' / test.name)], cwd=TREE, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=limits(cpu_s))
        try:
            return process.wait(wall_s) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def symbols(library):
    """[(offset, name)] of its functions."""
    out = subprocess.check_output(['nm', '--defined-only', str(library)], text=True)
    return [(int(at, 16), name) for at, kind, name in (line.split() for line in out.splitlines()) if kind in 'tT']


def measure(test, names, size):
    """One run on the optimized library for the time, one on the instrumented one for the functions it enters."""
    began = time.time()
    good = passes(test, BUILD / 'run', 600, 300)
    test.seconds = time.time() - began
    with tempfile.NamedTemporaryFile() as reached:
        reached.truncate(size)
        good = passes(test, BUILD / 'reach', 1200, 600, SL_REACH=reached.name) and good
        entered = reached.read()
    test.enters = {name for at, name in names if entered[at]}
    return test if good else None


def measured(build, library):
    """Every test that passes without a mutant. A test's figures are kept until it changes."""
    kept = BUILD / 'measured'
    known = {digest: (of, seconds, enters) for digest, of, name, seconds, *enters in map(str.split, kept.read_text().splitlines())} \
        if kept.exists() else {}
    names, size = symbols(BUILD / 'reach/libsluice.so'), (BUILD / 'reach/libsluice.so').stat().st_size

    def one(name):
        test = Test(name)
        test.digest = hashlib.sha256((BUILD / 'run' / name).read_bytes()).hexdigest()
        if test.digest in known:
            test.library, seconds, enters = known[test.digest]
            test.seconds, test.enters = float(seconds), set(enters)
            return test
        test.library = library
        return measure(test, names, size)

    with futures.ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(one, build.tests))
    for name, test in zip(build.tests, results):
        if not test:
            print(f'mutate: {name} fails without any change; it does not take part', flush=True)
    tests = [t for t in results if t]
    kept.write_text(''.join(' '.join([t.digest, t.library, t.name, f'{t.seconds:.3f}', *sorted(t.enters)]) + '\n' for t in tests))
    return tests


# ---- judging ----

class Judge:
    def __init__(self, build):
        self.library = hashlib.sha256((BUILD / 'reach/libsluice.so').read_bytes()).hexdigest()
        self.build, self.tests, self.lock, self.originals = build, measured(build, self.library), threading.Lock(), {}
        self.functions = {name for _, name in symbols(BUILD / 'reach/libsluice.so')}

    def compile(self, folder, source):
        """The object of the source that `folder` has in place of the tree's; None: it does not compile."""
        out = folder / source.replace('.c', '.o')
        out.parent.mkdir(parents=True, exist_ok=True)
        source_path = source if (folder / source).exists() else TREE / source
        done = subprocess.run([*CC, *self.build.base, '-O2', *SHARED.split(), f'-I{TREE}', f'-Wa,-I,{TREE}', '-c', str(source_path), '-o', str(out)],
                              cwd=folder, env={**os.environ, 'CCACHE_DISABLE': '1'}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return out if done.returncode == 0 else None

    def original(self, source, path):
        """The bytes of the unchanged object, made in the same way: with a copy of `path`, the source or a header of it."""
        with self.lock:
            if (source, path) not in self.originals:
                with tempfile.TemporaryDirectory(dir=BUILD) as folder:
                    (copy := pathlib.Path(folder) / path).parent.mkdir(parents=True)
                    shutil.copyfile(TREE / path, copy)
                    self.originals[source, path] = self.compile(pathlib.Path(folder), source).read_bytes()
            return self.originals[source, path]

    def order(self, mutant):
        """The tests that can notice it: those that enter its function; all, when it is in none. What is known of an older library is
        a guess: its other tests come last."""
        near = {t for t in self.tests if mutant.function in t.enters or mutant.function not in self.functions}
        room = '/'.join(mutant.path.split('/')[:2])
        return sorted((t for t in self.tests if t in near or t.library != self.library),
                      key=lambda t: (t not in near, -t.noticed.get(mutant.path, 0) / (t.seconds + 0.05),
                                     t.seconds * (1 if f'tests/{room}' in t.name else 3)))

    def judge(self, mutant):
        """'broken', 'equal', 'survived', or the name of the test that notices."""
        with tempfile.TemporaryDirectory(dir=BUILD) as name:
            folder = pathlib.Path(name)
            (folder / mutant.path).parent.mkdir(parents=True)
            (folder / mutant.path).write_text(mutant.text)
            changed = {}
            for source in self.build.users(mutant.path):
                changed[source] = self.compile(folder, source)
                if not changed[source]:
                    return 'broken'
            if all(made.read_bytes() == self.original(source, mutant.path) for source, made in changed.items()):
                return 'equal'
            self.build.link([changed.get(s, o) for s, o in zip(self.build.sources, self.build.objects('run'))], folder / 'libsluice.so')
            for test in self.order(mutant):
                if not passes(test, folder, 60 + 30 * test.seconds, 5 + 10 * test.seconds):
                    test.noticed[mutant.path] = test.noticed.get(mutant.path, 0) + 1
                    return test.name
        return 'survived'


def chosen(build):
    """The mutants, in the order of the seed."""
    patterns = os.environ.get('FILES', '').split() or ['*']
    headers = [h for h in below('*.h', *{s.split('/')[0] for s in build.sources}) if in_rooms(h)]
    files = [f for f in [*build.sources, *headers] if any(fnmatch.fnmatch(f, p) for p in patterns)]
    if not files:
        sys.exit(f'mutate: no source is called {" ".join(patterns)}')
    seed = int(os.environ.get('SEED') or time.time())
    sites = [site for f in files for site in mutants_of(f)]
    random.Random(seed).shuffle(sites)
    return seed, (Mutant(*site) for site in sites)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    known, stale = equivalents()
    if '--known' in sys.argv:
        sys.exit(bool(stale))
    TREE.mkdir(parents=True, exist_ok=True)
    copy_tree()
    build = Build()
    build.everything()
    judge = Judge(build)
    seed, mutants = chosen(build)
    count, end = int(os.environ.get('COUNT') or 0), time.time() + float(os.environ.get('TIME') or 600)
    tally, done = {}, 0
    print(f'mutate: seed {seed}, {len(judge.tests)} tests', flush=True)

    def next_mutant():
        nonlocal done
        for mutant in mutants:
            if mutant.key in known:
                tally['known'] = tally.get('known', 0) + 1
            elif (done >= count) if count else (time.time() >= end):
                return None
            else:
                done += 1
                return mutant
        return None

    def work():
        while True:
            with judge.lock:
                mutant = next_mutant()
            if not mutant:
                return
            verdict = judge.judge(mutant)
            if verdict == 'survived':
                print(f'survived  {mutant}', flush=True)
            elif os.environ.get('VERBOSE'):
                print(f'{verdict}  {mutant}', flush=True)
            verdict = verdict if verdict in ('survived', 'broken', 'equal') else 'noticed'
            with judge.lock:
                tally[verdict] = tally.get(verdict, 0) + 1

    with futures.ThreadPoolExecutor(JOBS) as pool:
        for worker in [pool.submit(work) for _ in range(JOBS)]:
            worker.result()
    noticed, survived = tally.get('noticed', 0), tally.get('survived', 0)
    rate = 100 * noticed / max(1, noticed + survived)
    print(f'mutate: {noticed} of {noticed + survived} mutants noticed, {rate:.1f} % (seed {seed}; besides, {tally.get("equal", 0)} compile to the '
          f'same code, {tally.get("known", 0)} are known equivalents, {tally.get("broken", 0)} do not compile)')
    sys.exit(1 if stale or rate < float(os.environ.get('GATE') or 0) else 0)


main()
