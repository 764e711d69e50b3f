package lwsbt

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// coined are terms that documents do not use, and the field's own.
var coined = []struct{ not, but string }{
	{`\b(?:a|each|every|own|this|the codec|which) rooms?\b|\brooms\b`, "package"},
	{`\bhurt\b`, "lossy"},
	{`\bmade-up\b`, "synthetic"},
	{`\bcodecs? with (?:exactly )?one bug`, "mutants, mutation tests"},
	{`\bwho reads what`, "encoder × decoder matrix, interoperability"},
	{`\b(?:bytes|bits) an? (?:allocation|frame|record)\b`, "bytes per allocation, bits per frame"},
	{`\b[0-9][0-9,]*(?: [a-z]+)? in all\b|\bin all[:;.]`, "total"},
	{`\bstill told apart\b`, "distinct call paths"},
	{`\bgiven back\b`, "recovered"},
	{`\beach shown happening\b`, "each reproduced"},
	{`\bblanks?\b(?: [^l]|[^ ]|$)`, "space"},
	{`\bat hand\b`, "available, remaining"},
	{`\bhand(?:s|ed)? (?:it )?out\b`, "return"},
	{`\btell the two by\b`, "distinguish"},
	{`\bgo(?:es|ing) around\b`, "wraparound"},
	{`\bwithout a (?:word|trace)\b`, "silently"},
	{`\bby chance\b`, "random"},
	{`\bload base stands out\b`, "cannot infer the load base"},
	{`\bis this the build that ran\b`, "ELF does not match the log"},
}

// Documents use the field's own terms.
func TestWordsOfDocuments(t *testing.T) {
	type pattern struct {
		*regexp.Regexp
		but string
	}
	var patterns []pattern
	for _, c := range coined {
		patterns = append(patterns, pattern{regexp.MustCompile("(?i)" + c.not), c.but})
	}
	documents := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		documents++
		text, err := os.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			for _, p := range patterns {
				if m := p.FindString(line); m != "" {
					t.Errorf("%s:%d: %q, expected the usual term: %s", path, i+1, m, p.but)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if documents < 8 {
		t.Errorf("%d documents, want at least 8", documents)
	}
}
