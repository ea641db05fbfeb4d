#!/usr/bin/env python3
"""Records the history of an example: examples/record.py shop|photos|votes

Plays the example's story on a table of DynamoDB Local (tests/services/install.sh dynamodb) and saves what its stream returned, as
Lambda would deliver it, in examples/NAME/history.jsonl.gz: one record a line. The same NAME makes the same story; sequence numbers and
identifiers differ each time. tests/cli/check_examples.py says what the example's tables have to hold then.
"""
import gzip
import importlib.util
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SERVICES = HERE.parent / "tests" / "services"


def typed(value):
    """DynamoDB's JSON of a Python value."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, (int, float)):
        return {"N": str(value)}
    if isinstance(value, list):
        return {"L": [typed(v) for v in value]}
    if isinstance(value, dict):
        return {"M": {k: typed(v) for k, v in value.items()}}
    return {"S": value}


class Table:
    """Items by their keys; each write goes to the service. The stories look only at `items`."""

    def __init__(self, call, name):
        self.call, self.name, self.items = call, name, {}

    def put(self, pk, sk, **attributes):
        self.items[pk, sk] = {"PK": pk, "SK": sk, **attributes}
        self.call("PutItem", {"TableName": self.name, "Item": {k: typed(v) for k, v in self.items[pk, sk].items()}})

    def change(self, key, **attributes):
        """None removes the attribute."""
        item = {k: v for k, v in {**self.items[key], **attributes}.items() if v is not None}
        self.put(key[0], key[1], **{k: v for k, v in item.items() if k not in ("PK", "SK")})

    def delete(self, key):
        del self.items[key]
        self.call("DeleteItem", {"TableName": self.name, "Key": {"PK": typed(key[0]), "SK": typed(key[1])}})

    def some(self, draw, prefix):
        return draw.choice(sorted(key for key in self.items if key[1].startswith(prefix) or key[0].startswith(prefix)))


def shop(table, draw):
    """Customers, their orders, and the orders' lines, in one table. An order is touched for days after it was made."""
    people = ["ann", "ben", "chloe", "dai", "eve", "finn"]
    for name in people:
        table.put(f"CUSTOMER#{name}", "PROFILE", name=name.capitalize(), email=f"{name}@example.org")
    for number in range(1, 61):
        name, day = draw.choice(people), draw.randint(16, 20)
        lines = [{"sku": draw.choice(["mug", "pen", "lamp", "desk"]), "pieces": draw.randint(1, 5), "note": "for " + name} for _ in range(draw.randint(1, 3))]
        order = f"ORDER#2026-11-{day}#{number:04}"
        table.put(f"CUSTOMER#{name}", order, status="NEW", total=round(draw.uniform(5, 180), 2), created=f"2026-11-{day}T{draw.randint(0, 23):02}:15:00Z",
                  email=draw.choice([f"{name}@example.org", f" {name.upper()}@Example.org"]), lines=lines, card={"number": "4111111111111111", "type": "visa"})
        for i, line in enumerate(lines):
            if f"ITEM#{line['sku']}" not in [sk for pk, sk in table.items if pk == f"ORDER#{number:04}"]:
                table.put(f"ORDER#{number:04}", f"ITEM#{line['sku']}", pieces=line["pieces"], place=i)
        for _ in range(2):
            key = table.some(draw, "ORDER#2026")
            step = {"NEW": "PAID", "PAID": draw.choice(["SHIPPED", "CANCELLED"])}.get(table.items[key]["status"])
            if step:
                table.change(key, status=step)
        if number % 7 == 0:
            key = table.some(draw, "ORDER#2026")
            table.change(key, total=round(table.items[key]["total"] + 60, 2))
        if number % 11 == 0:
            table.delete(table.some(draw, "ORDER#2026"))
        if number % 13 == 0:
            table.delete(table.some(draw, "ITEM#"))


def photos(table, draw):
    """Users, their photos, who follows whom, and reactions to photos, in one table."""
    people, cities = ["ann", "ben", "chloé", "dai", "eve"], ["Oslo", " oslo", "Porto", "PORTO", "Gent", None]
    for name in people:
        table.put(f"USER#{name}", f"#METADATA#{name}", name=name.capitalize())
    for n in range(60):
        name = draw.choice(people)
        taken = f"2026-{draw.choice(['09', '10', '11'])}-{draw.randint(1, 28):02}T{draw.randint(0, 23):02}:{n:02}:00Z"
        photo = {"size": draw.choice([draw.randint(10**5, 10**7), f"{draw.randint(10**5, 10**7)}", "unknown"]),
                 "caption": draw.choice(["", "  Sunset over the bay ", "Schöne Grüße aus Gent", "𝒳 marks the spot, says Zoë"]),
                 "tags": [{"name": tag, "by": draw.choice(people)} for tag in draw.sample(["sea", "sun", "town"], draw.randint(0, 2))]}
        city = draw.choice(cities)
        if city:
            photo["location"] = {"city": city, "gps": [59.9, 10.7]}
        if draw.random() < 0.2:
            photo["private"] = True
        table.put(f"USER#{name}", f"PHOTO#{name}#{taken}", **photo)
        for _ in range(3):
            fan, kind = draw.choice(people), draw.choice(["heart", "smile", "sunglasses"])
            table.put(f"REACTION#{fan}#{kind}", table.some(draw, "PHOTO#")[1], at=taken)
        a, b = draw.sample(people, 2)
        if (f"USER#{a}", f"#FRIEND#{b}") not in table.items:
            table.put(f"USER#{a}", f"#FRIEND#{b}", since=taken)
        elif draw.random() < 0.4:
            table.delete((f"USER#{a}", f"#FRIEND#{b}"))
        key = draw.choice(sorted(k for k in table.items if k[0].startswith("USER#") and k[1].startswith("PHOTO#")))
        table.change(key, views=table.items[key].get("views", 0) + draw.randint(1, 500))
        if n % 6 == 5:
            table.change(key, private=None if table.items[key].get("private") else True)
        if n % 9 == 8:
            table.delete(table.some(draw, "REACTION#"))
        if n % 14 == 13:
            table.delete(key)


def votes(table, draw):
    """Polls, and the votes of each: a voter has up to three, may change them and take them back."""
    for poll, title in (("color", "The new color"), ("name", "The new name")):
        table.put(f"POLL#{poll}", "POLL", title=title, closes=1795651200)
    choices = {"color": ["Red", "red ", "Green", "BLUE"], "name": ["Otter", "Heron", " heron"]}
    for n in range(150):
        poll = draw.choice(sorted(choices))
        vote = {"choice": draw.choice(choices[poll]), "at": 1795600000000 + n * 97_000}
        if draw.random() < 0.8:
            vote["region"] = draw.choice(["eu", "us", "ap"])
        if draw.random() < 0.3:
            vote["weight"] = draw.choice([2, 0.5, "3"])
        table.put(f"POLL#{poll}", f"VOTE#v{draw.randint(1, 40)}#{draw.randint(1, 3)}", **vote)
        if n % 4 == 3:
            key = table.some(draw, "VOTE#")
            table.change(key, choice=draw.choice(choices[key[0].removeprefix("POLL#")]))
        if n % 10 == 9:
            table.delete(table.some(draw, "VOTE#"))


STORIES = {"shop": shop, "photos": photos, "votes": votes}


def begin(name, folder):
    """DynamoDB Local with an empty table, whose stream has both images: (client, stream, environment)."""
    spec = importlib.util.spec_from_file_location("capture", HERE / "capture" / "capture.py")
    capture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(capture)
    capture.TABLE = name
    subprocess.run([SERVICES / "start.sh", folder, "dynamodb"], check=True)
    lines = (line.partition("=") for line in (pathlib.Path(folder) / "env").read_text().splitlines())
    environment = {key: value.strip("'\"") for key, _, value in lines}
    client = capture.Client(environment)
    make_table(client.call, name, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    return client, capture.Stream(client), environment


def make_table(call, name, **more):
    call("CreateTable", {
        "TableName": name, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": k, "AttributeType": "S"} for k in ("PK", "SK")],
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}], **more})


def main():
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in STORIES:
        sys.exit(__doc__)
    folder = tempfile.mkdtemp(prefix=f"{name}-")
    client, stream, _ = begin(name, folder)
    STORIES[name](Table(client.call, name), random.Random(name))
    while stream.poll():
        pass
    out = HERE / name / "history.jsonl.gz"
    with open(out, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as f:
        f.write(b"".join(record + b"\n" for record in stream.records))
    print(f"{out}: {len(stream.records)} records")
    subprocess.run([SERVICES / "stop.sh", folder], check=True)


if __name__ == "__main__":
    main()
