/* What runs before main. */
#include <stdint.h>

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
int main(void);

#ifdef __riscv
__attribute__((naked, section(".start"))) void start(void)
{
	__asm__("la sp, stack_top\n\tli s0, 0\n\tli ra, 0\n\tcall reset");
}
#else
void reset(void);
__attribute__((section(".vectors"), used)) static const void *const vectors[16] = { stack_top, reset };
void abort(void) { for (;;) ; }
#endif

void reset(void)
{
	uint32_t *from = data_load, *to;

	for (to = data_start; to < data_end; to++)
		*to = *from++;
	for (to = bss_start; to < bss_end; to++)
		*to = 0;
	main();
	for (;;)
		;
}
