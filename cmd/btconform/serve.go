package main

import (
	"errors"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/spf13/pflag"
)

var serveCommand = command{"serve", "the codec as a testee: BTP/1 on stdin and stdout", serve}

const serveUsage = `Usage:
  btconform serve

Answers BTP/1 on stdin with the codec of this module, all operations.

Example:
  printf 'hello btp=1\ndecode 1 00100004 word=64\n' | btconform serve
`

func serve(s streams, args []string) int {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	if code, done := parseFlags(s, flags, args, serveUsage); done {
		return code
	}
	if flags.NArg() > 0 {
		return s.usage("serve %s, expected no argument", flags.Arg(0))
	}
	testee, err := conformance.Codec()
	if err != nil {
		return s.fail(err)
	}
	err = conformance.Serve(testee, s.in, s.out)
	var bad *conformance.ParseError
	switch {
	case err == nil, closedPipe(err):
		return exitOK
	case errors.As(err, &bad):
		return s.usage("serve: %v", bad)
	}
	return s.fail(err)
}
