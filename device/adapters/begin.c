/*
 * lwsbt_wrap_begin and lwsbt_wrap_dump, for a program with one stack, or whose port has stack. Limits are those
 * of the linker script: of each list, the first symbol that the script has; on a Cortex-M also those of the vector table.
 * Without a symbol, the code begins at a multiple of 1 MiB, where flash memory begins, ends where the linker places a constant
 * whose section no script names, and the stack at the function that calls lwsbt_wrap_begin. The log has then no code=.
 */
#include "lwsbt.h"

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define CODE_FROM_0 1	/* the code may begin at address 0, with the vector table */
#else
#define CODE_FROM_0 0
#endif

#define SYMBOL(name) extern char name[] __attribute__((weak))
#define MOST_CODE 0x8000000u	/* bytes: a symbol further away is of other memory */
#define COUNT(list) (sizeof(list) / sizeof *(list))

SYMBOL(lwsbt_code_lo);
SYMBOL(__flash_binary_start);	/* Pico SDK */
SYMBOL(__text_region_start);	/* Zephyr */
SYMBOL(_stext);			/* NuttX, ESP-IDF */
SYMBOL(g_pfnVectors);		/* STM32Cube: what the flash begins with */
SYMBOL(__Vectors);		/* CMSIS, the same */
SYMBOL(__isr_vector);
SYMBOL(__executable_start);	/* the linker's own script, for newlib */
SYMBOL(__flash);		/* picolibc */
#if !CODE_FROM_0
SYMBOL(_start);			/* with no vector table, what the code begins with */
#endif
static const char *const code_lo[] = { lwsbt_code_lo, __flash_binary_start, __text_region_start, _stext, g_pfnVectors,
	__Vectors, __isr_vector, __executable_start, __flash,
#if !CODE_FROM_0
	_start,
#endif
};

SYMBOL(lwsbt_code_hi);		/* with the constants behind the code, if possible */
SYMBOL(__flash_binary_end);
SYMBOL(__rodata_region_end);
SYMBOL(_eronly);		/* NuttX */
SYMBOL(_sidata);		/* STM32Cube: the initial values of variables are behind the constants */
SYMBOL(__etext);
SYMBOL(_etext);
SYMBOL(etext);
SYMBOL(__fini_array_end);	/* of any script for newlib, behind code and constants */
static const char behind_code[4] __attribute__((section("lwsbt_limit"), used)) = ""; /* the linker places it behind constants */
__attribute__((section("lwsbt_text_limit"), used)) static void behind_text(void) { } /* and this behind code, if the constants are before it */
static const char *const code_hi[] = { lwsbt_code_hi, __flash_binary_end, __rodata_region_end, _eronly, _sidata, __etext,
	_etext, etext, __fini_array_end, behind_code, (const char *)(uintptr_t)behind_text };

SYMBOL(lwsbt_stack_hi);
SYMBOL(__StackTop);		/* CMSIS, Pico SDK */
SYMBOL(_estack);		/* STM32Cube */
SYMBOL(__stack);		/* newlib, picolibc */
SYMBOL(_stack);
static const char *const stack_hi[] = { lwsbt_stack_hi, __StackTop, _estack, __stack, _stack };

SYMBOL(lwsbt_stack_lo);		/* or all from the heap on, as the stack may be longer than was planned */
SYMBOL(end);
SYMBOL(_end);
SYMBOL(__end__);
SYMBOL(_ebss);
SYMBOL(__StackLimit);
static const char *const stack_lo[] = { lwsbt_stack_lo, end, _end, __end__, _ebss, __StackLimit };

SYMBOL(__start_gnu_build_id_start); /* where a script that places .note.gnu.build-id often says so */

#pragma weak lwsbt_wrap_out

/* limit sets *to, unless it is set, to the first of n symbols that is there, from least to most. */
static void limit(uintptr_t *to, const char *const *list, size_t n, uintptr_t least, uintptr_t most)
{
	for (; *to == 0 && n > 0; n--, list++)
		if (*list && (uintptr_t)*list >= least && (uintptr_t)*list <= most)
			*to = (uintptr_t)*list;
}

#if CODE_FROM_0

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

/* text_hash returns a hash of the words from lo to hi, which btheap compares with the ELF file. [BT-HEAD-7] */
static uint32_t text_hash(uintptr_t lo, uintptr_t hi)
{
	uint32_t h = 0;

	for (lo = (lo + 3) & ~(uintptr_t)3; lo + 4 <= hi; lo += 4)
		h = (h << 5 ^ h >> 27 ^ *(const uint32_t *)lo) * 0x9e3779b1u;
	return h;
}

#endif

void lwsbt_wrap_begin(const char *prog, const char *fw)
{
	struct lwsbt_capture_ctx *ctx = &lwsbt_wrapped.ctx;
	struct lwsbt_device device = { prog, NULL, fw, NULL, { NULL, 0, 0 }, { 0, 0 }, 0 };
	uintptr_t here = (uintptr_t)&device, most = UINTPTR_MAX, self = (uintptr_t)&lwsbt_wrap_begin;
	int known = 1;
	static struct lwsbt_range code;

	limit(&ctx->code_lo, code_lo, COUNT(code_lo), 0, most);
	limit(&ctx->hi, stack_hi, COUNT(stack_hi), here, most);
	limit(&ctx->lo, stack_lo, COUNT(stack_lo), 0, here);
#if CODE_FROM_0
	vectors(&ctx->code_lo, &ctx->hi, here);
#else
	known = ctx->code_lo != 0;
	if (!known) {
		uintptr_t caller = (uintptr_t)__builtin_return_address(0);

		ctx->code_lo = (caller < self ? caller : self) & ~(uintptr_t)0xfffff;
	}
#endif
	limit(&ctx->code_hi, code_hi, COUNT(code_hi), self, self + MOST_CODE); /* one before this function is none */
	if (ctx->hi == 0)
		ctx->hi = (uintptr_t)__builtin_dwarf_cfa(); /* where the frame of the caller begins */
	if (!ctx->functions)
		ctx->functions = lwsbt_function_table();
	code.start = ctx->code_lo;
	code.end = ctx->code_hi & ~(((uintptr_t)1 << LWSBT_CODE_SHIFT) - 1);
	if (known && code.start < code.end) { /* else frames are addresses */
		device.code.range = &code;
		device.code.count = 1;
		device.code.shift = LWSBT_CODE_SHIFT;
#ifdef LWSBT_WRAP_NODES
		lwsbt_wrapped_profile.code = device.code;
#endif
	}
#if !defined(LWSBT_TINY) || LWSBT_EXTRAS
	device.build = build_id(known ? ctx->code_lo : 0, ctx->code_hi);
	if (!device.build && device.code.count)
		device.text = text_hash(code.start, code.end);
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
	lwsbt_dump(&lwsbt_wrapped, &lwsbt_wrap_out, number, why, LWSBT_KEEP_ADDRESS | LWSBT_KEEP_CHECK);
#endif
	number++;
}
