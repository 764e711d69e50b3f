# A second implementation of heap/docs/leaks.md, standard library only.
# usage: growth.py WEIGHTS < series, one JSON object a line; writes a judgement a line.
import json, math, sys
from math import log, log1p, sqrt, inf

WEIGHTS = json.loads(sys.argv[1])

def probability(kind, w, rivals=10):
    x = w - 1
    if kind == "path":
        x = w - log(rivals)
        x += .4*max(0, x + 1)
    return 1 / (1 + math.exp(-x))

def dips(v, q):
    n = len(v)
    if n < 12: return v
    below = [0] + [min(v[i-1], v[i+1]) - v[i] for i in range(1, n-1)] + [0]
    if max(below) <= 3*q: return v
    s, t = sorted(below), sorted(v)
    limit = max(4*max(s[(n-1)*94//100], 0) + 3*q, (t[(n-1)*95//100] - t[(n-1)*5//100]) / 4)
    return [min(v[i-1], v[i+1]) if 0 < i < n-1 and below[i] > limit else v[i] for i in range(n)]

class Boot:
    def __init__(b, src, index, q):
        b.index, b.version, b.lost = index, src.get("version", ""), 0
        at, v, kept = [], [], src.get("kept")
        for i, (t, x) in enumerate(zip(src["at"], src["value"])):
            k = kept[i] if kept else 1
            if k <= 0 or k > 1 or at and t <= at[-1]: continue
            at.append(t); v.append(x / k)
            if kept: b.lost = max(b.lost, sqrt(max(0, x)*q*(1-k)) / k)
        b.ok = len(at) >= 3
        if not b.ok: return
        v, n = dips(v, q), len(at)
        k = (n + 63) // 64
        b.at, b.level, i, lossy = at, v, 0, False
        if b.lost > 0:
            rise = 1.5*abs(sum(v[n-n//3:]) - sum(v[:n//3])) / (n//3)
            m = min(n//8, math.ceil((2*b.lost*n/max(rise, 1e-9))**(2/3)))
            if m > k: k, lossy, b.lost = m, True, b.lost/sqrt(m)
        if k > 1:
            b.at, b.level, to = [], [], (n-1) % k + 1
            while i < n:
                b.at.append(sum(at[i:to]) / (to-i)); b.level.append(sum(v[i:to])/(to-i) if lossy else sorted(v[i:to])[(to-i)//10])
                i, to = to, to + k
        n = len(b.at)
        b.span = b.at[-1] - b.at[0]
        b.floor = [min(b.level[i:]) for i in range(n)]
        b.touch = [b.level[i] <= min(b.level[i+1:], default=inf) + q/2 for i in range(n)]
        b.most = max(b.level[i] - min(b.level[:i+1]) for i in range(n))
        b.env, last, runs, start = [0]*n, -1, [], 0
        for i in range(n):
            if not b.touch[i]: continue
            flat = last < 0 or i-last >= 3 and b.jumped(last, i)
            for j in range(last+1, i+1):
                b.env[j] = b.floor[i] if flat else b.floor[last] + (b.floor[i]-b.floor[last]) * (b.at[j]-b.at[last]) / (b.at[i]-b.at[last])
            runs += [i-start]*(i-start) + [0]
            last, start = i, i + 1
        runs = sorted(runs[len(runs)*6//10:])
        b.hook = runs[(len(runs)-1)*6//10]

    def jumped(b, i, j):
        rise, above = b.floor[j]-b.floor[i], sorted(b.level[i+1:j])
        if above[len(above)//2] - b.floor[j] < rise/4: return True
        steps = sorted(abs(y-x) for x, y in zip(b.level, b.level[1:]))
        return b.at[i] <= b.at[0] + .12*b.span and rise > 4*steps[len(steps)//2]

class Set:
    def __init__(s, boots, q):
        s.boots, s.q, n = boots, q, len(boots)
        s.slots = max(len(b.at) for b in boots)
        if n > 1: s.slots = min(64, max(s.slots, 24))
        s.t0, end = min(b.at[0] for b in boots), max(b.at[-1] for b in boots)
        s.span, s.lost = sum(b.span for b in boots), max(b.lost for b in boots)
        s.dt = (end - s.t0) / (s.slots - 1)
        s.hi, s.sums, s.points = [], [], 0
        for b in boots:
            m = len(b.at)
            last = max(m-1-b.hook, min(2, m-1))
            lo, hi = math.ceil((b.at[0]-s.t0)/s.dt - 1e-9), math.floor((b.at[last]-s.t0)/s.dt + 1e-9) + 1
            sums, i = [(0,)*6], 1
            for k in range(s.slots):
                if lo <= k < hi:
                    at = s.t0 + k*s.dt
                    while i < m-1 and b.at[i] < at: i += 1
                    y = b.env[i-1] + (b.env[i]-b.env[i-1])*(at-b.at[i-1])/(b.at[i]-b.at[i-1]) - b.env[0]
                    sums.append(tuple(p+r for p, r in zip(sums[-1], (1, k, y, k*k, k*y, y*y))))
                else: sums.append(sums[-1])
            s.hi.append(hi); s.sums.append(sums); s.points += sums[-1][0]
        late = s.scatter(.12)
        s.total, s.spread, s.typical = s.scatter(0)
        if late[0] > s.total/5 and late[1] < s.spread: s.total, s.spread, s.typical = late

    def scatter(s, part):
        boots = []
        for b in s.boots:
            last, rises = None, []
            for i in range(len(b.at)):
                if not b.touch[i] or b.at[i] < b.at[0] + part*b.span or last is not None and b.floor[i] <= b.floor[last] + s.q/2: continue
                if last is not None: rises.append((b.floor[i] - b.floor[last], b.at[i] - b.at[last]))
                last = i
            boots.append(rises)
        every = sorted(d for rises in boots for d, _ in rises)
        if not every: return 0, 0, 0
        most, spread = 3*every[len(every)//2], 0
        for rises in boots:
            for i, (d, t) in enumerate(rises):
                near = rises[max(0, i-1):i] + rises[i+1:i+2]
                off = d
                if near: off = (d - t*sum(x for x, _ in near)/sum(y for _, y in near)) / sqrt(1 + 1/len(near))
                spread += min(abs(off), d, most)**2
        total = sum(min(d, most) for d in every)
        return total/len(s.boots), spread/len(s.boots), sum(min(d, most)**2 for d in every)/total

    def fit(s, a, z): # slope, sxx, rest, n
        sxx = sxy = syy = count = 0
        for sums in s.sums:
            n, x, y, xx, xy, yy = (p-r for p, r in zip(sums[z], sums[a]))
            if n: sxx, sxy, syy, count = sxx + xx - x*x/n, sxy + xy - x*y/n, syy + yy - y*y/n, count + n
        slope = sxy/sxx if sxx > 1e-9 else 0
        return slope, sxx, max(0, syy - slope*sxy), count

    def segment(s):
        price = s.points * max(s.spread/14, (.02*s.total)**2, s.q**2/6)
        best, start = [0] + [inf]*s.slots, [0]*(s.slots+1)
        for z in range(1, s.slots+1):
            for a in range(z):
                c = best[a] + s.fit(a, z)[2] + price
                if c < best[z]*(1-1e-6): best[z], start[z] = c, a
        s.cuts, z = [s.slots], s.slots
        while z: z = start[z]; s.cuts.insert(0, z)

    def window(s, last):
        f = s.fit(s.cuts[last], s.cuts[last+1])
        w = dict(start=s.cuts[last], since=s.cuts[last], to=s.cuts[last+1], slope=f[0], rest=f[2], n=f[3], steep=0, faster=0, idle=0)
        sxx, parts, same, slower = f[1], [(w["start"], w["to"], f[0])], True, None
        w["rises"] = f[0]*(w["to"]-w["start"]-1)
        for i in range(last-1, -1, -1):
            if f[0] <= 0: break
            a, z = s.cuts[i], s.cuts[i+1]
            g, n = s.fit(a, z), z-a
            if n < 4 and 10*n < s.slots: continue
            if g[0] < f[0]*.2 or g[0] > f[0]*(1.4 if 10*z < 3*s.slots else 2.5):
                if g[0] < f[0]*.2:
                    w["idle"], k = n, i-1
                    while k >= 0 and s.fit(s.cuts[k], s.cuts[k+1])[0] < f[0]*.2: w["idle"] += s.cuts[k+1]-s.cuts[k]; k -= 1
                if g[0] > 0: w["steep"] = log(max(1, g[0]/f[0])) * min(1, 5*n/s.slots)
                break
            w["since"] = a; w["rises"] += g[0]*(n-1); parts.append((a, z, g[0]))
            w["rest"] += g[2]; w["n"] += g[3]
            if slower is None: slower = i
            same = same and .75*f[0] < g[0] < f[0]/.75
            if same:
                w["slope"] = (w["slope"]*sxx + g[0]*g[1]) / (sxx + g[1])
                sxx += g[1]; w["start"] = a
        if slower is not None and w["start"] == s.cuts[last]:
            a, z, half = s.cuts[slower], s.cuts[slower+1], (w["start"]+w["to"])//2
            before = (f[0] - s.fit(a, z)[0]) * (w["to"]-w["start"]) / (z-a + w["to"]-w["start"])
            w["faster"] = max(0, min(before, s.fit(half, w["to"])[0] - s.fit(w["start"], half)[0])) / s.dt
        w["slope"] /= s.dt
        half = (w["since"]+w["to"])/2
        early = sum(m*max(0, min(z, half)-a) for a, z, m in parts)
        late = sum(m*max(0, z-max(a, half)) for a, z, m in parts)
        w["late"] = ratio(late, early+late, .5)
        return w

    def inside(s, a, z): return s.t0 + (a-.01)*s.dt, s.t0 + (z-.99)*s.dt

    def touches(s, a, z):
        lo, hi = s.inside(a, z)
        for b in s.boots:
            t = [i for i in range(len(b.at)) if b.touch[i] and lo <= b.at[i] <= hi]
            yield [(b.floor[j]-b.floor[i], b.at[j]-b.at[i]) for i, j in zip(t, t[1:])]

    def evidence(s, w):
        e = dict(z=0, bend=0, share=0, late=0, last=0, fall=0, below=0, boots=0, points=0, jumps=0, curve=0, steep=0, idle=0, random=0, tail=0)
        rose = chance = variance = total = 0
        lo_t, hi_t = s.inside(w["since"], w["to"])
        for b, hi_slot in zip(s.boots, s.hi):
            m = len(b.at)
            early = [i for i in range(m) if lo_t > b.at[i] > b.at[0] + .12*b.span]
            lo = next((i for i in range(m) if b.at[i] >= lo_t), -1)
            hi = max((i for i in range(m) if b.at[i] <= hi_t), default=-1)
            if hi == m-1-b.hook or w["to"] >= hi_slot: hi = m-1
            if lo < 0 or hi-lo < 1: continue
            r = sum(b.floor[i]-b.floor[i-1] > s.q/2 for i in range(lo+1, hi+1))
            n = sum(abs(b.level[i]-b.level[i-1]) > s.q/2 for i in range(lo+1, hi+1))
            if 2*n >= hi-lo or n == 0: n = hi-lo
            rose, chance, variance = rose+r, chance+sum(1/k for k in range(2, n+2)), variance+sum(1/k-1/k/k for k in range(2, n+2))
            high = b.level[lo]
            for i in range(lo+1, hi+1):
                e["fall"] = max(e["fall"], high-b.level[i]); high = max(high, b.level[i])
            if early: e["below"] = max(e["below"], w["rises"] - (high - max(b.level[i] for i in early)))
            e["boots"] += r > 0; e["points"] += hi-lo; e["share"] += b.at[hi]-b.at[lo]; total += b.floor[hi]-b.floor[lo]
        n, rise, length = len(s.boots), w["rises"], w["to"]-w["start"]
        e["share"] /= s.span
        if variance > 0: e["z"] = (rose-chance)/sqrt(variance)
        most = (3*s.typical)**2
        if rise > 0:
            half = (w["start"]+w["to"])//2
            x, y = s.fit(w["start"], half)[0], s.fit(half, w["to"])[0]
            e["late"] = w["late"] + (ratio(y, x+y, .5)-.5) * length / (w["to"]-w["since"])
            e["bend"], e["fall"], e["below"] = sqrt(w["rest"]/max(1, w["n"]))/rise, e["fall"]/rise, e["below"]/rise
            e["jumps"], e["steep"] = max(0, total/n/rise-1), w["steep"]
            rough = sum(min(most, (r[i][0] - r[i][1]*(r[i-1][0]+r[i+1][0])/(r[i-1][1]+r[i+1][1]))**2/1.5)
                        for r in s.touches(w["since"], w["to"]) for i in range(1, len(r)-1))
            e["curve"] = (.5-e["late"]) / (sqrt(rough)/rise/n + .015)
            e["last"] = ratio(s.fit(max(w["start"], w["to"]-max(3, length//4)), w["to"])[0]/s.dt, w["slope"], 1)
        else: e["fall"] = e["below"] = 0
        scattered = sum(min(most, (d-w["slope"]*t)**2) for r in s.touches(w["start"], w["to"]) for d, t in r)
        if rise > 0: e["idle"], e["random"], e["tail"] = w["idle"]/s.slots, scattered/(s.q*rise*n), s.tail(w)
        length = max(2, length)*s.dt
        white = w["rest"]/max(1, w["n"]-2)*12/max(1, min(w["n"], e["points"])/2) + 2*s.lost**2/n
        e["margin"] = student(e["points"]-e["boots"]) * 1.12 * sqrt(white/length**2 + scattered/(length*n)**2 + (s.q/length)**2/12)
        return e

    def tail(s, w):
        total = count = 0
        for b, hi in zip(s.boots, s.hi):
            if b.hook < 4 or w["to"] < hi: continue
            n, half = len(b.at), b.hook//2
            first = sum(at < s.inside(w["since"], w["to"])[0] for at in b.at)
            mean = lambda v: sum(v)/half
            off = lambda k: mean(b.level[k:k+half]) - mean(b.level[k-half:k]) - w["slope"]*(mean(b.at[k:k+half]) - mean(b.at[k-half:k]))
            squares = [off(k)**2 for k in range(first+half, n-b.hook-half+1)]
            if len(squares) < 4: continue
            total += off(n-half) / sqrt(sum(squares)/len(squares) + s.q**2); count += 1
        return total/sqrt(max(1, count))

    # other shapes
    def pieces(s, start, to, least, of):
        b, points, rest, parameters = s.boots[0], [], 0, 0
        for a, z in zip(s.cuts, s.cuts[1:]):
            if not start <= a < to: continue
            lo, hi = s.inside(a, z)
            part = [(b.at[i], b.level[i]) for i in range(len(b.at)) if lo <= b.at[i] <= hi and of(i)]
            if len(part) < least: continue
            rest, parameters = rest + squares([lambda t: t], part)[0], parameters + 2
            points += part
        return points, rest, parameters

    def worse(s, pieces, functions):
        points, rest, parameters = pieces
        n = len(points)
        if n < 8: return 0
        noise = n*s.q**2/12
        return n*log((rest+noise) / (squares(functions, points)[0]+noise)) + (parameters-len(functions)-1)*log(n)

    def other(s, w, timed):
        b, length = s.boots[0], s.boots[0].span
        list = [[sqrt], [lambda t: log(t + .001*length)]] + [cycle(h) for h in (24, 168) if timed and h/4 <= length <= 2*h]
        p = s.pieces(w["since"], w["to"], 3, lambda i: b.touch[i])
        return any(s.worse(p, f) > 6 for f in list)

    def daily(s):
        p, f = s.pieces(0, s.slots, 1, lambda i: True), cycle(24) + [lambda t: t]
        n = len(p[0])
        if not 12 <= s.boots[0].span <= 72 or s.worse(p, f) < 6: return 0
        rest, slope, err = squares(f, p[0])
        return max(0, slope + student(n-4)*err*sqrt((rest + n*s.q**2/12) / max(1, n-4)))

    def judge(s, kind="path", timed=False):
        s.cuts = [0, s.slots]
        j = s.grown(kind, timed)
        if kind == "heap" and timed and len(s.boots) == 1: j["e"]["daily"] = s.daily()
        return j

    def grown(s, kind, timed):
        j = dict(since=(s.boots[0].index, s.t0), until=None, rate=0)
        if s.total <= 0 or s.span <= 0:
            most = (max([s.q] + [b.most for b in s.boots]) + 2*s.lost) / max(s.span, 1e-9)
            return dict(j, weight=-12, low=-most, high=most, e=dict(points=sum(len(b.at)-1 for b in s.boots), share=0, idle=0))
        s.segment()
        last = len(s.cuts)-2
        if last > 0 and s.cuts[last+1]-s.cuts[last] <= 2 and s.fit(s.cuts[last], s.cuts[last+1])[0] > 0: last -= 1
        w = s.window(last)
        e = s.evidence(w)
        j.update(rate=w["slope"]+w["faster"]/2, low=w["slope"]-e["margin"], high=w["slope"]+w["faster"]+e["margin"], weight=weigh(e), e=e)
        j["since"] = s.boots[0].index, s.t0 + w["since"]*s.dt
        if kind == "heap" and len(s.boots) == 1 and probability(kind, j["weight"]) > .46: e["other"] = s.other(w, timed)
        if e["points"] < 3: j["weight"] = min(j["weight"], 0)
        for i in range(last-1, -1, -1):
            w = s.window(i)
            n = w["to"]-w["since"]
            if n < 5 or 10*n < s.slots or 5*w["to"] < s.slots or w["slope"] <= 0 or weigh(s.evidence(w)) < -1.5: continue
            if j["high"] > w["slope"]/2 or j["low"] > 0 and j["rate"] > w["slope"]/8 or 10*(s.cuts[last+1]-w["to"]) < s.slots: continue
            b = s.boots[-1].index
            j["until"], j["since"] = (b, s.t0 + (w["to"]-1)*s.dt), (b, s.t0 + w["since"]*s.dt)
            break
        return j

def student(df): return 1.645 + 1.6/max(1, df) + 1.9/max(1, df)**2

def cycle(hours): return [lambda t: math.cos(2*math.pi*t/hours), lambda t: math.sin(2*math.pi*t/hours)]

def squares(functions, points): # the rest by least squares, the last factor and its error
    a = [[f(t) for f in [lambda t: 1] + functions] + [y - points[0][1]] for t, y in points]
    rest, n = sum(r[-1]**2 for r in a), len(functions) + 1
    m = [[sum(r[i]*r[k] for r in a) for k in range(n+1)] for i in range(n)]
    for i in range(n):
        last, err = 0, inf
        if m[i][i] <= 1e-12*len(points): continue
        last, err = m[i][n]/m[i][i], 1/sqrt(m[i][i])
        rest -= last*m[i][n]
        for k in range(i+1, n): x = m[k][i]/m[i][i]; m[k] = [p - x*r for p, r in zip(m[k], m[i])]
    return max(0, rest), last, err

def ratio(a, b, otherwise): return otherwise if b <= 0 else min(2, max(-1, a/b))

def weigh(e):
    z, below, steep = max(0, e["z"]), min(2, e["below"]), min(3, e["steep"])
    concave, certain, many = max(0, .5-e["late"]), min(1, max(0, e["z"])/15), e["boots"] >= 2
    random, tail = log(min(30, max(.003, e["random"]))), max(-8, min(2, e["tail"]))
    terms = [1, log1p(z), min(z, 4), log(min(1, e["bend"])+.02), e["idle"], max(0, e["idle"]-.1), min(.3, e["idle"])*many, e["idle"]*certain, concave, min(.15, concave),
        max(0, min(6, e["curve"])), max(0, e["late"]-.5), steep, steep*certain, min(.15, concave)*certain,
        max(0, min(.06, concave-.05)), max(0, 1-max(0, e["last"])), max(0, e["last"]-1),
        log(min(5, e["fall"])+.05), below, min(.2, below), max(0, below-.7), steep*min(.15, concave), log(max(1, e["boots"])),
        max(0, abs(e["late"]-.5)-.06)*log(min(8, max(1, e["boots"])))*many,
        max(0, 1-e["bend"]/.03)*max(0, 10*e["share"]-9), max(0, min(6, abs(e["curve"]))-1.2)*many,
        log(max(1, e["points"])), log1p(min(20, e["jumps"])),
        random, max(0, random-log(.1)), max(0, random-log(.7)), max(0, random-log(2)), tail, max(0, tail+1), max(0, tail+3)]
    return sum(w*t for w, t in zip(WEIGHTS, terms))

def contrasts(j, before, last):
    start, to = j["since"][1], last.at[-1]
    for b in before:
        inside = [i for i in range(len(b.at)) if b.at[i] >= start]
        if not inside: continue
        lo = inside[0]
        hi = max([i for i in inside if b.at[i] <= to], default=lo)
        time = b.at[hi]-b.at[lo]
        if time >= (to-start)/2 and b.floor[hi]-b.floor[lo] < .2*j["rate"]*time: return True

def sets(boots, kind, q, timed):
    best, n = None, 1
    while True:
        n = min(n, len(boots), 512)
        part = boots[-n:]
        if n in (len(boots), 512) or any(len(b.at) >= 6 for b in part):
            j = dict(Set(part, q).judge(kind, timed), boots=n)
            if best is None or j["weight"] > best["weight"] - .3: best = j
        if n in (len(boots), 512): break
        n *= 2
    j, e, first = best, best["e"], len(boots)-best["boots"]
    if first > 0 and j["rate"] > 0 and e["share"] < 1 and contrasts(j, boots[:first], boots[-1]):
        e["share"], e["idle"] = 1, 0
        j["weight"] = weigh(e)
    if kind == "heap": j["weight"] = min(j["weight"], .6*e["points"])
    if e["points"] < 4*e.get("boots", 0): j["weight"] = min(j["weight"], 3.9 if kind == "heap" else 5.3)
    began(j, boots, first, q)
    return j

def began(j, boots, first, q):
    b = boots[first]
    j["since"] = b.index, j["since"][1]
    if j["rate"] <= 0 or j["weight"] < 0 or j["since"][1] > b.at[0] + .15*b.span: return
    whole, j["since"] = first, (b.index, b.at[0])
    i, after = first, first-1
    while after >= 0:
        i, after = after, after-1 - (first-after)//64
        if i > 0: after = max(after, 0)
        s = Set(boots[i:i+1], q)
        if s.total <= 0 or s.span <= 0: break
        s.segment()
        w = s.window(len(s.cuts)-2)
        if not .33*j["rate"] <= w["slope"] <= 3*j["rate"]: break
        j["since"] = boots[i].index, s.t0 + w["since"]*s.dt
        if w["since"] > .15*s.slots: break
        j["since"], whole = (boots[i].index, s.t0), i
    if whole < first:
        more = Set(boots[max(whole, len(boots)-512):], q).judge()
        if j["rate"]/2 < more["rate"] < j["rate"]*2 and more["high"]-more["low"] < j["high"]-j["low"]:
            j.update(rate=more["rate"], low=more["low"], high=more["high"])

def judge_points(s, every):
    boots = []
    for i, src in enumerate(s["boots"]):
        part = dict(src, at=src["at"][::every], value=src["value"][::every])
        if src.get("kept"): part["kept"] = src["kept"][::every]
        b = Boot(part, i, s["quantum"])
        if b.ok: boots.append(b)
    if not boots: return dict(rate=0, low=-inf, high=inf, weight=0, probability=0, until=None, since=(0, 0), e=dict(points=0))
    kind, q, timed = s["kind"], s["quantum"], s.get("per") == "hour"
    j = sets(boots, kind, q, timed)
    now = [b for b in boots if b.version == boots[-1].version]
    for present, before, points in ((now, [b for b in boots if b.version != boots[-1].version], 5), (boots[-1:], boots[:-1], 10)):
        if not before or j["rate"] <= 0 or j["weight"] < -1.5: continue
        n = sets(present, kind, q, timed)
        if n["e"]["points"] < points or n["high"] >= j["rate"]/2: continue
        was, j = sets(before, kind, q, timed), n
        if not j["until"] and was["weight"] >= -1.5 and was["rate"] > 0:
            j["until"], j["since"] = (present[0].index, present[0].at[0]), was["since"]
        break
    j["probability"] = min(probability(kind, j["weight"]), .46 if j["e"].get("idle", 0) > .12 or j["e"].get("other") else 1)
    return j

def fill(s):
    full = s.get("full", 0)
    for b in s["boots"]:
        v, k = b["value"], len(b["value"])
        if full <= 0 or not v: continue
        while k and v[k-1] >= full - (full-min(v))/64: k -= 1
        if k+3 <= len(v): b["at"], b["value"] = b["at"][:k+1], v[:k+1]

def thinned(s):
    j, every = judge_points(s, 1), 2
    while j["probability"] < .95 and (s["kind"] == "heap" or j["rate"] > 0 and j["probability"] > .05):
        if sum(max(0, len(b["at"][::every])-1) for b in s["boots"]) < 7 or s["kind"] == "path" and max(len(b["at"][::every]) for b in s["boots"]) < 12: break
        o = judge_points(s, every)
        if j["probability"] < .1 and o["probability"] < .95:
            if o["probability"] >= .46 and every <= 8: j["e"]["uneven"] = True
        elif o["probability"] > max(.95 if every > 8 else .5, j["probability"]):
            if o["low"] < j["rate"] < o["high"]: j.update({k: o[k] for k in ("probability", "weight", "e")})
            else: j = o
        every *= 2
    return j

def judge(s):
    fill(s)
    j = thinned(s)
    p, e, bound = j["probability"], j["e"], max(0, j["high"], j["e"].get("least", 0))
    none = p < .1 and not e.get("uneven") and e.get("daily", 0) <= bound and (j["until"] or j["low"] <= 0 and e["points"] >= 4)
    j["verdict"] = "leak" if p >= .5 else "none" if none else "unknown"
    if j["verdict"] == "none" and s["kind"] == "heap" and len(s["boots"]) <= 8:
        for part in .5, .75, .9:
            cut = lambda b: {k: v[:math.ceil(part*len(b["at"]))] if isinstance(v, list) else v for k, v in b.items()}
            o = thinned(dict(s, boots=[cut(b) for b in s["boots"]]))
            at = s["boots"][-1]["at"]
            night = j["until"] and s.get("per") == "hour" and len(s["boots"]) == 1 and 12 <= at[-1]-at[0] <= 72 and at[-1]-j["until"][1] < 12
            if o["probability"] >= .5 and (not j["until"] or bound >= o["rate"]/2 or night): j["verdict"] = "unknown"
    return j

for line in sys.stdin:
    j = judge(json.loads(line))
    finite = lambda x: x if abs(x) < inf else None
    print(json.dumps({k: finite(j[k]) if isinstance(j[k], (int, float)) else j[k] for k in ("verdict", "probability", "rate", "low", "high", "weight", "since")} | {"until": j["verdict"] == "none" and j["until"] or None}))
