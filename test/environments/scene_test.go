// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// catalogOf is the manifest of a catalog: its name, namespace, source namespace, and the rest of its spec.
const catalogOf = `
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: %s, namespace: %s}
spec:
  sourceNamespace: %s
  secrets: Shared
  %s
`

// environmentOf is the manifest of an environment: its name, namespace, target namespace, and the rest of its spec.
const environmentOf = `
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: %s, namespace: %s}
spec:
  targetNamespace: %s
  %s
`

// catalogRef is the start of the field that selects another catalog than shop.
const catalogRef = "catalogRef: "

// fixture has a source namespace, the namespace of a team with eve's catalogs and dave's environments, and a target.
type fixture struct {
	*testCluster
	source, team, target string
}

// newFixture applies the objects of production in the source and creates a catalog named shop with lines of its spec.
func (s *testCluster) newFixture(t *testing.T, name, production string, lines ...string) *fixture {
	t.Helper()
	c := &fixture{testCluster: s, source: name + "-production", team: name + "-team", target: name}
	s.Apply(t, namespace(c.source)+people.In(c.source, "admin", s.ann.Name)+people.In(c.source, "view", s.eve.Name)+
		people.In(c.source, "secret-readers", s.eve.Name)+people.In(c.source, people.Catalogs, people.Server)+
		people.In(c.source, people.Sources, people.Server)+
		namespace(c.team)+people.In(c.team, "slipstream-edit", s.eve.Name)+people.In(c.team, "slipstream-edit", s.dave.Name)+
		people.In(c.team, "slipstream-edit", s.mallory.Name))
	c.newTarget(t, c.target)
	c.applyToSource(t, production)
	c.applyCatalog(t, "shop", lines...)
	return c
}

// newTarget creates a namespace in which dave and the server have the required permissions.
func (c *fixture) newTarget(t *testing.T, name string) {
	t.Helper()
	c.Apply(t, namespace(name)+c.targetRights(name))
}

func (c *fixture) targetRights(name string) string {
	return people.In(name, "edit", c.dave.Name) + people.In(name, people.Targets, people.Server)
}

func namespace(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", name)
}

// applyToSource has ann apply manifests in the source.
func (c *fixture) applyToSource(t *testing.T, manifests string) {
	t.Helper()
	if _, err := c.ann.Kubectl.Feed(t.Context(), manifests, "apply", "-n", c.source, "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// applyCatalog has eve apply a catalog with lines of its spec, and waits until the catalog is up to date.
func (c *fixture) applyCatalog(t *testing.T, name string, lines ...string) {
	t.Helper()
	manifest := fmt.Sprintf(catalogOf, name, c.team, c.source, strings.Join(lines, "\n  "))
	c.eve.Apply(t, manifest)
	mirrortest.Eventually(t, "the catalog is up to date", func(ctx context.Context) error {
		catalog, err := c.eve.Own.ConfigbutlerV1alpha1().AppCatalogs(c.team).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return checkCatalog(catalog)
	})
}

// checkCatalog returns an error unless the status of a catalog is up to date and its source is reachable.
func checkCatalog(catalog *v1alpha1.AppCatalog) error {
	status := &catalog.Status
	if status.ObservedGeneration != catalog.Generation || !apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) ||
		!apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionSourceReachable) {
		return fmt.Errorf("generation %d of %d: %+v", status.ObservedGeneration, catalog.Generation, status.Conditions)
	}
	return nil
}

// mustApply has dave apply an environment for the target, and waits until the server has observed it.
func (c *fixture) mustApply(t *testing.T, name string, lines ...string) *v1alpha1.Environment {
	t.Helper()
	return c.mustApplyIn(t, name, c.target, lines...)
}

func (c *fixture) mustApplyIn(t *testing.T, name, target string, lines ...string) *v1alpha1.Environment {
	t.Helper()
	c.dave.Apply(t, c.environment(name, target, lines...))
	return c.waitFor(t, name, "is observed", func(e *v1alpha1.Environment) error {
		if e.Status.ObservedGeneration != e.Generation {
			return fmt.Errorf("observed generation %d of %d", e.Status.ObservedGeneration, e.Generation)
		}
		return nil
	})
}

// applyEnvironment has a user apply an environment with kubectl, to check what kubectl prints.
func (c *fixture) applyEnvironment(ctx context.Context, by *people.Person, name, target string, lines ...string) (string, error) {
	return by.Kubectl.Feed(ctx, c.environment(name, target, lines...), "apply", "-f", "-")
}

// environment returns the manifest of an environment with lines of its spec.
func (c *fixture) environment(name, target string, lines ...string) string {
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, catalogRef) }) {
		lines = append(lines, catalogRef+"{name: shop}")
	}
	return fmt.Sprintf(environmentOf, name, c.team, target, strings.Join(lines, "\n  "))
}

// get reads an environment.
func (c *fixture) get(t *testing.T, name string) *v1alpha1.Environment {
	t.Helper()
	e, err := c.dave.Own.ConfigbutlerV1alpha1().Environments(c.team).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// waitFor waits until a check of an environment succeeds.
func (c *fixture) waitFor(t *testing.T, name, what string, check func(*v1alpha1.Environment) error) (e *v1alpha1.Environment) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("environment %s/%s %s", c.team, name, what), func(ctx context.Context) (err error) {
		if e, err = c.dave.Own.ConfigbutlerV1alpha1().Environments(c.team).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if err = check(e); err != nil {
			err = c.described(err)
		}
		return err
	})
	return e
}

// describe returns what kubectl prints about environments and records, for messages.
func (c *fixture) describe(ctx context.Context) string {
	out, err := c.admin.Kubectl.Run(ctx, "get", "cat,envt,ss", "-n", c.team, "-o", "wide")
	return fmt.Sprintf("\n%s(%v)", out, err)
}

// described returns an error that ends with what kubectl prints about environments and records when it is read.
func (c *fixture) described(err error) error {
	return testkit.Described(err, c.describe)
}

// waitForRevision waits until an environment has observed a revision of the catalog.
func (c *fixture) waitForRevision(t *testing.T, name string, revision int64) *v1alpha1.Environment {
	t.Helper()
	return c.waitFor(t, name, fmt.Sprintf("observes revision %d", revision), func(e *v1alpha1.Environment) error {
		if e.Status.LatestRevision < revision {
			return fmt.Errorf("latestRevision = %d", e.Status.LatestRevision)
		}
		return nil
	})
}

// waitForWorkloads waits until all workloads of the catalog shop have changed, and until an environment has observed a revision of the
// catalog with all of them. Objects that are applied slowly are in more than one revision, and workloads are written before the catalog.
func (c *fixture) waitForWorkloads(t *testing.T, environment string, isChanged func(manifest string) bool) {
	t.Helper()
	var revision int64
	mirrortest.Eventually(t, "the catalog offers all changes", func(ctx context.Context) error {
		api := c.eve.Own.ConfigbutlerV1alpha1()
		list, err := api.CatalogWorkloads(c.team).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		newest := int64(0)
		for _, workload := range list.Items {
			if !isChanged(string(workload.Status.Manifest.Raw)) {
				return fmt.Errorf("%s is unchanged", workload.Name)
			}
			newest = max(newest, workload.Status.Revision)
		}
		catalog, err := api.AppCatalogs(c.team).Get(ctx, "shop", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if revision = catalog.Status.Revision; revision < newest {
			return fmt.Errorf("revision of the catalog = %d, of a workload %d", revision, newest)
		}
		return nil
	})
	c.waitForRevision(t, environment, revision)
}

// waitForApplied waits until an environment has applied a revision of the catalog.
func (c *fixture) waitForApplied(t *testing.T, name string, revision int64) {
	t.Helper()
	c.waitFor(t, name, fmt.Sprintf("applies revision %d", revision), func(e *v1alpha1.Environment) error {
		if e.Status.AppliedRevision != revision {
			return fmt.Errorf("appliedRevision = %d", e.Status.AppliedRevision)
		}
		return nil
	})
}

// workloads returns the workloads field of a catalog with Deployments.
func workloads(names ...string) string {
	for i, name := range names {
		names[i] = fmt.Sprintf("{kind: Deployment, name: %s}", name)
	}
	return "workloads: [" + strings.Join(names, ", ") + "]"
}
