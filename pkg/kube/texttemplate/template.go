// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package texttemplate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template/parse"
)

// MaxLength bounds a template, in bytes.
const MaxLength = 4096

// Template is a parsed and checked template.
type Template struct{ tree *parse.Tree }

// errTooLong stops a template whose output is too long.
var errTooLong = errors.New("the text becomes too long")

// functionNames are the functions of Go templates. The parser accepts them, so that check can say which ones may be used.
func functionNames() map[string]any {
	names := map[string]any{}
	for _, name := range append(functions(), "call", "html", "js", "print", "printf", "println", "urlquery") {
		names[name] = true
	}
	return names
}

// Parse parses and checks a template without running it. input is the zero value of its input, a struct. The error names the
// line and what is wrong in it.
func Parse(text string, input any) (*Template, error) {
	if len(text) > MaxLength {
		return nil, fmt.Errorf("may have at most %d bytes", MaxLength)
	}
	const name = "template"
	trees, err := parse.Parse(name, text, "", "", functionNames())
	if err != nil {
		return nil, located(err)
	}
	if len(trees) > 1 {
		return nil, errors.New("must not use define or block")
	}
	if err := check(trees[name], fieldsOf(input)); err != nil {
		return nil, err
	}
	return &Template{tree: trees[name]}, nil
}

// place matches the position with which the errors of templates begin.
var place = regexp.MustCompile(`^template: template:(\d+)(:\d+)?: `)

// located returns the error with its position in a form that needs no knowledge of text/template.
func located(err error) error {
	text := err.Error()
	if errors.Is(err, errTooLong) {
		text = errTooLong.Error()
	}
	return errors.New(place.ReplaceAllString(text, "line $1: "))
}

// Execute returns the output of a template for data, which has the type of the input of Parse. It fails if the output has more
// than limit bytes. Errors name the line.
func (t *Template) Execute(data any, limit int) (string, error) {
	out := bounded{limit: limit}
	if err := evaluate(t.tree, &out, data); err != nil {
		return "", located(err)
	}
	return out.String(), nil
}

// bounded is a string builder with a limit.
type bounded struct {
	strings.Builder
	limit int
}

func (b *bounded) Write(data []byte) (int, error) {
	if b.Len()+len(data) > b.limit {
		return 0, errTooLong
	}
	return b.Builder.Write(data)
}
