/*
 * lwsbt/device.h: writes the ~h# lines of a device, and the notes in its ELF file. See lwsbt.h.
 */
#ifndef LWSBT_INCLUDE_DEVICE_H
#define LWSBT_INCLUDE_DEVICE_H

#include "paths.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values of the boot line. NULL and 0 leave out a key. [BT-HEAD-6] */
struct lwsbt_device {
	const char *prog;		/* name of the program */
	const char *dev;		/* name of the device, such as a serial number */
	const char *fw;			/* version of the firmware */
	const void *build;		/* the ELF file's .note.gnu.build-id, 4-byte aligned */
	struct lwsbt_code code;
	struct lwsbt_range heap;
	uint32_t text;			/* hash of the code, for a program without build ID [BT-HEAD-7] */
};

/* lwsbt_head_device writes the ~h#boot line of a device; lwsbt_head_boot writes that of a Linux program. */
void lwsbt_head_device(const struct lwsbt_out *out, const struct lwsbt_device *d);

/* Numbers that an allocator reports, in bytes. */
struct lwsbt_numbers {
	size_t size;		/* size of the heap */
	size_t free, largest;	/* free now; the largest free block, 0 if it is not known */
	size_t least;		/* the least that was ever free, 0 if it is not known */
	const char *name;	/* of the heap, if the device has several; or NULL */
};

/* lwsbt_head_heap writes a ~h#heap line. time is in microseconds since boot, or LWSBT_NONE. */
void lwsbt_head_heap(const struct lwsbt_out *out, const struct lwsbt_numbers *n, uint64_t time);

/* lwsbt_head_thread writes a ~h#thread line: the name of a thread by the number that the port gives it. */
void lwsbt_head_thread(const struct lwsbt_out *out, uintptr_t thread, const char *name);

/*
 * LWSBT_NOTE_CODE(shift, start, end) and LWSBT_NOTE_HEAP(start, end) store the address ranges of
 * code and heap in the ELF file, for readers. start and end are symbols of the linker script.
 * LWSBT_NOTE_TEXT("1.2.3") stores the version. Use each at file level, once in a program. The section
 * is not loaded, so it takes no flash and needs no line in the linker script. [BT-NOTE-1]
 *
 *   | 6 | size of desc | type | "lwsbt" | desc ... |
 */
#if UINTPTR_MAX > 0xffffffff
#define LWSBT_NOTE_ADDRESS ".8byte "
#else
#define LWSBT_NOTE_ADDRESS ".4byte "
#endif
#define LWSBT_NOTE_(type_, desc_) \
	__asm__(".pushsection .note.lwsbt,\"\",%note\n\t.balign 4\n" \
		"\t.4byte 6, 72f - 71f, " type_ "\n\t.ascii \"lwsbt\\0\\0\\0\"\n" \
		"71:\t" desc_ "\n72:\t.balign 4\n\t.popsection")
#define LWSBT_NOTE_RANGE_(start_, end_) LWSBT_NOTE_ADDRESS #start_ ", " #end_
#define LWSBT_NOTE_CODE_(shift_, start_, end_) \
	LWSBT_NOTE_("1", ".4byte " #shift_ ", 1\n\t" LWSBT_NOTE_RANGE_(start_, end_))
#define LWSBT_NOTE_CODE(shift_, start_, end_) LWSBT_NOTE_CODE_(shift_, start_, end_)
#define LWSBT_NOTE_TEXT_(text_) LWSBT_NOTE_("2", ".ascii " #text_)
#define LWSBT_NOTE_TEXT(text_) LWSBT_NOTE_TEXT_(text_)
#define LWSBT_NOTE_HEAP_(start_, end_) LWSBT_NOTE_("3", LWSBT_NOTE_RANGE_(start_, end_))
#define LWSBT_NOTE_HEAP(start_, end_) LWSBT_NOTE_HEAP_(start_, end_)

#ifdef __cplusplus
}
#endif

#endif
