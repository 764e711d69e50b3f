package store

import (
	"context"
	"fmt"
	"maps"
	"regexp"
)

// Labels say what a device is, such as its model or region.
type Labels map[string]string

var label = regexp.MustCompile(`^([a-z][a-z0-9_]{0,31})=([A-Za-z0-9][A-Za-z0-9._:@-]{0,63})$`)

// Set adds a label, NAME=VALUE.
func (l *Labels) Set(text string) error {
	m := label.FindStringSubmatch(text)
	if m == nil || len(*l) >= 16 {
		return fmt.Errorf("label %.100q: expected up to 16 such as model=x2: up to 32 of a-z, 0-9 and _, and 64 letters, digits and . _ : @ -", text)
	}
	if *l == nil {
		*l = Labels{}
	}
	(*l)[m[1]] = m[2]
	return nil
}

// With returns these labels and others, which have precedence.
func (l Labels) With(others Labels) Labels {
	if len(others) == 0 {
		return l
	}
	all := Labels{}
	maps.Copy(all, l)
	maps.Copy(all, others)
	return all
}

type labelsKey struct{}

// WithLabels returns a context for questions about the dumps that have these labels and those of ctx.
func WithLabels(ctx context.Context, l Labels) context.Context {
	return context.WithValue(ctx, labelsKey{}, l.With(LabelsOf(ctx)))
}

// WithoutLabels returns a context for questions about all dumps.
func WithoutLabels(ctx context.Context) context.Context {
	return context.WithValue(ctx, labelsKey{}, Labels(nil))
}

// LabelsOf returns the labels of a context, none for questions about all dumps.
func LabelsOf(ctx context.Context) Labels {
	l, _ := ctx.Value(labelsKey{}).(Labels)
	return l
}
