/*
 * states.c: a function that one in the other state of the processor, Arm or Thumb, calls, by blx of a label and
 * of a register. Prints how many frames are captured, and ok if the last is the caller, which ends the walk.
 */
#include "lwsbt.h"

#include <stdio.h>

extern char __executable_start[], etext[], after_inner[], after_label[], after_register[];
void hook(void);
void by_label(void);
void by_register(void);
size_t BACKEND(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);

#ifdef __thumb__
#define OWN ".thumb\n.thumb_func\n"
#define OTHER ".arm\n"
#else
#define OWN ".arm\n"
#define OTHER ".thumb\n.thumb_func\n"
#endif

__asm__(
	".syntax unified\n.text\n.balign 4\n"
	OTHER ".type by_label, %function\nby_label:\n	push {r4, lr}\n	blx inner\n"
	"after_label:	pop {r4, pc}\n.balign 4\n"
	OTHER ".type by_register, %function\nby_register:\n	push {r4, lr}\n	movw r3, #:lower16:inner\n	movt r3, #:upper16:inner\n	blx r3\n"
	"after_register:	pop {r4, pc}\n.balign 4\n"
	OWN ".type inner, %function\ninner:\n	push {r4, lr}\n	bl hook\n"
	"after_inner:	pop {r4, pc}\n.balign 4\n"
	OWN);

static const char *after;

__attribute__((noinline)) void hook(void)
{
	uintptr_t pcs[10], mode = 1;
	struct lwsbt_capture_ctx ctx = {0};
	size_t n;

	ctx.lo = (uintptr_t)__builtin_frame_address(0) - 4096;
	ctx.hi = (uintptr_t)__builtin_frame_address(0) + 256;
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)etext;
	n = BACKEND(pcs, 10, 0, &ctx);
	printf("%u", (unsigned)n);
	if (n >= 3 && pcs[1] == ((uintptr_t)after_inner & ~mode) && pcs[2] == ((uintptr_t)after & ~mode))
		printf(" ok");
	printf("\n");
}

int main(void)
{
	after = after_label;
	by_label();
	after = after_register;
	by_register();
	return 0;
}
