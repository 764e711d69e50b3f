package mutant

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// words is an answer in words.
func words(format string, args ...any) conformance.Answer {
	return conformance.Answer{Outcome: conformance.OK, Words: fmt.Sprintf(format, args...)}
}

// bare reads depth and frames alone. (BT-BARE-1, BT-BARE-2)
func (b impl) bare(data []byte) (conformance.Answer, error) {
	end := 8 * len(data)
	if b.has("bare-length") {
		end = max(0, end-16)
	}
	read := func(depth int) (*mutantReader, error) {
		r := &mutantReader{impl: b, data: data, end: end, word: 64}
		said, err := r.field(5, depthField)
		if depth < 0 {
			depth = int(said)
		}
		for n := 0; n < depth && err == nil; n++ {
			err = r.frame()
		}
		return r, err
	}
	r, err := read(-1)
	if err == nil && len(r.pcs) == 0 && !b.has("bare-depth-0-is-0") {
		if full, err := read(32); err == nil {
			r = full
		}
	}
	if err != nil {
		return conformance.Answer{}, err
	}
	bits := r.pos
	if b.has("bare-whole-bytes") {
		bits = (bits + 7) / 8 * 8
	}
	return words("bits=%d pcs=%s", bits, pcsText(r.pcs)), nil
}

func pcsText(pcs []uint64) string {
	_, text, _ := strings.Cut(conformance.Value{PCs: pcs}.String(), "pcs=")
	return text
}

// marks are what values show of their encoder. (BT-LOSS-2, BT-LOSS-3)
func (b impl) marks(blob []byte) (conformance.Answer, error) {
	// The fields of a plain reader; what is wrong with a mutant of marks is in them.
	lists := map[string][]string{}
	var lossy []bool
	note := func(name, frame string) { lists[name] = append(lists[name], frame) }
	judge := func(v uint64, count int) (wide, wrap, zero bool) {
		limit := 32
		if b.has("marks-from-32") {
			limit = 31
		}
		if count <= limit {
			return
		}
		bit31 := v>>31&1 == 1 || b.has("marks-without-bit-31")
		wrap = bit31 && v>>32 == v&(1<<max(0, count-32)-1)
		zero = bit31 && v>>32 == 0
		if b.has("marks-one-wins") && wrap {
			zero = false
		}
		return true, wrap, zero
	}
	if _, err := b.decode(blob, 64); err != nil {
		return conformance.Answer{}, err
	}
	r, counts, bases, values, err := b.valuesOf(blob)
	if err != nil {
		return conformance.Answer{}, err
	}
	for n := range r.pcs {
		frame := strconv.Itoa(n)
		wide, wrap, zero := judge(values[n], counts[n])
		if wide {
			note("wide", frame)
		}
		if wrap {
			note("wrap", frame)
		}
		if zero {
			note("zero", frame)
		}
		base := bases[n]
		if b.has("marks-from-frame-before") && base >= 0 {
			base = n - 1
		}
		is := wrap || zero || base >= 0 && lossy[base] && !b.has("marks-not-inherited") &&
			!(wide && b.has("marks-wide-not-inherited"))
		lossy = append(lossy, is)
		if is {
			note("lossy", frame)
		}
	}
	if _, wrap, zero := judge(r.size, counts[len(r.pcs)]); (wrap || zero) && !b.has("marks-not-of-size") {
		note("lossy", "size")
	}
	text := func(name string) string {
		if len(lists[name]) == 0 {
			return "-"
		}
		return strings.Join(lists[name], ",")
	}
	return words("wide=%s wrap=%s zero=%s lossy=%s", text("wide"), text("wrap"), text("zero"), text("lossy")), nil
}

// valuesOf reads a blob once more, for each frame's own value, its count and its
// base (-1 of a literal); the size's count is the last.
func (b impl) valuesOf(blob []byte) (r *mutantReader, counts, bases []int, values []uint64, err error) {
	fields, err := b.framed(blob)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	if r, err = b.readAnyDepth(fields, 8*len(fields), 64); err != nil {
		return nil, nil, nil, nil, err
	}
	w := &mutantReader{impl: impl{}, data: fields, end: 8 * len(fields), word: 64}
	w.field(5, depthField)
	for n := range r.pcs {
		kind, _ := w.field(1, headField)
		base := -1
		if kind == 1 {
			back, _ := w.field(3, headField)
			base = n - 1 - int(back)
			w.field(1, headField)
		}
		count, _ := w.count()
		v, _ := w.field(count, valueField)
		counts, bases, values = append(counts, count), append(bases, base), append(values, v)
	}
	count, _ := w.count()
	return r, append(counts, count), bases, values, nil
}

var leadIns = regexp.MustCompile(`~[mbeh]#`)

// scan lists the records in a text. (BT-TEXT-3)
func (b impl) scan(text string) conformance.Answer {
	run := regexp.MustCompile(`^[A-Za-z0-9+/_-]*`)
	if b.has("scan-standard-alphabet") {
		run = regexp.MustCompile(`^[A-Za-z0-9+/]*`)
	}
	var found []string
	for at := 0; ; {
		m := leadIns.FindStringIndex(text[at:])
		if m == nil || b.has("scan-first-only") && len(found) == 1 || b.has("scan-at-beginning-only") && at+m[0] > 0 {
			break
		}
		start := at + m[0]
		rest := text[start:]
		n := 3
		switch rest[1] {
		case 'b':
			if n = b.decodedRecord(rest); n == 0 {
				at = start + 3
				continue
			}
		case 'h':
			if n = b.headerRecord(rest); n == 0 {
				at = start + 3
				continue
			}
		default:
			chars := len(run.FindString(rest[3:]))
			n += chars
			pads := []int{0, 0, 2, 1}[chars%4]
			switch {
			case b.has("scan-ends-before-padding"):
				pads = 0
			case b.has("scan-takes-all-padding"):
				pads = len(rest)
			}
			for i := 0; i < pads && n < len(rest) && rest[n] == '='; i++ {
				n++
			}
		}
		found = append(found, fmt.Sprintf("%c@%d+%d", rest[1], start, n))
		at = start + n
	}
	if len(found) == 0 {
		return words("-")
	}
	return words("%s", strings.Join(found, " "))
}

var (
	scanSize    = regexp.MustCompile(`^~b#size: 0*([0-9]+),`)
	scanAddress = regexp.MustCompile(`^ 0x0*([0-9a-fA-F]+)`)
)

// decodedRecord returns how many bytes at the beginning of text are a ~b# record,
// 0 if there is none. (BT-TEXT-3)
func (b impl) decodedRecord(text string) int {
	m := scanSize.FindStringSubmatch(text)
	if m == nil {
		if b.has("scan-decoded-of-any-form") {
			return 3
		}
		return 0
	}
	if _, err := strconv.ParseUint(m[1], 10, 64); err != nil && !b.has("scan-decoded-any-size") {
		return 0
	}
	n := len(m[0])
	for frames := 0; frames < 32 || b.has("scan-decoded-33-addresses"); frames++ {
		m := scanAddress.FindStringSubmatch(text[n:])
		if m == nil {
			break
		}
		if _, err := strconv.ParseUint(m[1], 16, 64); err != nil {
			if b.has("scan-decoded-cuts-numbers") {
				n += len(m[0]) - len(m[1]) + 16
			}
			if !b.has("scan-decoded-any-address") {
				break
			}
		}
		n += len(m[0])
	}
	if b.has("scan-decoded-takes-spaces") {
		n += len(text[n:]) - len(strings.TrimLeft(text[n:], " "))
	}
	return n
}

// headerRecord returns how many bytes at the beginning of text are a ~h# record, 0
// if there is none. (BT-HEAD-1)
func (b impl) headerRecord(text string) int {
	ends := "\r\n\x1b"
	switch {
	case b.has("scan-header-takes-escape"):
		ends = "\r\n"
	case b.has("scan-header-takes-carriage-return"):
		ends = "\n\x1b"
	}
	if end := strings.IndexAny(text, ends); end >= 0 {
		text = text[:end]
	}
	if !b.has("scan-header-takes-spaces") {
		text = strings.TrimRight(text, " \t")
	}
	if _, err := b.hline(text); err != nil && b.has("scan-header-well-formed-only") {
		return 0
	}
	return len(text)
}

// user reads a blob with user fields. (BT-UF-1, BT-UF-2, BT-UF-3, BT-EVT-2, BT-EVT-3)
func (b impl) user(blob []byte, word int, event bool) (conformance.Value, error) {
	if _, err := b.decode(blob, word); err != nil && (!event || len(blob) < 2) {
		return conformance.Value{}, err
	}
	fields, err := b.framed(blob)
	if err != nil {
		return conformance.Value{}, err
	}
	var r *mutantReader
	if event && !b.has("event-depth-0-as-32") {
		depth := 0
		if len(fields) > 0 {
			depth = int(fields[0] >> 3)
		}
		r, err = b.read(fields, 8*len(fields), depth, word)
	} else {
		r, err = b.readAnyDepth(fields, 8*len(fields), word)
	}
	if err != nil {
		return conformance.Value{}, err
	}
	v := conformance.Value{Size: r.size, PCs: r.pcs}
	if !b.has("user-at-word") {
		r.word = 64
	}
	for r.end-r.pos >= 5 {
		tag, _ := r.field(4, headField)
		switch {
		case tag == 0 && b.has("user-goes-on-behind-0"):
			continue
		case tag == 0:
			return v, b.checkEvent(&v, event)
		}
		value, err := r.value()
		if err != nil && b.has("user-cut-dropped") {
			break
		}
		if err == errCount && b.has("user-at-word") {
			return conformance.Value{}, err
		}
		if err != nil {
			return conformance.Value{}, errTruncated
		}
		v.User = b.addUser(v.User, uint8(tag), value)
		if tag > 6 && b.has("user-unknown-ends") {
			break
		}
		if tag > 6 && b.has("user-unknown-refused") {
			return conformance.Value{}, errTruncated
		}
	}
	if r.end-r.pos > 0 && b.has("user-rest-refused") {
		return conformance.Value{}, errTruncated
	}
	return v, b.checkEvent(&v, event)
}

// addUser keeps a field, in the order of tags.
func (b impl) addUser(list []conformance.UserField, tag uint8, value uint64) []conformance.UserField {
	if tag > 6 {
		return list
	}
	at := slices.IndexFunc(list, func(f conformance.UserField) bool { return f.Tag >= tag })
	switch {
	case at >= 0 && list[at].Tag == tag:
		if b.has("user-last-counts") {
			list[at].Value = value
		}
		return list
	case at < 0:
		at = len(list)
	}
	return slices.Insert(list, at, conformance.UserField{Tag: tag, Value: value})
}

func (b impl) checkEvent(v *conformance.Value, event bool) error {
	if !event {
		return nil
	}
	if !b.has("event-moved-without-old") && slices.Contains(v.User, conformance.UserField{Tag: 5, Value: 2}) &&
		!slices.ContainsFunc(v.User, func(f conformance.UserField) bool { return f.Tag == 6 }) {
		return errEvent
	}
	for _, f := range v.User {
		if f.Tag == 5 && f.Value > 2 && b.has("event-unknown-refused") {
			return errEvent
		}
	}
	for _, need := range []struct {
		tag uint8
		bug string
	}{{1, "event-without-address"}, {5, "event-without-event"}} {
		if !slices.ContainsFunc(v.User, func(f conformance.UserField) bool { return f.Tag == need.tag }) && !b.has(need.bug) {
			return errEvent
		}
	}
	return nil
}

// eline reads a ~e# line. (BT-EVT-1)
func (b impl) eline(text string, word int) (conformance.Value, error) {
	rest, ok := strings.CutPrefix(text, "~e#")
	if !ok && b.has("event-any-lead-in") && len(text) >= 3 {
		rest, ok = text[3:], true
	}
	if !ok {
		return conformance.Value{}, errLeadIn
	}
	blob, err := b.parseLine("~m#"+rest, b.has("event-lenient"))
	if err != nil {
		return conformance.Value{}, err
	}
	return b.user(blob, word, true)
}

// userEncode writes a blob with user fields. (BT-UF-1)
func (b impl) userEncode(in *conformance.Value, m codec.Machine, search codec.Search) []byte {
	w := &mutantWriter{impl: b, machine: m, bits: b.fields(in, m, search)}
	if !b.has("user-writes-as-machine") {
		w.machine = codec.MachineExact64
	}
	for _, f := range in.User {
		w.field(uint64(f.Tag), 4, 0)
		w.value(f.Value)
	}
	if b.has("user-writes-end-tag") {
		w.field(0, 4, 0)
	}
	return w.finish()
}

// bareEncode writes depth and frames alone. (BT-BARE-1)
func (b impl) bareEncode(in *conformance.Value, m codec.Machine, search codec.Search) conformance.Answer {
	size := &mutantWriter{impl: b, machine: m}
	size.value(in.Size)
	bits := b.fields(in, m, search)
	if !b.has("bare-writes-size") {
		bits = bits[:len(bits)-len(size.bits)]
	}
	return conformance.Answer{Outcome: conformance.OK, Bits: len(bits), Data: bitstring.Pack(bits)}
}

var (
	errEvent  = fmt.Errorf("%s", codec.ReasonEvent)
	errHeader = fmt.Errorf("%s", codec.ReasonHeaderLine)

	headerValue = regexp.MustCompile(`^(?:[!-$&-~]|%[0-9A-Fa-f]{2})*$`)
	upperValue  = regexp.MustCompile(`^(?:[!-$&-~]|%[0-9A-F]{2})*$`)
	anyValue    = regexp.MustCompile(`^[^ ]*$`)
	lowerWord   = regexp.MustCompile(`^[a-z]+$`)
	anyWord     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	decimal     = regexp.MustCompile(`^[0-9]+$`)
)

// hline reads a ~h# line. (BT-HEAD-1, BT-HEAD-2, BT-HEAD-3)
func (b impl) hline(text string) (conformance.Answer, error) {
	none := conformance.Answer{}
	if b.has("header-skips-spaces") {
		text = strings.TrimLeft(text, " ")
	}
	rest, ok := strings.CutPrefix(text, "~h#")
	if !ok {
		return none, errLeadIn
	}
	if !b.has("header-end-refused") {
		rest = strings.TrimRight(rest, " \t\r\n")
	}
	parts := strings.Split(rest, " ")
	if b.has("header-any-spaces") {
		parts = strings.Fields(rest)
	}
	word := lowerWord
	if b.has("header-any-case") {
		word = anyWord
	}
	if len(parts) == 0 || !word.MatchString(parts[0]) {
		return none, errHeader
	}
	out, keys := []string{parts[0], "-"}, parts[1:]
	switch parts[0] {
	case "begin", "end":
		if len(keys) > 0 && b.headerNumber(keys[0], 32) {
			out[1], keys = b.plainNumber(keys[0]), keys[1:]
		} else if !b.has("header-number-optional") {
			return none, errHeader
		}
	case "boot", "map", "load", "total", "lost":
		if b.has("header-number-of-any") && len(keys) > 0 && decimal.MatchString(keys[0]) {
			keys = keys[1:]
		}
	default:
		if b.has("header-unknown-verb-refused") {
			return none, errHeader
		}
		if len(keys) > 0 && b.headerNumber(keys[0], 32) && !b.has("header-unknown-number-refused") {
			out[1], keys = b.plainNumber(keys[0]), keys[1:]
		}
	}
	known := slices.Contains([]string{"boot", "map", "load", "begin", "end", "total", "lost"}, parts[0])
	names := map[string]bool{}
	for _, k := range keys {
		name, _, _ := strings.Cut(k, "=")
		check := !names[name] || b.has("header-every-key-checked")
		if b.has("header-unknown-verb-unchecked") && !known {
			check = false
		}
		if names[name] && b.has("header-second-key-dropped") {
			continue
		}
		names[name] = true
		text, keep, ok := b.headerKey(k, word, check)
		if !ok {
			return none, errHeader
		}
		if keep {
			out = append(out, text)
		}
	}
	return words("%s", strings.Join(out, " ")), nil
}

// headerNumber reports whether text is a decimal number of so many bits.
func (b impl) headerNumber(text string, bits int) bool {
	if !decimal.MatchString(text) {
		return false
	}
	_, err := strconv.ParseUint(text, 10, bits)
	return err == nil || b.has("header-overflows")
}

// plainNumber is a number as it is answered, without leading zeros.
func (b impl) plainNumber(digits string) string {
	if b.has("header-zeros-kept") {
		return digits
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	return digits
}

// headerKey reads a key; keep is false of one that is skipped. Numbers are checked
// if check is set.
func (b impl) headerKey(text string, word *regexp.Regexp, check bool) (out string, keep, ok bool) {
	name, value, found := strings.Cut(text, "=")
	form := headerValue
	switch {
	case b.has("header-upper-escapes-only"):
		form = upperValue
	case b.has("header-any-value"):
		form = anyValue
	}
	if !found && b.has("header-key-without-value") {
		return text, false, true
	}
	if !found || !word.MatchString(name) || !form.MatchString(value) || value == "" && b.has("header-empty-value-refused") {
		return "", false, false
	}
	known := slices.Contains([]string{"prog", "why", "t", "n", "b", "u", "w", "pid", "epoch", "allocs", "frees", "bytes", "live", "peak"}, name)
	if !known && b.has("header-unknown-key-refused") {
		return "", false, false
	}
	number := known && name != "prog" && name != "why" && check && !b.has("header-numbers-unchecked")
	raw := value
	if !b.has("header-escapes-kept") {
		var plain []byte
		for i := 0; i < len(value); i++ {
			if value[i] == '%' && i+2 < len(value) {
				if n, err := strconv.ParseUint(value[i+1:i+3], 16, 8); err == nil {
					plain = append(plain, byte(n))
					i += 2
					continue
				}
			}
			plain = append(plain, value[i])
		}
		value = ""
		for _, c := range plain {
			if '!' <= c && c <= '~' && c != '%' {
				value += string(rune(c))
			} else {
				value += fmt.Sprintf("%%%02X", c)
			}
		}
	}
	if b.has("header-checks-escaped-text") {
		raw, value = value, raw
	}
	if number && !b.headerNumber(value, 64) {
		return "", false, false
	}
	if number && name == "w" && !b.has("header-any-word") {
		if digits := strings.TrimLeft(value, "0"); digits != "32" && digits != "64" {
			return "", false, false
		}
	}
	if b.has("header-checks-escaped-text") {
		value = raw
	}
	return name + "=" + value, true, true
}

// header writes a ~h# line. (BT-HEAD-1)
func (b impl) header(text string) string {
	parts := strings.Split(text, " ")
	if parts[1] == "-" {
		parts = slices.Delete(parts, 1, 2)
	}
	line := "~h#" + strings.Join(parts, " ")
	switch {
	case b.has("header-writes-lower-escapes"):
		line = regexp.MustCompile(`%..`).ReplaceAllStringFunc(line, strings.ToLower)
	case b.has("header-writes-line-end"):
		line += "\n"
	}
	return line
}
