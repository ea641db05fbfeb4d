import atexit
import base64
import hmac
import json
import os

with open("request.json", encoding="utf-8") as file:
    request = json.load(file)
secret, body = os.environ["HOOK_SECRET"], request["body"].encode()
headers = {name.lower(): value for name, value in request["headers"].items()}
ok = True


def judge():
    """What the block found out: it says `ok`, or it raises when the signature is wrong."""
    if globals().get("ok") is not True:
        os._exit(1)


atexit.register(judge)
