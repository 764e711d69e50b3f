package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// input is the form of the requests for an operation.
type input interface {
	line(r *Request) string                 // the words of BTP/1 after the ID
	parse(r *Request, args []string) error  // the reverse of line
	request(v *Vector) Request              // with the input alone
	validate(v *Vector, o *operation) error // an error names the key that the vector lacks
}

// need returns an error if the vector lacks a key.
func (o *operation) need(has bool, key string) error {
	if has {
		return nil
	}
	return fmt.Errorf("op %s without %s, expected it", o.Op, key)
}

// bytesInput is a blob, memory, bits or a text.
type bytesInput struct {
	text    bool
	word    bool // requests have the word size
	reading bool // requests have the mode, strict or lenient
}

var readings = []string{"strict", "lenient"}

func (in bytesInput) line(r *Request) string {
	out := words.Hex(r.Data)
	if in.reading {
		out += " reading=" + readings[b2i(r.Lenient)]
	}
	if in.word {
		out += " word=" + strconv.Itoa(r.word())
	}
	return out
}

func (in bytesInput) parse(r *Request, args []string) (err error) {
	if len(args) == 0 {
		return errors.New("nothing, expected bytes in hex")
	}
	if r.Data, err = words.ParseHex(args[0]); err != nil {
		return err
	}
	for _, word := range args[1:] {
		switch {
		case word == "word=32" && in.word:
			r.Word = 32
		case word == "word=64" && in.word:
			r.Word = 64
		case word == "reading=strict" && in.reading:
			r.Lenient = false
		case word == "reading=lenient" && in.reading:
			r.Lenient = true
		default:
			return fmt.Errorf("%q, expected word=32, word=64 or, of mline, reading=strict or reading=lenient", clip(word))
		}
	}
	return nil
}

func (in bytesInput) request(v *Vector) Request {
	switch {
	case in.text:
		return Request{Data: []byte(*v.Text)}
	}
	return Request{Data: v.Blob}
}

func (in bytesInput) validate(v *Vector, o *operation) error {
	err := o.need(v.Blob != nil, "hex or bits")
	if in.text {
		err = o.need(v.Text != nil, "text")
	}
	if err != nil {
		return err
	}
	return o.need(v.Want != nil, "want")
}

// stackInput is a stack to encode for a machine.
type stackInput struct{}

func (in stackInput) line(r *Request) string {
	return "machine=" + r.Machine.String() + " search=" + r.Search.String() + " " + r.In.String()
}

func (in stackInput) parse(r *Request, args []string) error {
	at := slices.IndexFunc(args, func(w string) bool { return strings.HasPrefix(w, "size=") })
	if at < 0 {
		return errors.New("no size, expected machine=M [search=S] size=N pcs=LIST")
	}
	machine := false
	for _, word := range args[:at] {
		err := fmt.Errorf("%q, expected machine=M or search=S", clip(word))
		if text, ok := strings.CutPrefix(word, "machine="); ok {
			r.Machine, err = codec.ParseMachine(text)
			machine = true
		} else if text, ok := strings.CutPrefix(word, "search="); ok {
			r.Search, err = codec.ParseSearch(text)
		}
		if err != nil {
			return err
		}
	}
	if !machine {
		return errors.New("no machine, expected machine=M")
	}
	return r.parseValue(args[at:])
}

func (r *Request) parseValue(args []string) error {
	v, err := parseValue(strings.Join(args, " "))
	r.In = &v
	return err
}

func (in stackInput) request(v *Vector) Request { return Request{In: v.In, Data: v.Blob} }

func (in stackInput) validate(v *Vector, o *operation) error {
	err := errors.Join(o.need(v.In != nil, "in"), o.need(v.HasMachine, "machine"))
	if v.Rejects() {
		return err
	}
	return errors.Join(err, o.need(v.Blob != nil, "hex or bits"))
}

// offersStack reports whether the testee encodes so.
func offersStack(h *Hello, r *Request) bool {
	return slices.Contains(h.Machines, r.Machine) && (len(h.Searches) == 0 || slices.Contains(h.Searches, r.Search))
}

// formatInput is a stack, a blob or a header to write as text.
type formatInput struct{}

func (formatInput) line(r *Request) string {
	switch {
	case r.In != nil:
		return r.In.String()
	case r.Words != "":
		return "head " + r.Words
	case r.Event:
		return "event=" + words.Hex(r.Data)
	}
	return "blob=" + words.Hex(r.Data)
}

func (formatInput) parse(r *Request, args []string) (err error) {
	switch {
	case len(args) > 1 && args[0] == "head":
		r.Words = strings.Join(args[1:], " ")
		return nil
	case len(args) != 1:
		return r.parseValue(args)
	}
	text, ok := strings.CutPrefix(args[0], "blob=")
	if !ok {
		text, r.Event = strings.CutPrefix(args[0], "event=")
	}
	if !ok && !r.Event {
		return fmt.Errorf("%q, expected blob=HEX, event=HEX, head and words, or size=N pcs=LIST", clip(args[0]))
	}
	r.Data, err = words.ParseHex(text)
	return err
}

func (formatInput) request(v *Vector) Request {
	r := Request{In: v.In, Words: v.Words, Data: v.Blob}
	if v.Text != nil && v.In == nil && v.Words == "" {
		r.Event = strings.HasPrefix(*v.Text, "~e#")
		if strings.HasPrefix(*v.Text, "~h#") {
			r.Words = v.Want.Words
		}
	}
	return r
}

func (formatInput) validate(v *Vector, o *operation) error {
	switch {
	case v.Words == "" && v.In == nil && v.Text != nil && strings.HasPrefix(*v.Text, "~h#"):
		return o.need(v.Want != nil && v.Want.Words != "", "want head")
	case v.Words == "" && v.In == nil:
		return errors.Join(o.need(v.Blob != nil, "in, hex or bits"), o.need(v.Line != "" || v.Text != nil, "line or text"))
	}
	return o.need(v.Text != nil || v.Rejects(), "text, or want: reject")
}

// offersText reports whether the testee reads such text, too.
func offersText(h *Hello, r *Request) bool {
	switch {
	case r.Words != "":
		return slices.Contains(h.Ops, opHline)
	case r.Event:
		return slices.Contains(h.Ops, opEline)
	}
	return true
}

// wordsInput is words of Part III.
type wordsInput struct {
	of     string // the word before them in `in:`
	orWant bool   // without `in:`, `want:` has them
	before string // what goes before the words of `want:`
	check  func(words string) error
}

func (in wordsInput) line(r *Request) string { return r.Words }

func (in wordsInput) parse(r *Request, args []string) error {
	r.Words = strings.Join(args, " ")
	return in.check(r.Words)
}

func (in wordsInput) request(v *Vector) Request { return Request{Words: in.given(v), Data: v.Blob} }

// given returns the words of `in:` or, of a writer without `in:`, of `want:`.
func (in wordsInput) given(v *Vector) string {
	switch {
	case v.WordsOf == in.of:
		return v.Words
	case v.Want != nil && in.orWant:
		return in.before + v.Want.Words
	}
	return ""
}

func (in wordsInput) validate(v *Vector, o *operation) error {
	given := in.given(v)
	if given == "" {
		return fmt.Errorf("op %s without in: %s, expected it", o.Op, in.of)
	}
	if err := in.check(given); err != nil {
		return err
	}
	if o.says == nil {
		return o.need(v.Want != nil, "want")
	}
	if v.Rejects() || v.Text == nil {
		return nil
	}
	if why := o.says(given, *v.Text); why != "" {
		return fmt.Errorf("text: %s, expected what in or want says", why)
	}
	return nil
}

// inWords returns the words that `in:` may begin with, except for a stack.
func inWords() []string {
	list := []string{"head"}
	for _, o := range operations {
		if in, ok := o.in.(wordsInput); ok {
			list = append(list, in.of)
		}
	}
	return list
}

// checks returns a function that returns only the error of parse.
func checks[T any](parse func(text string) (T, error)) func(text string) error {
	return func(text string) error {
		_, err := parse(text)
		return err
	}
}
