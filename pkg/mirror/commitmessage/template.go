// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitmessage

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// MaxTemplateLength bounds a template, in bytes.
const MaxTemplateLength = 4096

// errTooLong stops a template whose output is too long.
var errTooLong = errors.New("the text becomes too long")

// parseTemplate parses and checks a template without running it. on is the zero value of its input.
func parseTemplate(text string, on any) (*template.Template, error) {
	if len(text) > MaxTemplateLength {
		return nil, fmt.Errorf("may have at most %d bytes", MaxTemplateLength)
	}
	parsed, err := template.New("template").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, located(err)
	}
	if err := check(parsed, fieldsOf(on)); err != nil {
		return nil, err
	}
	return parsed, nil
}

// place matches the position with which text/template begins its errors.
var place = regexp.MustCompile(`^template: template:(\d+)(:\d+)?: (executing "template" )?`)

// located returns the error with its position in a form that needs no knowledge of text/template.
func located(err error) error {
	text := err.Error()
	if errors.Is(err, errTooLong) {
		text = errTooLong.Error()
	}
	return errors.New(place.ReplaceAllString(text, "line $1: "))
}

// execute runs a template whose output is at most limit bytes.
func execute(parsed *template.Template, data any, limit int) (string, error) {
	out := bounded{limit: limit}
	if err := parsed.Execute(&out, data); err != nil {
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
