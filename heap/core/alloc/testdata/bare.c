/* The end of the program on a board without an operating system: it prints a line. */
#include <stdint.h>

#ifdef __riscv
#define DATA ((volatile uint8_t *)0x10000000)
#else
#define DATA ((volatile uint32_t *)0x40004000)
#define CONTROL ((volatile uint32_t *)0x40004008)
#endif

void halted(void)
{
#ifdef CONTROL
	*CONTROL = 1;
#endif
	for (const char *s = "halted\n"; *s; s++)
		*DATA = (uint8_t)*s;
}
