// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver"
)

// The page of a kind names each of its fields.
func TestEveryFieldIsNamed(t *testing.T) {
	root := moduleRoot(t)
	for page, object := range map[string]any{
		"gitrepoconfig.md":        v1alpha1.GitRepoConfigSpec{},
		"gitdestination.md":       v1alpha1.GitDestinationSpec{},
		"watchrule.md":            v1alpha1.WatchRuleSpec{},
		"clusterwatchrule.md":     v1alpha1.ClusterWatchRuleSpec{},
		"gitdestinationstatus.md": v1alpha1.GitDestinationRecord{},
	} {
		text := readFile(t, filepath.Join(root, "docs/kinds", page))
		kind := reflect.TypeOf(object)
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(text, "`"+name) {
				t.Errorf("docs/kinds/%s does not name the field %s", page, name)
			}
		}
	}
}

// The page on operations names each flag of the server's own, with its default.
func TestEveryFlagIsNamed(t *testing.T) {
	text := readFile(t, filepath.Join(moduleRoot(t), "docs/operations.md"))
	sets := options.New(apiserver.NewCodecs(apiserver.NewScheme())).Flags()
	for _, subject := range []string{"git", "mirror"} {
		sets.FlagSet(subject).VisitAll(func(flag *pflag.Flag) {
			if !strings.Contains(text, "`--"+flag.Name+"`") {
				t.Errorf("docs/operations.md does not name the flag --%s", flag.Name)
			}
		})
	}
}
