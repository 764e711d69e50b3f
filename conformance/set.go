package conformance

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/lwsbt/lwsbt/conformance/vectors"
)

// builtinDir is the directory of the embedded vectors in the repository.
const builtinDir = "conformance/vectors"

// Set holds vectors from any number of files. IDs are unique.
type Set struct {
	Vectors []*Vector
	byID    map[string]*Vector
}

// Find returns the vector with this ID, or nil.
func (s *Set) Find(id string) *Vector { return s.byID[id] }

// Add adds vectors to the set. It returns an error if an ID exists already.
func (s *Set) Add(vectors ...*Vector) error {
	if s.byID == nil {
		s.byID = map[string]*Vector{}
	}
	for _, v := range vectors {
		if old := s.byID[v.ID]; old != nil {
			return faultAt(v.File, v.Row, "id %s is that of %s, expected one of its own", v.ID, old.Place())
		}
		s.byID[v.ID] = v
		s.Vectors = append(s.Vectors, v)
	}
	return nil
}

// Check resolves control vectors, and checks that each vector differs from its control vector
// in the declared place only. Call it after all files were added.
func (s *Set) Check() error {
	for _, v := range s.Vectors {
		if v.Control == "" {
			continue
		}
		control := s.controlOf(v)
		if control == nil {
			return faultAt(v.File, v.Row, "%s: control vector %s, expected the id of a vector", v.ID, v.Control)
		}
		if err := v.checkControl(control); err != nil {
			return faultAt(v.File, v.Row, "%s: %v", v.ID, err)
		}
	}
	return nil
}

// controlOf returns the vector that v names as its control vector: one of the set, or an example of the
// specification; nil if there is none.
func (s *Set) controlOf(v *Vector) *Vector {
	if pf := v.Head.Platform; pf != "" {
		if control := s.byID[pf+"/"+v.Control]; control != nil {
			return control
		}
	}
	if control := s.byID[v.Control]; control != nil {
		return control
	}
	if examples := BuiltinSpec().Examples; strings.HasPrefix(v.Control, "spec/") {
		if at := slices.IndexFunc(examples, func(e *Vector) bool { return e.ID == v.Control }); at >= 0 {
			return examples[at]
		}
	}
	return nil
}

// Select returns the set of vectors whose ID matches one of the globs, in which * matches any
// characters. Without globs, it returns all vectors.
func (s *Set) Select(globs ...string) *Set {
	if len(globs) == 0 {
		return s
	}
	var match []*regexp.Regexp
	for _, g := range globs {
		match = append(match, compileGlob(g))
	}
	out := &Set{byID: s.byID}
	for _, v := range s.Vectors {
		if slices.ContainsFunc(match, func(m *regexp.Regexp) bool { return m.MatchString(v.ID) }) {
			out.Vectors = append(out.Vectors, v)
		}
	}
	return out
}

func compileGlob(glob string) *regexp.Regexp {
	parts := strings.Split(strings.ToValidUTF8(glob, "\ufffd"), "*") // which regexp demands
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
}

// Builtin returns the handwritten vectors and the examples of the specification.
func Builtin() (*Set, error) {
	set := &Set{}
	names, err := fs.Glob(vectors.FS, "*.btv")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := vectors.FS.ReadFile(name)
		if err != nil {
			return nil, err
		}
		parsed, err := Parse(builtinDir+"/"+name, text)
		if err != nil {
			return nil, err
		}
		if err := set.Add(parsed...); err != nil {
			return nil, err
		}
	}
	spec, err := parseBuiltinSpec()
	if err != nil {
		return nil, err
	}
	if err := set.Add(spec.Examples...); err != nil {
		return nil, err
	}
	return set, set.Check()
}

// Load reads .btv files and the examples in .md files, of which a file with clauses alone has none. For a directory, it reads all .btv files
// in it and below; "-" is stdin.
func Load(paths []string, stdin io.Reader) (*Set, error) {
	set := &Set{}
	for _, path := range paths {
		files, err := vectorFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if err := set.load(file, stdin); err != nil {
				return nil, err
			}
		}
	}
	return set, set.Check()
}

func (s *Set) load(file string, stdin io.Reader) error {
	var text []byte
	var err error
	name := file
	if file == "-" {
		name = "stdin"
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return err
	}
	var vectors []*Vector
	if strings.HasSuffix(name, ".md") {
		var spec *Spec
		if spec, err = parseSpec(name, string(text)); err == nil {
			return s.Add(spec.Examples...)
		}
	} else {
		vectors, err = Parse(name, text)
	}
	if err != nil {
		return err
	}
	if len(vectors) == 0 {
		return faultAt(name, 1, "no vectors in the file, expected at least one")
	}
	return s.Add(vectors...)
}

func vectorFiles(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".btv") {
			files = append(files, p)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New(path + ": no .btv files, expected some in it or below")
	}
	sort.Strings(files)
	return files, err
}
