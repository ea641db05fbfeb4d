#!/usr/bin/env python3
"""`sluice replay --report` in a real browser: Debian's headless Chromium opens reports of real runs on a phone's and a desk's
width. Fails, and says why, when Chromium or axe-core is not installed: scripts/setup.sh check installs both."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unicodedata

import browser
from harness import FUNCTION_SH, WHOLE, Run, check, finish, record, work_folder

folder = work_folder()
AXE = pathlib.Path(subprocess.run(["tests/cli/install.sh"], stdout=subprocess.PIPE, text=True).stdout.strip() or sys.exit("FAIL axe-core is not installed")) / "axe.min.js"
PHONE, DESK = 390, 1280
# A page of 5,000 invocations has some 300 KB and is there in 0.2 s; the limits leave room for a busy machine.
MOST_BYTES, MOST_SECONDS, MOST_ELEMENTS = 600_000, 5, 3_000

HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "]]>", "<img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>",
           "'-alert(1)-'", "</td></table><h1>owned</h1>", "</title><script>alert(1)</script>", "&lt;b&gt;&amp;#60;", "\u202egnp.exe",
           "\u2066\u2069\u202a", "line\nbreak\ttab", "\x00\x01\x1b[31m\x7f", "\ufeff\u2028\u2029", "𝕳𝖔𝖘𝖙𝖎𝖑𝖊 😀", "a" * 190, "\\u003c\\x3c%3C", "{{7*7}}${7*7}",
           "javascript:alert(1)", "#i-0-0"]


# Characters of category Cf that are named; the others have a shape of their own.
FORMATS = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff\ufff9\ufffa\ufffb" + "".join(
    map(chr, [*range(0x2060, 0x2070), *range(0xe0000, 0xe0080)]))


def shortened(text, most):
    return text.encode()[:most].decode(errors="ignore")


def corpus():
    """Other people's hostile strings, when they are there; a key is not empty and has a limit."""
    path = pathlib.Path(os.environ.get("CORPUS", "../shared/conformance")) / "hostile-strings" / "blns.json"
    return [shortened(s, 190) for s in json.loads(path.read_text()) if s] if path.exists() else []


# ---- reports of real runs ----

class Report:
    def __init__(self, name, *flags, function=None, records=None, folder=folder):
        self.path = folder / f"{name}.html"
        self.name = name
        self.run = Run(folder, *flags, "--report", str(self.path), function=function, records=records)
        check(f"{name}: runs", self.path.exists(), self.run.err)
        self.html = self.path.read_text()
        self.data = json.loads(self.html.split("id=data>")[1].split("</script>")[0])
        self.rows = [row for shard in self.data["shards"] for row in shard["rows"]]


def many(n, **how):
    return [record(i, **how) for i in range(1, n + 1)]


def clean():
    return Report("clean", "--batch-size", "10", function="answer null", records=many(100))


def poison():
    return Report("poison", "--batch-size", "50", "--bisect", "--max-retries", "2", function="error-on 33,77,78", records=many(100))


def partial():
    return Report("partial", "--batch-size", "20", "--report-failures", "--max-retries", "1", function="name 7,30", records=many(40))


def windows():
    records = [record(n, created=1573689180 + n * 4) for n in range(1, 41)]
    return Report("windows", "--batch-size", "4", "--tumbling", "60", "--fault", "throttle@2-4,lost@6,crash@12", function="sum", records=records)


def lanes():
    records = [record(n, key=f"k{n % 37}") for n in range(1, 400)]
    return Report("lanes", "--batch-size", "10", "--bisect", "--max-retries", "1", "--parallelization", "10", "--shards", "2",
                  "--fault", "lost@10%,throttle@10%", function="error-on 50,77,150", records=records)


def large():
    return Report("large", "--batch-size", "10", "--bisect", "--max-retries", "1", function="error-on 4021,39000", records=many(50000))


def routes():
    """Our own bootstrap: one route parks, the other gives up."""
    message = {"handler": "notify", "message": "item {n}"}
    config = {"report_batch_item_failures": True, "routes": [{"name": "mail", "to": "jsonl:mail.jsonl", "on_failure": "jsonl:parked.jsonl", **message},
                                                             {"name": "strict", "to": "jsonl:strict.jsonl", "on_failure": "report", **message}]}
    (folder / "sluice.json").write_text(json.dumps(config))
    records = many(40)
    for n in (7, 19, 20):
        del records[n - 1]["dynamodb"]["NewImage"]["n"]
    return Report("routes", "--batch-size", "10", "--max-retries", "2", records=records)


def hostile(name, texts):
    """Hostile text in keys, their names, error messages, file names, the command and a pattern."""
    records = []
    for n, text in enumerate(texts, 1):
        one = record(n)
        one["dynamodb"]["Keys"] = {shortened(text, 60) if n % 2 else "PK": {"S": text}}
        records.append(one)
    # A path with every character that markup needs: the folder is "<", the file begins with "script>".
    (folder / "<").mkdir(exist_ok=True)
    file = "</script><img src=x onerror=alert(1)>\u202e\".json"
    (folder / file).write_text(json.dumps({"Records": records}))
    pattern = json.dumps({"dynamodb": {"SequenceNumber": [{"anything-but": "</script><script>alert(1)</script>"}]}})
    report = Report(name, "--batch-size", "1", "--max-retries", "0", "--filter", pattern, "--bootstrap",
                    f"exec {FUNCTION_SH} error-key '</script><b>\"&'", file)
    report.texts = texts
    return report


# ---- what every report has to pass, on every screen ----

VISIBLE_TIP = "(() => { const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.innerText; })()"
ROW = "document.querySelectorAll('.rows button')"


def axe(page, what):
    page.evaluate(AXE.read_text())
    found = page.evaluate("""axe.run({resultTypes: ['violations']}).then(r => ({contrast: r.passes.filter(p => p.id === 'color-contrast').reduce((n, p) => n + p.nodes.length, 0),
        violations: r.violations.map(v => v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map(n => n.html))}))""")
    check(f"{what}: axe-core finds nothing", found["violations"] == [], found)
    check(f"{what}: axe-core has seen the text", found["contrast"] > 0, found)


def fits(page, what):
    wide = page.evaluate("""[...document.querySelectorAll('body *')].filter(e => !e.closest('pre, .bar, .lanes, .overview, .hidden, .state, thead') &&
        !/^(none|inline)$/.test(getComputedStyle(e).display) && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
        .slice(0, 5).map(e => e.outerHTML.slice(0, 120))""")
    check(f"{what}: nothing is wider than the screen", wide == [], wide)
    check(f"{what}: the page does not scroll sideways", page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def told_by_keyboard(page, what):
    """Tab reaches the picture; arrows go from line to line; the tooltip says what the data says; Escape closes it."""
    page.evaluate("(links => links.length && links[links.length - 1].focus())(document.querySelectorAll('a'))")
    for _ in range(50):
        page.press("Tab")
        if page.evaluate("document.activeElement.matches('.rows button')"):
            break
    check(f"{what}: Tab reaches the lines", page.evaluate("document.activeElement.matches('.rows button')"))
    first = page.evaluate(VISIBLE_TIP)
    check(f"{what}: the tooltip has text", first.startswith("Invocation ") and "Answer" in first or "Refused" in first, first)
    check(f"{what}: it describes the line", page.evaluate("document.activeElement.getAttribute('aria-describedby') === 'tip'"))
    page.press("ArrowDown")
    second = page.evaluate(VISIBLE_TIP)
    check(f"{what}: an arrow goes to the next line", second.startswith("Invocation ") and second != first, second)
    page.press("Escape")
    check(f"{what}: Escape closes it", page.evaluate(VISIBLE_TIP) == "")
    page.press("End")
    check(f"{what}: End goes to the last line", page.evaluate("document.activeElement.row.position") ==
          page.evaluate("[...document.querySelectorAll('.rows')].filter(r => r.contains(document.activeElement)).map(r => r.lastChild.firstChild.row.position)[0]"))


def told_by_pointer(page, what, touch):
    page.press("Escape")
    page.evaluate("document.activeElement.blur()")
    place = page.evaluate(f"(() => {{ const b = {ROW}[1]; b.scrollIntoView({{block: 'center'}}); const r = b.getBoundingClientRect(); return [r.left + r.width / 2, r.top + 12]; }})()")
    (page.tap if touch else page.move)(*place)
    number = page.evaluate(f"{ROW}[1].row.index") + 1
    text = page.evaluate(VISIBLE_TIP)
    check(f"{what}: {'a tap' if touch else 'the mouse'} opens the tooltip", text.startswith(f"Invocation {number:,}:"), text)
    box = page.evaluate("(() => { const r = document.getElementById('tip').getBoundingClientRect(); return [r.left, r.right, r.top, r.bottom, innerWidth, innerHeight]; })()")
    check(f"{what}: the tooltip is on the screen", box[0] >= 0 and box[1] <= box[4] and box[2] >= 0 and box[2] < box[5], box)


def opens(page, report, width):
    what, touch = f"{report.name} at {width}", width == PHONE
    seconds = page.open(report.path, width, touch=touch)
    check(f"{what}: {seconds:.2f} s", seconds < MOST_SECONDS)
    fits(page, what)
    told_by_keyboard(page, what)
    told_by_pointer(page, what, touch)
    fits(page, what + " with a tooltip")
    axe(page, what + " with a tooltip")
    check(f"{what}: nothing in the console, no request", page.complaints() == [], page.complaints())
    if width == DESK:
        page.open(report.path, width, dark=True)
        axe(page, what + ", dark")
    page.open(report.path, width, media="print")
    fits(page, what + ", printed")
    check(f"{what}: controls are not printed", page.evaluate("[...document.querySelectorAll('.controls, .tip')].every(e => getComputedStyle(e).display === 'none')"))
    check(f"{what}: nothing in the console", page.complaints() == [], page.complaints())


# ---- what is said ----

def table(page):
    """The rows of the table of losses: by column."""
    return page.evaluate("""[...document.querySelectorAll('section[aria-labelledby=h-lost] tbody tr')].map(tr =>
        Object.fromEntries([...tr.children].map(td => [td.dataset.name, td.textContent])))""")


def lists_losses(page, report, given_up, parked=()):
    page.open(report.path, DESK)
    rows = table(page)
    check(f"{report.name}: every record that was given up", [r["Sequence number"] for r in rows if r["What"] == "given up"] == list(map(str, given_up)), rows)
    check(f"{report.name}: every record that was parked", [r["Sequence number"] for r in rows if r["What"] == "parked"] == list(map(str, parked)), rows)
    for i, row in enumerate(rows):
        page.evaluate(f"document.querySelectorAll('section[aria-labelledby=h-lost] a')[{i}].click()")
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        shown = page.evaluate("(() => { const r = document.activeElement.row; return r && [r.kind, r.firstId, r.lastId, r.index + 1]; })()")
        check(f"{report.name}: the link leads into the picture", shown and row["Picture"].startswith(f"invocation\u00a0{shown[3]} "), (row, shown))
        check(f"{report.name}: to the invocation that decided", int(shown[1]) <= int(row["Sequence number"]) <= int(shown[2]) and
              (shown[0] == 4 or row["What"] == "parked"), (row, shown))
        check(f"{report.name}: with its tooltip on the screen", page.evaluate("(() => { const r = document.activeElement.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })()") and
              page.evaluate(VISIBLE_TIP).startswith(f"Invocation {shown[3]:,}:"), shown)
    return rows


def says_the_run(page, report, facts):
    page.open(report.path, DESK)
    found = page.evaluate("Object.fromEntries([...document.querySelectorAll('.facts div')].map(d => [d.querySelector('dt').textContent, d.querySelector('dd').innerText]))")
    for name, value in facts.items():
        check(f"{report.name}: {name}", found.get(name) == value, found)
    check(f"{report.name}: when", found["Replayed"].startswith("20") and found["Virtual time began"] == "2019-11-13T23:53:17.000Z", found)


def losses(page, poison, partial, routes, large):
    rows = lists_losses(page, poison, [33, 77, 78])
    check("poison: key, reason and attempts", rows[0]["Key"] == "PK = k33" and rows[0]["Reason"] == "Out of attempts after 3 deliveries. Error: poison" and
          rows[0]["Route"] == "not known", rows[0])
    rows = lists_losses(page, partial, [f for f in range(7, 21)] + [f for f in range(30, 41)])
    check("partial: the batch that went with it", "with 13 others of its batch" in rows[0]["Reason"] and "Names 1 record as failed: 7" in rows[0]["Reason"], rows[0])
    rows = lists_losses(page, routes, [7, 8, 9, 10, 19, 20], parked=[7, 19, 20])
    lost = [r for r in rows if r["What"] == "given up"]
    check("routes: which route gave up", all(r["Route"] == "strict" for r in lost) and "MissingAttribute: the record has no value for {n}" in lost[0]["Reason"], lost)
    check("routes: the record beside is not blamed", "Record 7 failed first: " in lost[1]["Reason"] and "failed first" not in lost[0]["Reason"], lost)
    check("routes: which route parked", all(r["Route"] == "mail" and r["Reason"].startswith("MissingAttribute: ") for r in rows if r["What"] == "parked"), rows)
    lists_losses(page, large, [4021, 39000])


def facts(page, poison, windows, routes):
    says_the_run(page, poison, {"Input": "in.json", "BatchSize": "50", "MaximumRetryAttempts": "2", "BisectBatchOnFunctionError": "on",
                                "ReportBatchItemFailures": "off", "TumblingWindowInSeconds": "none", "Seed": "0",
                                "Function (another runtime)": f"exec {FUNCTION_SH} error-on 33,77,78"})
    says_the_run(page, routes, {"Function (bootstrap with)": "sluice.json", "MaximumRecordAgeInSeconds": "no limit", "ReportBatchItemFailures": "on"})
    rows = page.evaluate("[...document.querySelectorAll('.routes tbody tr')].map(tr => [...tr.children].map(c => c.textContent).join(' '))")
    printed = [" ".join(line.split()) for line in routes.run.out.splitlines()]
    check("routes: what each route did", len(rows) == 2 and all(row in printed for row in rows), (rows, printed))
    pre = page.evaluate("document.querySelector('pre').textContent")
    check("routes: the summary as it was printed", pre == routes.run.out, pre)
    page.open(windows.path, DESK)
    check("windows: the planned faults", "throttle@2-4,lost@6,crash@12" in page.evaluate("document.querySelector('main').innerText"))


# ---- how it is drawn ----

def has_contrast(page, report):
    """Each state against what it is drawn on: 3 to 1 (WCAG 1.4.11), light, dark and printed."""
    luminance = """(color => { const c = document.createElement('canvas').getContext('2d'); c.fillStyle = color; c.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; })"""
    for dark, media in ((False, "screen"), (True, "screen"), (False, "print")):
        page.open(report.path, DESK, dark=dark, media=media)
        light = page.evaluate(f"""(() => {{ const style = getComputedStyle(document.documentElement), of = {luminance};
            return Object.fromEntries(['page', 'panel', 'advance', 'checkpoint', 'retry', 'bisect', 'discard', 'throttled', 'final', 'parked', 'focus']
                .map(name => [name, of(style.getPropertyValue('--' + name))])); }})()""")
        for name in light:
            for under in ("page", "panel"):
                high, low = max(light[name], light[under]), min(light[name], light[under])
                check(f"{name} on {under}, dark {dark}, {media}", name in ("page", "panel") or (high + 0.05) / (low + 0.05) >= 3, light)


def has_shapes(page, report):
    """All in black: what can still be told apart is told by its shape."""
    page.open(report.path, DESK)
    page.evaluate("for (const name of ['advance', 'checkpoint', 'retry', 'bisect', 'discard', 'throttled', 'final', 'parked']) document.documentElement.style.setProperty('--' + name, '#000')")
    shapes = {}
    for name in ("advance", "checkpoint", "retry", "bisect", "discard", "throttled", "final", "final-open", "parked"):
        page.evaluate(f"document.body.innerHTML = document.querySelector('.sprite').outerHTML + '<svg width=40 height=40 class=k-advance><use href=\"#g-{name}\"/></svg>'")
        shapes[name] = page.pixels(0, 0, 100, 100)
    check("each state has its own shape", len(set(shapes.values())) == len(shapes), [k for k in shapes])


def has_bars(page, reports):
    """The same for the bars, as the page draws them: each state's first bar, stretched to one size."""
    bars = {}
    for report in reports:
        for kind in range(6):
            page.open(report.path, DESK)
            page.evaluate("for (const name of ['advance', 'checkpoint', 'retry', 'bisect', 'discard', 'throttled', 'final']) document.documentElement.style.setProperty('--' + name, '#000')")
            found = page.evaluate(f"""(() => {{ const b = [...{ROW}].find(b => b.row.kind === {kind} && b.row.n > 3); if (!b) return false;
                const bar = b.querySelector('.bar').cloneNode(true), rects = [...bar.children], from = Math.min(...rects.map(r => parseFloat(r.style.x.slice(4))));
                document.body.replaceChildren(document.querySelector('.sprite'), bar);
                rects.forEach((r, i) => {{ r.style.x = (rects.length > 1 && {kind} === 3 ? i * 100 : 0) + 'px'; r.style.width = (rects.length > 1 ? (i || {kind} === 3 ? 100 : 200) : 200) + 'px'; }});
                return true; }})()""")
            if found and kind not in bars:
                bars[kind] = page.pixels(0, 0, 300, 80)
    check("each state has a bar", sorted(bars) == [0, 1, 2, 3, 4, 5], sorted(bars))
    check("each state's bar has its own pattern", len(set(bars.values())) == 6, sorted(bars))


def shows_lanes(page, report):
    page.open(report.path, DESK)
    check("lanes: each shape stands in its lane's column", page.evaluate(f"""[...{ROW}].every(b => b.querySelectorAll('.lanes line').length === 10 &&
        b.querySelector('.lanes svg').getAttribute('x') === (b.row.lane + 0.5) * 10 + '%')"""))
    check("lanes: several are used", page.evaluate(f"new Set([...{ROW}].map(b => b.row.lane)).size") > 5)
    check("lanes: the line says its lane", page.evaluate(f"[...{ROW}].every(b => b.textContent.includes('lane ' + (b.row.lane + 1)))"))


def shows_windows(page, report):
    page.open(report.path, DESK)
    final = [t for t in report.run.trace if t["records"] == 0]
    shown = page.evaluate(f"[...{ROW}].filter(b => b.row.final).map(b => [b.querySelector('.bar use').getAttribute('href'), b.textContent])")
    check("windows: final calls have a shape of their own", len(shown) == len(final) > 1 and all(h in ("#g-final", "#g-final-open") and "final call" in l for h, l in shown), shown)
    throttled = page.evaluate(f"[...{ROW}].filter(b => b.querySelector('.lanes use').getAttribute('href') === '#g-throttled').length")
    check("windows: so have throttles", throttled == sum("TooManyRequestsException" in json.dumps(t["answer"]) for t in report.run.trace) == 3, throttled)
    bounds = page.evaluate(f"""[...{ROW}].filter(b => b.row.final).every(b => {{ const bar = b.querySelector('.bar').getBoundingClientRect(),
        shape = b.querySelector('.bar use').getBoundingClientRect(); return shape.left >= bar.left - 1 && shape.right <= bar.right + 1; }})""")
    check("windows: they are not cut off", bounds)


def shows_many(page, report):
    check(f"large: {len(report.html):,} bytes", len(report.html) < MOST_BYTES)
    check("large: 5,000 batches and more", len(report.rows) > 5000)
    for width in (PHONE, DESK):
        seconds = page.open(report.path, width)
        elements = page.evaluate("document.querySelectorAll('*').length")
        print(f"large at {width}: {len(report.html):,} bytes, {seconds:.2f} s, {elements} elements")
        check(f"large at {width}: few elements", elements < MOST_ELEMENTS, elements)
    trouble = page.evaluate(f"[...{ROW}].some(b => b.row.kind === 4)")
    check("large: it opens where something went wrong", trouble)
    check("large: all of it at a glance", page.evaluate("document.querySelector('.overview svg').getAttribute('aria-label')").startswith(f"Overview of {len(report.rows):,} invocations: "))
    first = page.evaluate(f"{ROW}[0].row.index")
    page.evaluate("[...document.querySelectorAll('.controls button')].find(b => b.textContent === 'Next trouble').click()")
    check("large: on to the next trouble", page.evaluate(f"{ROW}[0].row.index") > first + 1000 and page.evaluate(f"[...{ROW}].some(b => b.row.kind === 4)"))
    page.evaluate("document.querySelector('.controls input').value = 0; document.querySelector('.controls input').dispatchEvent(new Event('input'))")
    check("large: the slider", page.evaluate(f"{ROW}[0].row.index") == 0)
    page.evaluate("(s => { s.value = '1'; s.dispatchEvent(new Event('change')); })([...document.querySelectorAll('.controls select')][1])")
    check("large: only trouble", page.evaluate(f"[...{ROW}].every(b => b.row.kind !== 0)") and
          page.evaluate(f"{ROW}.length") == sum(t["decision"] != "advance" for t in report.run.trace))
    page.open(report.path, DESK)
    box = page.evaluate("(r => [r.left, r.top, r.width, r.height])(document.querySelector('.overview').getBoundingClientRect())")
    page.click(box[0] + box[2] / 2, box[1] + box[3] / 2)
    check("large: a click into the overview goes there", 2000 < page.evaluate(f"{ROW}[0].row.index") < 3000)


# ---- hostile text ----

def visible(text, kept=""):
    """What cannot be seen is named: control and format characters, but not the joiners."""
    hidden = lambda c: c not in kept + "\u200c\u200d" and (unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in FORMATS)
    return "".join(f"\u2039U+{ord(c):04X}\u203a" if hidden(c) else c for c in text)


def is_not_obeyed(page, report):
    page.open(report.path, DESK)
    keys = [r["Key"] for r in table(page)]
    for n, (key, text) in enumerate(zip(keys, report.texts), 1):
        name = visible(shortened(text, 60)) if n % 2 else "PK"
        check("a key is shown as it is", key == f"{name} = {visible(text)}", (key, text))
    check("all of them", len(keys) == len(report.texts), len(keys))
    for n, text in list(enumerate(report.texts))[::1 if len(report.texts) < 50 else 10]:
        page.evaluate(f"location.hash = ''; location.hash = '#i-0-{n}'")
        page.evaluate("new Promise(done => setTimeout(done, 20))")
        answer = page.evaluate("[...document.querySelectorAll('#tip dt')].find(d => d.textContent === 'Answer').nextSibling.textContent")
        check("a message is shown as it is", answer == visible(f"Error: {text}", kept="\n"), (answer, text))
    check("nothing became an element", page.evaluate("document.querySelectorAll('img, b:not(#tip b), iframe, object, base, form, h1:not(header h1), [onerror], [onload]').length") == 0)
    check("two scripts, both ours", page.evaluate("document.scripts.length") == 2 and report.html.count("</script>") == 2)
    shown = page.evaluate("document.querySelector('.facts dd').textContent")
    check("the file's name", shown == "</script><img src=x onerror=alert(1)>\u2039U+202E\u203a\".json", shown)
    facts = page.evaluate("[...document.querySelectorAll('.facts dd')].map(d => d.textContent)")
    check("command and pattern", any("error-key '</script><b>\"&'" in f for f in facts) and any(f.startswith('{"dynamodb"') and "<script>" in f for f in facts), facts)
    check("nothing ran", page.complaints() == [], page.complaints())


def has_policy(page, report):
    """Even markup that got in could not run, and nothing could be fetched."""
    page.open(report.path, DESK)
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=http://127.0.0.1:9/x onerror=\"window.ran = 1\"><style>body{display:none}</style>')")
    page.evaluate("(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); })()")
    page.evaluate("new Promise(done => setTimeout(done, 100))")
    check("a foreign script does not run", page.evaluate("window.ran === undefined"))
    check("a foreign style is not applied", page.evaluate("getComputedStyle(document.body).display !== 'none'"))
    check("no link leads out", page.evaluate("[...document.querySelectorAll('[href], [src]')].every(e => /^(#|data:)/.test(e.getAttribute('href') || e.getAttribute('src')) || e.matches('img'))"))


def needs_no_script(page, report):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open_plain(report.path)
    text = page.text()
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    check("without scripts: the tables", "Out of attempts after 3 deliveries" in text and "MaximumRetryAttempts" in text, text)
    check("without scripts: it says what is missing", "drawn by a script" in text, text)


def main():
    browser.find()
    reports = [clean(), poison(), partial(), windows(), lanes(), large(), routes(), hostile("hostile", HOSTILE)]
    _, poisoned, named, windowed, laned, big, routed, evil = reports
    with browser.Browser() as page:
        for report in reports if WHOLE else (poisoned, routed):
            for width in (PHONE, DESK):
                opens(page, report, width)
        losses(page, poisoned, named, routed, big)
        facts(page, poisoned, windowed, routed)
        has_contrast(page, windowed)
        has_shapes(page, windowed)
        has_bars(page, [poisoned, named, windowed])
        shows_lanes(page, laned)
        shows_windows(page, windowed)
        shows_many(page, big)
        is_not_obeyed(page, evil)
        if corpus():
            is_not_obeyed(page, hostile("corpus", corpus()))
        has_policy(page, poisoned)
        needs_no_script(page, poisoned)


try:
    main()
except browser.Failed as why:
    sys.exit(f"FAIL the browser: {why}")
finally:
    shutil.rmtree(folder, ignore_errors=True)
finish()
