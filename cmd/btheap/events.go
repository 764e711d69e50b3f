package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	heap "github.com/lwsbt/lwsbt/profile"
)

func eventsCommand() *cobra.Command {
	s := &session{}
	return s.command(&cobra.Command{
		Use: "events [flags] [FILE...]", Short: "what a recording of allocations and frees tells",
		Long:    "events reports on the ~e# lines of a recording.",
		Example: "btheap events -e app app.rec",
	}, heap.ByLine, nil, func(w io.Writer) error { return fmt.Errorf("no events") })
}
