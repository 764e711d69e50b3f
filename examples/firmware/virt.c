/* virt.c: the RISC-V of qemu-system-riscv32 -M virt. Start-up code, linker script
 * and heap are picolibc's. */
#include "board.h"

#define UART_DATA (*(volatile uint8_t *)0x10000000)
#define UART_STATE (*(volatile uint8_t *)0x10000005)
#define FINISHER (*(volatile uint32_t *)0x100000)

void board_put(const char *text, size_t len)
{
	while (len-- > 0) {
		while (!(UART_STATE & 0x20))
			;
		UART_DATA = (uint8_t)*text++;
	}
}

uint32_t board_ticks(void)
{
	uint32_t cycles;

	__asm__ volatile(".option push\n\t.option arch, +zicsr\n\tcsrr %0, mcycle\n\t.option pop" : "=r"(cycles));
	return cycles;
}

uint64_t board_us(void)
{
	static uint32_t last;
	static uint64_t us;
	uint32_t now = board_ticks();

	us += (now - last) / 25;
	last = now;
	return us;
}

void board_exit(void)
{
	for (;;)
		FINISHER = 0x5555;
}
