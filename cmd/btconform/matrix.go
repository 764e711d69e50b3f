package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lwsbt/lwsbt/cmd/btconform/internal/interop"
	"github.com/lwsbt/lwsbt/cmd/btconform/internal/render"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/spf13/cobra"
)

func newMatrix() *cobra.Command {
	var record string
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "matrix [--record NAME] [VECTORS...] [-- TESTEE args...]",
		Short: "show the encoder × decoder matrix",
		Long: `matrix shows which decoder reads the blobs of which encoder. Encoders are the
files of recorded VECTORS (default ./ref-c/vectors) and the searches of this
module; decoders are the codec of this module and those recorded before.
Failures are red. matrix exits with 1 if the codec of this module fails, or if a
recording is missing or out of date.

With --record, TESTEE decodes the blobs of all encoders, and matrix prints a
recording, to be kept as recorded/NAME.tsv of package internal/interop. TESTEE
is btref, built by ref-c/Makefile.`,
		Example: `
btconform matrix
btconform matrix --record s390x-gcc12-O2 ./ref-c/vectors \
  -- qemu-s390x ./btref serve > s390x-gcc12-O2.tsv`,
		RunE: func(c *cobra.Command, args []string) error { return matrix(c, args, record, timeout) },
	}
	c.Flags().StringVar(&record, "record", "", "print what TESTEE decodes, as a recording of decoder `NAME`")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "wait up to `TIME` for each answer of TESTEE")
	return c
}

func matrix(c *cobra.Command, args []string, record string, timeout time.Duration) error {
	paths, testee, _ := testeeOf(c, args)
	switch {
	case (record == "") != (len(testee) == 0):
		return cli.BadArgsf("expected both --record NAME and -- TESTEE, or neither")
	case len(testee) > 0 && testee[0] == "":
		return errNoTestee
	case len(testee) == 0 && c.Flags().Changed("timeout"):
		return cli.BadArgsf("--timeout has no effect without a program, expected --record NAME and -- TESTEE")
	case timeout <= 0:
		return cli.BadArgsf("--timeout %v, expected more than 0", timeout)
	case len(paths) == 0:
		paths = []string{"./ref-c/vectors"}
	}
	set, err := loadVectors(c, paths)
	if err != nil {
		return err
	}
	encoders, err := interop.MatrixEncoders(set)
	if err != nil {
		return failed(err)
	}
	ctx, stop := cli.Interruptible(c.Context())
	defer stop()
	if record == "" {
		return showMatrix(ctx, c, encoders)
	}
	d, err := interop.ReadMatrix(ctx, record, encoders, conformance.Process(testee, timeout))
	if err == nil {
		_, err = c.OutOrStdout().Write(interop.AppendMatrix(nil, d))
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

func showMatrix(ctx context.Context, c *cobra.Command, encoders []interop.MatrixEncoder) error {
	ours, err := interop.ReadMatrix(ctx, "ours", encoders, conformance.Codec)
	if err != nil {
		return failed(err)
	}
	decoders, err := interop.RecordedMatrix()
	if err != nil {
		return failed(err)
	}
	decoders = append([]*interop.MatrixDecoder{ours}, decoders...)
	out := c.OutOrStdout()
	gaps, err := render.Matrix(out, encoders, decoders, cli.Color("auto", out))
	if err != nil {
		return failed(err)
	}
	short := false
	for _, cell := range ours.Cells {
		if cell.Fails() > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "btconform: the codec of this module cannot decode %d blobs of %s, such as %v\n", cell.Fails(), cell.Encoder, cell.Failed)
			short = true
		}
	}
	if gaps > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "btconform: %d cells have no recording, or one of other blobs; see btconform matrix --help\n", gaps)
		short = true
	}
	if short {
		return cli.Exit(cli.Short)
	}
	return nil
}
