/* board.h: the functions that each board provides. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Limits that the linker script knows: of the stack, and of the code. */
extern char board_stack_lo[], board_stack_hi[], board_code_lo[], board_code_hi[];

void board_put(const char *text, size_t len);	/* to the UART */
uint32_t board_ticks(void);			/* of the timer that -icount drives, 25 MHz */
void board_exit(void) __attribute__((noreturn));

#endif
