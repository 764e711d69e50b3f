/*
 * Patching functions of the program, for which the dynamic linker has no slot: the first
 * instructions are copied, and a jump to the hook takes their place. Only on x86-64, and only
 * if all these instructions are known, none is a call, and no branch leads between them. It
 * is done before the program's own code runs.
 */
#define _GNU_SOURCE
#include "patch.h"

#if defined(__x86_64__) && defined(__LP64__)
#include <string.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------- lengths of instructions */

struct insn {
	unsigned length;	/* 0: not known */
	unsigned relative;	/* where a displacement from the next instruction is; 0: none */
	bool branch;
	unsigned target;	/* bytes at the end that say where it leads; 0: elsewhere */
};

enum form { NONE, M = 1, I1 = 2, I4 = 4, B1 = 8, B4 = 16, BAD = 32, TEST = 64, IV = 128 };

/* form_of returns what follows an opcode: a ModRM byte, an immediate, a branch's distance. */
static unsigned form_of(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4 ? M : (op & 7) == 4 ? I1 : (op & 7) == 5 ? I4 : BAD;
	if (op >= 0x50 && op < 0x60)
		return NONE;
	if (op >= 0x70 && op < 0x80)
		return B1;
	if ((op >= 0x84 && op <= 0x8b) || op == 0x8d || op == 0x63 || (op >= 0xd0 && op <= 0xd3) || op == 0xfe || op == 0xff)
		return M;
	if (op >= 0xb0 && op < 0xb8)
		return I1;
	if (op >= 0xb8 && op < 0xc0)
		return IV;
	switch (op) {
	case 0x90: case 0x98: case 0x99: case 0xc9: return NONE;
	case 0x68: case 0xa9: return I4;
	case 0x6a: case 0xa8: return I1;
	case 0x69: case 0x81: case 0xc7: return M | I4;
	case 0x6b: case 0x80: case 0x83: case 0xc0: case 0xc1: case 0xc6: return M | I1;
	case 0xf6: return M | TEST | I1;
	case 0xf7: return M | TEST | I4;
	case 0xeb: return B1;
	case 0xe8: case 0xe9: return B4;
	}
	return BAD;
}

static unsigned form_of_0f(uint8_t op)
{
	if (op >= 0x80 && op < 0x90)
		return B4;
	if ((op >= 0x40 && op < 0x50) || (op >= 0x90 && op < 0xa0) || (op >= 0x10 && op < 0x18) || (op >= 0x28 && op < 0x30))
		return M;
	switch (op) {
	case 0x1e: case 0x1f: case 0x54: case 0x57: case 0x6c: case 0x6e: case 0x6f: case 0x7e: case 0x7f: case 0xa3: case 0xaf:
	case 0xb0: case 0xb1: case 0xb6: case 0xb7: case 0xb8: case 0xbc: case 0xbd: case 0xbe: case 0xbf: case 0xc1: case 0xd6:
	case 0xef: case 0x18: case 0x0d:
		return M;
	case 0x70: case 0xba: case 0xc6:
		return M | I1;
	}
	return BAD;
}

static struct insn decode(const uint8_t *p)
{
	const uint8_t *start = p;
	struct insn in = {0};
	bool word = false, wide = false;
	unsigned form, op;

	for (; *p == 0x66 || *p == 0xf2 || *p == 0xf3 || *p == 0x64 || *p == 0x65 || *p == 0x2e || *p == 0x3e; p++) {
		word |= *p == 0x66;
		if (p - start > 3)
			return in;
	}
	if ((*p & 0xf0) == 0x40)
		wide = *p++ & 8;
	op = *p++;
	form = op == 0x0f ? form_of_0f(*p++) : form_of((uint8_t)op);
	if (form & BAD)
		return in;
	if (form & M) {
		unsigned mod = *p >> 6, reg = *p >> 3 & 7, rm = *p & 7;
		p++;
		if (op == 0xff && reg >= 2 && reg <= 5)
			in.branch = true;
		if (form & TEST && reg >= 2)
			form &= ~(unsigned)(I1 | I4);
		if (mod != 3 && rm == 4 && (*p++ & 7) == 5 && mod == 0)
			p += 4;
		if (mod == 0 && rm == 5) {
			in.relative = (unsigned)(p - start);
			p += 4;
		}
		p += mod == 1 ? 1 : mod == 2 ? 4 : 0;
	}
	p += form & I1 ? 1 : form & I4 ? (word ? 2 : 4) : form & IV ? (wide ? 8 : word ? 2 : 4) : 0;
	if (form & (B1 | B4)) {
		in.branch = true;
		in.target = form & B1 ? 1 : 4;
		p += in.target;
	}
	in.length = (unsigned)(p - start);
	return in;
}

static const uint8_t *target_of(const uint8_t *p, const struct insn *in)
{
	int32_t far;

	if (in->target == 1)
		return p + in->length + (int8_t)p[in->length - 1];
	memcpy(&far, p + in->length - 4, 4);
	return p + in->length + far;
}

/* ---------------------------------------------------------------- patching */

#define JUMP 5u		/* bytes: jmp rel32 */
#define FAR 14u		/* bytes: jmp *0(%rip), and the address */
#define STUB 64u	/* bytes: the copied instructions, a jump back; and a jump to the hook */
#define STUBS (16 * PAGE)
#define LOOK 128	/* bytes of a function whose branches are looked at */

static uint8_t *stubs;
static size_t used;

static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};

static uint8_t *put_far(uint8_t *at, const void *to)
{
	static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0};

	memcpy(at, jump, sizeof jump);
	memcpy(at + sizeof jump, &to, sizeof to);
	return at + FAR;
}

static bool near(const uint8_t *a, const uint8_t *b)
{
	intptr_t d = a - b;

	return d > -(1 << 30) && d < 1 << 30;
}

/* stub returns memory for the code of a function, which a jump of 32 bits reaches. */
static uint8_t *stub(const uint8_t *function)
{
	uintptr_t at = (uintptr_t)function & ~(uintptr_t)0xffff;

	for (unsigned i = 0; !stubs && i < 4096 && at > 0x20000; i++) {
		at -= 0x10000;
		void *p = mmap((void *)at, STUBS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
		if (near(p, function))
			stubs = p;
		else
			munmap(p, STUBS);
	}
	if (!stubs || !near(stubs, function) || used + 2 * STUB > STUBS)
		return NULL;
	used += 2 * STUB;
	return stubs + used - 2 * STUB;
}

/* between reports whether a branch of a function leads between its first bytes. */
static bool between(const uint8_t *entry, unsigned first)
{
	for (const uint8_t *p = entry; p < entry + LOOK;) {
		struct insn in = decode(p);
		if (!in.length)
			break; /* other branches are further away than most functions are long */
		if (in.target) {
			const uint8_t *to = target_of(p, &in);
			if (to > entry && to < entry + first)
				return true;
		}
		p += in.length;
	}
	return false;
}

/* put_branch copies a conditional branch, with a distance of 32 bits. It returns NULL for others. */
static uint8_t *put_branch(uint8_t *out, const uint8_t *p, const struct insn *in)
{
	const uint8_t *op = *p == 0x0f ? p + 1 : p; /* 7x, or 0f 8x */

	if (!in->target || (*op & 0xf0) != (*p == 0x0f ? 0x80 : 0x70))
		return NULL;
	int32_t far = (int32_t)(target_of(p, in) - (out + 6));
	*out++ = 0x0f;
	*out++ = (uint8_t)(0x80 | (*op & 15));
	memcpy(out, &far, 4);
	return out + 4;
}

bool patch_prepare(struct patch *p)
{
	uint8_t *f = p->function, *to, *out;

	for (unsigned jumps = 0;; jumps++) {
		struct insn in = decode(f + (memcmp(f, endbr, sizeof endbr) ? 0 : sizeof endbr));
		if (!memcmp(f, endbr, sizeof endbr))
			f += sizeof endbr; /* stays */
		if (!in.branch || !in.target || (*f != 0xe9 && *f != 0xeb) || jumps == 4)
			break;
		f = (uint8_t *)(uintptr_t)target_of(f, &in);
	}
	if (!(to = out = stub(f)))
		return false;
	for (p->length = 0; p->length < JUMP;) {
		struct insn in = decode(f + p->length);
		if (!in.length || in.length > 15)
			return false;
		if (in.branch) {
			out = put_branch(out, f + p->length, &in);
			p->length += in.length;
			if (!out)
				return false;
			continue;
		}
		memcpy(out, f + p->length, in.length);
		if (in.relative) {
			int32_t far;
			memcpy(&far, out + in.relative, 4);
			int64_t moved = far + ((f + p->length) - out);
			if (moved != (int32_t)moved)
				return false;
			far = (int32_t)moved;
			memcpy(out + in.relative, &far, 4);
		}
		out += in.length;
		p->length += in.length;
	}
	if (between(f, p->length))
		return false;
	put_far(out, f + p->length);
	put_far(to + STUB, p->hook);
	p->original = to;
	p->entry = f;
	return true;
}

/* set_entry writes bytes to code. */
static bool set_entry(uint8_t *at, const uint8_t *bytes, size_t n)
{
	uintptr_t start = (uintptr_t)at & ~(PAGE - 1), end = page_end((uintptr_t)at + n - 1);

	if (mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	memcpy(at, bytes, n);
	mprotect((void *)start, end - start, PROT_READ | PROT_EXEC);
	return true;
}

bool patch_apply(struct patch *list, unsigned n)
{
	if (!stubs || mprotect(stubs, STUBS, PROT_READ | PROT_EXEC))
		return false;
	for (unsigned i = 0; i < n; i++) {
		uint8_t jump[JUMP] = {0xe9};
		int32_t far = (int32_t)((uint8_t *)list[i].original + STUB - (list[i].entry + JUMP));
		memcpy(jump + 1, &far, 4);
		if (!set_entry(list[i].entry, jump, JUMP)) {
			while (i-- > 0) { /* the copy may differ from what it was in distances only */
				far = (int32_t)((uint8_t *)list[i].original - (list[i].entry + JUMP));
				memcpy(jump + 1, &far, 4);
				set_entry(list[i].entry, jump, JUMP);
			}
			return false;
		}
	}
	return true;
}

#else

bool patch_prepare(struct patch *p)
{
	(void)p;
	return false;
}

bool patch_apply(struct patch *list, unsigned n)
{
	(void)list, (void)n;
	return false;
}

#endif
