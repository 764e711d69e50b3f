/*
 * lwsbt_zephyr.h: the library on Zephyr. See README.md.
 */
#ifndef LWSBT_ZEPHYR_H
#define LWSBT_ZEPHYR_H

#include "lwsbt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* lwsbt_zephyr_begin writes the ~h#boot line. Call it first in main. name is that of the
 * program. */
void lwsbt_zephyr_begin(const char *name);

/* lwsbt_zephyr_dump writes a dump of the live blocks of malloc to the console. Not in an
 * interrupt. why is the reason, such as "request". Only with CONFIG_LWSBT_WRAP. */
void lwsbt_zephyr_dump(const char *why);

#ifdef __cplusplus
}
#endif

#endif
