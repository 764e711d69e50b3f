/*
 * A firmware that is linked by each script of this directory: DATA and BSS are the names of the script's sections,
 * STACK its symbol for the top of the stack, VECTORS the section and vectors_name the name of the vectors.
 */
#include <stdint.h>
#include <stdlib.h>

#include "lwsbt.h"

#define UART_DATA (*(volatile uint32_t *)0x40004000)
#define UART_STATE (*(volatile uint32_t *)0x40004004)
#define UART_CTRL (*(volatile uint32_t *)0x40004008)
#define UART_BAUD (*(volatile uint32_t *)0x40004010)

extern char STACK[];
/* by the linker's command line, from the sections */
extern uint32_t app_data_load[], app_data[], app_data_end[], app_bss[], app_bss_end[];

#ifdef NOTES
LWSBT_NOTE_CODE(LWSBT_CODE_SHIFT, app_code_lo, app_code_hi);
LWSBT_NOTE_TEXT("2.5");
#endif

int main(void);
void reset(void);
void *_sbrk(intptr_t n);

void *volatile kept;
static volatile uint32_t initial = 0x600d600d;	/* of .data, which nothing may overwrite */
static volatile uint32_t zero;

static void end_program(void)
{
	for (;;)
		__asm__ volatile("mov r0, #0x18\n\tldr r1, =0x20026\n\tbkpt 0xab" : : : "r0", "r1", "memory");
}

__attribute__((section(VECTORS), used)) const void *const VECTORS_NAME[16] = {
	STACK, (const void *)reset, (const void *)end_program, (const void *)end_program,
};

void reset(void)
{
	const uint32_t *from = app_data_load;

	for (uint32_t *to = app_data; to < app_data_end && from != to; to++)
		*to = *from++;
	for (uint32_t *to = app_bss; to < app_bss_end; to++)
		*to = 0;
	UART_BAUD = 16;
	UART_CTRL = 1;
	main();
	end_program();
}

void *_sbrk(intptr_t n)
{
	static char heap[0x1000], *end_of_heap = heap;
	char *old = end_of_heap;

	if (n > heap + sizeof heap - end_of_heap)
		return (void *)-1;
	end_of_heap += n;
	return old;
}

static void put(void *arg, const char *text, size_t len)
{
	(void)arg;
	while (len-- > 0) {
		while (UART_STATE & 1)
			;
		UART_DATA = (uint8_t)*text++;
	}
}

const struct lwsbt_out lwsbt_wrap_out = { .put = put };

__attribute__((noinline)) static void leak(size_t n) { kept = malloc(n); }
__attribute__((noinline)) static void work(size_t n) { leak(n); kept = 0; }

int main(void)
{
	lwsbt_wrap_begin("app", NULL);
	if (initial == 0x600d600d && zero == 0)
		work(77);
	lwsbt_wrap_dump("request");
	return 0;
}
