/*
 * What slots.c and process.c know of each other.
 */
#ifndef LWSBT_PROCESS_H
#define LWSBT_PROCESS_H

#include "preload.h"

bool slots_start(const struct ring_header *r);
/* ring_open opens the file; -1: it cannot be reached. */
int ring_open(void);
/* image_tell puts the record of the process into its first ring. */
/* child_start begins recording in a forked child, if it is to be recorded. */
void child_start(void);
void image_tell(struct own *o);

#endif
