"""Our patterns against AWS's engine: every cell of patterns.tsv, random patterns on random records, and the complexity of
random wildcards. SEED and CASES set the random parts.

Differences that are known, and that are left out:
- equals-ignore-case with a character beyond U+FFFF: the engine takes it for two, and never matches.
- cidr with /0: the engine also matches numbers, and addresses of the other family.
- anything-but with a list for prefix or suffix, where "$or" is a field: the engine then has an older reader without lists.
- the complexity of wildcards under "$or": the engine counts the same path several times, depending on the order in which it
  built its states. A few in a thousand differ."""
import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import check_when
import patterns

LIMIT = 10
SHARE_UNDER_OR = 0.01
OURS = {"1": "yes", "0": "no", "pattern": "refused"}


def run(command, cases):
    text = "".join(f"{pattern}\t{event}\n" for pattern, event in cases)
    lines = subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout.splitlines()
    assert len(lines) == len(cases), (command, len(lines), len(cases))
    return lines


def ours(cases):
    binary = os.path.join(os.environ.get("BUILD", "build"), "tests/streams/test_vectors")
    return [OURS.get(line, line) for line in run([binary, "lines"], cases)]


def engine(cases):
    answers = [line.split(" ", 1) for line in run(["java", "-cp", os.environ["RULER_CLASSES"], "Ruler"], cases)]
    return ["refused" if word == "refused" or int(rest) > LIMIT else word for word, rest in answers]


def is_known(pattern, own, theirs):
    text = pattern + json.dumps(json.loads(pattern), ensure_ascii=False)  # names that come twice, and escapes read
    return (
        ("equals-ignore-case" in text and ("\\ud8" in text or any(ord(c) > 0xFFFF for c in text)) and theirs == "no")
        or ("cidr" in text and "/0" in text and (own, theirs) == ("no", "yes"))
        or ('"$or"' in text and "anything-but" in text and theirs == "refused")
    )


def compare(name, cases, share=0.0):
    """Prints the first differences. More than the share of all is a failure."""
    answers = list(zip(cases, ours(cases), engine(cases), strict=True))
    bad = [(c, o, e) for c, o, e in answers if o != e and not is_known(c[0], o, e)]
    known = sum(o != e for _, o, e in answers) - len(bad)
    print(f"{name}: {len(cases)} compared, {len(bad)} differ, {known} known, "
          + ", ".join(f"{sum(e == word for _, _, e in answers)} {word}" for word in ("yes", "no", "refused")))
    for (pattern, event), own, theirs in bad[:3] if len(bad) > share * len(cases) else []:
        print(f"  ours {own}, the engine {theirs}:\n    {pattern}\n    {event}")
    return len(bad) <= share * len(cases)


# ---- wildcards ----


def wildcard(rng):
    letters, out = rng.choice(["a", "ab", "abc", 'aB1"\\*', "a-\u00fc"]), ""
    for _ in range(rng.randint(0, 12)):
        if rng.random() < 0.3 and not out.endswith("*"):
            out += "*"
        else:
            letter = rng.choice(letters)
            out += f"\\{letter}x" if letter in "\\*" else letter
    return out


def wildcard_test(rng):
    if rng.random() < 0.6:
        return {"wildcard": wildcard(rng)}
    if rng.random() < 0.5:
        return {"anything-but": {"wildcard": rng.choice([wildcard(rng), [wildcard(rng) for _ in range(rng.randint(1, 3))]])}}
    return rng.choice(["x", {"prefix": "a"}, {"exists": True}, {"anything-but": "a"}, {"suffix": "b"}, 5])


def wildcards(rng, depth):
    out = {rng.choice("fgh"): [wildcard_test(rng) for _ in range(rng.choice([1, 1, 2, 3]))] for _ in range(rng.randint(1, 2))}
    if depth:
        out["$or"] = [wildcards(rng, depth - rng.randint(1, depth)) for _ in range(rng.randint(2, 3))]
    return out


def main():
    seed, n = int(os.environ.get("SEED", "20261122")), int(os.environ.get("CASES", "20000"))
    rng = random.Random(seed)
    event = '{"eventName":"INSERT","dynamodb":{"Keys":{"k":{"S":"x"}}},"f":"aba"}'
    records = [c for c in (check_when.case(rng) for _ in range(n)) if c[0][0] != "!"]
    plain = [(json.dumps(wildcards(rng, 0)), event) for _ in range(n // 10)]
    under_or = [(json.dumps(wildcards(rng, 2)), event) for _ in range(n // 10)]
    results = [
        compare("patterns.tsv", [(pattern, e) for _, _, pattern, e, _, _ in patterns.read()]),
        compare("records", records),
        compare("wildcards", plain),
        compare('wildcards under "$or"', under_or, SHARE_UNDER_OR),
    ]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed (seed {seed})")
    sys.exit(0 if all(results) else 1)


main()
