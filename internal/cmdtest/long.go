package cmdtest

import (
	"os"
	"testing"
)

// Full reports whether LWSBT_FULL is set, which enables long tests.
func Full() bool { return os.Getenv("LWSBT_FULL") != "" }

// All reports whether LWSBT_FULL is "all", which also enables the longest tests.
func All() bool { return os.Getenv("LWSBT_FULL") == "all" }

// Long skips a long test unless LWSBT_FULL is set.
func Long(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("a long test: LWSBT_FULL is not set")
	}
}
