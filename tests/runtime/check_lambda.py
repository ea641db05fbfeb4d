#!/usr/bin/env python3
"""The runtime as a library: what `make install` puts there builds a Lambda function from one C file (and from C++), which lives with AWS's
own Runtime API server and with that of `sluice replay`; completion knows every verb and flag; `make uninstall` leaves nothing."""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path[:0] = ["tests/package", "tests/cli"]
import emulator
import shlex
from harness import BUILD, Run, check, finish, record, work_folder

TOP = pathlib.Path(__file__).resolve().parents[2]
work = work_folder()
prefix = work / "usr"
MAKE = ["make", "-s", f"PREFIX={prefix}", f"BUILD={os.path.relpath(BUILD, TOP)}"]
if "asan" in BUILD:
    MAKE.append("SANITIZE=address,undefined")
subprocess.run([*MAKE, "install"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
ENV = {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"}
FLAGS = subprocess.run(["pkg-config", "--cflags", "--libs", "sluice-runtime"], env=ENV, check=True, capture_output=True, text=True).stdout.split()
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", *(["-fsanitize=address,undefined"] if "asan" in BUILD else [])]
ABOUT = r"""
#include <sluice/lambda.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
static void tell(const struct sl_lambda_event *e, struct sl_lambda_answer *answer, void *arg)
{
    static char text[7 << 20];
    int n = snprintf(text, sizeof text, "%zu %d %s %s %d %d %s", e->payload_bytes, e->payload[e->payload_bytes], e->request_id, e->function_arn,
                     e->deadline_epoch_ms > 0, sl_lambda_remaining_ms(e) > 0, (const char *)arg);
    if (strstr(e->payload, "\"huge\""))
        sl_lambda_succeed(answer, text, sizeof text, NULL);
    else if (strstr(e->payload, "\"trace\""))
        sl_lambda_succeed(answer, getenv("_X_AMZN_TRACE_ID") ? "1" : "0", 1, NULL);
    else if (!strstr(e->payload, "\"nothing\""))
        sl_lambda_succeed(answer, text, (size_t)n, "text/plain");
}
int main(int argc, char **)
{
    if (argc > 1)
        return sl_lambda_init_failed("Function.NoSetting", "the setting X is missing");
    return sl_lambda_run(tell, (void *)"given");
}
"""


def build(source, name, compiler):
    run = subprocess.run([*compiler, *STRICT, "-o", work / name, source, *FLAGS], capture_output=True, text=True)
    check(f"{source.name} builds with {compiler}", run.returncode == 0, run.stderr)
    return work / name


def letters():
    function = build(TOP / "examples/lambda/function.c", "letters", ["cc", "-std=c11"])
    answers, log = emulator.invoke(work, [function], {}, [b'{"a":"abba"}', b'"please fail"', b'"x"', b'""' + b" " * 6_000_000, b"1"])
    check("answers", [json.loads(answers[0]), json.loads(answers[2]), json.loads(answers[4])] == [{"a": 3, "b": 2}, {"x": 1}, {}], answers)
    check("a function error", json.loads(answers[1]) == {"errorType": "Function.AsAsked", "errorMessage": "the event asked for it"} or
          json.loads(answers[1])["errorType"] == "Function.AsAsked", answers[1])
    check("6 MB", json.loads(answers[3]) == {}, answers[3][:200])
    needed = set(re.findall(r"NEEDED.*\[(lib[a-z_]+)", subprocess.run(["readelf", "-d", function], capture_output=True, text=True).stdout))
    check("libcurl alone", "asan" in BUILD or needed <= {"libcurl", "libc"}, needed)
    exported = subprocess.run(["nm", "-g", "--defined-only", prefix / "lib/libsluice-runtime.a"], capture_output=True, text=True).stdout
    check("nothing else of ours is shown", {line.split()[-1] for line in exported.splitlines() if " T " in line or " D " in line or " R " in line} ==
          {f"sl_lambda_{name}" for name in ("run", "succeed", "fail", "remaining_ms", "init_failed")}, exported)


def about():
    source = work / "about.cc"
    source.write_text(ABOUT)
    function = build(source, "about", ["c++", "-std=c++11"])
    answers, log = emulator.invoke(work, [function], {}, [b'{"x":1}', b'"nothing"', b'"huge"', b'"trace"', b"[]"])
    check("what the event says", re.fullmatch(rb"7 0 [0-9a-f-]{36} arn:aws:lambda:\S* 1 1 given", answers[0]), answers[0])
    check("no answer is null", answers[1] == b"null", answers[1])
    check("an answer that is too large", b"ResponseSizeTooLarge" in answers[2], answers[2][:300])
    check("and on", answers[4].startswith(b"2 0 "), answers[4])
    alone = subprocess.run([function], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    check("outside of Lambda it says so", alone.returncode == 1 and "AWS_LAMBDA_RUNTIME_API is not set" in alone.stderr, alone.stderr)
    gone = subprocess.run([function], env={"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9"}, capture_output=True, text=True, timeout=600)
    check("without a server it ends", gone.returncode == 1 and gone.stderr.count("ConnectionBroken") == 8, gone.stderr)
    broken = Run(work, "--bootstrap", f"{shlex.quote(str(function))} fail", "--max-retries", "0", records=[record(1)])
    check("an init error is told", "Function.NoSetting" in broken.err and "the setting X is missing" in broken.err, broken.err)


def completion():
    script = f"source {prefix}/share/bash-completion/completions/sluice; COMP_WORDS=(%s); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _sluice; echo ${{COMPREPLY[@]}}"
    say = lambda words: subprocess.run(["bash", "-c", script % words], capture_output=True, text=True).stdout.split()
    verbs = re.findall(r"^  ([a-z-]+) ", subprocess.run([prefix / "bin/sluice", "--help"], capture_output=True, text=True).stdout, re.M)
    check("every verb", set(verbs) <= set(say("sluice ''")) and say("sluice ver") == ["verify"], say("sluice ''"))
    for verb in verbs:
        flags = re.findall(r"^  (--[a-z0-9-]+)", subprocess.run([prefix / "bin/sluice", verb, "--help"], capture_output=True, text=True).stdout, re.M)
        check(f"{verb}: every flag", set(flags) | {"--help"} == set(say(f"sluice {verb} --")), (verb, say(f"sluice {verb} --")))
    check("no flag where a value is due", say("sluice replay --config --") == [])
    zsh = (prefix / "share/zsh/site-functions/_sluice").read_text()
    check("zsh: every verb", all(f"\n{verb})\n" in zsh for verb in verbs), zsh)


letters()
about()
completion()
subprocess.run([*MAKE, "uninstall"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
left = [path for path in prefix.rglob("*") if not path.is_dir()]
check("uninstall leaves nothing", left == [], left)
finish()
