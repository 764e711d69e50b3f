package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrBuild is the cause of the error if no build, or more than one, has a name.
var ErrBuild = errors.New("the name is not that of one build")

type buildError string

func (e buildError) Error() string     { return string(e) }
func (e buildError) Is(err error) bool { return err == ErrBuild }

func notOne(format string, args ...any) error { return buildError(fmt.Sprintf(format, args...)) }

// Find returns the build with this name: a build ID, the beginning of one, or a firmware version that most devices of
// only one build report.
func (d *DB) Find(ctx context.Context, name string) (build string, err error) {
	list, err := ask[struct{ Build, Firmware string }](ctx, d, Scope{copies: true}, onlyDumps, text("versions")+"\norder by build")
	if err != nil {
		return "", err
	}
	var begin, version []string
	for _, b := range list {
		switch {
		case b.Build == name:
			return name, nil
		case strings.HasPrefix(b.Build, strings.ToLower(name)):
			begin = append(begin, b.Build)
		}
		if b.Firmware == name {
			version = append(version, b.Build)
		}
	}
	found := version // 10 is version 10, not the beginning of 10ab…
	if len(found) == 0 {
		found = begin
	}
	switch len(found) {
	case 0:
		if len(list) == 0 {
			return "", notOne("build %s: there is no dump of any build", name)
		}
		return "", notOne("build %s: none of %d builds has this ID, beginning or version", name, len(list))
	case 1:
		return found[0], nil
	}
	return "", notOne("build %s: %d builds have this beginning or version, such as %s and %s", name, len(found), found[0], found[1])
}
