//go:build linux && (amd64 || arm64)

package record

const haveCycles = true

// cycles returns the cycle counter of the machine. No memory access after it is done
// before it is read.
func cycles() uint64
