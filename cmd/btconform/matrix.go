package main

import (
	"fmt"
	"time"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/interop"
	"github.com/lwsbt/lwsbt/conformance/render"
	"github.com/spf13/pflag"
)

var matrixCommand = command{"matrix", "who reads what whom wrote", matrix}

const matrixUsage = `Usage:
  btconform matrix [VECTORS...]
  btconform matrix --record NAME VECTORS... -- TESTEE args...

Shows encoders by decoders: each file of recorded VECTORS (./ref-c/vectors
unless given) and our own searches, read by the codec of this module and by the
decoders that were recorded before, red where one fails. Exit code 1 if ours
does, or if a recording is missing or old.

With --record, TESTEE reads everything, and its recording is printed, to be put
into conformance/interop/recorded/NAME.tsv. PREFIX/btref is built by
ref-c/Makefile.

Example:
  btconform matrix --record s390x-gcc12-O2 ./ref-c/vectors \
    -- qemu-s390x ./btref serve > s390x-gcc12-O2.tsv
`

func matrix(s streams, args []string) int {
	flags := pflag.NewFlagSet("matrix", pflag.ContinueOnError)
	record := flags.String("record", "", "print how TESTEE reads it all, as decoder `NAME`")
	timeout := flags.Duration("timeout", 5*time.Second, "how long TESTEE may take to answer")
	if code, done := parseFlags(s, flags, args, matrixUsage); done {
		return code
	}
	paths, testee := flags.Args(), []string(nil)
	if dash := flags.ArgsLenAtDash(); dash >= 0 {
		paths, testee = paths[:dash], paths[dash:]
	}
	if (*record == "") != (len(testee) == 0) {
		return s.usage("expected both --record NAME and -- TESTEE, or neither")
	}
	if len(paths) == 0 {
		paths = []string{"./ref-c/vectors"}
	}
	set, err := conformance.Load(paths, s.in)
	if err != nil {
		return s.usage("%v", err)
	}
	encoders, err := interop.MatrixEncoders(set)
	if err != nil {
		return s.fail(err)
	}
	if *record != "" {
		d, err := interop.ReadMatrix(*record, encoders, conformance.Process(testee, *timeout))
		if err == nil {
			_, err = s.out.Write(interop.AppendMatrix(nil, d))
		}
		if err != nil {
			return s.fail(err)
		}
		return exitOK
	}
	return showMatrix(s, encoders)
}

func showMatrix(s streams, encoders []interop.MatrixEncoder) int {
	ours, err := interop.ReadMatrix("ours", encoders, conformance.Codec)
	if err != nil {
		return s.fail(err)
	}
	decoders, err := interop.RecordedMatrix()
	if err != nil {
		return s.fail(err)
	}
	decoders = append([]*interop.MatrixDecoder{ours}, decoders...)
	gaps, err := render.Matrix(s.out, encoders, decoders, wantsColour(s.out))
	if err != nil {
		return s.fail(err)
	}
	code := exitOK
	for _, c := range ours.Cells {
		if c.Fails() > 0 {
			fmt.Fprintf(s.err, "btconform: ours does not read %d of %s, such as %v\n", c.Fails(), c.Encoder, c.Failed)
			code = exitShort
		}
	}
	if gaps > 0 {
		fmt.Fprintf(s.err, "btconform: %d cells have no recording, or one of other blobs; see btconform matrix --help\n", gaps)
		code = exitShort
	}
	return code
}
