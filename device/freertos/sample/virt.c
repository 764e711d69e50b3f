/* QEMU's virt board, RV32: start, UART, and exit. */
#include <stddef.h>
#include <stdint.h>

extern uint32_t bss_start[], bss_end[];
int main(void);
void stop(int code);
void put(void *arg, const char *text, size_t len);
void begin(void);

void stop(int code)
{
	*(volatile uint32_t *)0x100000 = code == 0 ? 0x5555 : 0x3333 | (uint32_t)code << 16;
	for (;;)
		;
}

void put(void *arg, const char *text, size_t len)
{
	volatile uint8_t *uart = (volatile uint8_t *)0x10000000;

	(void)arg;
	for (; len > 0; len--) {
		while (!(uart[5] & 0x20))
			;
		uart[0] = (uint8_t)*text++;
	}
}

void begin(void)
{
	uint32_t *to;

	for (to = bss_start; to < bss_end; )
		*to++ = 0;
	stop(main());
}

/* Interrupts and ecalls are FreeRTOS's. */
__asm__(".section .vectors, \"ax\"\n"
	".globl reset\n"
	"reset:\n"
	"	.option push\n"
	"	.option norelax\n"
	"	la gp, __global_pointer$\n"
	"	.option pop\n"
	"	la sp, _estack\n"
	"	la t0, freertos_risc_v_trap_handler\n"
	"	csrw mtvec, t0\n"
	"	j begin\n"
	".text\n");
