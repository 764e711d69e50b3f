package record

import "embed"

// Preload holds preload/, the C sources of the library that btrecord preloads. Its
// capture functions are those of device/.
//
//go:embed preload/*.c preload/*.h
var Preload embed.FS
