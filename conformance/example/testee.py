#!/usr/bin/env python3
"""A codec of compressed backtraces behind BTP/1, in Python.

It is written from SPEC.md, and offers every operation that ../README.md lists. Run it as

    btconform -- python3 conformance/example/testee.py
"""

import binascii
import math
import re
import sys

LEAST_32_FRAMES = 46  # bytes that 32 frames and a size take at least (BT-DEPTH-2)


class Reject(Exception):
    """A rejection or a refusal: its reason, and the bit at fault if there is one."""

    def __init__(self, reason, bit=None):
        super().__init__(reason)
        self.reason, self.bit = reason, bit


class Stack:
    def __init__(self, pcs=(), size=0, user=()):
        self.pcs, self.size, self.user = list(pcs), size, list(user)
        self.counts = []  # of each frame's own value
        self.values = []  # and that value
        self.bases = []  # index of each frame's base, None of a literal
        self.size_count = 0


# -- Bits (BT-FIELD-1, BT-FIELD-2, BT-FIELD-3, BT-FIELD-4)


class Reader:
    def __init__(self, data, end=None):
        self.data, self.pos = data, 0
        self.end = 8 * len(data) if end is None else end
        self.number = int.from_bytes(data, "big")

    def bits(self, at, width):
        return self.number >> (8 * len(self.data) - at - width) & ((1 << width) - 1)

    def field(self, width):
        """Returns a field's value, and passes over its spill bit."""
        if self.pos + width + 1 > self.end:
            raise Reject("truncated", self.pos)
        value = self.bits(self.pos, width)
        self.pos += width + 1
        return value

    def counted(self, word):
        """Returns a value and its count. (BT-COUNT-2, BT-COUNT-4)"""
        at = self.pos
        count = self.field(6) or 64
        if count > word:
            raise Reject("count", at)
        return self.field(count), count


class Writer:
    def __init__(self, machine="exact64"):
        self.text, self.machine = "", machine

    def field(self, value, width, spill="0"):
        self.text += format(value, "0%db" % width) + spill

    def counted(self, value, machine=None):
        """Writes count and value as the machine leaves it. (BT-MACH-2, BT-MACH-3, BT-MACH-4)"""
        machine = machine or self.machine
        count = significant(value)
        spill = "0"
        if not machine.startswith("exact") and value >> 31:
            wire = value & 0x7FFFFFFF | 1 << 31
            if machine.startswith("wrap"):
                spill = "1"
                wire |= wire << 32
            value = wire & ((1 << count) - 1)
        self.field(count % 64, 6)
        self.field(value, count, spill)

    def bytes(self):
        text = self.text + "0" * (-len(self.text) % 8)
        return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))

    def blob(self):
        data = self.bytes()
        return data + (len(data) + 2).to_bytes(2, "big")


def significant(value):
    return max(1, value.bit_length())  # BT-COUNT-1


# -- Reading blobs


def read_frames(r, depth, word):
    """Reads depth frames behind the depth field. (section 5)"""
    s = Stack()
    for n in range(depth):
        at = r.pos
        base = None
        if r.field(1) == 0:
            value, count = r.counted(word)
            pc = value
        else:
            if n == 0:
                raise Cut("delta-first", at, s)
            at = r.pos
            base = n - 1 - r.field(3)
            if base < 0:
                raise Cut("back", at, s)
            sign = r.field(1)
            value, count = r.counted(word)
            pc = s.pcs[base] - value if sign else s.pcs[base] + value
        s.pcs.append(pc % (1 << word))
        s.counts.append(count)
        s.values.append(value)
        s.bases.append(base)
    return s


class Cut(Reject):
    """A rejection that knows the frames before it."""

    def __init__(self, reason, bit, stack):
        super().__init__(reason, bit)
        self.stack = stack


def check_length(blob):
    if len(blob) < 2:
        raise Reject("short", 0)
    length = int.from_bytes(blob[-2:], "big")
    if length == 0:
        raise Reject("empty", 8 * len(blob) - 16)
    if length != len(blob):
        raise Reject("length", 8 * len(blob) - 16)


def read_as(data, end, depth, word):
    """Reads a stack and its size with this depth, or the one written if depth is None."""
    r = Reader(data, end)
    said = r.field(5)
    s = read_frames(r, said if depth is None else depth, word)
    s.size, s.size_count = r.counted(word)
    return s, r


def decode(blob, word, event=False):
    """Returns the stack and a reader at the bit after the size."""
    check_length(blob)
    end = 8 * len(blob) - 16
    r = Reader(blob, end)
    if r.field(5) != 0 or event:  # BT-EVT-2
        return read_as(blob, end, None, word)
    try:
        return read_as(blob, end, 32, word)  # BT-DEPTH-2
    except Reject as not_32:
        try:
            return read_as(blob, end, 0, word)
        except Reject:
            if end >= 8 * LEAST_32_FRAMES:
                raise not_32
            raise


def at_end(memory):
    """Finds the blob that memory ends with. (BT-BLOB-3)"""
    if len(memory) < 2:
        raise Reject("short")
    length = int.from_bytes(memory[-2:], "big")
    if length == 0:
        raise Reject("empty")
    if length == 1 or length > len(memory):
        raise Reject("length")
    return memory[-length:]


def salvage(data, word):
    """Returns depth, size or None, and frames. (BT-SALV-1, BT-SALV-2)"""
    try:
        s, _ = decode(data, word)
        return len(s.pcs), s.size, s.pcs
    except Reject as e:
        if e.reason not in ("short", "empty", "length"):
            raise
        if not data or data[0] >> 3 == 0:
            raise
    r = Reader(data)
    depth = r.field(5)
    pcs = []
    for n in range(depth):  # as many as are whole
        at = Reader(data)
        at.field(5)
        try:
            pcs = read_frames(at, n + 1, word).pcs
        except Reject as e:
            if e.reason != "truncated":
                raise
            return depth, None, pcs
    try:
        s, _ = read_as(data, 8 * len(data), None, word)
        return depth, s.size, pcs
    except Reject as e:
        if e.reason != "truncated":
            raise
        return depth, None, pcs


def read_user(r):
    """Reads user fields, by tag. (BT-UF-1, BT-UF-2, BT-UF-3)"""
    fields = {}
    while r.end - r.pos >= 5:
        at = r.pos
        tag = r.field(4)
        if tag == 0:
            break
        try:
            value, _ = r.counted(64)
        except Reject:
            raise Reject("truncated", at)
        if tag <= 6:
            fields.setdefault(tag, value)
    return fields


def read_fields(blob, word, event):
    """Reads a blob with user fields, or that of an event. (BT-EVT-3)"""
    s, r = decode(blob, word, event)
    fields = read_user(r)
    if event and (5 not in fields or any(tag not in fields for tag in EVENTS.get(fields[5], ()))):
        raise Reject("event")
    s.user = list(fields.items())
    return s


def marks(s):
    """What values show of their encoder. (BT-LOSS-2, BT-LOSS-3)"""

    def of(value, count):
        if count <= 32:
            return False, False, False
        high, bit31 = value >> 32, value >> 31 & 1
        repeats = high == value & ((1 << (count - 32)) - 1)
        return True, bool(bit31 and repeats), bool(bit31 and high == 0)

    lists = {"wide": [], "wrap": [], "zero": [], "lossy": []}
    for n, (value, count, base) in enumerate(zip(s.values, s.counts, s.bases)):
        wide, wrap, zero = of(value, count)
        for name, holds in (("wide", wide), ("wrap", wrap), ("zero", zero)):
            if holds:
                lists[name].append(n)
        if wrap or zero or base in lists["lossy"]:
            lists["lossy"].append(n)
    _, wrap, zero = of(s.size, s.size_count)
    if wrap or zero:
        lists["lossy"].append("size")
    return " ".join("%s=%s" % (name, ",".join(map(str, found)) or "-") for name, found in lists.items())


# -- Writing blobs (section 9)


def choose(pcs, n, machine, search):
    """Returns base, difference and sign for frame n; base is None for a literal."""
    best = None
    for i in range(max(0, n - 8), n):
        d = abs(pcs[n] - pcs[i])
        sign = 0 if pcs[n] > pcs[i] else 1
        if search == "best" and machine.endswith("64") and (1 << 64) - d < d:
            d, sign = (1 << 64) - d, 1 - sign
        if best is None or d < best[1]:
            best = i, d, sign
    literal = None, 0, 0
    if best is None:
        return literal
    counts = significant(best[1]), significant(pcs[n])
    if search == "lws":  # BT-SRCH-1
        return best if best[0] != 0 and counts[0] + 11 < counts[1] + 7 else literal
    delta, plain = 16 + counts[0], 10 + counts[1]  # BT-SRCH-2
    return best if delta < plain or delta == plain and counts[1] == 64 else literal


def check_stack(s, machine):  # BT-REJ-2
    if len(s.pcs) > 32:
        raise Reject("frames")
    if machine.endswith("32") and max(s.pcs + [s.size]) >> 32:
        raise Reject("word")


def write_frames(w, s, search):
    check_stack(s, w.machine)
    w.field(len(s.pcs) % 32, 5)
    for n, pc in enumerate(s.pcs):
        base, d, sign = choose(s.pcs, n, w.machine, search)
        if base is None:
            w.field(0, 1)
            w.counted(pc)
        else:
            w.field(1, 1)
            w.field(n - 1 - base, 3)
            w.field(sign, 1)
            w.counted(d)


def encode(s, machine, search):
    w = Writer(machine)
    write_frames(w, s, search)
    w.counted(s.size)
    for tag, value in sorted(s.user):
        w.field(tag, 4)
        w.counted(value, "exact64")
    return w.blob()


EVENTS = {0: (1,), 1: (1,), 2: (1, 6)}  # the fields that an event must have (BT-EVT-3)


def encode_event(s, machine, search):
    """Returns the blob of an event. (BT-EVT-2, BT-EVT-4)"""
    check_stack(s, machine)  # frame 31, too, and before the fields (BT-REJ-2)
    fields = dict(s.user)
    if fields.get(5) not in EVENTS or any(tag not in fields for tag in EVENTS[fields[5]]):
        raise Reject("event")
    if 6 in fields and fields[5] != 2:
        raise Reject("event")
    s.pcs = s.pcs[:31]
    return encode(s, machine, search)


# -- Text (section 7)

STANDARD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def to_base64(data):
    text = "".join(format(b, "08b") for b in data)
    text += "0" * (-len(text) % 6)
    out = "".join(STANDARD[int(text[i : i + 6], 2)] for i in range(0, len(text), 6))
    return out + "=" * (-len(out) % 4)


def from_base64(text, lenient):
    if lenient:
        text = text.translate(str.maketrans("-_", "+/", " \t\r\n"))
    chars = text.rstrip("=")
    pads, full = len(text) - len(chars), -len(chars) % 4
    if any(c not in STANDARD for c in chars) or len(chars) % 4 == 1:
        raise Reject("base64")
    if pads > full or pads < full and not lenient:
        raise Reject("base64")
    bits = "".join(format(STANDARD.index(c), "06b") for c in chars)
    whole = len(bits) // 8 * 8
    if "1" in bits[whole:]:
        raise Reject("base64")
    return bytes(int(bits[i : i + 8], 2) for i in range(0, whole, 8))


def parse_line(text, lead_in, lenient=False):
    if text.startswith(lead_in):
        text = text[len(lead_in) :]
    elif not lenient:
        raise Reject("lead-in")
    return from_base64(text, lenient)


def number(digits, base, limit=1 << 64):
    """Returns a number below the limit, None if it is not; digits may be many."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > 20:
        return None
    value = int(digits, base)
    return value if value < limit else None


DECODED = re.compile(r"~b#size: ([0-9]+),((?: 0x[0-9a-fA-F]+)*)[ \t\r\n]*", re.ASCII)


def parse_decoded(text):
    if not text.startswith("~b#"):
        raise Reject("lead-in")
    m = DECODED.fullmatch(text)
    if not m:
        raise Reject("decoded-line")
    size = number(m.group(1), 10)
    pcs = [number(word[2:], 16) for word in m.group(2).split()]
    if size is None or None in pcs or len(pcs) > 32:
        raise Reject("decoded-line")
    return Stack(pcs, size)


def format_decoded(s):
    return "~b#size: %d,%s" % (s.size, "".join(" 0x%x" % pc for pc in s.pcs))


def scan(text):
    """Lists the records in a text. (BT-TEXT-3)"""
    found, at = [], 0
    while True:
        m = re.compile(r"~[mbehpv]#").search(text, at)
        if not m:
            return " ".join(found) or "-"
        start, kind = m.start(), text[m.start() + 1]
        if kind in "me":
            run = re.compile(r"[A-Za-z0-9+/_-]*").match(text, m.end()).end()
            left = (run - m.end()) % 4
            end = run
            while left >= 2 and end < len(text) and text[end] == "=" and end - run < 4 - left:
                end += 1
        elif kind in "pv":
            end = re.compile(r"[A-Za-z0-9+/]*").match(text, m.end()).end()  # BT-PLINE-4
        elif kind == "b":
            head = re.compile(r"~b#size: ([0-9]+),").match(text, start)
            if not head or number(head.group(1), 10) is None:
                at = m.end()
                continue  # no beginning has the form
            end = head.end()
            for _ in range(32):
                address = re.compile(r" 0x([0-9a-fA-F]+)").match(text, end)
                if not address or number(address.group(1), 16) is None:
                    break
                end = address.end()
        else:
            after = re.compile(r"[\r\n\x1b]|~[mbehpv]#").search(text, m.end())  # BT-HEAD-5
            end = m.end() + len(text[m.end() : after.start() if after else None].rstrip(" \t"))
        found.append("%s@%d+%d" % (kind, start, end - start))
        at = max(end, m.end())


# -- Headers (section 16)

NUMBERS = ("t", "n", "b", "u", "w", "pid", "epoch", "allocs", "frees", "bytes", "live", "peak",
           "l", "base", "sample", "cut", "shift", "size", "free", "largest", "min", "parent")
NUMBERED = ("begin", "end")
NOT_NUMBERED = ("boot", "map", "load", "total", "lost", "heap", "free")  # other verbs may have a number


def ranges_fit(value):
    """Reports whether a value is START+LENGTH in hexadecimal, with commas between. (BT-HEAD-6)"""
    for word in value.split(","):
        m = re.fullmatch(r"([0-9a-fA-F]+)\+([0-9a-fA-F]+)", word, re.ASCII)
        start, length = [number(digits, 16) for digits in m.groups()] if m else (None, None)
        if start is None or not length or start + length > 1 << 64:
            return False
    return True


def parse_header(text):
    if not text.startswith("~h#"):
        raise Reject("lead-in")
    bad = Reject("header-line")
    words = text[3:].rstrip(" \t\r\n").split(" ")
    verb, rest = words[0], words[1:]
    if not re.fullmatch(r"[a-z]+", verb):
        raise bad
    dump = "-"
    if verb in NUMBERED or verb not in NOT_NUMBERED and rest and rest[0][:1].isdigit():
        if not rest or not re.fullmatch(r"[0-9]+", rest[0]) or number(rest[0], 10, 1 << 32) is None:
            raise bad
        dump, rest = str(number(rest[0], 10)), rest[1:]
    keys, names = [], set()
    for word in rest:
        m = re.fullmatch(r"([a-z]+)=((?:[!-$&-~]|%[0-9a-fA-F]{2})*)", word)
        if not m or re.search(r"~[mbehpv]#", word):
            raise bad
        name, value = m.groups()
        told = re.sub(r"%(..)", lambda e: chr(int(e.group(1), 16)), value)
        if name in NUMBERS and name not in names:  # of equal keys the first counts
            if not re.fullmatch(r"[0-9]+", told, re.ASCII) or number(told, 10) is None:
                raise bad
            if name == "w" and number(told, 10) not in (32, 64):
                raise bad
            limits = {"shift": (0, 4), "base": (0, (1 << 32) - 1), "sample": (1, 1 << 64)}  # BT-HEAD-6
            least, most = limits.get(name, (0, 1 << 64))
            if not least <= number(told, 10) <= most:
                raise bad
        if name in ("code", "heap") and name not in names and not ranges_fit(told):
            raise bad
        names.add(name)
        keys.append("%s=%s" % (name, "".join(c if "!" <= c <= "}" and c != "%" else "%%%02X" % ord(c) for c in told)))
    return " ".join([verb, dump] + keys)


def read_log(text):
    """Lists the records of a recording, with what they say. (BT-REC-1, BT-REC-2, BT-HEAD-4)"""
    items, boot, dump, word, fields = [], 0, "-", 64, False
    for place in [] if scan(text) == "-" else scan(text).split(" "):
        kind, start, size = place[0], *map(int, place[2:].split("+"))
        record = text[start : start + size]
        if kind == "h":
            try:
                verb, dumped, *keys = parse_header(record).split(" ")
            except Reject:
                continue
            first = dict(reversed([key.split("=", 1) for key in keys]))
            if verb in ("boot", "begin", "end"):
                dump = dumped if verb == "begin" else "-"
                fields = verb == "begin" and int(first.get("u", "0")) == 1
            if verb == "boot":
                boot += 1
                word = int(first.get("w", "64"))
            continue
        if kind in "pv":
            continue
        item = "%s;boot=%d;dump=%s;" % (place, boot, "-" if kind == "e" else dump)
        try:
            if kind == "b":
                s = parse_decoded(record)
            elif kind == "e":
                s = read_fields(parse_line(record, "~e#"), word, event=True)
            elif fields:
                s = read_fields(parse_line(record, "~m#"), word, event=False)
            else:
                s = decode(parse_line(record, "~m#"), word)[0]
            items.append(item + stack_of(s).replace(" ", ";"))
        except Reject:
            items.append(item + "reject")
    return " ".join(items) or "-"


def format_header(words):
    verb, dump, *keys = words
    parse_header("~h#" + " ".join([verb] + ([] if dump == "-" else [dump]) + keys))  # what readers reject is refused (BT-HEAD-1)
    if dump != "-":
        verb += " " + (dump.lstrip("0") or "0")  # without leading zeros
    return "~h#" + " ".join([verb] + keys)


# -- Call paths (sections 18 to 25). A frame is a code offset, or an address as "@" and hexadecimal.


class Digits:
    """Reads and writes fields of digits. (BT-DIGIT-1, BT-DIGIT-2)"""

    def __init__(self, text=""):
        self.text, self.pos = text, 0

    def more(self):
        return self.pos < len(self.text)

    def digit(self):
        if not self.more():
            raise Reject("truncated")
        self.pos += 1
        return STANDARD.index(self.text[self.pos - 1])

    def fixed(self, n):
        return sum(self.digit() << 6 * i for i in range(n))

    def number(self):
        value = 0
        for n in range(13):
            d = self.digit()
            if n == 12 and d > 15 or n > 0 and d == 0:
                raise Reject("number")
            value |= (d & 31) << 5 * n
            if d < 32:
                return value

    def name(self):
        name = self.fixed(6)
        if name >> 32:
            raise Reject("hash")
        return name

    def frame(self, ref):  # BT-DIGIT-3
        first = self.digit()
        c = first & 3
        v = first >> 2 | self.fixed(c + 1) << 4
        if c and v < 1 << 4 + 6 * c:
            raise Reject("number")
        if v == (1 << 28) - 1:
            return "@%x" % self.number()
        x = ref + unfold(v)
        if not 0 <= x < 1 << 27:
            raise Reject("frame")
        return x

    def put_fixed(self, value, n):
        self.text += "".join(STANDARD[value >> 6 * i & 63] for i in range(n))

    def put_number(self, value):
        while value >= 32:
            self.put_fixed(32 | value & 31, 1)
            value >>= 5
        self.put_fixed(value, 1)

    def put_frame(self, x, ref):
        if isinstance(x, str):
            self.text += "/////"
            self.put_number(int(x[1:], 16))
            return
        v = fold(x - ref)
        c = next(c for c in range(4) if v < 1 << 10 + 6 * c)
        self.put_fixed(v << 2 | c, c + 2)


def fold(d):
    return 2 * d if d >= 0 else -2 * d - 1


def unfold(v):
    return v // 2 if v % 2 == 0 else -(v // 2) - 1


def fold64(d):
    """Folds a difference modulo 2^64."""
    d %= 1 << 64
    return fold(d if d < 1 << 63 else d - (1 << 64))


def reference(x):
    return 0 if isinstance(x, str) else x  # BT-ENTRY-2


def crc16(text):  # BT-PLINE-2
    crc = 0xFFFF
    for c in text.encode():
        crc ^= c << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xFFFF
    return crc


def crc32(text):  # BT-VLINE-2
    return binascii.crc32(text.encode())


def fields_of(text, lead_in, least, crc, crc_digits):
    """Returns the fields between lead-in and CRC. (BT-PREJ-1)"""
    if not text.startswith(lead_in):
        raise Reject("lead-in")
    digits = text[3:]
    if any(c not in STANDARD for c in digits):
        raise Reject("base64")
    if len(digits) < least:
        raise Reject("short")
    body = digits[:-crc_digits]
    if Digits(digits[-crc_digits:]).fixed(crc_digits) != crc(body):
        raise Reject("crc")
    return Digits(body)


def unit_of(r, flags):
    unit = r.digit() if flags & 1 else 0
    if unit > 12:
        raise Reject("unit")
    return unit


class Entry:
    """A path, and what it holds: words behind it. base is 0, 1 or 2; name is that of base 2."""

    def __init__(self, base, name, frames, values=""):
        self.base, self.name, self.frames, self.values = base, name, frames, values

    def path(self):
        parts = ["%08x" % self.name] if self.base == 2 else []
        return "%d:%s" % (self.base, "/".join(parts + [frame_text(x) for x in self.frames]))

    def __str__(self):
        return self.path() + ";" + self.values


def frame_text(x):
    return x if isinstance(x, str) else "%x" % x


def parse_frame(word):
    return word if word.startswith("@") else int(word, 16)


def parse_path(text):
    base, parts = int(text[0]), [p for p in text[2:].split("/") if p]
    name = int(parts.pop(0), 16) if base == 2 else 0
    return Entry(base, name, [parse_frame(p) for p in parts])


def read_entry(r, before):
    k = r.number()
    frames, ref = [], 0
    if k >= 4:
        if before is None or k - 4 > len(before.frames):
            raise Reject("drop")
        keep = len(before.frames) - (k - 4)
        base, name, frames = before.base, before.name, before.frames[:keep]
        if k > 4:
            ref = reference(before.frames[keep])
        elif frames:
            ref = reference(frames[-1])
    else:
        base, name = min(k, 2), r.name() if k >= 2 else 0
    if k != 2:
        n = r.number()
        if n + len(frames) > 1024:
            raise Reject("depth")
        for _ in range(n):
            frames.append(r.frame(ref))
            ref = reference(frames[-1])
    return Entry(base, name, frames)


def read_paths(text):
    """Returns the words of a ~p# line. (BT-PLINE-1)"""
    r = fields_of(text, "~p#", 7, crc16, 3)
    flags, dump, sequence = r.digit(), r.digit(), r.fixed(2)
    unit, at, entries = unit_of(r, flags), 0, []
    while r.more():
        e = read_entry(r, entries[-1] if entries else None)
        entries.append(e)
        v = r.number()
        if v == 0:
            e.values = "def"
            continue
        e.values = "live=%d" % (v - 1)  # BT-ENTRY-4
        if flags & 1:
            blocks = []
            for _ in range(v - 1):
                at = (at + unfold(r.number())) % (1 << 64)
                blocks.append("%x+%d" % ((at << unit) % (1 << 64), r.number()))
            e.values += ";blocks=" + (",".join(blocks) or "-")
        else:
            e.values += ";bytes=%d" % r.number()
        if flags & 2:
            e.values += ";ever=%d,%d" % (r.number(), r.number())
        if flags & 4:
            e.values += ";peak=%d" % r.number()
        if flags & 32:
            for _ in range(r.number()):
                r.digit()
    head = "flags=%d dump=%d seq=%d" % (flags, dump, sequence) + (" unit=%d" % unit if flags & 1 else "")
    return " ".join([head] + [str(e) for e in entries])


def mix(h, x):  # BT-NAME-1
    g = (h ^ x) * 0x9E3779B1 & 0xFFFFFFFF
    return g ^ g >> 15


def mix_frame(h, x):
    if isinstance(x, str):
        a = int(x[1:], 16)
        return mix(mix(mix(h, 0xFFFFFFFF), a & 0xFFFFFFFF), a >> 32)
    return mix(h, x)


def root_of(e):
    return e.name if e.base == 2 else e.base


def name_of(e):
    h = root_of(e)
    for x in e.frames:
        h = mix_frame(h, x)
    return h


class Dump:
    """A dump of call paths: its begin, its end or None, and the entries between. (BT-DUMP-1)"""

    def __init__(self, number, boot, names, keys):
        self.number, self.boot, self.names, self.begin, self.end = number, boot, names, keys, None
        self.entries, self.lines, self.gaps, self.blocks, self.bytes = [], 0, 0, 0, 0
        self.sums, self.lost, self.no_base = {}, None, False

    def add_up(self, earlier):
        """Adds up the entries by path. earlier are the dumps before this one. (BT-DUMP-2)"""
        rate = int(self.begin.get("sample", "0"))
        for e in self.entries:
            values = values_of(e)
            e = self.names.resolve(e)
            total = self.sums.setdefault(e.path(), [e, dict.fromkeys("live bytes allocs ever peak".split(), 0), [0.0, 0.0]])
            for name in total[1]:
                total[1][name] = add(total[1][name], values[name])
            self.blocks, self.bytes = add(self.blocks, values["live"]), add(self.bytes, values["bytes"])
            for live, size in (values["blocks"] or [(values["live"], values["bytes"])]) if rate else []:
                chance = -math.expm1(-size / live / rate) if live and size else 1  # BT-DUMP-5
                total[2] = [total[2][0] + live / chance, total[2][1] + size / chance]
        self.lose()
        if self.begin.get("k") == "diff":
            bases = [d for d in earlier if d.boot == self.boot][-64:]  # BT-DUMP-3
            bases = [d for d in bases if int(d.number) == int(self.begin.get("base", "-1"))]
            self.no_base = not bases or not bases[-1].complete()
            for key, total in bases[-1].sums.items() if bases else []:
                self.sums.setdefault(key, total)  # BT-DUMP-3
        self.sums = {key: t for key, t in self.sums.items() if t[1]["live"] or t[1]["bytes"]}

    def lose(self):
        """Finds what is missing. (BT-DUMP-4)"""
        end = self.end or {}
        lines = self.gaps
        if "l" in end and "l" in self.begin:
            lines = max(0, int(end["l"]) - int(self.begin["l"]) - self.lines)
        said = [end.get(key, self.begin.get(key)) for key in "nb"]
        self.lost = [lines] + ["-" if n is None else int(n) - read for n, read in zip(said, (self.blocks, self.bytes))]

    def complete(self):
        return self.end is not None and not self.no_base and all(n in (0, "-") for n in self.lost)

    def __str__(self):
        head = "dump=%s;boot=%d;missing=%s" % (self.number, self.boot, ",".join(map(str, self.lost)))
        head += (";open" if self.end is None else "") + (";nobase" if self.no_base else "")
        lines = []
        for e, v, estimates in self.sums.values():
            line = "%s;live=%d;bytes=%d" % (e.path(), v["live"], v["bytes"])
            line += ";ever=%d,%d" % (v["allocs"], v["ever"]) if v["allocs"] or v["ever"] else ""
            line += ";peak=%d" % v["peak"] if v["peak"] else ""
            lines.append(line + (";est=%.0f,%.0f" % tuple(estimates) if any(estimates) else ""))
        return " ".join([head] + sorted(lines))


def add(a, b):
    return min(a + b, (1 << 64) - 1)  # BT-DUMP-2


def values_of(e):
    """Returns the values of an entry, and its blocks as pairs of 1 and the size."""
    words = dict(word.split("=", 1) for word in e.values.split(";"))
    sizes = [int(b.split("+")[1]) for b in words.get("blocks", "-").split(",") if b != "-"]
    allocs, ever = map(int, words.get("ever", "0,0").split(","))
    return {"live": int(words["live"]), "bytes": int(words.get("bytes", add(sum(sizes), 0))), "allocs": allocs, "ever": ever,
            "peak": int(words.get("peak", "0")), "blocks": [(1, size) for size in sizes]}


def begin(e):
    """Returns a path that begins with name 0 or 1 as one of base 0 or 1. (BT-NAME-2)"""
    return Entry(e.name, 0, e.frames, e.values) if e.base == 2 and e.name < 2 else e


class Names:
    """The paths that lines tell from a boot on, up to one that forgets them. (BT-NAME-2)"""

    def __init__(self):
        self.told = {}  # by name: the path that it stands for, None if two differ
        self.seen = set()

    def tell(self, e):
        e = begin(e)
        key, h = (e.base, e.name), root_of(e)
        for n, x in enumerate(e.frames, 1):
            key, h = (key, x), mix_frame(h, x)
            if key in self.seen:
                continue
            self.seen.add(key)
            if e.base == 2 and h == e.name:
                continue  # a path that leads to its own name
            c = Entry(e.base, e.name, e.frames[:n])
            if h not in self.told:
                self.told[h] = c
            elif self.told[h] is not None:
                self.told[h] = more(self.told[h], c)

    def resolve(self, e):
        """Puts frames in the place of names as far as these are known."""
        w = begin(e)
        while w.base == 2:
            found = self.told.get(w.name)
            if found is None:
                break
            if len(found.frames) + len(w.frames) > 1024:
                return begin(e)
            w = Entry(found.base, found.name, found.frames + w.frames, e.values)
        return w


def more(a, b):
    """Returns the one of two paths with a name that says more, None if they differ."""
    if len(a.frames) < len(b.frames):
        a, b = b, a
    if a.frames[len(a.frames) - len(b.frames) :] != b.frames:
        return None
    if len(a.frames) > len(b.frames):
        return None if b.base < 2 else a
    return a if a.base < 2 else b


def keeps_names(before, keys):
    """Reports whether a boot keeps the names of the one before. (BT-NAME-3)"""
    if before is None or any(key not in boot for key in ("build", "code") for boot in (before, keys)):
        return False
    return keys["build"] == before["build"] and code_of(keys) == code_of(before)


def code_of(keys):
    """Returns shift and ranges as numbers."""
    return int(keys.get("shift", "0")), [[int(n, 16) for n in r.split("+")] for r in keys["code"].split(",")]


def read_dumps(text):
    """Returns the words of the dumps of a log. (Section 24)"""
    dumps, dump, boot, names, before, word, fields, following = [], None, 0, Names(), None, 64, False, None
    for place in [] if scan(text) == "-" else scan(text).split(" "):
        kind, start, size = place[0], *map(int, place[2:].split("+"))
        record = text[start : start + size]
        if kind in "mb" and dump:
            dump.blocks = add(dump.blocks, 1)
            dump.bytes = add(dump.bytes, size_of(kind, record, word, fields))
            continue
        try:
            if kind == "h":
                verb, number, *keys = parse_header(record).split(" ")
                keys = dict(reversed([key.split("=", 1) for key in keys]))
                if verb == "end" and dump and dump.number == number:
                    dump.end = keys
                if verb in ("boot", "begin", "end"):
                    dump = None
                if verb == "boot":
                    boot, word, following = boot + 1, int(keys.get("w", "64")), 0
                    if not keeps_names(before, keys):
                        names = Names()
                    before = keys
                elif verb == "begin":
                    dump = Dump(number, boot, names, keys)
                    dumps.append(dump)
                    fields = int(keys.get("u", "0")) == 1
            elif kind == "p":
                words = read_paths(record).split(" ")
                number, sequence = (int(w.split("=")[1]) for w in words[1:3])
                gap = 0 if following is None else (sequence - following) % 4096
                if gap < 2048:
                    following = (sequence + 1) % 4096
                else:  # the line came late or twice (BT-DUMP-4)
                    gap = 0
                mine = dump and int(dump.number) % 64 == number
                if mine:
                    dump.lines, dump.gaps = dump.lines + 1, dump.gaps + gap
                for path, values in (w.split(";", 1) for w in words[3:] if not w.startswith("unit=")):
                    e = parse_path(path)
                    e.values = values
                    names.tell(e)
                    if mine and values != "def":
                        dump.entries.append(e)
        except Reject:
            continue
    for n, dump in enumerate(dumps):
        dump.add_up(dumps[:n])
    return " ".join(map(str, dumps)) or "-"


def size_of(kind, record, word, fields):
    """Returns the size that a record has, 0 if it cannot be read. (BT-HEAD-4)"""
    try:
        if kind == "b":
            return parse_decoded(record).size
        blob = parse_line(record, "~m#")
        return (read_fields(blob, word, event=False) if fields else decode(blob, word)[0]).size
    except Reject:
        return 0


def keys_of(words):
    return dict(w.split("=", 1) for w in words)


def check_addresses(addresses, unit):  # BT-PREJ-2
    if unit > 12 or any(int(a, 16) % (1 << unit) for a in addresses):
        raise Reject("unit")


class PathWriter:
    """Writes entries as ~p# lines, each path alone. (BT-PLINE-3, BT-NAME-4)"""

    def __init__(self, head):
        self.head = keys_of(head)
        self.flags, self.unit = int(self.head["flags"]), int(self.head.get("unit", 0))
        self.sequence, self.longest = int(self.head["seq"]), int(self.head["max"])
        self.body, self.at, self.lines = "", 0, []

    def flush(self):
        if self.body:
            w = Digits()
            w.put_fixed(self.flags, 1)
            w.put_fixed(int(self.head["dump"]), 1)
            w.put_fixed(self.sequence % 4096, 2)
            if self.flags & 1:
                w.put_fixed(self.unit, 1)
            w.text += self.body
            w.put_fixed(crc16(w.text), 3)
            self.lines.append("~p#" + w.text)
            self.sequence += 1
        self.body, self.at = "", 0

    def path(self, e):
        w, ref = Digits(), 0
        w.put_number(3 if e.base == 2 else e.base)
        if e.base == 2:
            w.put_fixed(e.name, 6)
        w.put_number(len(e.frames))
        for x in e.frames:
            w.put_frame(x, ref)
            ref = reference(x)
        return w.text

    def left(self):
        return self.longest - 10 - (self.flags & 1) - len(self.body)

    def put(self, text):
        if len(text) > self.left():
            self.flush()
        if len(text) > self.left():
            raise Reject("hash")
        self.body += text

    def entry(self, word):
        path, values = word.split(";", 1)
        e, values = parse_path(path), keys_of(v for v in values.split(";") if "=" in v)
        blocks = [b for b in values.get("blocks", "-").split(",") if b != "-"]
        if len(e.frames) > 1024:
            raise Reject("depth")
        if any(not isinstance(x, str) and x >> 27 for x in e.frames):
            raise Reject("frame")
        if values and int(values["live"]) == (1 << 64) - 1:
            raise Reject("number")
        check_addresses([b.split("+")[0] for b in blocks], self.unit)
        while len(self.path(e)) > self.longest - 80:  # defines an outer part, and goes on from its name
            n = 1
            while n < len(e.frames) and len(self.path(Entry(e.base, e.name, e.frames[: n + 1]))) < self.longest - 11:
                n += 1
            while n and name_of(Entry(e.base, e.name, e.frames[:n])) < 2:  # those of paths of no frames (BT-NAME-4)
                n -= 1
            if not n:
                break  # it has to fit a line as it is
            outer = Entry(e.base, e.name, e.frames[:n])
            self.put(self.path(outer) + "A")
            e = Entry(2, name_of(outer), e.frames[n:])
        if not values:
            self.put(self.path(e) + "A")
            return
        ever = values.get("ever", "0,0").split(",")
        rest = ever * (self.flags >> 1 & 1) + [values.get("peak", 0)] * (self.flags >> 2 & 1)
        if not self.flags & 1:
            self.put(self.valued(e, int(values["live"]), [values["bytes"]] + rest))
            return
        part = blocks[:1]  # one block in each entry is simple, if long
        while True:
            self.flush()
            numbers = []
            for b in part:
                address, size = b.split("+")
                at = int(address, 16) >> self.unit
                numbers += [fold64(at - self.at), int(size)]
                self.at = at
            self.put(self.valued(e, len(part), numbers + rest))
            blocks = blocks[1:]
            if not blocks:
                return
            part, rest = blocks[:1], [0] * len(rest)

    def valued(self, e, live, numbers):
        w = Digits(self.path(e))
        for v in [live + 1] + numbers:
            w.put_number(int(v))
        return w.text


def write_paths(words):
    head = [w for w in words if ":" not in w]
    w = PathWriter(head)
    check_addresses([], w.unit)
    for word in words[len(head) :]:
        w.entry(word)
    w.flush()
    return "\n".join(w.lines)


def read_events(text):
    """Returns the words of a ~v# line. (BT-VLINE-1, BT-VLINE-4)"""
    r = fields_of(text, "~v#", 13, crc32, 6)
    flags, sequence = r.digit(), r.fixed(3)
    unit, at, paths, events = unit_of(r, flags), 0, [], []
    time, thread, block = r.number(), r.number(), r.number()
    head = "flags=%d seq=%d" % (flags, sequence) + (" unit=%d" % unit if flags & 1 else "")
    head += " t=%d thread=%d next=%d" % (time, thread, block)

    def path(a):
        if a == 0:
            paths.append(r.name())
        elif a > len(paths):
            raise Reject("index")
        return paths[a - 1]

    def old(age):
        if not 0 < age <= block:
            raise Reject("age")
        return block - age

    def address():
        nonlocal at
        if not flags & 1:
            return ""
        at = (at + unfold(r.number())) % (1 << 64)
        return ";addr=%x" % ((at << unit) % (1 << 64))

    while r.more():
        n = r.number()
        kind, a = n & 3, n >> 2
        when = ";t=%d;thread=%d" % (time, thread)
        if kind == 1:
            events.append("free;n=%d%s" % (old(a), when))
        elif kind in (0, 2):
            by = path(a)
            verb = "alloc;n=%d" % block if kind == 0 else "move;n=%d;old=%d" % (block, old(r.number()))
            size = r.number()
            events.append("%s%s;path=%08x;size=%d%s" % (verb, when, by, size, address()))
            block = (block + 1) % (1 << 64)
        elif a == 0:
            time = (time + r.number()) % (1 << 64)
        elif a == 1:
            thread = r.number()
        elif a == 2:
            events.append("unknown" + when + address())
        elif a == 3:
            events.append("lost%s;count=%d" % (when, r.number()))
        else:
            for _ in range(r.number()):
                r.digit()
    return " ".join([head] + events)


def write_events(words):
    head = [w for w in words if ";" not in w]
    h = {key: int(value) for key, value in keys_of(head).items()}
    flags, unit, at, paths = h["flags"], h.get("unit", 0), 0, []
    time, thread, block = h["t"], h["thread"], h["next"]
    check_addresses([], unit)
    w = Digits()
    w.put_fixed(flags, 1)
    w.put_fixed(h["seq"], 3)
    if flags & 1:
        w.put_fixed(unit, 1)
    for v in time, thread, block:
        w.put_number(v)
    for word in words[len(head) :]:
        kind, *rest = word.split(";")
        e = keys_of(rest)
        check_addresses([e["addr"]] if "addr" in e else [], unit)
        if int(e["t"]) != time:
            w.put_number(3)
            w.put_number((int(e["t"]) - time) % (1 << 64))
        if int(e["thread"]) != thread:
            w.put_number(4 + 3)
            w.put_number(int(e["thread"]))
        time, thread = int(e["t"]), int(e["thread"])
        age = block - int({"free": e.get("n"), "move": e.get("old")}.get(kind, -1))
        if kind in ("free", "move") and not 0 < age <= block or kind == "free" and age >> 62:
            raise Reject("age")
        if kind == "free":
            w.put_number(4 * age + 1)
        elif kind == "unknown":
            w.put_number(4 * 2 + 3)
        elif kind == "lost":
            w.put_number(4 * 3 + 3)
            w.put_number(int(e["count"]))
        else:
            item = 0 if kind == "alloc" else 2
            if e["path"] in paths:
                w.put_number(4 * (paths.index(e["path"]) + 1) + item)
            else:
                paths.append(e["path"])
                w.put_number(item)
                w.put_fixed(int(e["path"], 16), 6)
            if item:
                w.put_number(age)
            w.put_number(int(e["size"]))
            block = (block + 1) % (1 << 64)
        if "addr" in e:
            w.put_number(fold64((int(e["addr"], 16) >> unit) - at))
            at = int(e["addr"], 16) >> unit
    w.put_fixed(crc32(w.text), 6)
    return "~v#" + w.text


def parse_code(words):
    shift = int(words[0][len("shift=") :])
    ranges = [[int(n, 16) for n in r.split("+")] for r in words[1][len("code=") :].split(",")]
    return shift, ranges, words[2].split(",")


def offsets(words):
    """Returns the frames of addresses. (BT-CODE-1, BT-CODE-2)"""
    shift, ranges, addresses = parse_code(words)
    out = []
    for word in addresses:
        address, found, before = int(word, 16), None, 0
        for start, length in ranges:
            d = address - start
            if 0 <= d and d >> shift < length >> shift:
                x = before + (d >> shift)
                found = "%x" % x if d % (1 << shift) == 0 and x < 1 << 27 else None
            before += length >> shift
        out.append(found or "@" + word)
    return ",".join(out)


def addresses(words):
    shift, ranges, frames = parse_code(words)
    out = []
    for word in frames:
        found = word[1:] if word.startswith("@") else "?"
        x = -1 if word.startswith("@") else int(word, 16)
        for start, length in ranges:
            if 0 <= x < length >> shift:
                found = "%x" % (start + (x << shift))
            x -= length >> shift
        out.append(found)
    return ",".join(out)


# -- BTP/1 (README.md)


def hex_of(data):
    return data.hex() or "-"


def list_of(pcs):
    return ",".join("%x" % pc for pc in pcs) or "-"


def stack_of(s):
    out = "size=%d pcs=%s" % (s.size, list_of(s.pcs))
    if s.user:
        out += " user=" + ",".join("%d:%x" % field for field in sorted(s.user))
    return out


def parse_stack(options):
    pcs = [] if options["pcs"] == "-" else [int(pc, 16) for pc in options["pcs"].split(",")]
    fields = [f.split(":") for f in options.get("user", "").split(",") if f]
    user = [(int(tag), int(value, 16)) for tag, value in fields]
    return Stack(pcs, int(options["size"]), user)


def answer(op, words):
    """Returns verb and rest of the answer."""
    options = dict(w.split("=", 1) for w in words if "=" in w)
    if op == "format":
        if words[0] == "head":
            text = format_header(words[1:])
        elif "blob" in options or "event" in options:
            data = options.get("blob", options.get("event"))
            text = ("~m#" if "blob" in options else "~e#") + to_base64(b"" if data == "-" else bytes.fromhex(data))
        else:
            s = parse_stack(options)
            if len(s.pcs) > 32:
                raise Reject("frames")  # BT-REJ-2
            text = format_decoded(s)
        return "text", hex_of(text.encode())
    if op == "pencode":
        return "text", hex_of(write_paths(words).encode())
    if op == "vencode":
        return "text", hex_of(write_events(words).encode())
    if op == "name":
        return "name", "%08x" % name_of(parse_path(words[0]))
    if op == "offsets":
        return "offsets", offsets(words)
    if op == "addresses":
        return "addresses", addresses(words)
    if op in ("encode", "user-encode"):
        return "blob", hex_of(encode(parse_stack(options), options["machine"], options["search"]))
    if op == "event-encode":
        return "blob", hex_of(encode_event(parse_stack(options), options["machine"], options["search"]))

    data = b"" if words[0] == "-" else bytes.fromhex(words[0])
    text = data.decode("latin-1")
    word = int(options.get("word", 64))
    if op == "decode":
        return "ok", stack_of(decode(data, word)[0])
    if op == "end":
        return "ok", stack_of(decode(at_end(data), word)[0])
    if op == "mline":
        return "ok", stack_of(decode(parse_line(text, "~m#", options["reading"] == "lenient"), word)[0])
    if op == "bline":
        return "ok", stack_of(parse_decoded(text))
    if op == "salvage":
        depth, size, pcs = salvage(data, word)
        return "part", "depth=%d size=%s pcs=%s" % (depth, "-" if size is None else size, list_of(pcs))
    if op == "marks":
        return "marks", marks(decode(data, 64)[0])
    if op == "scan":
        return "found", scan(text)
    if op in ("user", "eline"):
        event = op == "eline"
        return "ok", stack_of(read_fields(parse_line(text, "~e#") if event else data, word, event))
    if op == "log":
        return "records", read_log(text)
    if op == "hline":
        return "head", parse_header(text)
    if op == "dumps":
        return "dumps", read_dumps(text)
    if op == "pline":
        return "paths", read_paths(text)
    if op == "vline":
        return "events", read_events(text)
    return None


OPS = ("decode encode end salvage mline bline format marks scan user user-encode eline event-encode hline log "
       "pline vline dumps pencode vencode name offsets addresses").split()


def main():
    for line in sys.stdin:
        words = line.rstrip("\n").split(" ")
        if words[0] == "hello":
            print("hello btp=1 name=example.py version=1 ops=" + ",".join(OPS) +
                  " machines=exact32,exact64,wrap32,wrap64,zero32,zero64 searches=lws,best", flush=True)
            continue
        if words[0] == "quit":
            return
        op, ident, rest = words[0], words[1], words[2:]
        try:
            found = answer(op, rest)
            print("%s %s %s" % (found[0], ident, found[1]) if found else "skip %s unsupported" % ident, flush=True)
        except Reject as e:
            bit = "" if e.bit is None or op not in ("decode", "marks", "user") else " bit=%d" % e.bit
            print("reject %s %s%s" % (ident, e.reason, bit), flush=True)


if __name__ == "__main__":
    main()
