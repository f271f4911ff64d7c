// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver"
)

// TestEveryFieldIsNamed checks that the page of a kind names each of its fields.
func TestEveryFieldIsNamed(t *testing.T) {
	root := moduleRoot(t)
	for page, parts := range map[string][]any{
		"gitrepoconfig.md":        {v1alpha1.GitRepoConfigSpec{}},
		"gitdestination.md":       {v1alpha1.GitDestinationSpec{}},
		"watchrule.md":            {v1alpha1.WatchRuleSpec{}},
		"clusterwatchrule.md":     {v1alpha1.ClusterWatchRuleSpec{}},
		"gitdestinationstatus.md": {v1alpha1.GitDestinationRecord{}},
		"appcatalog.md":           {v1alpha1.AppCatalogSpec{}, v1alpha1.AppCatalogStatus{}},
		"catalogworkload.md":      {v1alpha1.CatalogWorkloadRecord{}},
		"environment.md": {
			v1alpha1.EnvironmentSpec{}, v1alpha1.Adaptation{}, v1alpha1.IngressHosts{}, v1alpha1.EnvironmentStatus{},
		},
		"environmentdependency.md": {v1alpha1.EnvironmentDependencyRecord{}},
		"syncstatus.md":            {v1alpha1.SyncStatusSpec{}, v1alpha1.SyncRecord{}},
		"syncpipeline.md": {
			v1alpha1.SyncPipelineSpec{}, v1alpha1.DefinitionSource{}, v1alpha1.InstanceSource{}, v1alpha1.PipelineBatch{}, v1alpha1.HTTPSink{},
			v1alpha1.JobSink{}, v1alpha1.PipelineRetry{}, v1alpha1.SyncPipelineStatus{}, v1alpha1.PipelineSinkStatus{}, v1alpha1.PipelineRun{},
			v1alpha1.PipelineSyncSpec{},
		},
		"notificationsink.md": {
			v1alpha1.NotificationSinkSpec{}, v1alpha1.SlackSink{}, v1alpha1.TeamsSink{}, v1alpha1.EmailSink{}, v1alpha1.WebhookSink{},
			v1alpha1.NotificationAuthors{}, v1alpha1.NotificationTemplate{}, v1alpha1.NotificationSinkStatus{},
			v1alpha1.NotificationTestSpec{}, v1alpha1.NotificationTestStatus{},
		},
		"change.md": {
			v1alpha1.ChangeSpec{}, v1alpha1.ChangedObject{}, v1alpha1.ChangedVersions{}, v1alpha1.ChangeAuthor{}, v1alpha1.ChangeCommit{},
		},
		"syncpolicy.md": {
			v1alpha1.SyncPolicySpec{}, v1alpha1.SuspendedWork{}, v1alpha1.Retention{}, v1alpha1.ChangeRetention{}, v1alpha1.Reminders{},
			v1alpha1.SyncPolicyStatus{},
		},
	} {
		text := readFile(t, filepath.Join(root, "docs/kinds", page))
		for _, part := range parts {
			kind := reflect.TypeOf(part)
			for i := range kind.NumField() {
				name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
				if name != "observedGeneration" && name != "conditions" && !named(text, name) {
					t.Errorf("docs/kinds/%s does not name the field %s of %s", page, name, kind.Name())
				}
			}
		}
	}
}

// named reports whether a text names a field, by itself or as a part of a path.
func named(text, field string) bool {
	return strings.Contains(text, "`"+field) || slices.ContainsFunc([]string{"`", ".", "[", "{"}, func(end string) bool {
		return strings.Contains(text, "."+field+end)
	})
}

// TestEveryFlagIsNamed checks that the page on operations names each flag of the server.
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
