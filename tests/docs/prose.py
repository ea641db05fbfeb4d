"""What a document says between its blocks and names of this tree: links and their anchors, commands in backquotes, files, targets,
variables of the environment."""
import functools
import re
import subprocess

import clone
import commands


def plain(path):
    """The lines of a document without its blocks, as (number, text)."""
    inside = False
    for number, line in enumerate((clone.TOP / path).read_text(encoding="utf-8").split("\n"), 1):
        if re.match(r" *```", line):
            inside = not inside
        elif not inside:
            yield number, line


@functools.cache
def anchors(path):
    """As GitHub makes them of headings."""
    found = set()
    for _, line in plain(path):
        heading = re.match(r"#+ (.*)", line)
        if heading:
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            found.add(name)
    return found


def links(path, text):
    for target in re.findall(r"(?<!`)\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        name = path if not file else str((clone.TOP / path).parent.joinpath(file).resolve().relative_to(clone.TOP))
        if not (clone.TOP / name).exists():
            yield f"the link {target} leads nowhere"
        elif anchor and anchor not in anchors(name):
            yield f"{name} has no heading #{anchor}"


@functools.cache
def variables():
    """Every SLUICE_ name in the sources."""
    text = subprocess.run(["git", "grep", "-hoE", "SLUICE_[A-Z0-9_]+", "--", "*.c", "*.h", "*.yaml", "*.sh", "Makefile"], cwd=clone.TOP, text=True,
                          capture_output=True, check=True).stdout
    return set(text.split())


def span(text):
    """What is wrong with a text in backquotes."""
    for name in re.findall(r"SLUICE_[A-Z0-9_]*[A-Z0-9](?![A-Z0-9_])", text):
        if name not in variables():
            return f"nothing reads {name}"
    if re.match(r"(build/)?sluice [a-z-]|(make|sam) [a-z]|aws [a-z0-9-]+ [a-z]", text):
        try:
            return next(filter(None, (commands.one(words) for words in commands.split(text))), None)
        except ValueError:
            return None  # an open quote: a part of a command
    if re.fullmatch(rf"{commands.ROOMS}[\w./-]+", text) and "NAME" not in text and not (clone.TOP / text.rstrip(".")).exists():
        return f"no such file: {text}"
    return None


def check(path):
    """(what is wrong, how many links and commands were looked at)"""
    text = "\n".join(line for _, line in plain(path))
    wrong = [f"{path}: {problem}" for problem in links(path, text)]
    spans = [re.sub(r"\s+", " ", s) for s in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    wrong += [f"{path}: `{s}`: {problem}" for s in spans if (problem := span(s))]
    return wrong
