"""Checks commands that a document names and that nobody can run here: the verbs and flags of sluice, the targets of make, the
parameters and outputs of the stack, the commands and flags of AWS's command line, the files of the tree."""
import functools
import re
import shlex
import subprocess

import botocore.exceptions
import botocore.session

import clone

SLUICE = str(clone.BUILD / "sluice")
ROOMS = r"(?:aws|base|net|streams|sinks|handlers|work|runtime|replay|tests|bench|scripts|examples|deploy|docs)/"


@functools.cache
def helped(*verb):
    return subprocess.run([SLUICE, *verb, "--help"], text=True, capture_output=True, timeout=600).stdout


@functools.cache
def verbs():
    return set(re.findall(r"^  ([a-z-]+)  ", helped(), re.M))


@functools.cache
def flags(verb):
    return set(re.findall(r"(--(?!help\b)[a-z0-9-]+)", helped(verb))) | {"--help"}


@functools.cache
def targets():
    text = "".join((clone.TOP / f).read_text(encoding="utf-8") for f in ("Makefile", "examples/skeleton/Makefile"))
    return set(re.findall(r"^([a-z-]+):", text, re.M)) | {"package-arm64", "package-x86_64"}


@functools.cache
def template(section):
    text = (clone.TOP / "template.yaml").read_text(encoding="utf-8")
    part = re.search(rf"^{section}:\n(.*?)(?=^\S|\Z)", text, re.M | re.S)[1]
    return set(re.findall(r"^  (\w+):", part, re.M))


def sluice(words):
    if not words or words[0] == "--version" or words[0] == "--help":
        return None
    verb, rest = words[0], words[1:]
    if verb == "VERB" or verb == "…":
        return None
    if verb not in verbs():
        return f"sluice has no verb {verb}"
    for word in rest:
        name = word.split("=")[0]
        if name.startswith("--") and name not in flags(verb) and name.replace("--no-", "--", 1) not in flags(verb):
            return f"sluice {verb} has no flag {name}"
    return unknown_set(rest)


def unknown_set(words):
    """--set NAME=VALUE for a configuration of this tree that has no ${NAME}."""
    names = [b.split("=")[0] for a, b in zip(words, words[1:]) if a == "--set"]
    for file in (clone.TOP / w for w in words if w.endswith(".json") and (clone.TOP / w).is_file()):
        text = file.read_text(encoding="utf-8")
        for name in names:
            if "${" + name + "}" not in text:
                return f"{file.name} has no ${{{name}}}"
    return None


def make(words):
    for word in words:
        if re.fullmatch(r"[a-z][a-z_0-9-]*", word) and word not in targets():
            return f"make has no target {word}"
    return None


def sam(words):
    if "--parameter-overrides" in words:
        for word in words[words.index("--parameter-overrides") + 1:]:
            name = re.match(r"([A-Za-z]\w*)=", word)
            if name and name[1] not in template("Parameters"):
                return f"template.yaml has no parameter {name[1]}"
    return None


@functools.cache
def service(name):
    session = botocore.session.get_session()
    return session.get_service_model({"s3api": "s3"}.get(name, name))


def aws(words):
    if len(words) < 2 or words[0] in ("configure", "s3") or not re.fullmatch(r"[a-z0-9-]+", words[1]) or words[:2] == ["logs", "tail"]:
        return None
    try:
        model = service(words[0])
    except botocore.exceptions.BotoCoreError:
        return f"aws has no service {words[0]}"
    if words[1] == "wait":
        return None
    name = "".join(p.capitalize() for p in words[1].split("-")).lower()
    operation = next((o for o in model.operation_names if o.lower() == name), None)
    if operation is None:
        return f"aws {words[0]} has no command {words[1]}"
    shape = model.operation_model(operation).input_shape
    members = {m.lower() for m in shape.members} if shape else set()
    shared = {"query", "output", "region", "profile", "cliinputjson", "endpointurl", "maxitems", "nopaginate"}
    for word in words[2:]:
        if word.startswith("--"):
            flag = word[2:].split("=")[0].replace("-", "")
            if flag not in members | shared and flag.removeprefix("no") not in members:
                return f"aws {words[0]} {words[1]} has no flag {word}"
    return None


TOOLS = {"sluice": sluice, "make": make, "sam": sam, "aws": aws}


def split(text):
    """The simple commands of a shell text, as lists of words; also those inside of $( )."""
    text = re.sub(r"(^|\s)#[^\n]*", r"\1", text.replace("\\\n", " "))
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    words = []
    for word in [*lexer, ";"]:
        if set(word) <= set("();<>|&\n") and word:
            if words:
                yield words
            words = []
        else:
            for inner in re.findall(r"\$\(([^()]*)\)", word):
                yield from split(inner)
            words.append(word)


def one(words):
    while words and (re.match(r"[A-Za-z_]\w*=", words[0]) or words[0] in ("sudo", "eval", "exec", "then", "do", "!", "time", "nice")):
        words = words[1:]
    image = next((i for i, w in enumerate(words) if re.fullmatch(r"sluice:[\d.]+", w)), None)
    if image is not None:
        version = (clone.TOP / "VERSION").read_text(encoding="utf-8").strip()
        if words[image] != f"sluice:{version}":
            return f"{words[image]}: this tree is version {version}"
        return sluice(words[image + 1:])
    if words[:1] == ["out"] and len(words) == 2 and words[1] not in template("Outputs"):
        return f"the stack has no output {words[1]}"
    tool = TOOLS.get(words[0].split("/")[-1]) if words else None
    return tool(words[1:]) if tool else None


def files(text):
    """Files of this tree that a shell text names, and that do not exist."""
    for found in re.finditer(rf"(?<![\w/.…@-]){ROOMS}[\w./-]*[\w]", text):
        yield found[0]


def check(text):
    """None, or what is wrong with a shell text."""
    syntax = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    if syntax.returncode:
        return syntax.stderr
    for key in re.findall(r"OutputKey==`(\w+)`", text):
        if key not in template("Outputs"):
            return f"the stack has no output {key}"
    for words in split(text):
        problem = one(words)
        if problem:
            return problem
    missing = [f for f in files(text) if not (clone.TOP / f).exists()]
    return f"no such file: {missing[0]}" if missing else None
