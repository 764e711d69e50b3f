// Package unwind finds the call stack of a thread of a memory image: by unwind
// tables where the program has them, by reading its code where it has none.
//
//	registers, memory, files ─Walk→ frames, each with how it was found
//
// A frame's caller is looked for in this order:
//
//  1. signal: the return address is the trampoline of a signal handler, the
//     registers are those the kernel saved.
//  2. cfi: .debug_frame or .eh_frame.
//  3. exidx: .ARM.exidx and .ARM.extab.
//  4. prologue: the code from the function's start to here is followed along all
//     branches, to learn where it put the stack pointer, the return address and
//     the registers that it must preserve.
//  5. epilogue: the code from here to a return is followed, undoing what the
//     function did. It needs no function start.
//  6. frame-pointer: the saved frame pointer and the return address beside it.
//  7. scan: the next word of the stack that follows a call. A guess.
//
// 4 and 5 are both tried; what both find, or what fits the call instruction before the
// return address, wins. Only 6 and 7 can skip frames.
//
// golang.org/x/arch decodes x86 and PowerPC. The others are decoded here: arm64asm does not export
// the offsets of loads and stores, riscv64asm takes 4 µs per instruction where a file has
// millions, and armasm has no Thumb code.
//
// All input is taken to be hostile: instructions, entries and frames followed are
// bounded, and nothing panics.
package unwind
