package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// screen is the terminal display of btheap live, a model for bubbletea. Init, Update and View
// do no I/O.
type screen struct {
	name          string // of the log
	width, height int
	color         bool
	save          func(dumps []*profile.Dump) (file string, err error)
	ask           func() error // nil without --ask
	asked         string       // the value of --ask
	once          bool         // quit at the end of the log

	now    *state // the shown state
	next   *state // the latest state while the screen is frozen
	frozen bool
	ended  bool // the log has ended

	rows     []liveRow // rows that match the filter, in order
	order    order
	filter   *regexp.Regexp
	typing   bool // the filter is being typed
	typed    string
	selected int
	first    int    // row at the top
	message  string // result of the last key
}

// endOfLog is the message that the log has ended.
type endOfLog struct{}

// done is the message that the command of a key has ended, with its result.
type done string

// order is the sort order of the rows.
type order uint8

const (
	byEvidence order = iota
	byBytes
	byCount
	byGrowth
)

var orders = [...]string{"evidence", "bytes", "count", "growth"}

// liveRow is a call path.
type liveRow struct {
	profile.Row
	leak *growth.Leak // nil if its floor did not rise
	rank int          // index in the leaks; larger for other paths
	grew delta        // bytes since the first dump
	name string
}

func newScreen(name string, color bool) *screen {
	return &screen{name: name, color: color, width: cli.DefaultWidth, height: 24, now: &state{found: &growth.Leaks{}}}
}

// Init returns the first command: none.
func (m *screen) Init() tea.Cmd { return nil }

// Update applies a message to the screen.
func (m *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case *state:
		if m.frozen {
			m.next = msg
			break
		}
		m.set(msg)
	case endOfLog:
		if m.ended = true; m.once {
			cmd = tea.Quit
		}
	case done:
		m.message = string(msg)
	case tea.KeyMsg:
		cmd = m.keys(msg)
	}
	m.scroll()
	return m, cmd
}

// keys processes the keys of a message. Keys that are typed fast are in one message.
func (m *screen) keys(msg tea.KeyMsg) tea.Cmd {
	if msg.Type != tea.KeyRunes {
		return m.press(msg)
	}
	var list []tea.Cmd
	for _, r := range msg.Runes {
		list = append(list, m.press(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}))
	}
	return tea.Sequence(list...)
}

// press processes one key.
func (m *screen) press(msg tea.KeyMsg) tea.Cmd {
	if m.typing {
		m.typeFilter(msg)
		return nil
	}
	m.message = ""
	return m.key(msg.String())
}

// key executes the command of a key.
func (m *screen) key(key string) tea.Cmd {
	page := max(1, m.listed()-1)
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "up", "k":
		m.selected--
	case "down", "j":
		m.selected++
	case "pgup":
		m.selected -= page
	case "pgdown":
		m.selected += page
	case "home", "g":
		m.selected = 0
	case "end", "G":
		m.selected = len(m.rows) - 1
	case "s":
		m.order = (m.order + 1) % order(len(orders))
		m.sort()
	case "/":
		m.typing, m.typed = true, ""
	case "esc":
		m.filter, m.typed = nil, ""
		m.sort()
	case " ":
		if m.frozen = !m.frozen; !m.frozen && m.next != nil {
			m.set(m.next)
			m.next = nil
		}
	case "p":
		return m.savePage()
	case "a":
		return m.send()
	}
	return nil
}

// savePage returns the command that saves the page.
func (m *screen) savePage() tea.Cmd {
	dumps, save := m.now.dumps, m.save
	if len(dumps) == 0 {
		m.message = "no dump yet"
		return nil
	}
	m.message = "writing the page"
	return background(func() (string, error) {
		file, err := save(dumps)
		return "wrote " + file, err
	})
}

// send returns the command that sends the line of --ask.
func (m *screen) send() tea.Cmd {
	ask, text := m.ask, m.asked
	if ask == nil {
		m.message = "--ask TEXT with --serial gives the line to send"
		return nil
	}
	return background(func() (string, error) { return fmt.Sprintf("sent %q", text), ask() })
}

// background returns a command that calls do, and shows the text or the error that it returns.
func background(do func() (text string, err error)) tea.Cmd {
	return func() tea.Msg {
		text, err := do()
		if err != nil {
			text = cli.Message(err)
		}
		return done(text)
	}
}

// typeFilter processes a key while the filter is being typed.
func (m *screen) typeFilter(msg tea.KeyMsg) {
	switch msg.Type {
	case tea.KeyEnter:
		m.typing = false
		filter, err := regexp.Compile("(?i)" + m.typed)
		if err != nil {
			m.message = fmt.Sprintf("%q is no regular expression", m.typed)
			return
		}
		if m.filter = filter; m.typed == "" {
			m.filter = nil
		}
		m.sort()
	case tea.KeyEsc, tea.KeyCtrlC:
		m.typing = false
	case tea.KeyBackspace:
		if r := []rune(m.typed); len(r) > 0 {
			m.typed = string(r[:len(r)-1])
		}
	case tea.KeyRunes, tea.KeySpace:
		m.typed += string(msg.Runes)
	}
}

// set shows a state.
func (m *screen) set(st *state) {
	m.now = st
	m.sort()
}

// pathKey returns a key that identifies a call path in another list.
func pathKey(stack []profile.Site) string {
	var b strings.Builder
	for _, s := range stack {
		fmt.Fprintf(&b, "%s\x00%s\x00", s, s.Module)
	}
	return b.String()
}

// sort fills rows.
func (m *screen) sort() {
	var selected string
	if m.selected > 0 && m.selected < len(m.rows) {
		selected = pathKey(m.rows[m.selected].Stack())
	}
	m.rows = m.rows[:0]
	if m.now.p == nil {
		return
	}
	leaks := map[string]int{}
	var found []*growth.Leak
	for r := range m.now.found.All() {
		if r.Parts == nil {
			leaks[pathKey(r.Stack())] = len(found)
			found = append(found, r)
		}
	}
	for r := range m.now.p.Rows() {
		stack := r.Stack()
		row := liveRow{Row: r, rank: len(leaks), grew: subtract(r.Value().Bytes, r.At(0).Bytes), name: callers(stack)}
		if i, ok := leaks[pathKey(stack)]; ok {
			row.leak, row.rank = found[i], i
		}
		if row.leak == nil && r.Value().IsZero() || m.filter != nil && !m.filter.MatchString(row.name) {
			continue
		}
		m.rows = append(m.rows, row)
	}
	slices.SortStableFunc(m.rows, m.compare)
	m.selected = min(m.selected, max(0, len(m.rows)-1))
	if selected != "" {
		if i := slices.IndexFunc(m.rows, func(r liveRow) bool { return pathKey(r.Stack()) == selected }); i >= 0 {
			m.selected = i
		}
	}
}

// compare orders rows.
func (m *screen) compare(a, b liveRow) int {
	va, vb := a.Value(), b.Value()
	bytes := cmp.Compare(vb.Bytes, va.Bytes)
	switch m.order {
	case byBytes:
		return bytes
	case byCount:
		return cmp.Or(cmp.Compare(vb.Count, va.Count), bytes)
	case byGrowth:
		return cmp.Or(b.grew.compare(a.grew), bytes)
	}
	return cmp.Or(cmp.Compare(a.rank, b.rank), bytes)
}

// callers writes a call path in a line, the innermost frame first.
func callers(stack []profile.Site) string {
	if len(stack) == 0 {
		return "(no frames)"
	}
	names := make([]string, len(stack))
	for i, s := range stack {
		names[i] = siteName(s)
	}
	return strings.Join(names, " < ")
}

// siteName returns the function of a call site, or else its known part.
func siteName(s profile.Site) string { return cmp.Or(s.Func, s.String()) }

// Lines above and below the list.
const (
	headLines   = 5 // including the head of the table, if no line is longer than the screen
	minList     = 3
	stackLines  = 9 // selected call path, including an empty line; more if the list is short
	footLines   = 1
	valueFormat = "%-9s %12s %13s %9s %-16s "
)

// layout returns the number of rows of the list, and of the lines of the selected call path below it.
// The head takes further lines if it is long, and the call path those that the list leaves.
func (m *screen) layout() (list, stack int) {
	n := m.height - len(m.head()) - 1 - footLines
	if n-stackLines < minList {
		return max(1, n), 0
	}
	list = max(minList, min(n-stackLines, len(m.rows)))
	return list, n - list
}

// listed returns the number of rows that fit.
func (m *screen) listed() int {
	n, _ := m.layout()
	return n
}

// scroll keeps the selected row on the screen.
func (m *screen) scroll() {
	m.selected = max(0, min(m.selected, len(m.rows)-1))
	n := m.listed()
	m.first = max(0, min(m.first, len(m.rows)-n, m.selected))
	if m.selected >= m.first+n {
		m.first = m.selected - n + 1
	}
}

// Attributes of text, in the escape sequences of ECMA-48.
const (
	plainText = ""
	bold      = "1"
	red       = "31"
	yellow    = "33"
	reverse   = "7"
)

// line writes a line, cut at the width of the screen.
func (m *screen) line(b *strings.Builder, attribute, text string) {
	text = ansi.Truncate(printable.Text(text), m.width, "…")
	if attribute == reverse {
		text += strings.Repeat(" ", max(0, m.width-ansi.StringWidth(text)))
	}
	if m.color && attribute != plainText {
		text = "\x1b[" + attribute + "m" + text + "\x1b[0m"
	}
	b.WriteString(text)
	b.WriteByte('\n')
}

// View returns the text of the screen.
func (m *screen) View() string {
	var b strings.Builder
	for _, l := range m.head() {
		m.line(&b, l.attribute, l.text)
	}
	if len(m.now.dumps) == 0 && len(m.now.found.Heaps) > 0 {
		m.heaps(&b)
		return strings.TrimSuffix(b.String(), "\n")
	}
	m.line(&b, reverse, fmt.Sprintf(valueFormat, " "+m.unit(), "rate", "bytes", "blocks", "last dumps")+"call path, by "+orders[m.order])
	n, stack := m.layout()
	for i := m.first; i < m.first+n; i++ {
		if i >= len(m.rows) {
			m.line(&b, plainText, "")
			continue
		}
		m.row(&b, &m.rows[i], i == m.selected)
	}
	m.stack(&b, stack)
	m.foot(&b)
	return strings.TrimSuffix(b.String(), "\n")
}

// heaps writes the trend of each heap, of a log without dumps.
func (m *screen) heaps(b *strings.Builder) {
	lines := []string{""}
	for _, text := range leaktext.Heaps(m.now.found, bars) {
		lines = append(lines, m.wrap(text)...)
	}
	for i := range max(0, m.height-len(m.head())-footLines) {
		text := ""
		if i < len(lines) {
			text = lines[i]
		}
		m.line(b, plainText, text)
	}
	m.foot(b)
}

// unit returns the head of the first column.
func (m *screen) unit() string {
	switch {
	case len(m.now.dumps) == 0:
		return ""
	case m.now.found.Per == growth.PerHour:
		return "per h"
	}
	return "per dump"
}

// row writes a call path.
func (m *screen) row(b *strings.Builder, r *liveRow, selected bool) {
	verdict, rate, attribute := "", "", plainText
	if r.leak != nil {
		verdict, rate = leaktext.Short(&r.leak.Judgement), printable.Amount(r.leak.Rate)
		switch {
		case r.leak.Sure():
			attribute = red
		case r.leak.Verdict == leak.Leak:
			attribute = yellow
		}
	}
	mark := " "
	if selected {
		mark, attribute = ">", bold
	}
	v := r.Value()
	m.line(b, attribute, fmt.Sprintf(valueFormat, mark+verdict, rate, cli.Number(v.Bytes), cli.Number(v.Count), sparkline(r.Points(), nil, profile.Bytes, 16))+r.name)
}

// stack writes the call path of the selected row in n lines, of which the first is empty.
func (m *screen) stack(b *strings.Builder, n int) {
	lines := []string{""}
	if m.selected < len(m.rows) {
		r := &m.rows[m.selected]
		texts := []string{signed(r.grew) + " bytes since the first of these dumps"}
		if r.leak != nil {
			texts = append(append(texts, leaktext.RateOf(m.now.found, r.leak)), leaktext.Notes(m.now.found, r.leak)...)
		}
		for _, text := range texts {
			lines = append(lines, m.wrap(text)...)
		}
		for _, s := range r.Stack() {
			lines = append(lines, "    "+s.String())
		}
	}
	if more := len(lines) - n; more > 0 && n > 0 {
		lines[n-1] = fmt.Sprintf("    %d more lines", more+1)
	}
	for i := range n {
		text := ""
		if i < len(lines) {
			text = lines[i]
		}
		m.line(b, plainText, text)
	}
}

// foot writes the last line.
func (m *screen) foot(b *strings.Builder) {
	keys := "q quit  s sort  / filter  space freeze  p page"
	if m.ask != nil {
		keys += "  a ask"
	}
	switch {
	case m.typing:
		keys = "filter (regular expression): " + m.typed + "_"
	case m.message != "":
		keys = m.message
	case m.filter != nil:
		keys += "  [filter " + strings.TrimPrefix(m.filter.String(), "(?i)") + ", Esc clears]"
	}
	m.line(b, plainText, keys)
}
