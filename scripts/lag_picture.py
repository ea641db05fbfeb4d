#!/usr/bin/env python3
"""Draws docs/setaside.svg: how far behind an archive is over a day in which the target of another route is down for six hours,
with and without "set_aside" there. Both lines are measured: two replays of a stream of one change each ten seconds."""
import json
import pathlib
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[1]
DAY, EACH, DOWN = 24 * 3600, 10, (6 * 3600, 12 * 3600)
BEGAN = 1767225600
WIDTH, HEIGHT, LEFT, TOP_MARGIN, BOTTOM = 760, 300, 60, 20, 50


def record(n):
    key = {"PK": {"S": f"k{n % 500}"}}
    return {"eventID": f"{n:032x}", "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
            "dynamodb": {"ApproximateCreationDateTime": BEGAN + n * EACH, "Keys": key, "NewImage": {**key, "n": {"N": str(n)}},
                         "SequenceNumber": str(10**20 + n), "SizeBytes": 40, "StreamViewType": "NEW_IMAGE"},
            "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"}


def lag(aside):
    """[(hour, hours behind)] of what was handled last, at each invocation."""
    search = {"name": "search", "handler": "replicate", "to": "sqlite:db?table=search", **({"set_aside": "sqs://later"} if aside else {})}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "sluice.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "jsonl:parked.jsonl", "routes": [
            {"name": "archive", "handler": "archive", "to": "file:archive"}, search]}))
        (folder / "day.jsonl").write_text("".join(json.dumps(record(n)) + "\n" for n in range(DAY // EACH)))
        done = subprocess.run([TOP / "build/sluice", "replay", "--quiet", "--live", "--window", "60", "--batch-size", "1000", "--trace", "trace.jsonl",
                               "--outage", f"search@{DOWN[0]}-{DOWN[1]}", "day.jsonl"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert done.returncode == 0, done.stdout
        print(done.stdout)
        points, handled = [], 0
        for line in (folder / "trace.jsonl").read_text().splitlines():
            row = json.loads(line)
            if row["decision"] == "advance":
                handled = (int(row["last"]) - 10**20) * EACH
            points.append((row["time_ms"] / 3.6e6, max(0, row["time_ms"] / 1000 - handled) / 3600))
    return points


def path(points):
    def at(hour, behind):
        return f"{LEFT + hour / 24 * (WIDTH - LEFT - 20):.1f},{HEIGHT - BOTTOM - behind / 7 * (HEIGHT - BOTTOM - TOP_MARGIN):.1f}"
    thinned = [p for i, p in enumerate(points) if i in (0, len(points) - 1) or abs(p[1] - points[i - 1][1]) > 0.2 or i % 6 == 0]
    return " ".join(at(*p) for p in thinned)


def draw(without, with_it):
    x = lambda hour: LEFT + hour / 24 * (WIDTH - LEFT - 20)
    y = lambda behind: HEIGHT - BOTTOM - behind / 7 * (HEIGHT - BOTTOM - TOP_MARGIN)
    text = 'font-family="sans-serif" font-size="13" fill="#444"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t">',
             "<title id=\"t\">Hours that an archive is behind, over a day in which the target of another route is down from 6 to 12 o'clock: up to "
             f"{max(p[1] for p in without):.1f} hours without set_aside, {max(p[1] for p in with_it) * 60:.0f} minutes with it</title>",
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
             f'<rect x="{x(DOWN[0] / 3600):.0f}" y="{TOP_MARGIN}" width="{x(DOWN[1] / 3600) - x(DOWN[0] / 3600):.0f}" height="{HEIGHT - BOTTOM - TOP_MARGIN}" fill="#f3e3e0"/>',
             f'<text x="{x(9):.0f}" y="{TOP_MARGIN + 18}" text-anchor="middle" {text}>the target of search is down</text>']
    for hour in range(0, 25, 6):
        parts.append(f'<text x="{x(hour):.0f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" {text}>{hour}:00</text>')
    for behind in range(0, 7, 2):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y(behind):.0f}" y2="{y(behind):.0f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 8}" y="{y(behind) + 4:.0f}" text-anchor="end" {text}>{behind} h</text>')
    parts += [f'<polyline points="{path(without)}" fill="none" stroke="#b5452c" stroke-width="2.5"/>',
              f'<polyline points="{path(with_it)}" fill="none" stroke="#1f6f8b" stroke-width="2.5"/>',
              f'<text x="{x(12.3):.0f}" y="{y(4.6):.0f}" {text} style="fill:#b5452c">the archive, without set_aside</text>',
              f'<text x="{x(14):.0f}" y="{y(0.25):.0f}" {text} style="fill:#1f6f8b">the archive, with it</text>',
              f'<text x="{WIDTH // 2}" y="{HEIGHT - 8}" text-anchor="middle" {text}>how far behind the stream the archive is, over a day</text>', "</svg>"]
    (TOP / "docs/setaside.svg").write_text("\n".join(parts) + "\n")


draw(lag(False), lag(True))
