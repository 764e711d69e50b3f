/*
 * lwsbt_wrap_begin and lwsbt_wrap_dump, for a program with one stack, or whose port has stack. Limits are those
 * of the linker script: of each list, the first symbol that the script has; on a Cortex-M also those of the vector table.
 * Without limits, lwsbt_wrap_begin says so in the log.
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
SYMBOL(__fini_array_end);	/* of any script for newlib, behind code and constants */
SYMBOL(__init_array_end);
static char *const code_hi[] = { lwsbt_code_hi, __flash_binary_end, __rodata_region_end, _eronly, _sidata, __etext,
	_etext, etext, __fini_array_end, __init_array_end };

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

SYMBOL(__start_gnu_build_id_start); /* where a script that places .note.gnu.build-id often says so */

#pragma weak lwsbt_wrap_out

/* limit sets *to, unless it is set, to the first of n symbols that is there, from least to most. */
static void limit(uintptr_t *to, char *const *list, size_t n, uintptr_t least, uintptr_t most)
{
	for (; *to == 0 && n > 0; n--, list++)
		if (*list && (uintptr_t)*list >= least && (uintptr_t)*list <= most)
			*to = (uintptr_t)*list;
}

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define CODE_FROM_0 1	/* the code may begin at address 0 */

/* The vector table of a Cortex-M begins with the initial stack pointer, and is before the code: for a linker script
 * with other names. VTOR is 0 at reset, and always where there is none. */
static void vectors(uintptr_t *code, uintptr_t *stack, uintptr_t here)
{
	const uintptr_t *table = (const uintptr_t *)*(const volatile uintptr_t *)0xe000ed08;

	if (*code == 0 && table)
		*code = (uintptr_t)table;
	if (*stack == 0 && *(const volatile uintptr_t *)table >= here)
		*stack = *(const volatile uintptr_t *)table;
}

#else
#define CODE_FROM_0 0
#endif

#if !defined(LWSBT_TINY) || LWSBT_EXTRAS

/* build_id returns the note with the GNU build ID, which -Wl,--build-id makes, or NULL: at a symbol, or among the words
 * from lo to hi. */
static const void *build_id(uintptr_t lo, uintptr_t hi)
{
	const uint32_t *p = (const uint32_t *)((lo + 3) & ~(uintptr_t)3);

	if (__start_gnu_build_id_start)
		return __start_gnu_build_id_start;
	if ((lo == 0 && !CODE_FROM_0) || hi < lo || hi - lo < 36)
		return NULL;
	for (; (uintptr_t)p + 16 + 20 <= hi; p++) {
		const char *name = (const char *)(p + 3);

		if (p[0] == 4 && p[2] == 3 && p[1] >= 8 && p[1] <= 20 && name[0] == 'G' && name[1] == 'N' && name[2] == 'U' && !name[3])
			return p;
	}
	return NULL;
}

#endif

void lwsbt_wrap_begin(const char *prog, const char *fw)
{
	struct lwsbt_capture_ctx *ctx = &lwsbt_wrapped.ctx;
	struct lwsbt_device device = { prog, NULL, fw, NULL, { NULL, 0, 0 }, { 0, 0 } };
	uintptr_t here = (uintptr_t)&device, most = UINTPTR_MAX;
#ifdef LWSBT_WRAP_NODES
	static struct lwsbt_range code;
#endif

	limit(&ctx->code_lo, code_lo, COUNT(code_lo), 0, most);
	limit(&ctx->code_hi, code_hi, COUNT(code_hi), ctx->code_lo, most);
	limit(&ctx->hi, stack_hi, COUNT(stack_hi), here, most);
	limit(&ctx->lo, stack_lo, COUNT(stack_lo), 0, here);
#if CODE_FROM_0
	vectors(&ctx->code_lo, &ctx->hi, here);
#endif
	if (!ctx->functions)
		ctx->functions = lwsbt_function_table();
#ifdef LWSBT_WRAP_NODES
	code.start = ctx->code_lo;
	code.end = ctx->code_hi & ~(((uintptr_t)1 << LWSBT_CODE_SHIFT) - 1);
	if (code.start < code.end) { /* else frames are addresses */
		device.code.range = &code;
		device.code.count = 1;
		device.code.shift = LWSBT_CODE_SHIFT;
		lwsbt_wrapped_profile.code = device.code;
	}
#endif
#if !defined(LWSBT_TINY) || LWSBT_EXTRAS
	device.build = build_id(ctx->code_lo, ctx->code_hi);
#endif
	if (!&lwsbt_wrap_out)
		return;
	lwsbt_head_device(&lwsbt_wrap_out, &device);
	if (lwsbt_wrapped.capture && (ctx->code_hi <= ctx->code_lo || ctx->hi == 0)) {
		static const char text[] = "lwsbt: stacks have one frame: the limits of code or stack are not known\n";

		lwsbt_wrap_out.put(lwsbt_wrap_out.arg, text, sizeof text - 1);
	}
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
	lwsbt_dump(&lwsbt_wrapped, &lwsbt_wrap_out, number, why, LWSBT_KEEP_ADDRESS | LWSBT_KEEP_CHECK);
#endif
	number++;
}
