package forms

import (
	"bytes"
	"embed"
	"regexp"
	"strings"
	"sync"
)

// tables are what is known of systems: files of columns, which tabs separate. "-" is nothing.
//
//go:embed tables
var tables embed.FS

// rows returns the rows of a table.
func rows(table string) (list [][]string) {
	text, err := tables.ReadFile("tables/" + table + ".tsv")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i := range row {
			if row[i] == "-" {
				row[i] = ""
			}
		}
		list = append(list, row)
	}
	return list
}

// expression is an expression of a table. It is compiled when it is first used: a log has lines of few systems.
type expression func() *regexp.Regexp

func compiled(text string) expression {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// index finds texts in lines, by their first two bytes.
type index struct {
	heads [1 << 16]uint16 // numbers of entries, from 1
	list  []indexed
}

// indexed is a text, and what it is of.
type indexed struct {
	text string
	of   int
	next uint16 // entry with the same first two bytes
}

// add adds a text. One that was added later is found first.
func (x *index) add(text string, of int) {
	head := &x.heads[uint16(text[0])<<8|uint16(text[1])]
	x.list = append(x.list, indexed{text, of, *head})
	*head = uint16(len(x.list))
}

// find calls found for each text in a line, until it returns false.
func (x *index) find(line []byte, found func(of int) bool) {
	for i := 0; i+1 < len(line); i++ {
		for k := x.heads[uint16(line[i])<<8|uint16(line[i+1])]; k > 0; k = x.list[k-1].next {
			if e := &x.list[k-1]; bytes.HasPrefix(line[i:], []byte(e.text)) && !found(e.of) {
				return
			}
		}
	}
}
