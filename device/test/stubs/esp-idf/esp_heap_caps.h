#pragma once
#include <stddef.h>
#include <stdint.h>
#define MALLOC_CAP_DEFAULT (1 << 12)
size_t heap_caps_get_total_size(uint32_t caps);
size_t heap_caps_get_free_size(uint32_t caps);
size_t heap_caps_get_largest_free_block(uint32_t caps);
size_t heap_caps_get_minimum_free_size(uint32_t caps);
void esp_heap_trace_alloc_hook(void *ptr, size_t size, uint32_t caps);
void esp_heap_trace_free_hook(void *ptr);
