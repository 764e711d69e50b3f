/*
 * capture_xtensa.c: walks the stack of Xtensa's windowed ABI, as on the ESP32, ESP32-S2 and
 * ESP32-S3. Tested on register windows in memory made by hand from the manual, and not on
 * hardware. [Xtensa Instruction Set Architecture Reference Manual, 4.7.1 and 8.1]
 *
 * A call of 4, 8 or 12 rotates the window and writes its size, 1 to 3, to the top two bits
 * of the return address; the address itself lies in the same quarter of the memory as the
 * call. When windows overflow, the first four registers of a function's caller are stored
 * below the function's stack pointer:
 *
 *   sp - 16: a0, the caller's return address    sp - 12: a1, the caller's stack pointer
 */
#include "capture_xtensa.h"

#if defined(__XTENSA_WINDOWED_ABI__)

void xthal_window_spill(void);	/* of the HAL: stores all windows */

NOINLINE size_t lwsbt_capture_xtensa(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	uintptr_t a0, sp;

	if (!ctx)
		return 0;
	xthal_window_spill();
	__asm__ volatile("mov %0, a0\n\tmov %1, a1" : "=r"(a0), "=r"(sp));
	return walk_windows(pcs, max, skip, ctx, (uintptr_t)&lwsbt_capture_xtensa, a0, sp);
}

#endif
