//go:build !unix

package cmdtest

import "time"

// ProcessorTime returns 0: it is not measured here.
func ProcessorTime() time.Duration { return 0 }
