package main

import (
	"embed"
	"reflect"
	"text/template"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/internal/cli"
)

//go:embed text
var textFiles embed.FS

// group is leaks with a word for them.
type group struct {
	Word string
	List []query.Leak
}

// texts are the answers that are not a table alone.
var texts = template.Must(template.New("").Funcs(template.FuncMap{
	"short": page.Short, "bytes": page.Bytes[float64], "rate": page.Rate, "hours": page.Hours, "percent": page.Percent, "share": page.Share, "date": page.Date,
	"site": page.Site, "print": cli.Printable,
	"half":   func(v float64) float64 { return v / 2 },
	"number": func(n any) string { return cli.Number(reflect.ValueOf(n).Int()) },
	"count":  func(n any, noun string) string { return cli.Count(reflect.ValueOf(n).Int(), noun) },
	"group":  func(word string, list []query.Leak) group { return group{word, list} },
}).ParseFS(textFiles, "text/*.txt"))
