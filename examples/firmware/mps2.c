/* mps2.c: the Cortex-M3 of qemu-system-arm -M mps2-an385. */
#include "board.h"

#include <errno.h>

#define UART_DATA (*(volatile uint32_t *)0x40004000)
#define UART_STATE (*(volatile uint32_t *)0x40004004)
#define UART_CTRL (*(volatile uint32_t *)0x40004008)
#define UART_BAUD (*(volatile uint32_t *)0x40004010)
#define SYSTICK_CTRL (*(volatile uint32_t *)0xe000e010)
#define SYSTICK_LOAD (*(volatile uint32_t *)0xe000e014)
#define SYSTICK_NOW (*(volatile uint32_t *)0xe000e018)

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[];
extern char heap_start[], heap_end[], _estack[];

int main(void);
void reset(void);
void *_sbrk(intptr_t n);

static void halt(void)
{
	for (;;)
		;
}

void HardFault_Handler(void) __attribute__((weak, alias("halt")));

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
	_estack, (const void *)reset, (const void *)halt, (const void *)HardFault_Handler,
	(const void *)halt, (const void *)halt, (const void *)halt,
};

void reset(void)
{
	uint32_t *to;
	const uint32_t *from = data_load;

	for (to = data_start; to < data_end; to++)
		*to = *from++;
	for (to = bss_start; to < bss_end; to++)
		*to = 0;
	UART_BAUD = 16;
	UART_CTRL = 1;
	SYSTICK_LOAD = 0xffffff;
	SYSTICK_NOW = 0;
	SYSTICK_CTRL = 5;
	main();
	board_exit();
}

/* newlib's malloc gets its memory here. */
void *_sbrk(intptr_t n)
{
	static char *end = heap_start;
	char *old = end;

	if (n > heap_end - end) {
		errno = ENOMEM;
		return (void *)-1;
	}
	end += n;
	return old;
}

void board_put(const char *text, size_t len)
{
	while (len-- > 0) {
		while (UART_STATE & 1)
			;
		UART_DATA = (uint8_t)*text++;
	}
}

uint32_t board_ticks(void)
{
	return 0xffffff - SYSTICK_NOW;
}

uint64_t board_us(void)
{
	static uint32_t last, rest;
	static uint64_t us;
	uint32_t now = board_ticks(), ticks = rest + ((now - last) & 0xffffff);

	last = now;
	us += ticks / 25;
	rest = ticks % 25;
	return us;
}

/* Semihosting: SYS_EXIT. Without -semihosting, it ends in halt. */
void board_exit(void)
{
	for (;;)
		__asm__ volatile("mov r0, #0x18\n\tldr r1, =0x20026\n\tbkpt 0xab" : : : "r0", "r1", "memory");
}
