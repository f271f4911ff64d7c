// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package texttemplate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"text/template"
)

// writer writes random templates.
type writer struct {
	*rand.Rand
	// lists and texts are the names of fields.
	lists, texts []string
	// depth bounds the nesting of lists of nodes and of values.
	depth    int
	inRange  bool
	declared []string
}

func (w *writer) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w *writer) list() string {
	var out strings.Builder
	declared := len(w.declared)
	for range 1 + w.IntN(3) {
		out.WriteString(w.node())
	}
	w.declared = w.declared[:declared]
	return out.String()
}

func (w *writer) node() string {
	if w.depth++; w.depth > 4 {
		w.depth--
		return "text "
	}
	defer func() { w.depth-- }()
	switch w.IntN(9) {
	case 0:
		return " text\n"
	case 1:
		return fmt.Sprintf("{{if %s}}%s{{else if %s}}%s{{else}}%s{{end}}", w.pipe(), w.list(), w.pipe(), w.list(), w.list())
	case 2:
		return fmt.Sprintf("{{with %s}}%s{{.}}{{else}}%s{{end}}", w.pipe(), "inside ", w.list())
	case 3:
		return w.loop()
	case 4:
		value := w.pipe()
		w.declared = append(w.declared, fmt.Sprintf("$v%d", len(w.declared)))
		return fmt.Sprintf("{{%s := %s}}", w.declared[len(w.declared)-1], value)
	case 5:
		if len(w.declared) > 0 {
			return fmt.Sprintf("{{%s = %s}}", w.pick(w.declared...), w.pipe())
		}
	case 6:
		if w.inRange {
			return w.pick("{{if eq .Name \"web\"}}{{break}}{{end}}", "{{if .Namespace}}{{continue}}{{end}}")
		}
	}
	return fmt.Sprintf("{{%s}}", w.pipe())
}

func (w *writer) loop() string {
	if w.inRange {
		return "{{- /* no loops in loops */ -}}"
	}
	declares := w.pick("", "$item := ", "$index, $item := ")
	of := w.pick(w.lists...)
	declared := len(w.declared)
	if declares != "" {
		w.declared = append(w.declared, "$item")
	}
	w.inRange = of == ".Changes"
	body := w.list()
	w.inRange = false
	w.declared = w.declared[:declared]
	return fmt.Sprintf("{{range %s%s}}%s{{else}}none{{end}}", declares, of, body)
}

func (w *writer) pipe() string {
	if w.IntN(4) == 0 {
		return w.value() + " | " + w.pick("len", "not", "eq 3", "and .Name", "index .Name", "slice .Name 0", "lt 1", "ne `a`")
	}
	return w.value()
}

func (w *writer) value() string {
	if w.depth++; w.depth > 6 || w.IntN(3) > 0 {
		w.depth--
		return w.pick(append([]string{".", "$", `"a\tb"`, "`raw`", "true", "0", "3", "-1", "'x'", "0x10", "$.Cluster", "(.Name)"},
			append(w.texts, append(w.lists, w.declared...)...)...)...)
	}
	defer func() { w.depth-- }()
	a, b := w.operand(), w.operand()
	switch name := w.pick(functions()...); name {
	case "not", "len":
		return name + " " + a
	case "index":
		return fmt.Sprintf("index %s %s", a, w.pick("0", "1", b))
	case "slice":
		return fmt.Sprintf("slice %s %s", a, w.pick("", "0", "1", "0 1", "1 2", b))
	case "eq", "and", "or":
		return fmt.Sprintf("%s %s %s %s", name, a, b, w.operand())
	default:
		return fmt.Sprintf("%s %s %s", name, a, b)
	}
}

func (w *writer) operand() string {
	value := w.value()
	if strings.Contains(value, " ") && !strings.HasPrefix(value, `"`) {
		return "(" + value + ")"
	}
	return value
}

// maxOutput bounds the output of templates in tests.
const maxOutput = 64 << 10

// about is embedded in an input.
type about struct{ Cluster, Username string }

type change struct{ Operation, Group, Resource, Namespace, Name string }

type message struct {
	about
	Subject, Summary, Operation      string
	Count, Updated                   int
	Group, Resource, Namespace, Name string
	Changes                          []change
}

type user struct {
	Username, Name, Email string
	Groups                []string
	Cluster               string
}

// TestTemplatesDoWhatTextTemplateDoes compares the output of random templates with that of text/template.
func TestTemplatesDoWhatTextTemplateDoes(t *testing.T) {
	known := about{Cluster: "7e57", Username: "jane"}
	web := change{"UPDATE", "apps", "deployments", "shop", "web"}
	one := message{
		about: known, Subject: "[UPDATE] apps/v1/deployments shop/web", Operation: "UPDATE", Count: 1, Updated: 1,
		Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", Changes: []change{web},
	}
	several := message{
		about: known, Subject: "[BATCH] 2 objects", Summary: "UPDATE shop/web\nDELETE shop", Operation: "BATCH", Count: 2, Updated: 1,
		Changes: []change{web, {Operation: "DELETE", Resource: "namespaces", Name: "shop"}},
	}
	inputs := map[string]struct {
		data         any
		lists, texts []string
	}{
		"changes": {several, []string{".Changes"}, []string{".Subject", ".Name", ".Count", ".Username", ".Summary"}},
		"change":  {one, []string{".Changes"}, []string{".Subject", ".Name", ".Group", ".Updated", ".Operation"}},
		"user": {user{Username: "jane", Name: "Jane Doe", Groups: []string{"developers", "admins"}}, []string{".Groups"},
			[]string{".Username", ".Name", ".Email"}},
	}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			compared, failed := 0, 0
			for seed := range uint64(600) {
				w := &writer{Rand: rand.New(rand.NewPCG(seed, 0)), lists: input.lists, texts: input.texts}
				text := w.list()
				tree, err := Parse(text, input.data)
				if err != nil {
					continue // not allowed
				}
				want, wantErr := run(text, input.data)
				got, err := tree.Execute(input.data, maxOutput)
				if (err == nil) != (wantErr == nil) || err == nil && got != want {
					t.Fatalf("seed %d, template %s\ngot  %q, %v\nwant %q, %v", seed, text, got, err, want, wantErr)
				}
				compared++
				if err != nil {
					failed++
				}
			}
			if failed*10 > compared*9 || compared < 100 {
				t.Errorf("only %d templates are allowed, of which %d fail", compared, failed)
			}
			t.Logf("%d templates, of which %d fail", compared, failed)
		})
	}
}

// run returns the output of text/template.
func run(text string, data any) (string, error) {
	parsed, err := template.New("template").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = parsed.Execute(&out, data)
	return out.String(), err
}
