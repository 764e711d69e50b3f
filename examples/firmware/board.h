/* board.h: the functions that each board provides. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

void board_put(const char *text, size_t len);	/* to the UART */
uint32_t board_ticks(void);			/* of the timer that -icount drives, 25 MHz */
uint64_t board_us(void);			/* microseconds since the start, if called every 0.5 s */
void board_exit(void) __attribute__((noreturn));

#endif
