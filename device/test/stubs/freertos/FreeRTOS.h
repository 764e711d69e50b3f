#pragma once
#include <stddef.h>
#include <stdint.h>
#include "FreeRTOSConfig.h"
typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t, StackType_t;
typedef struct { size_t xAvailableHeapSpaceInBytes, xSizeOfLargestFreeBlockInBytes, xSizeOfSmallestFreeBlockInBytes,
	xNumberOfFreeBlocks, xMinimumEverFreeBytesRemaining, xNumberOfSuccessfulAllocations, xNumberOfSuccessfulFrees; } HeapStats_t;
typedef struct { uint8_t *pucStartAddress; size_t xSizeInBytes; } HeapRegion_t;
#define pdFALSE 0
#define pdTRUE 1
BaseType_t xPortIsInsideInterrupt(void);
void *pvPortMalloc(size_t size);
void vPortFree(void *p);
void vPortGetHeapStats(HeapStats_t *s);
void vPortDefineHeapRegions(const HeapRegion_t *regions);
void vApplicationMallocFailedHook(void);
