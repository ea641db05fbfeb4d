#!/usr/bin/env python3
"""Sums of random numbers against Python's decimal, which is another implementation of the same arithmetic."""
import decimal
import json
import os
import random
import subprocess
import sys

decimal.getcontext().prec = 2000
decimal.getcontext().Emax = decimal.MAX_EMAX
decimal.getcontext().Emin = decimal.MIN_EMIN
D = decimal.Decimal


def plain(d):
    """DynamoDB's normal form, or None if the sum has no such form."""
    if d == 0:
        return "0"
    sign, digits, exponent = d.normalize().as_tuple()
    if len(digits) > 38 or not -130 <= len(digits) + exponent - 1 <= 125:
        return None
    return format(d.normalize(), "f")


def number(rng):
    """The text of a number, mostly a good one, in one of many spellings."""
    style = rng.random()
    if style < 0.4:
        return str(rng.randint(-(10**6), 10**6))
    if style < 0.6:
        return f"{rng.randint(-10**7, 10**7) / 100:.2f}"
    n = rng.choice([1, 5, 18, 19, 20, 37, 38, 38, 39])
    digits = "".join(rng.choice("0123456789") for _ in range(n))
    if rng.random() < 0.5:
        at = rng.randint(0, n)
        digits = digits[:at] + "." + digits[at:]
    sign = rng.choice(["", "-", "+"])
    tail = rng.choice(["", "", "0" * rng.randint(0, 9)]) if "." in digits else ""
    power = rng.choice([0, 0, 5, -5, 38, 87, 88, 124, 125, 126, -100, -130, -131, -92, -93])
    e = rng.choice([f"e{power}", f"E{power:+d}"]) if power else ""
    return sign + "0" * rng.randint(0, 3) + digits + tail + e


def expected(words, compare):
    sums, which = [D(0), D(0)], 0
    for word in words:
        if plain(D(word[1:])) is None:
            return "?"
        sums[which] += D(word[1:]) if word[0] == "+" else -D(word[1:])
        which = int(compare)
    if compare:
        return str(int(sums[0].compare(sums[1])))
    return plain(sums[0]) or "!"


def conformance():
    """DynamoDB's own cases, where the folder of data by others is there."""
    path = os.path.join(os.environ.get("CORPUS", ""), "numbers", "number_cases.json")
    if not os.path.exists(path):
        return []
    with open(path) as f:
        cases = json.load(f)
    refused = [(["+" + c["value"]], "?") for c in cases["rejected"] if c["type"] == "N" and c["value"]]
    return refused + [(["+" + c["in"]], c["stored"]) for c in cases["normalised"]]


def main():
    rng = random.Random(20261120)
    cases = []
    for _ in range(20000):
        words = [rng.choice("+-") + number(rng) for _ in range(rng.choice([1, 1, 2, 3, 10]))]
        compare = rng.random() < 0.2
        if rng.random() < 0.2:
            back = words[rng.randrange(len(words))]
            words.append(("-" if back[0] == "+" else "+") + back[1:])
        cases.append(("c" if compare else "", words, expected(words, compare)))
    cases += [("", words, want) for words, want in conformance()]
    lines = "".join(prefix + " ".join(words) + "\n" for prefix, words, _ in cases)
    binary = os.path.join(os.environ.get("BUILD", "build"), "tests/base/test_decimal")
    got = subprocess.run([binary, "lines"], input=lines, text=True, capture_output=True, check=True).stdout.split("\n")
    bad = [(c, g) for c, g in zip(cases, got, strict=False) if c[2] != g]
    for (prefix, words, want), answer in bad[:10]:
        print(f"{prefix}{' '.join(words)}: want {want}, got {answer}")
    kinds = {want if want in "?!" else "text" for _, _, want in cases}
    if bad or len(got) != len(cases) + 1 or kinds != {"?", "!", "text"}:
        sys.exit(1)
    print(f"1 passed ({len(cases)} sums)")


main()
