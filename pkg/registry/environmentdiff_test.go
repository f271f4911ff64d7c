// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// planner plans changes of web and settings that say what was asked of it.
type planner struct{ err error }

func (p planner) plan(e *v1alpha1.Environment, what string) (*v1alpha1.SyncPlan, error) {
	change := func(kind, name string) v1alpha1.ObjectChange {
		return v1alpha1.ObjectChange{
			Action: v1alpha1.SyncActionCatalog, APIVersion: "v1", Kind: kind, Namespace: e.Spec.TargetNamespace, Name: name,
			ChangeType: v1alpha1.ChangeChanged,
		}
	}
	return &v1alpha1.SyncPlan{
		FromRevision: e.Status.AppliedRevision, Revision: 5, DependencySync: e.Status.LatestDependencySync, Unchanged: 7,
		Changes:  []v1alpha1.ObjectChange{change("ConfigMap", "settings"), change("Deployment", "web"), change("Deployment", "api")},
		Warnings: []string{what},
	}, p.err
}

func (p planner) Diff(_ context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error) {
	return p.plan(e, "diff")
}

func (p planner) SecretDiff(_ context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error) {
	return p.plan(e, "secretdiff")
}

func (p planner) Rehearse(_ context.Context, e *v1alpha1.Environment, request v1alpha1.SyncRequestSpec) (*v1alpha1.SyncPlan, error) {
	return p.plan(e, fmt.Sprintf("rehearsal of %s with force %t", request.Action, request.Force))
}

// planning storage plans.
func planning(c *registry.Config) { c.Plans = planner{} }

// getting is an authorizer that allows a user to get the Secrets of namespaces, and nothing else.
func getting(user string, namespaces ...string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		secrets := a.GetVerb() == "get" && a.GetResource() == "secrets" && a.GetAPIGroup() == "" && a.GetName() == ""
		if secrets && a.GetUser().GetName() == user && slices.Contains(namespaces, a.GetNamespace()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

func diffOf(ctx context.Context, storage *registry.Storage, endpoint string) (*configbutler.EnvironmentDiff, error) {
	obj, err := storage.Endpoints[endpoint].(rest.Getter).Get(ctx, "alice", &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*configbutler.EnvironmentDiff), nil
}

func TestDiff(t *testing.T) {
	storage := newStorage(t, planning)
	newEnvironment(t, storage, asIs)
	open := prompts(t, storage)
	before := storedEnvironment(t, storage)
	diff, err := diffOf(as(t, "jane"), storage, "environments/diff")
	if err != nil {
		t.Fatal(err)
	}
	status := &diff.Status
	if diff.Name != "alice" || diff.Namespace != namespace || len(status.Changes) != 3 || !slices.Equal(status.Warnings, []string{"diff"}) {
		t.Errorf("%+v", diff)
	}
	if status.CatalogSync != "shop-newer" || status.DependencySync != open.Name || status.FromRevision != 4 || status.Revision != 5 {
		t.Errorf("%+v", status)
	}
	unchanged(t, storage, before)
}

// TestDiffNamesTheAuthorsOfChanges checks that the author of a change is shown if a record names it, and is never
// guessed.
func TestDiffNamesTheAuthorsOfChanges(t *testing.T) {
	jane, joe := v1alpha1.SourceAuthor{Username: "jane", Signal: v1alpha1.SignalAudit},
		v1alpha1.SourceAuthor{Username: "joe", Signal: v1alpha1.SignalAudit}
	web, api := v1alpha1.ResourceSummary{Type: "Deployment", Namespace: "production", Name: "web", ChangeType: v1alpha1.ChangeChanged},
		v1alpha1.ResourceSummary{Type: "Deployment", Namespace: "production", Name: "api", ChangeType: v1alpha1.ChangeChanged}
	tests := map[string]struct {
		revision int64
		preview  bool
		changed  []v1alpha1.ResourceSummary
		by       []v1alpha1.SourceAuthor
		want     string
	}{
		"one object, two users": {
			revision: 5, changed: []v1alpha1.ResourceSummary{web}, by: []v1alpha1.SourceAuthor{jane, joe}, want: "web: jane joe",
		},
		"two objects, one user": {
			revision: 5, changed: []v1alpha1.ResourceSummary{web, api}, by: []v1alpha1.SourceAuthor{jane}, want: "web: jane api: jane",
		},
		"two objects, two users": {revision: 5, changed: []v1alpha1.ResourceSummary{web, api}, by: []v1alpha1.SourceAuthor{jane, joe}},
		"it was there before":    {revision: 4, changed: []v1alpha1.ResourceSummary{web}, by: []v1alpha1.SourceAuthor{jane}},
		"it is only recorded":    {revision: 5, preview: true, changed: []v1alpha1.ResourceSummary{web}, by: []v1alpha1.SourceAuthor{jane}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t, planning)
			newEnvironment(t, storage, asIs)
			record, err := newRecord(storedCatalog(t, storage), "b2", syncstatus.Step{To: v1alpha1.SyncStateAutoApplied, At: noon})
			if err != nil {
				t.Fatal(err)
			}
			syncstatus.SetChanges(record, tt.changed)
			record.Status.Revision, record.Status.Preview, record.Status.ChangedBy = tt.revision, tt.preview, tt.by
			if _, err := storage.Records.Write(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			diff, err := diffOf(as(t, "jane"), storage, "environments/diff")
			if err != nil {
				t.Fatal(err)
			}
			var authors []string
			for _, change := range diff.Status.Changes {
				if len(change.ChangedBy) > 0 {
					authors = append(authors, change.Name+":")
				}
				for _, author := range change.ChangedBy {
					authors = append(authors, author.Username)
				}
			}
			if got := strings.Join(authors, " "); got != tt.want {
				t.Errorf("authors = %q, want %q", got, tt.want)
			}
		})
	}
}

// The right to read secretdiff, which comes before, is not enough: what it shows, the user must be allowed to get.
func TestSecretDiffTakesTheRightToReadSecrets(t *testing.T) {
	const target, source = "shop-alice", "production"
	tests := map[string]struct {
		may     []string
		shared  bool
		patches []configbutler.Patch
		missing []string
	}{
		"both":                  {may: []string{target, source}},
		"the target only":       {may: []string{target}, missing: []string{source}},
		"the source only":       {may: []string{source}, missing: []string{target}},
		"neither":               {missing: []string{target, source}},
		"the source is shared":  {may: []string{target}, shared: true},
		"it is, and no right":   {shared: true, missing: []string{target}},
		"another's":             {may: []string{"default"}, missing: []string{target, source}},
		"shared but for others": {may: []string{target}, shared: true, patches: []configbutler.Patch{naming}, missing: []string{source}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t, planning, func(c *registry.Config) { c.Authorizer = getting("jane", tt.may...) })
			newEnvironment(t, storage, func(e envt) { e.Spec.Patches = tt.patches })
			if tt.shared {
				if err := editCatalog(in(t), storage, "appcatalogs",
					func(c *configbutler.AppCatalog) { c.Spec.Secrets = configbutler.CatalogSecretsShared }); err != nil {
					t.Fatal(err)
				}
			}
			diff, err := diffOf(as(t, "jane"), storage, "environments/secretdiff")
			if len(tt.missing) == 0 {
				if err != nil || !slices.Equal(diff.Status.Warnings, []string{"secretdiff"}) {
					t.Errorf("%v: %+v", err, diff)
				}
				return
			}
			if !apierrors.IsForbidden(err) {
				t.Fatal(err)
			}
			for _, namespace := range tt.missing {
				want := fmt.Sprintf(`user "jane" cannot get secrets in the namespace %s, `+
					`whose content is shown: ask for a Role in the namespace %s that `+
					`allows get on resource "secrets" in API group "", or read the subresource diff, which hides it`, namespace, namespace)
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %s", err, want)
				}
			}
			if n := strings.Count(err.Error(), "cannot get secrets"); n != len(tt.missing) {
				t.Errorf("%d are missing, want %d: %v", n, len(tt.missing), err)
			}
		})
	}
}

// naming is a patch that has another Secret copied than the catalog's workloads refer to.
var naming = configbutler.Patch{
	Target: configbutler.PatchTarget{Kind: "Deployment"}, Type: configbutler.PatchStrategicMerge,
	Patch: "spec: {template: {spec: {containers: [{name: web, envFrom: [{secretRef: {name: root}}]}]}}}",
}

func TestSecretDiffWithoutAUser(t *testing.T) {
	storage := newStorage(t, planning, func(c *registry.Config) { c.Authorizer = getting("", "shop-alice", "production") })
	newEnvironment(t, storage, asIs)
	if _, err := diffOf(in(t), storage, "environments/secretdiff"); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a user: %v", err)
	}
	without := newStorage(t, planning)
	newEnvironment(t, without, asIs)
	if _, err := diffOf(as(t, "jane"), without, "environments/secretdiff"); !apierrors.IsUnauthorized(err) {
		t.Errorf("without an authorizer: %v", err)
	}
}

func TestADryRunOfASyncIsAPlan(t *testing.T) {
	storage := newStorage(t, planning)
	before := newEnvironment(t, storage, asIs)
	request := requestOf(func(s *configbutler.SyncRequestSpec) { s.Action, s.Force = configbutler.SyncActionCatalog, true })
	answer, err := ask(as(t, "jane"), storage, "environments/sync", "alice", request, metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Would sync workloads with what they refer to (dry run)"; !answer.Status.Accepted || answer.Status.Message != want {
		t.Errorf("answer %+v, want %s", answer.Status, want)
	}
	plan := answer.Status.Plan
	if plan == nil || len(plan.Changes) != 3 || plan.CatalogSync != "shop-newer" || len(answer.Status.SyncStatuses) > 0 {
		t.Fatalf("plan %+v", plan)
	}
	if diff := cmp.Diff([]string{"rehearsal of Catalog with force true"}, plan.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	unchanged(t, storage, before)
}

func TestPlansThatCannotBeMade(t *testing.T) {
	tests := map[string]struct {
		plans registry.Plans
		is    func(error) bool
		want  string
	}{
		"the cluster does not answer": {
			plans: planner{errors.New("list Services in production: timeout")},
			is:    apierrors.IsInternalError, want: "list Services in production: timeout",
		},
		"nothing plans": {is: apierrors.IsServiceUnavailable, want: "this server does not plan syncs"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t, func(c *registry.Config) { c.Plans = tt.plans })
			before := newEnvironment(t, storage, asIs)
			_, err := diffOf(as(t, "jane"), storage, "environments/diff")
			_, rehearsal := ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(everything), metav1.DryRunAll)
			for _, err := range []error{err, rehearsal} {
				if !tt.is(err) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
			}
			unchanged(t, storage, before)
		})
	}
}

// A catalog of another namespace that admits the environment no more shows it nothing any more, and is not taken from.
func TestEnvironmentsOfCatalogsElsewhere(t *testing.T) {
	teams := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	tests := map[string]struct {
		rules  configbutler.NamespacedRules
		admits bool
	}{
		"of its own namespace only": {rules: configbutler.NamespacedRules{Mode: configbutler.AccessModeSameNamespace}},
		"of all namespaces":         {rules: configbutler.NamespacedRules{Mode: configbutler.AccessModeAllNamespaces}, admits: true},
		"of some": {
			rules: configbutler.NamespacedRules{Mode: configbutler.AccessModeFromSelector, NamespaceSelector: teams}, admits: true,
		},
		"of others": {rules: configbutler.NamespacedRules{
			Mode: configbutler.AccessModeFromSelector, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "other"}},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t, planning, impatient, func(c *registry.Config) {
				c.Labels = func(name string) (labels.Set, bool) { return labels.Set{"team": "shop"}, name == namespace }
				c.Authorizer = getting("jane", "shop-alice", "production")
			})
			elsewhere := catalog()
			elsewhere.Namespace, elsewhere.Spec.AccessPolicy = "platform", &configbutler.CatalogAccessPolicy{NamespacedRules: tt.rules}
			platform := genericapirequest.WithNamespace(as(t, "eve"), "platform")
			if err := createCatalog(platform, storage, elsewhere); err != nil {
				t.Fatal(err)
			}
			of := environment()
			of.Spec.CatalogRef.Namespace = "platform"
			createEnvironment(as(t, "eve"), t, storage, of)
			_, diff := diffOf(as(t, "jane"), storage, "environments/diff")
			_, secretDiff := diffOf(as(t, "jane"), storage, "environments/secretdiff")
			_, rehearsal := ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(everything), metav1.DryRunAll)
			_, sync := ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(everything))
			const refusal = "AppCatalog platform/shop does not admit Environments of the namespace shop; its spec.accessPolicy can"
			for _, err := range []error{diff, secretDiff, rehearsal, sync} {
				if tt.admits && err != nil || !tt.admits && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), refusal)) {
					t.Errorf("admitted %v: %v", tt.admits, err)
				}
			}
		})
	}
}
