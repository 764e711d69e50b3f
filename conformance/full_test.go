package conformance

import "os"

// full reports whether the slow forms of tests are asked for.
func full() bool { return os.Getenv("LWSBT_FULL") != "" }
