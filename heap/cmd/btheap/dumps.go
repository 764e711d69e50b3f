package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/internal/cli"
)

func dumpsCommand() *cobra.Command {
	s := &session{}
	c := &cobra.Command{
		Use: "dumps [flags] [FILE...]", Short: "the dumps and boots in the logs",
		Long:    "dumps lists the dumps of the logs. The first column, from 1, is the number for\n--dump; Number is the one that the device gave the dump in ~h#begin.",
		Example: "btheap dumps device.log\nbtheap dumps --split '^== heap ==' device.log",
		RunE:    func(c *cobra.Command, files []string) error { return s.run(c, files, s.writeDumps) },
	}
	s.add(c, "Output", "json")
	s.add(c, "Input", append([]string{"dump"}, noteFlags...)...)
	s.add(c, "Logs of an unusual form", append(rareInput, "machine")...)
	return c
}

func seconds(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// writeDumps writes the list of the dumps.
func (s *session) writeDumps(w io.Writer) error {
	if err := s.read(listedDumps); err != nil {
		return err
	}
	if s.json {
		return writeJSON(w, " ", "dumps", object{"dumps": dumpsJSON(s.dumps)})
	}
	tb := cli.Table{Head: []string{"Dump", "Boot", "Number", "Time (s)", "Records", "Bytes", "Begins"}, Right: []bool{true, true, true, true, true, true}, Width: s.width()}
	number, _ := s.Selected()
	switch {
	case number == 0:
		number = 1
	case number < 0:
		number = s.reader.Summary().Dumps
	}
	for i, d := range s.dumps {
		time, where, records := "", d.File, cli.Number(d.Records)
		if d.Timed {
			time = seconds(d.Time.Seconds())
		}
		if d.Line > 0 {
			where = fmt.Sprintf("%s:%d", d.File, d.Line)
		}
		if d.Announced.HasRecords {
			records += " of " + cli.Number(d.Announced.Records)
		}
		tb.Rows = append(tb.Rows, []string{strconv.Itoa(number + i), strconv.Itoa(d.Boot), strconv.FormatInt(d.Number, 10), time, records, cli.Number(d.Total.Bytes), where})
	}
	return tb.Write(w)
}
