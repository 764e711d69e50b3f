/* board.h: the functions that each board provides. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

void board_put(const char *text, size_t len);	/* to the UART */
uint32_t board_ticks(void);			/* of the timer that -icount drives, 25 MHz */
uint64_t board_us(void);			/* microseconds since the start, if called every 0.5 s */
void board_exit(void) __attribute__((noreturn));

#if defined(__riscv)
#define BOARD_RAM 0x80000000u
#define BOARD_RAM_END 0x88000000u
#define BOARD_STACK __stack
#else
#define BOARD_RAM 0x20000000u
#define BOARD_RAM_END 0x20040000u
#define BOARD_STACK _estack
#endif

#endif
