/*
 * lwsbt_esp_idf.h: the library on ESP-IDF. See README.md.
 */
#ifndef LWSBT_ESP_IDF_H
#define LWSBT_ESP_IDF_H

#include "lwsbt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* lwsbt_esp_idf_begin writes the ~h#boot line. Call it first in app_main. name is that of
 * the program. */
void lwsbt_esp_idf_begin(const char *name);

/* lwsbt_esp_idf_dump writes a dump of the live blocks, and what the heap has free, to the
 * console. Not in an interrupt. why is the reason, such as "request". Only with
 * CONFIG_LWSBT_WRAP. */
void lwsbt_esp_idf_dump(const char *why);

#ifdef __cplusplus
}
#endif

#endif
