// A Go program for the comparison with addr2line.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

type shape interface{ area() float64 }

type box struct{ w, h float64 }

func (b box) area() float64 { return b.w * b.h }

type list[T any] struct{ items []T }

func (l *list[T]) add(v T) { l.items = append(l.items, v) }

func main() {
	var l list[shape]
	for i := range len(os.Args) * 20 {
		l.add(box{float64(i), float64(i % 7)})
	}
	sort.Slice(l.items, func(i, j int) bool { return l.items[i].area() < l.items[j].area() })
	defer func() { fmt.Println(recover()) }()
	fmt.Println(strings.Repeat("x", len(l.items)), l.items[len(l.items)].area())
}
