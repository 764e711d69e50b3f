/*
 * lwsbt_nuttx.h: the library on NuttX. See README.md.
 */
#ifndef LWSBT_NUTTX_H
#define LWSBT_NUTTX_H

#include "lwsbt.h"

/* lwsbt_nuttx_begin writes the ~h#boot line. name is that of the program. */
void lwsbt_nuttx_begin(const char *name);

/* lwsbt_nuttx_dump writes a dump of the live blocks, and what the heap has free, to the
 * system log. Not in an interrupt. why is the reason, such as "request". */
void lwsbt_nuttx_dump(const char *why);

#endif
