//go:build linux && !amd64 && !arm64

package recorder

const haveCycles = false

func cycles() uint64 { panic("no cycle counter on this machine") }
