#pragma once
#include <stddef.h>
#include <stdint.h>
enum heap_event_types { HEAP_EVT_UNKNOWN, HEAP_RESIZE, HEAP_ALLOC, HEAP_FREE };
typedef void (*heap_listener_alloc_cb_t)(uintptr_t heap_id, void *mem, size_t bytes);
typedef void (*heap_listener_free_cb_t)(uintptr_t heap_id, void *mem, size_t bytes);
struct heap_listener {
	void *node;
	uintptr_t heap_id;
	enum heap_event_types event;
	union {
		heap_listener_alloc_cb_t alloc_cb;
		heap_listener_free_cb_t free_cb;
	};
};
void heap_listener_register(struct heap_listener *listener);
#define HEAP_ID_FROM_POINTER(p) ((uintptr_t)(p))
#define HEAP_LISTENER_ALLOC_DEFINE(name, id, cb) struct heap_listener name = { .heap_id = id, .event = HEAP_ALLOC, { .alloc_cb = cb } }
#define HEAP_LISTENER_FREE_DEFINE(name, id, cb) struct heap_listener name = { .heap_id = id, .event = HEAP_FREE, { .free_cb = cb } }
