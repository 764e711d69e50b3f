/*
 * The rule of one address, from a module's .eh_frame: DWARF's call frame
 * information as gcc and clang write it for exceptions (Linux Standard Base,
 * "Exception Frames"). Only three columns are followed: the CFA, the return
 * address and the frame pointer. What needs another is RULE_OTHER, for the unwinder.
 */
#include <string.h>

#include "preload.h"

#if defined(__x86_64__)
#define REG_SP 7
#define REG_FP 6
#elif defined(__i386__)
#define REG_SP 4
#define REG_FP 5
#elif defined(__aarch64__)
#define REG_SP 31
#define REG_FP 29
#elif defined(__riscv)
#define REG_SP 2
#define REG_FP 8
#endif

#ifdef WALKS

#define WORD ((int)sizeof(uintptr_t))

static uint64_t uleb(const uint8_t **p)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = *(*p)++;
		if (shift < 64)
			v |= (uint64_t)(b & 127) << shift;
		shift += 7;
	} while (b & 128);
	return v;
}

static int64_t sleb(const uint8_t **p)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = *(*p)++;
		if (shift < 64)
			v |= (uint64_t)(b & 127) << shift;
		shift += 7;
	} while (b & 128);
	if (shift < 64 && b & 64)
		v |= ~(uint64_t)0 << shift;
	return (int64_t)v;
}

/* encoded reads a pointer of DW_EH_PE_ form enc. false: a form that is not known. */
static bool encoded(const uint8_t **p, uint8_t enc, uintptr_t data, uintptr_t *v)
{
	uintptr_t at = (uintptr_t)*p;
	uint16_t u2; int16_t s2; uint32_t u4; int32_t s4; uint64_t u8;

	*v = 0;
	if (enc == 0xff)
		return true;
	switch (enc & 15) {
	case 0: memcpy(v, *p, sizeof *v); *p += sizeof *v; break;
	case 1: *v = (uintptr_t)uleb(p); break;
	case 2: memcpy(&u2, *p, 2); *v = u2; *p += 2; break;
	case 3: memcpy(&u4, *p, 4); *v = u4; *p += 4; break;
	case 4: case 12: memcpy(&u8, *p, 8); *v = (uintptr_t)u8; *p += 8; break;
	case 9: *v = (uintptr_t)sleb(p); break;
	case 10: memcpy(&s2, *p, 2); *v = (uintptr_t)(intptr_t)s2; *p += 2; break;
	case 11: memcpy(&s4, *p, 4); *v = (uintptr_t)(intptr_t)s4; *p += 4; break;
	default: return false;
	}
	switch (enc & 0x70) {
	case 0: return true;
	case 0x10: *v += at; return true;
	case 0x30: *v += data; return true;
	default: return false;
	}
}

struct row {
	int cfa_reg;	/* -1: an expression */
	int64_t cfa;
	bool at_fp;	/* the CFA is what stands at FP + cfa */
	int64_t off[2];	/* bytes from the CFA, of RA and FP */
	uint8_t how[2];	/* of these */
};
enum { SAME, OFFSET, UNDEFINED, ELSE, AT_FP };

struct cie {
	uint64_t code;
	int64_t data;
	unsigned ra;
	uint8_t enc;
	bool augmented, signal;
	const uint8_t *insns, *end;
};

static bool read_cie(const uint8_t *p, struct cie *c)
{
	uint32_t len;
	const char *aug;

	memcpy(&len, p, 4);
	p += 4;
	c->end = p + len;
	p += 4; /* its id */
	uint8_t version = *p++;
	aug = (const char *)p;
	p += strlen(aug) + 1;
	if (version != 1 && version != 3)
		return false;
	c->code = uleb(&p);
	c->data = sleb(&p);
	c->ra = version == 1 ? *p++ : (unsigned)uleb(&p);
	c->enc = 0;
	c->augmented = *aug == 'z';
	c->signal = false;
	if (!c->augmented) {
		c->insns = p;
		return *aug == 0;
	}
	uint64_t alen = uleb(&p);
	c->insns = p + alen;
	for (aug++; *aug; aug++) {
		uintptr_t v;
		switch (*aug) {
		case 'R': c->enc = *p++; break;
		case 'P': {
			uint8_t enc = *p++;
			if (!encoded(&p, enc, 0, &v))
				return false;
			break;
		}
		case 'L': p++; break;
		case 'S': c->signal = true; break;
		case 'B': break; /* pointer authentication, by the B key */
		default: return true; /* what follows is not needed but 'R' */
		}
	}
	return true;
}

static int column(const struct cie *c, uint64_t reg)
{
	return reg == c->ra ? 0 : reg == REG_FP ? 1 : -1;
}

/* run carries out instructions up to address pc; loc is where they begin. false:
 * one that is not known. */
static bool run(const uint8_t *p, const uint8_t *end, const struct cie *c, uintptr_t loc,
	uintptr_t pc, struct row *r, const struct row *first)
{
	struct row saved[8];
	unsigned depth = 0;
	uint64_t reg;
	int64_t v;
	int k;

#define SET(H, O) do { if ((k = column(c, reg)) >= 0) { r->how[k] = (H); r->off[k] = (O); } } while (0)
	while (p < end && loc <= pc) {
		uint8_t op = *p++;
		uint16_t u2;
		uint32_t u4;
		switch (op & 0xc0) {
		case 0x40: loc += (op & 63) * c->code; continue;
		case 0x80: reg = op & 63; v = (int64_t)uleb(&p) * c->data; SET(OFFSET, v); continue;
		case 0xc0:
			reg = op & 63;
			if ((k = column(c, reg)) >= 0) {
				r->how[k] = first->how[k];
				r->off[k] = first->off[k];
			}
			continue;
		}
		switch (op) {
		case 0x00: break;
		case 0x01: {
			uintptr_t at;
			if (!encoded(&p, c->enc, 0, &at))
				return false;
			loc = at;
			break;
		}
		case 0x02: loc += *p++ * c->code; break;
		case 0x03: memcpy(&u2, p, 2); p += 2; loc += u2 * c->code; break;
		case 0x04: memcpy(&u4, p, 4); p += 4; loc += u4 * c->code; break;
		case 0x05: reg = uleb(&p); v = (int64_t)uleb(&p) * c->data; SET(OFFSET, v); break;
		case 0x06:
			reg = uleb(&p);
			if ((k = column(c, reg)) >= 0) {
				r->how[k] = first->how[k];
				r->off[k] = first->off[k];
			}
			break;
		case 0x07: reg = uleb(&p); SET(UNDEFINED, 0); break;
		case 0x08: reg = uleb(&p); SET(SAME, 0); break;
		case 0x09: reg = uleb(&p); uleb(&p); SET(ELSE, 0); break;
		case 0x0a:
			if (depth == 8)
				return false;
			saved[depth++] = *r;
			break;
		case 0x0b:
			if (!depth)
				return false;
			*r = saved[--depth];
			break;
		case 0x0c: r->cfa_reg = (int)uleb(&p); r->cfa = (int64_t)uleb(&p); r->at_fp = false; break;
		case 0x0d: r->cfa_reg = (int)uleb(&p); break;
		case 0x0e: r->cfa = (int64_t)uleb(&p); break;
		case 0x0f: { /* the CFA by an expression: of those, FP + n, then what is there */
			uint64_t len = uleb(&p);
			const uint8_t *e = p;
			p += len;
			r->cfa_reg = -1;
			r->at_fp = false;
			if (len >= 3 && *e == 0x70 + REG_FP) {
				e++;
				r->cfa = sleb(&e);
				r->at_fp = e + 1 == p && *e == 0x06;
			}
			break;
		}
		case 0x10: case 0x16: {
			reg = uleb(&p);
			uint64_t len = uleb(&p);
			const uint8_t *e = p;
			p += len;
			SET(ELSE, 0);
			/* gcc saves the frame pointer of a function that aligns its stack at
			 * FP + 0: where FP is then, which the CFA's expression is of as well. */
			if (op == 0x10 && reg == REG_FP && len == 2 && e[0] == 0x70 + REG_FP && e[1] == 0)
				SET(AT_FP, 0);
			break;
		}
		case 0x11: reg = uleb(&p); v = sleb(&p) * c->data; SET(OFFSET, v); break;
		case 0x12: r->cfa_reg = (int)uleb(&p); r->cfa = sleb(&p) * c->data; r->at_fp = false; break;
		case 0x13: r->cfa = sleb(&p) * c->data; break;
		case 0x14: case 0x15: reg = uleb(&p); uleb(&p); SET(ELSE, 0); break;
		case 0x2d: break; /* AArch64: the return address is signed from here */
		case 0x2e: uleb(&p); break;
		default: return false;
		}
	}
#undef SET
	return true;
}

/* fde finds the entry for pc by the sorted table. */
static const uint8_t *fde(uintptr_t pc, uintptr_t hdr)
{
	const uint8_t *p = (const uint8_t *)hdr;
	uintptr_t frame, count;

	if (p[0] != 1 || p[3] != 0x3b)
		return NULL;
	uint8_t frame_enc = p[1], count_enc = p[2];
	p += 4;
	if (!encoded(&p, frame_enc, hdr, &frame) || !encoded(&p, count_enc, hdr, &count) || !count)
		return NULL;
	const int32_t *t = (const int32_t *)(const void *)p;
	size_t lo = 0, hi = count;
	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;
		if (hdr + (uintptr_t)(intptr_t)t[2 * mid] <= pc)
			lo = mid;
		else
			hi = mid;
	}
	if (hdr + (uintptr_t)(intptr_t)t[2 * lo] > pc)
		return NULL;
	return (const uint8_t *)(hdr + (uintptr_t)(intptr_t)t[2 * lo + 1]);
}

struct rule cfi_rule(uintptr_t pc, uintptr_t hdr)
{
	struct rule rule = {.kind = RULE_NONE}, other = {.kind = RULE_OTHER};
	const uint8_t *p = fde(pc, hdr), *end;
	uint32_t len, back;
	uintptr_t lo, size;
	struct cie c;
	struct row r = {.cfa_reg = -1}, first;

	if (!p)
		return rule;
	memcpy(&len, p, 4);
	if (len == 0 || len == 0xffffffff)
		return rule;
	p += 4;
	end = p + len;
	memcpy(&back, p, 4);
	if (!read_cie(p - back, &c))
		return other;
	p += 4;
	if (!encoded(&p, c.enc, 0, &lo) || !encoded(&p, c.enc & 15, 0, &size))
		return other;
	if (pc < lo || pc - lo >= size)
		return rule;
	if (c.signal) {
		rule.kind = RULE_SIGNAL;
		return rule;
	}
	if (c.augmented) {
		uint64_t alen = uleb(&p);
		p += alen;
	}
	if (!run(c.insns, c.end, &c, 0, UINTPTR_MAX, &r, &r))
		return other;
	first = r;
	if (!run(p, end, &c, lo, pc, &r, &first))
		return other;
	if (r.how[0] == UNDEFINED) {
		rule.kind = RULE_END;
		return rule;
	}
	if (r.at_fp)
		rule.kind = RULE_AT_FP;
	else if (r.cfa_reg == REG_SP)
		rule.kind = RULE_SP;
	else if (r.cfa_reg == REG_FP)
		rule.kind = RULE_FP;
	else
		return other;
	if (r.cfa > INT32_MAX || r.cfa < INT32_MIN)
		return other;
	rule.cfa = (int32_t)r.cfa;
	for (int i = 0; i < 2; i++) {
		int64_t words = 0;
		switch (r.how[i]) {
		case OFFSET:
			words = r.off[i] / WORD;
			if (r.off[i] % WORD || !words || words > INT16_MAX || words < INT16_MIN)
				return other;
			break;
		case SAME:
			break;
		case AT_FP:
			words = FP_AT_FP;
			break;
		default:
			return other;
		}
		if (i)
			rule.fp = (int16_t)words;
		else
			rule.ra = (int16_t)words;
	}
	return rule;
}

#else

struct rule cfi_rule(uintptr_t pc, uintptr_t hdr)
{
	(void)pc, (void)hdr;
	return (struct rule){.kind = RULE_OTHER};
}

#endif
