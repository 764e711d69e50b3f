package profile

import (
	"cmp"
	"strings"
)

// keptWords are parts of a C++ or Rust name in which a bracket opens no argument list. No
// element is a prefix of a later one.
var keptWords = []string{"(anonymous namespace)", "operator()", "operator<<", "operator<=>", "operator<=", "operator<",
	"operator->*", "operator->", "operator>>", "operator>=", "operator>", "{lambda", "{closure"}

// shorten returns a C++ or Rust name without its template and function arguments, return type and the clone that
// it is: "std::vector<…>::push_back". Other names stay as they are.
func shorten(name string) string {
	name, _, _ = strings.Cut(name, " [clone ")
	if !strings.Contains(name, "::") && !strings.HasSuffix(name, ")") && !strings.HasSuffix(name, ">") {
		return name
	}
	if strings.HasPrefix(name, "<") || strings.Contains(name, "<impl") {
		return name // Rust's <T as Trait>::f loses its meaning
	}
	var b strings.Builder
	depth := 0
	for i := 0; i < len(name); i++ {
		if depth == 0 {
			if word := keptWord(name, i); word != "" {
				b.WriteString(word)
				i += len(word) - 1
				continue
			}
		}
		switch c := name[i]; {
		case c == '<' || c == '(':
			depth++
		case (c == '>' || c == ')') && depth > 0:
			depth--
			if depth == 0 && strings.HasPrefix(name[i:], ">:") {
				b.WriteString("<…>")
			}
		case depth == 0:
			b.WriteByte(c)
		}
	}
	s := b.String()
	if depth != 0 || s == "" {
		return name // not as a name is written
	}
	for _, tail := range []string{" const", " volatile", " &", " &&"} {
		s = strings.TrimSuffix(s, tail)
	}
	return cmp.Or(withoutType(strings.TrimSpace(s)), s)
}

// withoutType returns a name without the type before it, which instances of function templates have.
func withoutType(s string) string {
	before, _, _ := strings.Cut(s, "operator ")
	i := strings.LastIndexByte(before, ' ')
	for i >= 0 && strings.HasPrefix(s[i:], " namespace)") {
		i = strings.LastIndexByte(s[:i], ' ')
	}
	return s[i+1:]
}

// keptWord returns the word of keptWords at an index of a name, "" if there is none.
func keptWord(name string, at int) string {
	for _, word := range keptWords {
		if strings.HasPrefix(name[at:], word) && (word[0] != 'o' || at == 0 || !isWord(name[at-1])) {
			return word
		}
	}
	return ""
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
