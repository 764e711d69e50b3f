//go:build linux && !amd64 && !arm64

package record

const haveCycles = false

func cycles() uint64 { panic("no cycle counter on this machine") }
