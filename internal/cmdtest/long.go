package cmdtest

import (
	"os"
	"testing"
)

// Full reports whether LWSBT_FULL is set: tests that take long are run, too.
func Full() bool { return os.Getenv("LWSBT_FULL") != "" }

// All reports whether LWSBT_FULL is "all": the tests that take longest are run, too.
func All() bool { return os.Getenv("LWSBT_FULL") == "all" }

// Long skips a test that takes long, unless LWSBT_FULL is set.
func Long(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("a long test: LWSBT_FULL is not set")
	}
}
