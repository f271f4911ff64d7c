// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestAskAll answers questions as on a terminal.
func TestAskAll(t *testing.T) {
	for answers, tt := range map[string]struct {
		want string
		code int
	}{
		"k\nt\ns\n":             {want: "keep take keep "},
		"what?\n\nTAKE\nkeep\n": {want: "take keep keep "},
		"t\n":                   {want: "take   "},
		"t":                     {want: "take   "},
		"s\ns\ns\n":             {want: "  keep ", code: 4},
		"":                      {want: "   ", code: 4},
	} {
		conflicts := []*conflict{
			{field: "/a"}, {field: "/b"}, {field: "/c", managers: []string{v1alpha1.FieldManager}}, {field: "/d"},
		}
		var out strings.Builder
		err := askAll(t.Context(), cli.NewQuestions(strings.NewReader(answers), &out), &out, conflicts)
		got := fmt.Sprintf("%s %s %s %s", conflicts[0].decided, conflicts[1].decided, conflicts[2].decided, conflicts[3].decided)
		if cli.ExitCode(err) != tt.code || got != tt.want {
			t.Errorf("%q: decided %q, want %q: %v", answers, got, tt.want, err)
		}
		if !strings.Contains(out.String(), "/a\n  here     (not shown)\n  catalog  (not shown)\n1 of 4: (k)eep, (t)ake or (s)kip? ") {
			t.Errorf("%q: printed %q", answers, out.String())
		}
	}
}
