#!/usr/bin/env python3
"""A watched tail: its metrics are read by prometheus_client's own OpenMetrics parser, those of made snapshots (test_watch) and
those of a `sluice tail` that runs; its unit is verified by systemd."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
READER = "SLUICE_READER_PYTHON"
if READER not in os.environ:
    python = subprocess.run(["tests/support/python/install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execve(python, [python, *sys.argv], {**os.environ, READER: python, "PYTHONPATH": "tests/replay"})

from harness import check, finish  # noqa: E402
from prometheus_client.openmetrics.parser import text_string_to_metric_families  # noqa: E402


def parse(text):
    """The samples, {name: {labels: value}}, after a look at the rules that the parser leaves open."""
    check("it ends", text.endswith("# EOF\n"))
    found, names = {}, set()
    for family in text_string_to_metric_families(text):
        check("a family comes once", family.name not in names, family.name)
        names.add(family.name)
        check("a family is explained", family.documentation and family.type in ("counter", "gauge", "info"), family)
        check("times are in seconds", not family.name.endswith(("_ms", "_milliseconds")) and (family.unit != "seconds" or family.name.endswith("_seconds")), family)
        for sample in family.samples:
            check("a counter ends in _total", (family.type == "counter") == sample.name.endswith("_total"), sample)
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def of_snapshots(folder):
    done = subprocess.run([f"{BUILD}/tests/replay/watch/test_watch"], env={**os.environ, "WATCH_DUMP": str(folder)}, capture_output=True, timeout=120)
    check("snapshots", done.returncode == 0, done.stdout + done.stderr)
    three, many, none = (parse((folder / f"{name}.txt").read_text()) for name in ("three", "many", "none"))
    check("a counter", three["sluice_tail_records_read_total"] == {(): 1000})
    check("a time", three["sluice_tail_lag_seconds"] == {(): 1.5})
    check("states", three["sluice_tail_shards"] == {(("state", s),): n for s, n in (("open", 2), ("waiting", 1), ("done", 0))})
    check("a route", three["sluice_tail_route_records_applied_total"][("handler", "replicate"), ("route", "replica")] == 8)
    check("what is hostile stays in its label", len(three["sluice_tail_route_calls_total"]) == 2 and any(
        dict(labels)["route"].startswith('a"b\\c') for labels in three["sluice_tail_route_calls_total"]), three)
    check("shards", len(many["sluice_tail_shard_lag_seconds"]) == 65 and "sluice_tail_shard_lag_seconds" not in none)


def unit(folder):
    text = pathlib.Path("deploy/sluice-tail.service").read_text()
    path = folder / "sluice-tail.service"
    path.write_text(text.replace("/usr/local/bin/sluice", f"{BUILD}/sluice"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, timeout=60)
    check("systemd takes the unit, without a word", done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr)
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=20", str(path)], capture_output=True, text=True, timeout=60)
    check("it is hardened: at most 2.0 of 10", done.returncode == 0, done.stdout[-300:] + done.stderr)
    path.write_text(path.read_text().replace("Type=notify", "Type=notfy"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, timeout=60)
    check("a mistake would be seen", done.stderr != "")


def main():
    with tempfile.TemporaryDirectory() as name:
        of_snapshots(pathlib.Path(name))
        unit(pathlib.Path(name))
    finish()


main()
