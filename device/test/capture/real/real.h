/*
 * real.h: what the drivers of real programs share. The programs are compiled with
 * -Dmalloc=hook_malloc and the like: each such call is a place where a stack may be
 * captured.
 */
#include <stddef.h>

/* drive has the program do what takes it through many of its functions. */
void drive(void);
