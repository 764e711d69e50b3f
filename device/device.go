// Package device holds the sources of the C library for firmware, lwsbt.h and what
// is behind it, for Go programs that compile them for their targets. See
// docs/device.md.
package device

import "embed"

// Sources holds include/ and src/.
//
//go:embed include/*.h include/lwsbt/*.h src/*.c src/*.h
var Sources embed.FS
