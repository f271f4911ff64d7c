// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/validation"
)

func TestTemplates(t *testing.T) {
	author := func(p *configbutler.CommitPolicy, text string) { p.AuthorTemplate = text }
	message := func(p *configbutler.CommitPolicy, text string) { p.MessageTemplate = text }
	tests := []struct {
		name string
		set  func(*configbutler.CommitPolicy, string)
		text string
		says string
	}{
		{name: "an author", set: author, text: `{{.Name}} <{{.Email}}>`},
		{name: "an author with a fallback", set: author, text: `{{with .Email}}{{.}}{{else}}{{.Username}}@{{.Cluster}}{{end}}`},
		{name: "an author's groups", set: author, text: `{{range .Groups}}{{.}} {{end}}{{if .Groups}}{{index .Groups 0}}{{end}}`},
		{name: "an author that is only a comment", set: author, text: `{{/* nobody */}}`},
		{name: "a message", set: message, text: "{{.Subject}}\n{{range .Changes}}{{.Operation}} {{.Namespace}}/{{.Name}}\n{{end}}"},
		{name: "a message with variables", set: message, text: `{{range $i, $c := $.Changes}}{{$i}} {{$c.Name}} {{$.Author}}{{else}}none{{end}}`},
		{name: "a message about the first change", set: message, text: `{{(index .Changes 0).Name}}{{with index .Changes 0}}{{.Kind}}{{end}}`},
		{name: "a message with conditions", set: message, text: `{{if and (eq .Operation "DELETE") (gt (len .Changes) 1)}}{{slice .Author 0 1}}{{end}}`},

		{name: "no template", set: author, text: `{{.Name`, says: "must be a Go text/template"},
		{name: "an unknown function", set: author, text: `{{upper .Name}}`, says: `"upper" not defined`},
		{name: "an unknown field", set: author, text: `{{.Login}}`, says: "known here are .Cluster, .Email"},
		{name: "a field of the other template", set: author, text: `{{.Subject}}`, says: "known here are"},
		{name: "a field of a field", set: author, text: `{{.Name.First}}`, says: "must not use .Name.First"},
		{name: "a field of an item that is none", set: message, text: `{{range .Changes}}{{.Subject}}{{end}}`, says: ".Subject; known here are .Group"},
		{name: "an unknown field of the root", set: message, text: `{{range .Changes}}{{$.Name}}{{end}}`, says: ".Name; known here are .Attribution"},
		{name: "a field hidden in a condition", set: message, text: `{{if eq 1 1}}{{else if (len .Nothing)}}{{end}}`, says: ".Nothing"},
		{name: "printing", set: message, text: `{{with printf "%s%s" . .}}{{end}}`, says: "must not use the function printf"},
		{name: "printing behind a pipe", set: message, text: `{{.Subject | html}}`, says: "must not use the function html"},
		{name: "calling", set: message, text: `{{call .Subject}}`, says: "must not use the function call"},
		{name: "a loop in a loop", set: message, text: `{{range .Changes}}{{range $.Changes}}{{end}}{{end}}`, says: "not inside another range"},
		{name: "a loop that counts", set: message, text: `{{range 1000000000}}{{end}}`, says: "a list by its name"},
		{name: "a loop over a string", set: message, text: `{{range .Subject}}{{end}}`, says: "a list by its name"},
		{name: "a loop over what something is", set: message, text: `{{with .Changes}}{{range .}}{{end}}{{end}}`, says: "a list by its name"},
		{name: "a template in itself", set: message, text: `{{define "x"}}{{template "x"}}{{end}}{{template "x"}}`, says: "must not use define or block"},
		{name: "a block", set: message, text: `{{block "x" .}}{{end}}`, says: "must not use define or block"},
		{name: "a template that is itself", set: message, text: `{{template "template"}}`, says: "must not use template"},
		{name: "too long", set: message, text: strings.Repeat("a", 4097), says: "4096"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := repository()
			test.set(config.Spec.Commit, test.text)
			want := change[struct{}]{says: test.says}
			if test.says != "" {
				want.path = "spec.commit.messageTemplate"
				if config.Spec.Commit.AuthorTemplate != "" {
					want.path = "spec.commit.authorTemplate"
				}
			}
			want.check(t, validation.ValidateGitRepoConfig(config, validation.Options{}))
		})
	}
}

// FuzzTemplates runs what validation lets pass: no template may write more than its own text and all that it can name,
// once for each item of one list.
func FuzzTemplates(f *testing.F) {
	const items, longest = 50, 16
	type item struct{ Operation, Group, Version, Resource, Namespace, Name string }
	word := strings.Repeat("x", longest)
	data := struct {
		Subject, Destination, Author, Attribution, Operation string
		Changes                                              []item
	}{word, word, word, word, word, slices.Repeat([]item{{word, word, word, word, word, word}}, items)}

	f.Add("{{.Subject}}\n{{range .Changes}}{{.Operation}} {{.Namespace}}/{{.Name}}\n{{end}}")
	f.Add(`{{range $i, $c := $.Changes}}{{$i}} {{$c.Name}} {{$.Author}}{{else}}none{{end}}`)
	f.Add(`{{$x := .Author}}{{$x = slice $x 1}}{{with $x}}{{.}}{{end}}`)
	f.Fuzz(func(t *testing.T, text string) {
		config := repository()
		config.Spec.Commit.MessageTemplate = text
		if len(validation.ValidateGitRepoConfig(config, validation.Options{})) > 0 {
			return
		}
		var out strings.Builder
		// An index out of range is an error when it runs, which cannot be told before.
		_ = template.Must(template.New("message").Parse(text)).Execute(&out, data)
		// The longest thing that can be named is the whole list, and a loop names it once for each item.
		if limit := len(text) * items * (items * 6 * (longest + 1)); out.Len() > limit {
			t.Errorf("%d bytes from a template of %d", out.Len(), len(text))
		}
	})
}
