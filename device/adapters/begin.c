/*
 * lwsbt_wrap_begin and lwsbt_wrap_dump, for a program with one stack, or whose port has stack. Limits are those
 * of the linker script: of each list, the first symbol that the script has. A script that has none of
 * a list gets them by the linker, for example
 *
 *   -Wl,--defsym=lwsbt_code_lo='ADDR(.text)',--defsym=lwsbt_code_hi='ADDR(.rodata)+SIZEOF(.rodata)'
 */
#include "lwsbt.h"

#define SYMBOL(name) extern char name[] __attribute__((weak))
#define COUNT(list) (sizeof(list) / sizeof *(list))

SYMBOL(lwsbt_code_lo);
SYMBOL(__flash_binary_start);	/* Pico SDK */
SYMBOL(__text_region_start);	/* Zephyr */
SYMBOL(_stext);			/* NuttX, ESP-IDF */
SYMBOL(g_pfnVectors);		/* STM32Cube: what the flash begins with */
SYMBOL(__Vectors);		/* CMSIS, the same */
SYMBOL(__isr_vector);
SYMBOL(__executable_start);	/* the linker's own script, for newlib */
static char *const code_lo[] = { lwsbt_code_lo, __flash_binary_start, __text_region_start, _stext, g_pfnVectors,
	__Vectors, __isr_vector, __executable_start };

SYMBOL(lwsbt_code_hi);		/* with the constants behind the code, if possible */
SYMBOL(__flash_binary_end);
SYMBOL(__rodata_region_end);
SYMBOL(_eronly);		/* NuttX */
SYMBOL(_sidata);		/* STM32Cube: the initial values of variables are behind the constants */
SYMBOL(__etext);
SYMBOL(_etext);
SYMBOL(etext);
static char *const code_hi[] = { lwsbt_code_hi, __flash_binary_end, __rodata_region_end, _eronly, _sidata, __etext,
	_etext, etext };

SYMBOL(lwsbt_stack_hi);
SYMBOL(__StackTop);		/* CMSIS, Pico SDK */
SYMBOL(_estack);		/* STM32Cube */
SYMBOL(__stack);		/* newlib, picolibc */
SYMBOL(_stack);
static char *const stack_hi[] = { lwsbt_stack_hi, __StackTop, _estack, __stack, _stack };

SYMBOL(lwsbt_stack_lo);		/* or all from the heap on, as the stack may be longer than was planned */
SYMBOL(end);
SYMBOL(_end);
SYMBOL(__end__);
SYMBOL(_ebss);
SYMBOL(__StackLimit);
static char *const stack_lo[] = { lwsbt_stack_lo, end, _end, __end__, _ebss, __StackLimit };

#pragma weak lwsbt_wrap_out

/* limit sets *to, unless it is set, to the first of n symbols that is there, from least to most. */
static void limit(uintptr_t *to, char *const *list, size_t n, uintptr_t least, uintptr_t most)
{
	for (; *to == 0 && n > 0; n--, list++)
		if (*list && (uintptr_t)*list >= least && (uintptr_t)*list <= most)
			*to = (uintptr_t)*list;
}

void lwsbt_wrap_begin(const char *prog, const char *fw)
{
	struct lwsbt_capture_ctx *ctx = &lwsbt_wrapped.ctx;
	struct lwsbt_device device = { prog, NULL, fw, NULL, { NULL, 0, 0 }, { 0, 0 } };
	uintptr_t here = (uintptr_t)&device, most = UINTPTR_MAX;
#if defined(LWSBT_WRAP_NODES) || LWSBT_PACKED
	static struct lwsbt_range code;
#endif

	limit(&ctx->code_lo, code_lo, COUNT(code_lo), 0, most);
	limit(&ctx->code_hi, code_hi, COUNT(code_hi), ctx->code_lo, most);
	limit(&ctx->hi, stack_hi, COUNT(stack_hi), here, most);
	limit(&ctx->lo, stack_lo, COUNT(stack_lo), 0, here);
	if (!ctx->functions)
		ctx->functions = lwsbt_function_table();
#if defined(LWSBT_WRAP_NODES) || LWSBT_PACKED
	code.start = ctx->code_lo;
	code.end = ctx->code_hi & ~(((uintptr_t)1 << LWSBT_CODE_SHIFT) - 1);
	device.code.range = &code;
	device.code.count = 1;
	device.code.shift = LWSBT_CODE_SHIFT;
#ifdef LWSBT_WRAP_NODES
	lwsbt_wrapped_profile.code = device.code;
#endif
#endif
	if (&lwsbt_wrap_out)
		lwsbt_head_device(&lwsbt_wrap_out, &device);
}

void lwsbt_wrap_dump(const char *why)
{
	static uint32_t number;
#ifdef LWSBT_WRAP_NODES
	static struct lwsbt_profile_dump state;
#endif

	if (!&lwsbt_wrap_out)
		return;
#ifdef LWSBT_WRAP_NODES
	state.lines.out = &lwsbt_wrap_out;
	lwsbt_profile_dump(&lwsbt_wrapped_profile, &state, number, why, LWSBT_SORT | (number % 16 ? LWSBT_DIFF : 0));
#else
	lwsbt_dump(&lwsbt_wrapped, &lwsbt_wrap_out, number, why, LWSBT_KEEP_ADDRESS);
#endif
	number++;
}
