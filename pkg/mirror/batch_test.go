// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/template"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// changesOf reads "author:path author:path ...".
func changesOf(text string) []Change {
	var changes []Change
	for i, field := range strings.Fields(text) {
		author, path, _ := strings.Cut(field, ":")
		changes = append(changes, Change{
			Path: path, Author: Author{Name: author}, Operation: v1alpha1.OperationUpdate, Content: []byte(fmt.Sprint(i)),
			Object: Object{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: path},
		})
	}
	return changes
}

func TestGroupChanges(t *testing.T) {
	for _, tc := range []struct {
		granularity v1alpha1.Granularity
		changes     string
		want        []string // author: paths in the commit
	}{
		{v1alpha1.GranularityPerChange, "ann:a ann:a bob:b", []string{"ann: a", "ann: a", "bob: b"}},
		{v1alpha1.GranularityPerAuthor, "ann:a ann:b ann:a bob:a ann:a", []string{"ann: a b", "bob: a", "ann: a"}},
		{v1alpha1.GranularityPerAuthor, ":a :b ann:a", []string{": a b", "ann: a"}},
		{v1alpha1.GranularityBatch, "ann:a bob:b ann:a", []string{": a b"}},
		{v1alpha1.GranularityBatch, "ann:a ann:b", []string{"ann: a b"}},
		{v1alpha1.GranularityBatch, "", nil},
	} {
		var got []string
		for _, g := range groupChanges(tc.granularity, changesOf(tc.changes)) {
			line := g.author.Name + ":"
			for _, change := range g.final() {
				line += " " + change.Path
			}
			got = append(got, line)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s %q: commits %q, want %q", tc.granularity, tc.changes, got, tc.want)
		}
	}
}

func TestFinalKeepsTheLastChange(t *testing.T) {
	final := group{changes: changesOf("ann:a ann:b ann:a")}.final()
	if len(final) != 2 || string(final[0].Content) != "2" || string(final[1].Content) != "1" {
		t.Errorf("final changes %+v", final)
	}
}

func TestMessages(t *testing.T) {
	destination := types.NamespacedName{Namespace: "shop", Name: "main"}
	id := Identity{ClusterUID: "uid", Namespace: "slipstream-system", Name: "slipstream", Instance: "i"}
	one := changesOf("ann:a")
	one[0].Author.Signal, one[0].ResourceVersion = "audit", "42"
	many := changesOf(strings.Repeat("ann:a ", 60))
	many[0].Operation, many[1].Operation = v1alpha1.OperationCreate, v1alpha1.OperationDelete

	m := newMessage(destination, one[0].Author, one, false)
	want := `[UPDATE] v1/configmaps shop/a

X-ConfigButler-ClusterUID: uid
X-ConfigButler-ControllerNS: slipstream-system
X-ConfigButler-ControllerName: slipstream
X-ConfigButler-InstanceID: i
X-ConfigButler-Destination: shop/main
X-ConfigButler-Operation: UPDATE
X-ConfigButler-Attribution: audit
X-ConfigButler-ResourceVersion: 42
`
	if got := m.text(nil, id.trailers(m, one)); got != want {
		t.Errorf("one change:\n%s\nwant\n%s", got, want)
	}

	m = newMessage(destination, Author{}, many, false)
	text := m.text(nil, id.trailers(m, many))
	for _, part := range []string{"[BATCH] 60 objects: 1 created, 58 updated, 1 deleted\n\nCREATE v1/configmaps shop/a\n", "\nand 10 more\n\n", "Attribution: unknown\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing:\n%s", part, text)
		}
	}
	if seeded := newMessage(destination, Author{}, many, true).Subject; !strings.HasPrefix(seeded, "[SEED] 60 objects: ") {
		t.Errorf("subject of a seed: %q", seeded)
	}

	custom := template.Must(template.New("").Parse("{{.Author}}: {{range .Changes}}{{.Operation}} {{.Name}}{{end}}"))
	if got := newMessage(destination, one[0].Author, one, false).text(custom, []string{"A: b"}); got != "ann: UPDATE a\n\nA: b\n" {
		t.Errorf("with a template: %q", got)
	}
	for _, broken := range []string{"{{.Nothing}}", "   "} {
		custom := template.Must(template.New("").Parse(broken))
		if got := newMessage(destination, one[0].Author, one, false).text(custom, nil); !strings.HasPrefix(got, "[UPDATE] v1/configmaps shop/a\n") {
			t.Errorf("with template %q: %q", broken, got)
		}
	}
}
