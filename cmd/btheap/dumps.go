package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/table"
	"github.com/lwsbt/lwsbt/profile"
)

func dumpsCommand() *cobra.Command {
	s := &session{listed: true, adds: true, unit: profile.ByLine}
	c := s.command(&cobra.Command{
		Use: "dumps [flags] [FILE...]", Short: "the dumps and boots in the logs",
		Long:    "dumps lists the dumps of the logs. The first column, from 1, is the number for\n--dump; Number is the one that the device gave the dump in ~h#begin.",
		Example: "btheap dumps device.log\nbtheap dumps --split '^== heap ==' device.log",
	})
	s.report = func(w io.Writer) error {
		if s.json {
			return newDocument("dumps", s.dumps...).write(w)
		}
		tb := table.Table{Head: []string{"Dump", "Boot", "Number", "Time (s)", "Records", "Bytes", "Begins"}, Right: []bool{true, true, true, true, true, true}, Width: s.width()}
		first, _ := s.Selected()
		switch {
		case first == 0:
			first = 1
		case first < 0 && s.reader != nil:
			first = s.reader.Summary().Dumps
		case first < 0:
			first = len(s.files)
		}
		for i, d := range s.dumps {
			time, where, records := "", d.File, cli.Number(d.Records)
			if d.Timed {
				time = strconv.FormatFloat(d.Time.Seconds(), 'f', 3, 64)
			}
			if d.Line > 0 {
				where = fmt.Sprintf("%s:%d", d.File, d.Line)
			}
			if d.Announced.HasRecords {
				records += " of " + cli.Number(d.Announced.Records)
			}
			tb.Rows = append(tb.Rows, []string{strconv.Itoa(first + i), strconv.Itoa(d.Boot), strconv.FormatInt(d.Number, 10), time, records, cli.Number(d.Total.Bytes), where})
		}
		return tb.Write(w)
	}
	s.add(c, "Symbols", "machine")
	s.add(c, "Input", inputFlags...)
	s.add(c, "Output", "json", "output")
	return c
}
