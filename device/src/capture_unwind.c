/*
 * capture_unwind.c: walks the stack by the compiler's own unwinder, which reads
 * .eh_frame or, on Arm, .ARM.exidx: code must be compiled with -funwind-tables,
 * and the linker must keep them. The unwinder trusts what it finds on the stack:
 * of a corrupted one, it may fault. It may allocate the first time that it runs.
 */
#include "capture_code.h"

#include <unwind.h>

struct unwinding {
	uintptr_t *pcs;
	size_t max, skip, n;
	const struct lwsbt_capture_ctx *ctx;
};

static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *arg)
{
	struct unwinding *u = arg;
	uintptr_t pc = (uintptr_t)_Unwind_GetIP(context), sp;

#if defined(__arm__) && !defined(__ARM_DWARF_EH__)
	sp = _Unwind_GetGR(context, 13);	/* EHABI's _Unwind_GetCFA has another meaning */
#else
	sp = (uintptr_t)_Unwind_GetCFA(context);
#endif

	if (u->ctx && u->ctx->hi != 0 && (sp < u->ctx->lo || sp > u->ctx->hi))
		return _URC_END_OF_STACK;
	if (u->skip > 0) {
		u->skip--;
		return _URC_NO_REASON;
	}
	if (pc == 0 || u->n >= u->max)
		return _URC_END_OF_STACK;
#if defined(__thumb__) || defined(__arm__)
	pc &= ~(uintptr_t)1;
#endif
	u->pcs[u->n++] = pc;
	return u->n < u->max ? _URC_NO_REASON : _URC_END_OF_STACK;
}

NOINLINE size_t lwsbt_capture_unwind(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct unwinding u;

	u.pcs = pcs;
	u.max = max;
	u.n = 0;
	u.skip = skip < SIZE_MAX ? skip + 1 : skip;	/* the first is this function */
	u.ctx = ctx;
	if (max > 0)
		_Unwind_Backtrace(see, &u);
	return u.n;
}
