"""Verifies a webhook with Python libraries: python verify.py FILE, where FILE holds {secret, headers, body}."""

import json
import sys

import standardwebhooks
import svix

with open(sys.argv[1], encoding="utf-8") as file:
    sent = json.load(file)
for library in (standardwebhooks, svix):
    verifier = library.Webhook(sent["secret"])
    verifier.verify(sent["body"], sent["headers"])
    try:
        verifier.verify(sent["body"] + " ", sent["headers"])
    except library.WebhookVerificationError:
        print(library.__name__, "verified", json.loads(sent["body"])["type"])
    else:
        raise SystemExit(f"{library.__name__}: a changed message was accepted")
