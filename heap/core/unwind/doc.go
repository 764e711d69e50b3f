// Package unwind finds the call stack of a thread in a memory image, by unwind tables
// if the program has them, else by reading its code.
//
//	registers, memory, files ─Walk→ frames, each with how it was found
//
// The caller of a frame is searched in this order:
//
//  1. signal: the return address is the trampoline of a signal handler, the
//     registers are those that the kernel saved.
//  2. cfi: .debug_frame or .eh_frame.
//  3. exidx: .ARM.exidx and .ARM.extab.
//  4. prologue: follow the code from the start of the function to the current
//     address along all branches, to find the stack pointer, the return address
//     and the callee-saved registers.
//  5. epilogue: follow the code from the current address to a return. It needs no
//     function start.
//  6. scan: the next word of the stack that is an address after a call. A guess.
//
// Rules 4 and 5 are both tried. A caller that both find, or that fits the call instruction
// before the return address, is preferred. Only rule 6 can skip frames.
//
// golang.org/x/arch decodes x86. The tables in the folder tables decode the other machines:
// arm64asm does not export the offsets of loads and stores, riscv64asm takes 4 µs per
// instruction and files have millions, and armasm does not decode Thumb.
//
// No input is trusted: the package limits the numbers of instructions, entries and frames
// that it follows, and does not panic.
package unwind
