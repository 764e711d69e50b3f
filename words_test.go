package lwsbt

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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

// pattern is a coined term, and the usual one.
type pattern struct {
	*regexp.Regexp
	but string
}

// anyWord matches what some pattern matches.
var anyWord = func() *regexp.Regexp {
	var list []string
	for _, c := range coined {
		list = append(list, c.not)
	}
	return regexp.MustCompile("(?i)" + strings.Join(list, "|"))
}()

func patterns() (list []pattern) {
	for _, c := range coined {
		list = append(list, pattern{regexp.MustCompile("(?i)" + c.not), c.but})
	}
	return list
}

// checkWords reports the coined terms in text, which begins at a line of a file.
func checkWords(t *testing.T, list []pattern, path string, line int, text string) {
	t.Helper()
	for i, l := range strings.Split(text, "\n") {
		if !anyWord.MatchString(l) {
			continue
		}
		for _, p := range list {
			if m := p.FindString(l); m != "" {
				t.Errorf("%s:%d: %q, expected the usual term: %s", path, line+i, m, p.but)
			}
		}
	}
}

// Documents, comments of Go and C, and the strings of commands, which are their help
// and messages, use the field's own terms.
func TestWords(t *testing.T) {
	list := patterns()
	found := map[string]int{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "build" || len(d.Name()) > 1 && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		kind := filepath.Ext(path)
		if d.IsDir() || path == "words_test.go" || kind != ".md" && kind != ".go" && kind != ".c" && kind != ".h" {
			return nil
		}
		found[kind]++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch kind {
		case ".md":
			checkWords(t, list, path, 1, string(text))
		case ".go":
			wordsOfGo(t, list, path, text)
		default:
			for _, m := range commentOfC.FindAllIndex(text, -1) {
				checkWords(t, list, path, 1+bytes.Count(text[:m[0]], []byte("\n")), string(text[m[0]:m[1]]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found[".md"] < 8 || found[".go"] < 200 || found[".c"]+found[".h"] < 20 {
		t.Errorf("files found: %v", found)
	}
}

var commentOfC = regexp.MustCompile(`(?s)/\*.*?\*/`)

// wordsOfGo checks comments, and strings outside tests.
func wordsOfGo(t *testing.T, list []pattern, path string, text []byte) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	for _, g := range f.Comments {
		checkWords(t, list, path, files.Position(g.Pos()).Line, g.Text())
	}
	if strings.HasSuffix(path, "_test.go") {
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			value, _ := strconv.Unquote(s.Value)
			checkWords(t, list, path, files.Position(s.Pos()).Line, value)
		}
		return true
	})
}

// The documentation of what Go packages export begins with its name, or with an
// article and it; a function does not "say whether".
func TestGodoc(t *testing.T) {
	whether := regexp.MustCompile(`^\w+ (?:says|tells|is) (?:whether|what)\b`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			place := files.Position(fn.Pos())
			exported := fn.Name.IsExported() && (fn.Recv == nil || exportedType(fn.Recv.List[0].Type))
			doc := fn.Doc.Text()
			switch {
			case doc == "" && exported && f.Name.Name != "main":
				t.Errorf("%v: %s has no comment", place, fn.Name)
			case doc != "" && exported && !strings.HasPrefix(doc, fn.Name.Name+" "):
				t.Errorf("%v: the comment of %s begins %.30q", place, fn.Name, doc)
			case whether.MatchString(doc):
				t.Errorf("%v: %q, expected \"returns …\" or \"reports whether …\"", place, whether.FindString(doc))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// exportedType reports whether a method's receiver is of an exported type.
func exportedType(e ast.Expr) bool {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	if g, ok := e.(*ast.IndexExpr); ok {
		e = g.X
	}
	name, ok := e.(*ast.Ident)
	return ok && name.IsExported()
}
