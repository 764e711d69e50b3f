package render

import (
	"encoding/xml"
	"errors"
	"strings"
	"testing"
)

// NoReport writes a valid document, whatever the testee wrote.
func TestNoReport(t *testing.T) {
	why := errors.New("testee x, asked \"hello\": answered \x1b]0;owned\x07\n]]>&<ok 1\xff\ufffe")
	var b strings.Builder
	if err := NoReport(&b, "junit", why); err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Failures int `xml:"failures,attr"`
		Message  []struct {
			Text string `xml:"message,attr"`
		} `xml:"testsuite>testcase>failure"`
	}
	if err := xml.Unmarshal([]byte(b.String()), &suites); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if suites.Failures != 1 || len(suites.Message) != 1 || !strings.Contains(suites.Message[0].Text, "]]>&<ok 1") {
		t.Errorf("%+v", suites)
	}
	b.Reset()
	if err := NoReport(&b, "table", why); err != nil || b.Len() != 0 {
		t.Errorf("%v %q", err, b.String())
	}
}
