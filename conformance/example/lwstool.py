#!/usr/bin/env python3
"""A testee that runs the decoder tool of libwebsockets once for each record:

    btconform -- python3 conformance/example/lwstool.py lws-api-test-backtrace --stdin /dev/stdin

The tool reads a ~m# line and prints a ~b# line; after --word 32, it is one of a 32-bit program.
"""

import base64
import os
import re
import subprocess
import sys

args = sys.argv[1:]
word = "64"
if args[:1] == ["--word"]:
    word, args = args[1], args[2:]


def decode(line):
    done = subprocess.run(args, input=line + b"\n", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode < 0:  # btconform reports the signal, and starts this program again
        os.kill(os.getpid(), -done.returncode)
    lines = [text for text in done.stdout.split(b"\n") if text.startswith(b"~b#")]
    if not lines:
        return "reject", "not-decoded"  # the tool gives no reason
    m = re.fullmatch(rb"~b#size: ([0-9]+),((?: 0x[0-9a-fA-F]+)*)[ \t\r]*", lines[0])
    if not m:
        return "wrote", ascii(lines[0])  # no answer of the protocol
    pcs = ",".join(pc[2:].lower() for pc in m[2].decode().split())
    return "ok", "size=%s pcs=%s" % (m[1].decode(), pcs or "-")


for request in sys.stdin:
    words = request.split()
    if words[0] == "hello":
        # Of a tool that reads 32-bit words only, btconform asks these.
        print("hello btp=1 name=%s version=unknown ops=decode,mline" % os.path.basename(args[0]) + (" machines=exact32" if word == "32" else ""), flush=True)
        continue
    if words[0] == "quit":
        break
    op, number, data = words[0], words[1], words[2:3]
    if "word=" + word not in words or op not in ("decode", "mline") or "reading=strict" in words:
        print("skip", number, "unsupported", flush=True)
        continue
    line = bytes.fromhex(data[0] if data[0] != "-" else "")
    if op == "decode":
        line = b"~m#" + base64.b64encode(line)
    verb, rest = decode(line)
    print(verb, number, rest, flush=True)
