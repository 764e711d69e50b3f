/*
 * Call stacks of machines whose programs often have no tables: by the code of their
 * functions, or by the back chain that their ABI wants. See docs/notes/capture.md.
 */
#include "preload.h"

#ifndef WALKS

#include "lwsbt.h"

#if defined(__mips__)
#define CAPTURE lwsbt_capture_mips
#elif defined(__thumb__)
#define CAPTURE lwsbt_capture_thumb
#elif defined(__arm__)
#define CAPTURE lwsbt_capture_arm
#elif defined(__s390x__)
#define CAPTURE lwsbt_capture_s390x
#elif defined(__powerpc__) && !defined(__powerpc64__)
#define CAPTURE lwsbt_capture_ppc
#endif

bool walk_start(void) { return true; }

/* walk reads the stack by the code of its functions, or by their back chain. It sees the
 * library's own frames as well. */
void walk(struct own *o, const struct regs *from, struct stack *s)
{
	uint64_t now_salt = __atomic_load_n(&walk_salt, __ATOMIC_ACQUIRE);
	struct last *l = &o->last;
	uintptr_t *pcs = l->sp, sp = (uintptr_t)__builtin_frame_address(0);
	unsigned n = 0, at = 0, same = 0;
#ifdef CAPTURE
	bool stack = on_stack(sp);
	struct lwsbt_capture_ctx ctx = {.lo = (sp & ~(uintptr_t)15) - 4096, .hi = stack ? self.hi : page_end(sp),
		.code_lo = 4096, .code_hi = UINTPTR_MAX};
	n = (unsigned)CAPTURE(pcs, RING_DEPTH, 0, &ctx);
#endif
	while (at < n && pcs[at] != from->pc)
		at++;
	if (at == n) {
		pcs[0] = from->pc;
		at = 0;
		n = 1;
	}
	/* Outermost first, behind what was so the last time. */
	unsigned had = l->salt == now_salt ? l->n : 0, depth = n - at;
	while (same < had && same < depth && l->pc[same] == pcs[n - 1 - same])
		same++;
	for (unsigned i = same; i < depth; i++) {
		struct module m;
		l->pc[i] = pcs[n - 1 - i];
		if (module_at(l->pc[i] - 1, &m))
			module_tell(o, &m);
	}
	l->n = depth;
	l->salt = now_salt;
	*s = (struct stack){.place = RING_PLACE_NONE, .frames = true, .kept = same, .more = depth - same,
		.end = depth == RING_DEPTH ? RING_END_DEPTH : RING_END_UNKNOWN, .pcs = l->pc + same};
}

#endif
