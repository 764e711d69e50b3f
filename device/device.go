// Package device holds the sources of the C library for firmware, lwsbt.h and what
// is behind it, for Go programs that compile them for their targets. See
// docs/device.md.
package device

import "embed"

// Sources holds include/, src/, and preload/, the library that btrecord
// preloads.
//
//go:embed include/*.h include/lwsbt/*.h src/*.c src/*.h preload/*.c preload/*.h
var Sources embed.FS
