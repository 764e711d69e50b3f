/* The canary of the heap, and the regions of heap_5. */
#include "FreeRTOS.h"

void vApplicationGetRandomHeapCanary(uintptr_t *canary) { *canary = (uintptr_t)0x5bd1e995a5a5c3c3u; }

#ifdef HEAP_5
static uint8_t one[9001], two[30000];
void setup(void)
{
	static const HeapRegion_t low_first[] = { { one, sizeof one }, { two, sizeof two }, { NULL, 0 } };
	static const HeapRegion_t high_first[] = { { two, sizeof two }, { one, sizeof one }, { NULL, 0 } };

	vPortDefineHeapRegions((uintptr_t)one < (uintptr_t)two ? low_first : high_first);
}
#else
void setup(void) {}
#endif
