#!/usr/bin/env python3
"""Gives DynamoDB Local's table of stream records the index that it lacks: dynamodb_index.py FOLDER. Each write asks SQLite for its
stream's first record, and reads all records of the database for it: after 5,000 changes a PutItem takes twice as long, after 15,000
four times. The class that creates the table is written to FOLDER/indexed, which goes before FOLDER's jars in the class path."""
import glob
import os
import sys
import zipfile

TABLE = b"CREATE TABLE IF NOT EXISTS us ("
KEY = b"PRIMARY KEY(SequenceNumber)"


def main(folder):
    with zipfile.ZipFile(*glob.glob(f"{folder}/DynamoDBLocal-*.jar")) as jar:
        classes = {name: jar.read(name) for name in jar.namelist() if "/access/sqlite/SQLiteDBAccess" in name}
    (name, code), = ((name, code) for name, code in classes.items() if TABLE in code)
    at = code.index(TABLE)  # a text constant of a class has its length before it, in two bytes
    end = at + int.from_bytes(code[at - 2:at], "big")
    text = code[at:end].replace(KEY, KEY + b", UNIQUE(StreamID, SequenceNumber)")
    if text == code[at:end]:
        sys.exit(f"dynamodb_index: {name}: no {KEY.decode()} in {code[at:end].decode()}")
    os.makedirs(f"{folder}/indexed/{os.path.dirname(name)}")
    with open(f"{folder}/indexed/{name}", "wb") as file:
        file.write(code[:at - 2] + len(text).to_bytes(2, "big") + text + code[end:])


main(sys.argv[1])
