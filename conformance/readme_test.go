package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance/btv"
)

// readme returns the documents of the protocol and of the form of vectors.
func readme(t *testing.T) string {
	t.Helper()
	var all string
	for _, name := range []string{"README.md", "BTP.md", "btv/README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}

// README.md and btv/README.md name every key, operation, machine and outcome.
func TestReadmeIsComplete(t *testing.T) {
	text := readme(t)
	var words []string
	_, err := Parse("x", []byte("btv 1\n\nkey: x\n"))
	_, keys, _ := strings.Cut(err.Error(), "expected one of ")
	for _, key := range strings.Fields(keys) {
		words = append(words, "`"+key+":`")
	}
	_, err = Parse("x", []byte("btv 1\nkey: x\n"))
	_, keys, _ = strings.Cut(err.Error(), "expected one of ")
	keys, _, _ = strings.Cut(keys, ",")
	for _, key := range strings.Fields(keys) {
		if key == "spill" {
			key = "spill: any"
		} else {
			key += ":"
		}
		words = append(words, "`"+key+"`")
	}
	for _, op := range Ops() {
		words = append(words, "`"+string(op)+"`", "`"+string(op)+" ID ")
	}
	for _, m := range codec.Machines() {
		words = append(words, "`"+m.String()+"`")
	}
	for _, kind := range []string{"bit N", "bits N-M", "byte N", "bytes N-M", "insert N", "insert N-M", "delete N", "delete N-M",
		"tail", "word", "reading", "in"} {
		if _, err := btv.ParseDiffers(strings.NewReplacer("N", "1", "M", "2").Replace(kind)); err != nil {
			t.Error(err)
		}
		words = append(words, "`"+kind+"`")
	}
	if len(words) < 50 {
		t.Fatalf("%d words to look for", len(words))
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("README.md lacks %s", word)
		}
	}
}

// The record shown in btv/README.md is a vector, and the entry of known failures is valid.
func TestReadmeExamples(t *testing.T) {
	text := regexp.MustCompile(`(?m)^    `).ReplaceAllString(readme(t), "")
	_, btv, _ := strings.Cut(text, "## .btv\n\n")
	btv, _, _ = strings.Cut(btv, "\n\nThe first line")
	vectors, err := Parse("README.md", []byte(btv+"\n"))
	if err != nil || len(vectors) != 1 {
		t.Fatalf("%d vectors, %v in\n%s", len(vectors), err, btv)
	}
	v := builtinSet(t).Find(vectors[0].ID)
	if v == nil || string(v.Blob) != string(vectors[0].Blob) || v.WantText != vectors[0].WantText {
		t.Errorf("%s differs from the vector with this ID", vectors[0].ID)
	}
	_, known, _ := strings.Cut(text, "# GLOB[:OP]")
	_, known, _ = strings.Cut(known, "\n")
	known, _, _ = strings.Cut(known, "\n\n")
	if k, err := ParseKnown("README.md", []byte(known)); err != nil || len(k.entries) != 1 {
		t.Errorf("known failures: %v in %q", err, known)
	}
}
