/*
 * capture_thumb_search.h: finds where a function of Thumb code begins, without a table of functions. It is a part of
 * capture_thumb.c, and defines what capture_prologue.h asks for: saves_ra, search and begin.
 *
 * A search goes back from the return address to the nearest push of lr. A halfword that looks like one may be
 * the second of an instruction (second), a constant that an instruction loads (is_constant), or in the table of a
 * switch (in_offsets, is_target). Then begin looks for what a prologue has before the push.
 */
static int is_constant(const struct lwsbt_capture_ctx *ctx, uintptr_t at, int doubt);

/* Reports whether an instruction of two halfwords that begins with h can have 0xb5xx as its
 * second: b.w, ldrd, loads and stores of r11, and multiplications. */
static int takes_b5(uint32_t h)
{
	return h >> 11 == 0x1e || (h & 0xfe40) == 0xe840 || h >> 8 == 0xfb ||
		(h >> 9 == 0x7c && (h & 0x180) != 0);
}

/*
 * second reports whether the halfword at address at, 0xb5xx, is the second of an
 * instruction. One below 0xe800 ends an instruction, whichever half it is; those
 * from there on begin one, or are the second of one, in turns. A constant before it may
 * look like the first half.
 */
static int second(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	unsigned n = 0;

	if (!in_code(ctx, at - 2, 2) || !takes_b5(code16(at - 2)))
		return 0;
	while (n < 64 && in_code(ctx, at - 2 * (n + 1), 2) && code16(at - 2 * (n + 1)) >= 0xe800)
		n++;
	return n % 2 != 0 && !(at % 4 == 0 && is_constant(ctx, at - 4, 0));
}

/* Reports whether at address at stands what is in no prologue before lr is saved: bx, pop
 * with pc, b; a call, or b.w. One of variable arguments pops its return address to another
 * register than lr. */
static int ends(uintptr_t at)
{
	uint32_t h = code16(at), h2 = code16(at + 2);

	if (THUMB2 && ((h == 0xe8bd && (h2 & 0x8000)) || (h == 0xf85d && h2 >> 12 == 15)))
		return 1;			/* ldmia sp!, with pc; ldr pc, [sp], #n */
	return (h & 0xff07) == 0x4700 || h >> 8 == 0xbd || h >> 11 == 0x1c ||
		(h >> 11 == 0x1e && (h2 & 0x9000) == 0x9000);
}

/* How far back from the instruction that saves the return address others of its prologue
 * are, in bytes. */
#define PROLOGUE 40

/*
 * pushes_high reports whether the push with lr at address at saves another register in
 * it. Of Armv6-M, push cannot name r8 to r11: they are moved to others first, of
 * which lr may be one, after it was saved by a push before. Other instructions may stand between.
 */
static int pushes_high(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back;
	uint32_t h;
	int moved = 0;

	for (back = 2; THUMB1 && back <= PROLOGUE && in_code(ctx, at - back, 2); back += 2) {
		h = code16(at - back);
		if ((h & 0xffc7) == 0x46c6)	/* mov lr, r8 to r15 */
			moved = 1;
		if (h >> 9 == 0x5a)		/* another push */
			return moved && (h & 0x100);
		if (ends(at - back))
			break;
	}
	return 0;
}

/* How far ahead of it an instruction loads a constant, in bytes. */
#define LITERAL (THUMB2 ? 4096u : 1024u)

/*
 * is_constant reports whether the halfword at address at is of a constant: whether an
 * instruction before it loads its word. Constants stand behind a function, right
 * before the next. One may itself look like such an instruction: so in doubt, what
 * loads must not be loaded.
 */
static int is_constant(const struct lwsbt_capture_ctx *ctx, uintptr_t at, int doubt)
{
	uintptr_t word = at & ~(uintptr_t)3, load, from;
	uint32_t h, size;

	for (load = word - 4; word - load <= LITERAL && in_code(ctx, load, 4); load -= 2) {
		h = code16(load);
		from = 4 * (h & 0xff);
		size = 4;
#if THUMB2
		if (h == 0xf8df) {			/* ldr Rt, [pc, #imm12] */
			from = code16(load + 2) & 0xfff;
		} else if ((h & 0xfbbf) == 0xe99f) {	/* ldrd, vldr: [pc, #imm8 * 4] */
			from = 4 * (code16(load + 2) & 0xff);
			size = 8;			/* of one word or two */
		} else if (h >> 11 == 0x14 && !second(ctx, load)) {
			size = 8;			/* adr Rd, [pc, #imm8 * 4]: for an ldrd */
		} else
#endif
		if (h >> 11 != 9)			/* ldr Rt, [pc, #imm8 * 4] */
			continue;
		if (word - ((load + 4) & ~(uintptr_t)3) - from < size &&
		    !(doubt && is_constant(ctx, load, 0)))
			return 1;
	}
	return 0;
}

/* An address of code as the table of a switch has it: odd, and not far from address at. */
static int is_target(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t to;

	if (!in_code(ctx, at, 4))
		return 0;
	to = code32(at);
	return to % 2 != 0 && to - at + FAR < 2 * FAR && in_code(ctx, to, 1);
}

/* size_of_table returns the size in bytes of an entry of the table of offsets behind the instructions
 * at address at, or 0: behind tbb, tbh, bx of a sum in position-independent code, and, on Armv6-M, calls
 * of libgcc's __gnu_thumb1_case_*. */
static unsigned size_of_table(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at), h2 = code16(at + 2);
#if THUMB1
	uintptr_t to = at + 4 + (uintptr_t)(extend(h, 11) * 4096) + 2 * (h2 & 0x7ff);
	unsigned i;

	if (h >> 11 != 0x1e || h2 >> 11 != 0x1f || !in_code(ctx, to, 16) ||
	    (code16(to) & 0xfffe) != 0xb402 || code16(to + 2) != 0x4671)	/* push {r1}; mov r1, lr */
		return 0;
	for (i = 4; i < 16; i += 2) {
		h = code16(to + i);
		if (h >> 12 == 5)		/* ldrsb, ldr, ldrh, ldrb, ldrsh */
			return h >> 9 & 1 ? ((h >> 9 & 7) == 3 ? 1 : 2) : (h >> 9 & 7) == 4 ? 4 : 1;
	}
	return 0;
#else
	if (h == 0xe8df && (h2 & 0xffe0) == 0xf000)
		return 1 + (h2 >> 4 & 1);
	if (h2 == 0xbf00 && in_code(ctx, at - 2, 2)) {	/* a nop: tables of words are aligned */
		h2 = h;
		h = code16(at - 2);
	}
	/* add Rd, Rm; bx Rd */
	return at % 4 == 0 && (h & 0xff80) == 0x4400 && (h2 & 0xffc7) == 0x4700 && field(h2, 3, 3) == (h & 7) ? 4 : 0;
#endif
}

#define TABLE 1024	/* how far behind its beginning a table of offsets is looked for, in bytes */

/* Reports whether address at is in a table of offsets. It ends at the latest where the nearest of
 * its targets is. */
static int in_offsets(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t from, entry, end;
	uint32_t v;
	unsigned size;

	for (from = at - 4; at - from <= TABLE && in_code(ctx, from, 4); from -= 2) {
		size = size_of_table(ctx, from);
		if (size == 0)
			continue;
		/* of words that have the mode bit */
		if (THUMB2 && size == 4 && ((code16(at & ~(uintptr_t)3) & 1) == 0 || code32(at & ~(uintptr_t)3) >= FAR))
			return 0;
		end = from + FAR;
		for (entry = from + 4; entry <= at && entry < end; entry += size) {
			v = size == 4 ? code32(entry) / 2 : size == 2 ? code16(entry) : *(const uint8_t *)entry;
			if (v != 0 && v < end / 2 && from + 4 + 2 * v < end)
				end = from + 4 + 2 * v;
		}
		return at < end;
	}
	return 0;
}

/* returned returns the registers that the next return behind address at pops with pc, or 0. Stacks
 * are left as they were entered, in most functions. */
static uint32_t returned(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	unsigned n;
	uint32_t h;

	for (n = 0; n < 256 && in_code(ctx, at, 2); n++) {
		h = code16(at);
		if (h >> 8 == 0xbd)
			return h & 0xff;
		if (h >> 8 == 0xb5)
			break;
		at += length(h);
	}
	return 0;
}

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);

	if (!may_save_ra(h) || !in_code(ctx, at, 4))
		return 0;
	if (h >> 8 == 0xb5)		/* push, and lr */
		return !(THUMB2 && second(ctx, at)) && !pushes_high(ctx, at);
	/* stmdb sp!, with lr, neither sp nor pc; str lr, [sp, #-n]! */
	return h == 0xe92d ? (code16(at + 2) & 0xe000) == 0x4000 : (code16(at + 2) & 0xff00) == 0xed00;
}

/* How far read-only data may be from the code, variables from the stack, and one from another, in
 * bytes. */
#define APART 0x1000000u

/*
 * is_data reports whether what looks like a push of lr at address at is data: a constant that is
 * loaded, or in the table of a switch. pops is set if the function pops the same registers: then it
 * may only be an address in the code. To look for what loads a constant takes long.
 */
static int is_data(const struct lwsbt_capture_ctx *ctx, uintptr_t at, int pops)
{
	uintptr_t word = at & ~(uintptr_t)3, v = code32(word);

	/* In a table there are others beside it. One before it that is loaded is no part of a table. */
	if (in_code(ctx, v, 1))
		return (is_target(ctx, word) && (is_target(ctx, word + 4) ||
			(is_target(ctx, word - 4) && !is_constant(ctx, word - 4, 0)))) || is_constant(ctx, at, 1);
	if (pops)
		return 0;
	return in_offsets(ctx, at) ||
		((v + APART < 2 * APART || v - ctx->code_lo + APART < ctx->code_hi - ctx->code_lo + 2 * APART ||
		  v - ctx->lo + APART < 2 * APART) && is_constant(ctx, at, 1));
}

static uintptr_t search(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t end = at - ctx->code_lo < FAR ? ctx->code_lo : at - FAR, pc = at;
	uint32_t h, list = 0x100;

	while (at - end >= STEP && CODE_GOES_ON(ctx, at - STEP)) {
		at -= STEP;
		h = code16(at);
		if (!may_save_ra(h) || !saves_ra(ctx, at))
			continue;
		if (h >> 8 == 0xb5) {
			if (list == 0x100)
				list = returned(ctx, pc);
			if (is_data(ctx, at, list == (h & 0xff)))
				continue;
		}
		return begin(ctx, at);
	}
	return 0;
}

/*
 * A function of variable arguments first stores the last of r0 to r3, or makes
 * place for them: push {rN-r3}, or sub sp, #4 to #16. Other instructions may
 * stand between that and its push of lr, but none that ends a function, and no constant
 * of the function before.
 */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	uint32_t h;

	for (back = 2; back <= PROLOGUE && in_code(ctx, at - back, 2); back += 2) {
		h = code16(at - back);
		if (h == 0xb40f || h == 0xb40e || h == 0xb40c || h == 0xb408 ||
		    (h >= 0xb081 && h <= 0xb084)) {
			/* a word that at is in is no constant: tables, too, look like loads */
			if ((at - back) / 4 != at / 4 && is_constant(ctx, at - back, 1))
				break;
			first = at - back;
		} else if (ends(at - back))
			break;
	}
	return first;
}
