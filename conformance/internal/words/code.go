package words

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Code holds the words shift=N code=START+LEN,… LIST: code ranges, and addresses or frames.
type Code struct {
	Ranges callpath.Ranges
	List   []callpath.Frame // addresses are Escaped
}

// ParseAddresses reads code ranges and addresses.
func ParseAddresses(text string) (Code, error) { return parseCode(text, true) }

// ParseOffsets reads code ranges and frames.
func ParseOffsets(text string) (Code, error) { return parseCode(text, false) }

func parseCode(text string, addresses bool) (c Code, err error) {
	r := &reader{words: strings.Split(text, " ")}
	c.Ranges.Shift = uint8(r.number("shift", 4))
	for i, word := range strings.Split(r.take("code"), ",") {
		start, length, _ := strings.Cut(word, "+")
		one := &reader{words: []string{"start=" + start, "length=" + length}, err: r.err}
		c.Ranges.Add(codec.Range{Start: one.hex("start", 0), Length: one.hex("length", 0)}, strconv.Itoa(i))
		r.err = one.err
	}
	if r.err == nil && len(r.words) != 1 {
		r.err = fmt.Errorf("%q, expected shift=N code=START+LEN,… LIST", Clip(text))
	}
	if r.err != nil {
		return c, r.err
	}
	list := r.words[0]
	if list == "-" {
		return c, nil
	}
	if addresses {
		list = "@" + strings.ReplaceAll(list, ",", ",@")
	}
	c.List, err = parseFrames(list, ",")
	return c, err
}
