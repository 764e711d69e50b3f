package record_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// programs is where programs are built, once for all tests.
var programs string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if programs, err = os.MkdirTemp("", "record"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(programs)
	os.Exit(code)
}
