#include <zephyr/sys/sys_heap.h>
