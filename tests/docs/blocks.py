#!/usr/bin/env python3
"""The fenced blocks of the Markdown files, and what their info strings may say. As a program: the lint rule.

An info string is LANGUAGE KIND [NAME=VALUE ...]. GitHub takes the language from the first word and ignores the rest.
CONTRIBUTING.md explains the kinds to writers; tests/docs/check_docs.py does what they say."""
import re
import subprocess
import sys

# Kind -> the languages that may be of this kind, and the options that a block of it may have.
KINDS = {
    "run": ({"sh", "python"}, {"exit"}),
    "output": ({"text", "json", "csv", "diff"}, set()),
    "config": ({"json"}, {"file"}),
    "route": ({"json"}, set()),
    "counter": ({"json"}, set()),
    "when": ({"json"}, set()),
    "record": ({"json"}, {"file"}),
    "file": ({"c", "json", "python", "sql", "text", "yaml"}, set()),
    "shown": ({"sh", "json", "text", "python", "sql", "yaml", "c", "ts", "dockerfile"}, set()),
}
LIST = "kinds: " + ", ".join(KINDS)


class Block:
    """One fenced block: where it is, its language, its kind, its options and its text without the fence's indent."""

    def __init__(self, path, line, info):
        words = info.split()
        self.path, self.line, self.info = path, line, info
        self.language = words[0] if words else ""
        self.options = dict(w.split("=", 1) for w in words[1:] if "=" in w)
        kinds = [w for w in words[1:] if "=" not in w]
        if not kinds and "file" in self.options:
            kinds = ["file"]
        self.kind = kinds[0] if len(kinds) == 1 else None
        self.text = ""

    def replace(self, text):
        """Writes another text into the document (BLESS=1: for outputs that have changed; look at the diff)."""
        with open(self.path, encoding="utf-8") as f:
            whole = f.read()
        old = f"```{self.info}\n{self.text}```"
        if whole.count(old) != 1:
            raise ValueError(f"{self.where()}: not one block of this text")
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(whole.replace(old, f"```{self.info}\n{text}```"))

    def where(self):
        return f"{self.path}:{self.line}"

    def wrong(self):
        """What is wrong with the info string, or None."""
        if not self.info:
            return f"a block without a tag; write ```LANGUAGE KIND ({LIST}; see CONTRIBUTING.md)"
        if self.kind not in KINDS:
            return f'"{self.info}": one kind is needed ({LIST})'
        languages, options = KINDS[self.kind]
        if self.language not in languages:
            return f'"{self.info}": a block of kind {self.kind} is {" or ".join(sorted(languages))}'
        unknown = set(self.options) - options - ({"file"} if self.kind == "file" else set())
        if unknown:
            return f'"{self.info}": {self.kind} has no option {", ".join(sorted(unknown))}'
        return None


def read(path):
    """The blocks of a file, in order. A fence that is not closed, and a block without a fence, is a ValueError."""
    blocks, block, indent, before, in_list = [], None, 0, "", False
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            fence = re.match(r"( *)(```+|~~~+)(.*)$", line)
            if fence and block is None:
                block, indent = Block(path, number, fence[3].strip()), len(fence[1])
            elif fence and not fence[3].strip():
                blocks.append(block)
                block = None
            elif block is not None:
                block.text += line[indent:] if not line[:indent].strip() else line
            elif line.startswith("    ") and line.strip() and not before.strip() and not in_list:
                raise ValueError(f"{path}:{number}: an indented block; give it a fence and a tag")
            if line.strip() and not line.startswith(" "):
                in_list = bool(re.match(r"[-*]|\d+\.", line))
            before = line
    if block is not None:
        raise ValueError(f"{block.where()}: the block is not closed")
    return blocks


def documents():
    """Every Markdown file of the tree, also those that are not committed yet."""
    found = subprocess.run(["scripts/files.sh"], text=True, capture_output=True, check=True)
    return [path for path in found.stdout.splitlines() if path.endswith(".md")]


def main():
    wrong = []
    for path in documents():
        try:
            before = None
            for block in read(path):
                problem = block.wrong()
                if not problem and block.kind == "output" and (before is None or before.kind != "run"):
                    problem = "output follows the run block that printed it"
                if problem:
                    wrong.append(f"lint: {block.where()}: {problem}")
                before = block
        except ValueError as error:
            wrong.append(f"lint: {error}")
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
