/*
 * ends.c: an Arm function behind one that makes place for locals and ends in a call that
 * does not return. Prints ok if its stack is walked right.
 */
#include "lwsbt.h"

long write(int fd, const void *p, size_t n);
extern char __executable_start[], etext[], after_inner[], after_outer[];
void hook(void);
void outer(void);

__asm__(
	".text\n.balign 4\n"
	"outer:	push {r4, lr}\n	bl inner\n"
	"after_outer:	pop {r4, pc}\n"
	"	sub sp, sp, #12\n	bl abort\n"
	"	sub sp, sp, #12\n	blx r3\n"
	"inner:	push {r4, lr}\n	bl hook\n"
	"after_inner:	pop {r4, pc}\n");

__attribute__((noinline)) void hook(void)
{
	uintptr_t pcs[4];
	struct lwsbt_capture_ctx ctx = {0};

	ctx.lo = (uintptr_t)__builtin_frame_address(0) - 4096;
	ctx.hi = (uintptr_t)__builtin_frame_address(0) + 256;
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)etext;
	/* the last is main, found from where outer was entered */
	if (lwsbt_capture_arm(pcs, 4, 0, &ctx) == 4 && pcs[1] == (uintptr_t)after_inner &&
	    pcs[2] == (uintptr_t)after_outer)
		write(1, "ok\n", 3);
}

int main(void)
{
	outer();
	return 0;
}
