# Run by gdb: stops a program at random instructions and writes a line of JSON for each stop,
# with the registers, the stack and gdb's backtrace.
import base64, json, os, random, shlex, subprocess, time

out = open(os.environ["TRUTH_OUT"], "w")
want = int(os.environ["TRUTH_SAMPLES"])
random.seed(int(os.environ.get("TRUTH_SEED", "1")))
names = json.loads(os.environ["TRUTH_REGS"])  # DWARF number -> gdb's name
sp_name = os.environ["TRUTH_SP"]
mode = os.environ["TRUTH_MODE"]  # "break": at random instructions; "signal": at random moments

for c in ["pagination off", "confirm off", "backtrace past-main on", "height 0",
          "disable-randomization on", "debuginfod enabled off", "breakpoint pending off", "breakpoint always-inserted on", "trust-readonly-sections on"]:
    try:
        gdb.execute("set " + c)
    except gdb.error:
        pass
if os.environ.get("TRUTH_LIBS"):
    gdb.execute("set environment LD_LIBRARY_PATH " + os.environ["TRUTH_LIBS"])
inf = gdb.selected_inferior()


def number(name):
    return int(gdb.parse_and_eval("$" + name).cast(gdb.lookup_type("unsigned long long"))) & mask


def read(addr, n):
    try:
        return bytes(inf.read_memory(addr, n))
    except gdb.error:
        return b""


def memory(sp, most=1 << 20):
    data = b""
    while len(data) < most:
        n = 4096 - (sp + len(data)) % 4096
        b = read(sp + len(data), n)
        if not b:
            break
        data += b
    return data


def sample():
    regs = {}
    for n, name in names.items():
        try:
            regs[n] = number(name)
        except (gdb.error, ValueError):
            pass
    frames, extra, stacks = [], [], []
    sp = number(sp_name)
    stack = memory(sp)
    f = gdb.newest_frame()
    try:
        while f is not None and len(frames) < 300:
            if f.type() == gdb.SIGTRAMP_FRAME:
                extra.append([f.pc() & mask, base64.b64encode(read(f.pc() & mask, 16)).decode()])
                if f.older() is not None:
                    at = int(f.older().read_register("sp")) & mask
                    if not sp <= at < sp + len(stack) or at - sp > 1 << 16:  # the handler runs on a separate stack
                        stacks.append([at, base64.b64encode(memory(at)).decode()])
            if f.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
                frames.append([f.pc() & mask, f.name() or "?"])
            f = f.older()
    except gdb.error as e:
        pass
    line = {"pc": number("pc"), "regs": regs, "sp": sp, "stack": base64.b64encode(stack).decode(),
            "extra": extra + stacks, "stacks": len(stacks), "frames": frames}
    if "cpsr" in os.environ.get("TRUTH_FLAGS", ""):
        line["thumb"] = bool(number("cpsr") & 0x20)
    if not os.environ.get("TRUTH_PORT"):
        text = maps()
        if mode == "signal":
            line["maps"] = text
        for m in text.splitlines():
            if m.endswith("[vdso]"):
                low, high = [int(x, 16) for x in m.split()[0].split("-")]
                line["vdso"] = [low, base64.b64encode(read(low, high - low)).decode()]
    out.write(json.dumps(line) + "\n")
    out.flush()


def maps():
    with open("/proc/%d/maps" % inf.pid) as f:
        return f.read()


def instructions():
    arch = gdb.newest_frame().architecture()
    ranges = json.loads(os.environ["TRUTH_RANGES"])
    random.shuffle(ranges)
    for low, high in ranges[:100]:
        try:
            for i in arch.disassemble(low, high - 1):
                yield i["addr"]
        except (gdb.error, gdb.MemoryError):
            pass


def by_breaks():
    places = list(instructions())
    random.shuffle(places)
    gdb.write("%d places\n" % len(places))
    pending, taken, rounds = {}, 0, 0
    deadline = time.time() + int(os.environ.get("TRUTH_SECONDS", "60"))
    while taken < want and time.time() < deadline:
        while len(pending) < 400 and places:
            a = places.pop()
            try:
                b = gdb.Breakpoint("*%d" % a, internal=True)
                b.ignore_count = random.choice([0, 0, 0, 0, 1])
                b.silent = True
                pending[b.number] = (b, a)
            except (gdb.error, RuntimeError):
                pass
        if not pending:
            break
        gdb.execute("continue", to_string=True)
        pc = number("pc")
        hit = [n for n, (b, a) in pending.items() if a == pc]
        if not hit and rounds > 50:
            break
        rounds = 0 if hit else rounds + 1
        for n in hit:
            pending.pop(n)[0].delete()
        if hit:
            sample()
            taken += 1


def by_moments():
    """Stop by SIGURG, which programs ignore, at random moments. Run the program again when it ends."""
    gdb.execute("handle SIGURG stop print nopass", to_string=True)
    gdb.execute("set args " + " ".join(shlex.quote(a) for a in json.loads(os.environ["TRUTH_ARGS"])) + " > /dev/null 2>&1 < /dev/null")
    limit = float(os.environ.get("TRUTH_MOMENT", "0.05"))
    taken, runs = 0, 0
    deadline = time.time() + int(os.environ.get("TRUTH_SECONDS", "120"))
    while taken < want and time.time() < deadline and runs < 100:
        fresh = not inf.pid
        if fresh:  # let the program start up
            gdb.execute("starti", to_string=True)
            runs += 1
        pause = 0.3 if fresh else random.random() * limit
        kill = subprocess.Popen(["/bin/sh", "-c", "sleep %.4f; kill -URG %d 2>/dev/null" % (pause, inf.pid)])
        try:
            gdb.execute("continue", to_string=True)
        except gdb.error:
            pass
        kill.wait()
        if inf.pid and inf.threads() and not fresh:
            sample()
            taken += 1


if os.environ.get("TRUTH_PORT"):
    for _ in range(600):
        try:
            gdb.execute("target remote localhost:" + os.environ["TRUTH_PORT"], to_string=True)
            break
        except gdb.error:
            time.sleep(0.1)
    gdb.execute("break main", to_string=True)
    gdb.execute("continue", to_string=True)
    gdb.execute("delete", to_string=True)
elif mode == "break":
    gdb.execute("break main", to_string=True)
    gdb.execute("run > /dev/null 2>&1 < /dev/null", to_string=True)
    gdb.execute("delete", to_string=True)
mask = (1 << 64) - 1 if os.environ["TRUTH_WORD"] == "8" else (1 << 32) - 1
for s in ["SIGUSR1", "SIGUSR2"]:
    gdb.execute("handle %s nostop noprint pass" % s, to_string=True)
if mode == "break":
    by_breaks()
else:
    by_moments()
out.close()
try:
    gdb.execute("kill", to_string=True)
except gdb.error:
    pass
gdb.execute("quit")
