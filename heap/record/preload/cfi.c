/*
 * The rule of one address, from a module's .eh_frame: DWARF's call frame
 * information as gcc and clang write it for exceptions (Linux Standard Base,
 * "Exception Frames"). Only three columns are followed: the CFA, the return
 * address and the frame pointer. What needs another is RING_RULE_OTHER.
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

#undef WORD
#define WORD ((int32_t)sizeof(uintptr_t))

/* What is read, and where it ends: nothing beyond is. */
struct in {
	const uint8_t *p, *end;
};

static void take(struct in *in, void *to, size_t n)
{
	if ((size_t)(in->end - in->p) < n) {
		memset(to, 0, n);
		in->p = in->end;
		return;
	}
	memcpy(to, in->p, n);
	in->p += n;
}

static uint8_t take1(struct in *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static void skip(struct in *in, uint64_t n)
{
	in->p += n < (uint64_t)(in->end - in->p) ? (size_t)n : (size_t)(in->end - in->p);
}

/* part returns the next n bytes of in. */
static struct in part(const struct in *in, uint64_t n)
{
	struct in all = *in;

	skip(&all, n);
	return (struct in){in->p, all.p};
}

static uint64_t leb(struct in *in, bool sign)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = take1(in);
		if (shift < 64)
			v |= (uint64_t)(b & 127) << shift;
		shift += 7;
	} while (b & 128);
	if (sign && shift < 64 && b & 64)
		v |= ~(uint64_t)0 << shift;
	return v;
}

static uint64_t uleb(struct in *in) { return leb(in, false); }
static int64_t sleb(struct in *in) { return (int64_t)leb(in, true); }

/* encoded reads a pointer of DW_EH_PE_ form enc. false: a form that is not known. */
static bool encoded(struct in *in, uint8_t enc, uintptr_t data, uintptr_t *v)
{
	uintptr_t at = (uintptr_t)in->p;
	uint16_t u2; int16_t s2; uint32_t u4; int32_t s4; uint64_t u8;

	*v = 0;
	if (enc == 0xff)
		return true;
	switch (enc & 15) {
	case 0: take(in, v, sizeof *v); break;
	case 1: *v = (uintptr_t)uleb(in); break;
	case 2: take(in, &u2, 2); *v = u2; break;
	case 3: take(in, &u4, 4); *v = u4; break;
	case 4: case 12: take(in, &u8, 8); *v = (uintptr_t)u8; break;
	case 9: *v = (uintptr_t)sleb(in); break;
	case 10: take(in, &s2, 2); *v = (uintptr_t)(intptr_t)s2; break;
	case 11: take(in, &s4, 4); *v = (uintptr_t)(intptr_t)s4; break;
	default: return false;
	}
	switch (enc & 0x70) {
	case 0: return true;
	case 0x10: *v += at; return true;
	case 0x30: *v += data; return true;
	default: return false;
	}
}

/* Rows are kept small: remembered ones are on the program's stack. */
struct row {
	int32_t cfa;	/* bytes */
	int32_t off[2];	/* bytes from the CFA, of RA and FP */
	int16_t cfa_reg; /* -1: an expression */
	bool at_fp;	/* the CFA is the word at FP + cfa */
	uint8_t how[2];	/* of off */
};
enum { SAME, OFFSET, UNDEFINED, ELSE, AT_FP };

struct cie {
	uint64_t code;
	int64_t data;
	unsigned ra;
	uint8_t enc;
	bool augmented, signal;
	struct in insns;
};

/* small returns v, if it fits; else a number that is no offset. */
static int32_t small(int64_t v)
{
	return v > INT32_MIN && v <= INT32_MAX ? (int32_t)v : INT32_MIN;
}

static int16_t reg16(uint64_t reg)
{
	return reg <= INT16_MAX ? (int16_t)reg : -1;
}

/* entry begins to read an entry: in has its bytes after the length. */
static bool entry(struct in *in, uint32_t *id)
{
	uint32_t len;

	take(in, &len, 4);
	if (len < 4 || len == 0xffffffff)
		return false;
	*in = part(in, len);
	take(in, id, 4);
	return true;
}

static bool read_cie(struct in in, struct cie *c)
{
	uint32_t id;

	if (!entry(&in, &id) || id != 0)
		return false;
	uint8_t version = take1(&in);
	struct in aug = in;
	while (take1(&in))
		;
	if (version != 1 && version != 3)
		return false;
	c->code = uleb(&in);
	c->data = sleb(&in);
	c->ra = version == 1 ? take1(&in) : (unsigned)uleb(&in);
	c->enc = 0;
	c->signal = false;
	uint8_t letter = take1(&aug);
	c->augmented = letter == 'z';
	c->insns = in;
	if (!c->augmented)
		return letter == 0;
	uint64_t n = uleb(&in);
	c->insns = in;
	skip(&c->insns, n);
	while ((letter = take1(&aug))) {
		uintptr_t v;
		switch (letter) {
		case 'R': c->enc = take1(&in); break;
		case 'P': {
			uint8_t enc = take1(&in);
			if (!encoded(&in, enc, 0, &v))
				return false;
			break;
		}
		case 'L': take1(&in); break;
		case 'S': c->signal = true; break;
		case 'B': break; /* pointer authentication, by the B key */
		default: return true; /* of the rest, only 'R' is needed */
		}
	}
	return true;
}

static int column(const struct cie *c, uint64_t reg)
{
	return reg == c->ra ? 0 : reg == REG_FP ? 1 : -1;
}

static void set(struct row *r, int column, uint8_t how, int64_t off)
{
	if (column >= 0) {
		r->how[column] = how;
		r->off[column] = small(off);
	}
}

/* An expression of the CFA. Only the word at FP + n is known. */
static void cfa_expression(struct row *r, struct in e)
{
	r->cfa_reg = -1;
	r->at_fp = false;
	if (e.end - e.p < 3 || take1(&e) != 0x70 + REG_FP)
		return;
	r->cfa = small(sleb(&e));
	r->at_fp = e.p + 1 == e.end && *e.p == 0x06;
}

/* gcc saves the frame pointer of a function that aligns its stack at FP + 0: where FP
 * is then, which the CFA's expression is of as well. */
static bool saved_at_fp(struct in e)
{
	return e.end - e.p == 2 && e.p[0] == 0x70 + REG_FP && e.p[1] == 0;
}

#define REMEMBERED 6

struct work {
	struct cie cie;
	struct row row, first, saved[REMEMBERED];
};
_Static_assert(sizeof(struct work) <= sizeof(struct cfi_work), "memory of cfi_rule");

/* The instructions of one function, up to an address. */
struct run {
	struct in in;
	const struct cie *c;
	uintptr_t loc;
	struct row *r, *first, *saved;
	unsigned depth;
};

static void restore(struct run *u, uint64_t reg)
{
	int k = column(u->c, reg);

	if (k >= 0)
		set(u->r, k, u->first->how[k], u->first->off[k]);
}

/* advance carries out an instruction that moves on, or reports that it is none. */
static bool advance(struct run *u, uint8_t op)
{
	uint16_t u2 = 0;
	uint32_t u4 = 0;

	switch (op) {
	case 0x02: u->loc += take1(&u->in) * u->c->code; return true;
	case 0x03: take(&u->in, &u2, 2); u->loc += u2 * u->c->code; return true;
	case 0x04: take(&u->in, &u4, 4); u->loc += u4 * u->c->code; return true;
	}
	return false;
}

/* cfa_insn carries out an instruction of the CFA, or reports that it is none. */
static bool cfa_insn(struct run *u, uint8_t op)
{
	struct row *r = u->r;

	switch (op) {
	case 0x0c: r->cfa_reg = reg16(uleb(&u->in)); r->cfa = small((int64_t)uleb(&u->in)); break;
	case 0x0d: r->cfa_reg = reg16(uleb(&u->in)); return true;
	case 0x0e: r->cfa = small((int64_t)uleb(&u->in)); return true;
	case 0x0f: {
		uint64_t len = uleb(&u->in);
		cfa_expression(r, part(&u->in, len));
		skip(&u->in, len);
		return true;
	}
	case 0x12: r->cfa_reg = reg16(uleb(&u->in)); r->cfa = small(sleb(&u->in) * u->c->data); break;
	case 0x13: r->cfa = small(sleb(&u->in) * u->c->data); return true;
	default: return false;
	}
	r->at_fp = false;
	return true;
}

/* reg_insn carries out an instruction of a register, or reports that it is none. */
static bool reg_insn(struct run *u, uint8_t op)
{
	uint64_t reg, len;

	if (op != 0x05 && op != 0x11 && (op < 0x06 || op > 0x09) && op != 0x10 && (op < 0x14 || op > 0x16))
		return false;
	reg = uleb(&u->in);
	int k = column(u->c, reg);
	switch (op) {
	case 0x05: set(u->r, k, OFFSET, (int64_t)uleb(&u->in) * u->c->data); break;
	case 0x11: set(u->r, k, OFFSET, sleb(&u->in) * u->c->data); break;
	case 0x06: restore(u, reg); break;
	case 0x07: set(u->r, k, UNDEFINED, 0); break;
	case 0x08: set(u->r, k, SAME, 0); break;
	case 0x10: case 0x16:
		len = uleb(&u->in);
		set(u->r, k, op == 0x10 && reg == REG_FP && saved_at_fp(part(&u->in, len)) ? AT_FP : ELSE, 0);
		skip(&u->in, len);
		break;
	default: uleb(&u->in); set(u->r, k, ELSE, 0); break;
	}
	return true;
}

static bool other_insn(struct run *u, uint8_t op)
{
	switch (op) {
	case 0x00: case 0x2d: return true; /* 2d: AArch64: the return address is signed from here */
	case 0x01: return encoded(&u->in, u->c->enc, 0, &u->loc);
	case 0x0a:
		if (u->depth == REMEMBERED)
			return false;
		u->saved[u->depth++] = *u->r;
		return true;
	case 0x0b:
		if (!u->depth)
			return false;
		*u->r = u->saved[--u->depth];
		return true;
	case 0x2e: uleb(&u->in); return true;
	}
	return false;
}

/* run carries out instructions up to address pc; loc is where they begin. false: one that
 * is not known. */
static bool run(struct in in, struct work *w, uintptr_t loc, uintptr_t pc)
{
	const struct cie *c = &w->cie;
	struct row *r = &w->row;
	struct run u = {.in = in, .c = c, .loc = loc, .r = r, .first = &w->first, .saved = w->saved};

	while (u.in.p < u.in.end && u.loc <= pc) {
		uint8_t op = take1(&u.in), low = op & 63;
		switch (op & 0xc0) {
		case 0x40: u.loc += low * c->code; break;
		case 0x80: set(r, column(c, low), OFFSET, (int64_t)uleb(&u.in) * c->data); break;
		case 0xc0: restore(&u, low); break;
		default:
			if (!advance(&u, op) && !cfa_insn(&u, op) && !reg_insn(&u, op) && !other_insn(&u, op))
				return false;
		}
	}
	return true;
}

/* within returns the memory of a module from an address on, nothing if the address is
 * not in the module. */
static struct in within(const struct module *m, uintptr_t at)
{
	const uint8_t *end = (const uint8_t *)m->end;

	return (struct in){at >= m->start && at < m->end ? (const uint8_t *)at : end, end};
}

/* entries returns the sorted table of a module, and their number, 0 if there is none. */
static const int32_t *entries(const struct module *m, size_t *n)
{
	struct in in = within(m, m->table);
	uintptr_t frame, count;
	uint8_t form[4];

	take(&in, form, 4);
	*n = form[0] == 1 && form[3] == 0x3b && encoded(&in, form[1], m->table, &frame) && encoded(&in, form[2], m->table, &count) &&
		count <= (size_t)(in.end - in.p) / 8 ? count : 0;
	return (const int32_t *)(const void *)in.p;
}

bool cfi_lacks(const struct module *m)
{
	size_t n;

	entries(m, &n);
	return n < (m->end - m->start) / 16384; /* usually one for some 100 bytes of code */
}

/* fde finds the entry for pc. */
static bool fde(uintptr_t pc, const struct module *m, struct in *found)
{
	size_t lo = 0, hi;
	const int32_t *t = entries(m, &hi);

	if (!hi)
		return false;
	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;
		if (m->table + (uintptr_t)(intptr_t)t[2 * mid] <= pc)
			lo = mid;
		else
			hi = mid;
	}
	if (m->table + (uintptr_t)(intptr_t)t[2 * lo] > pc)
		return false;
	*found = within(m, m->table + (uintptr_t)(intptr_t)t[2 * lo + 1]);
	return true;
}

/* words returns an offset from the CFA in words; 0: it is not of any. */
static int16_t words(const struct row *r, int column)
{
	int32_t w = r->off[column] / WORD;

	return r->off[column] % WORD || w > INT16_MAX || w <= INT16_MIN ? 0 : (int16_t)w;
}

/* rule_of returns the rule of a row. */
static struct rule rule_of(const struct row *r)
{
	struct rule rule = {.kind = RING_RULE_OTHER, .cfa = r->cfa}, other = {.kind = RING_RULE_OTHER};
	int16_t where[2] = {0, 0};

	if (r->how[0] == UNDEFINED)
		return (struct rule){.kind = RING_RULE_END};
	if (r->at_fp)
		rule.kind = RING_RULE_AT_FP;
	else if (r->cfa_reg == REG_SP)
		rule.kind = RING_RULE_SP;
	else if (r->cfa_reg == REG_FP)
		rule.kind = RING_RULE_FP;
	if (rule.kind == RING_RULE_OTHER || r->cfa == INT32_MIN)
		return other;
	for (int i = 0; i < 2; i++) {
		if (r->how[i] == OFFSET && !(where[i] = words(r, i)))
			return other;
		if (r->how[i] == AT_FP)
			where[i] = FP_AT_FP;
		if (r->how[i] == ELSE || r->how[i] == UNDEFINED)
			return other;
	}
	rule.ra = where[0];
	rule.fp = where[1];
	return rule;
}

struct rule cfi_rule(uintptr_t pc, const struct module *m, struct cfi_work *memory)
{
	struct rule none = {.kind = RING_RULE_NONE}, other = {.kind = RING_RULE_OTHER};
	struct work *w = (struct work *)(void *)memory;
	struct in in;
	uint32_t back;
	uintptr_t lo, size, at;

	if (!fde(pc, m, &in))
		return none;
	at = (uintptr_t)in.p + 4;
	if (!entry(&in, &back))
		return none;
	if (!read_cie(within(m, at - back), &w->cie) || !encoded(&in, w->cie.enc, 0, &lo) || !encoded(&in, w->cie.enc & 15, 0, &size))
		return other;
	if (pc < lo || pc - lo >= size)
		return none;
	if (w->cie.signal)
		return (struct rule){.kind = RING_RULE_SIGNAL};
	if (w->cie.augmented)
		skip(&in, uleb(&in));
	w->row = w->first = (struct row){.cfa_reg = -1};
	if (!run(w->cie.insns, w, 0, UINTPTR_MAX))
		return other;
	w->first = w->row;
	if (!run(in, w, lo, pc))
		return other;
	return rule_of(&w->row);
}

#else

struct rule cfi_rule(uintptr_t pc, const struct module *m, struct cfi_work *memory)
{
	(void)pc, (void)m, (void)memory;
	return (struct rule){.kind = RING_RULE_OTHER};
}

bool cfi_lacks(const struct module *m)
{
	(void)m;
	return false;
}

#endif
