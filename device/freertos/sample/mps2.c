/* QEMU's mps2-an385: vectors, start, UART, and semihosting's exit. */
#include <stddef.h>
#include <stdint.h>

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[];
extern char _estack[];
int main(void);
void stop(int code);
void put(void *arg, const char *text, size_t len);
void reset(void);
void SVC_Handler(void);
void PendSV_Handler(void);
void SysTick_Handler(void);

void stop(int code)
{
	/* SYS_EXIT, ADP_Stopped_ApplicationExit or a run-time error */
	register uint32_t op __asm__("r0") = 0x18, why __asm__("r1") = code == 0 ? 0x20026 : 0x20023;

	__asm__ volatile("bkpt 0xab" : : "r"(op), "r"(why) : "memory");
	for (;;)
		;
}

static void fault(void) { stop(2); }
void HardFault_Handler(void) __attribute__((weak, alias("fault")));

void put(void *arg, const char *text, size_t len)
{
	volatile uint32_t *uart = (volatile uint32_t *)0x40004000; /* data, state, control */

	(void)arg;
	uart[2] = 1;
	for (; len > 0; len--) {
		while (uart[1] & 1)
			;
		uart[0] = (unsigned char)*text++;
	}
}

void reset(void)
{
	uint32_t *to, *from = data_load;

	for (to = data_start; to < data_end; )
		*to++ = *from++;
	for (to = bss_start; to < bss_end; )
		*to++ = 0;
	stop(main());
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
	_estack, (void *)reset, (void *)fault, (void *)HardFault_Handler, (void *)fault, (void *)fault, (void *)fault,
	NULL, NULL, NULL, NULL, (void *)SVC_Handler, (void *)fault, NULL, (void *)PendSV_Handler, (void *)SysTick_Handler,
};
