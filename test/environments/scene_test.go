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
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// catalogOf is a catalog: its name, its namespace, its source, and the rest of its spec.
const catalogOf = `
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: %s, namespace: %s}
spec:
  sourceNamespace: %s
  secrets: Shared
  %s
`

// environmentOf is an environment: its name, its namespace, its target, and the rest of its spec.
const environmentOf = `
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: %s, namespace: %s}
spec:
  targetNamespace: %s
  %s
`

// catalogRef begins the line of a spec that names another catalog than shop.
const catalogRef = "catalogRef: "

// scene is a production namespace, that of a team with eve's catalogs and dave's environments, and a target.
type scene struct {
	*stage
	source, team, target string
}

// newScene has production in its namespace, of which there is a catalog called shop with these lines of its spec.
func (s *stage) newScene(t *testing.T, name, production string, lines ...string) *scene {
	t.Helper()
	c := &scene{stage: s, source: name + "-production", team: name + "-team", target: name}
	s.Apply(t, namespace(c.source)+people.In(c.source, "admin", s.ann.Name)+people.In(c.source, "view", s.eve.Name)+
		people.In(c.source, "secret-readers", s.eve.Name)+people.In(c.source, people.Catalogs, people.Server)+people.In(c.source, people.Sources, people.Server)+
		namespace(c.team)+people.In(c.team, "slipstream-edit", s.eve.Name)+people.In(c.team, "slipstream-edit", s.dave.Name)+
		people.In(c.team, "slipstream-edit", s.mallory.Name))
	c.newTarget(t, c.target)
	c.produce(t, production)
	c.catalog(t, "shop", lines...)
	return c
}

// newTarget makes a namespace in which dave may work, and the server.
func (c *scene) newTarget(t *testing.T, name string) {
	t.Helper()
	c.Apply(t, namespace(name)+c.targetRights(name))
}

func (c *scene) targetRights(name string) string {
	return people.In(name, "edit", c.dave.Name) + people.In(name, people.Targets, people.Server)
}

func namespace(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", name)
}

// produce has ann apply manifests in production.
func (c *scene) produce(t *testing.T, manifests string) {
	t.Helper()
	if _, err := c.ann.Kubectl.Feed(t.Context(), manifests, "apply", "-n", c.source, "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// catalog has eve apply a catalog with lines of its spec, and waits until it offers what it says.
func (c *scene) catalog(t *testing.T, name string, lines ...string) {
	t.Helper()
	manifest := fmt.Sprintf(catalogOf, name, c.team, c.source, strings.Join(lines, "\n  "))
	if _, err := c.eve.Kubectl.Feed(t.Context(), manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the catalog offers its workloads", func(ctx context.Context) error {
		catalog, err := c.eve.Own.ConfigbutlerV1alpha1().AppCatalogs(c.team).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return offers(catalog)
	})
}

// offers says whether a catalog offers what its spec says, and follows its source.
func offers(catalog *v1alpha1.AppCatalog) error {
	status := &catalog.Status
	if status.ObservedGeneration != catalog.Generation || !apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) ||
		!apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionSourceReachable) {
		return fmt.Errorf("generation %d of %d: %+v", status.ObservedGeneration, catalog.Generation, status.Conditions)
	}
	return nil
}

// environment has dave apply an environment in the target of the scene, and waits until the server has looked at it.
func (c *scene) environment(t *testing.T, name string, lines ...string) *v1alpha1.Environment {
	t.Helper()
	return c.environmentIn(t, name, c.target, lines...)
}

func (c *scene) environmentIn(t *testing.T, name, target string, lines ...string) *v1alpha1.Environment {
	t.Helper()
	if _, err := c.applyEnvironment(t.Context(), c.dave, name, target, lines...); err != nil {
		t.Fatal(err)
	}
	return c.becomes(t, name, "is looked at", func(e *v1alpha1.Environment) error {
		if e.Status.ObservedGeneration != e.Generation {
			return fmt.Errorf("its status is about generation %d of %d", e.Status.ObservedGeneration, e.Generation)
		}
		return nil
	})
}

func (c *scene) applyEnvironment(ctx context.Context, by *people.Person, name, target string, lines ...string) (string, error) {
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, catalogRef) }) {
		lines = append(lines, catalogRef+"{name: shop}")
	}
	return by.Kubectl.Feed(ctx, fmt.Sprintf(environmentOf, name, c.team, target, strings.Join(lines, "\n  ")), "apply", "-f", "-")
}

// get reads an environment.
func (c *scene) get(t *testing.T, name string) *v1alpha1.Environment {
	t.Helper()
	e, err := c.dave.Own.ConfigbutlerV1alpha1().Environments(c.team).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// becomes waits until an environment is as it should be.
func (c *scene) becomes(t *testing.T, name, what string, check func(*v1alpha1.Environment) error) (e *v1alpha1.Environment) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("environment %s/%s %s", c.team, name, what), func(ctx context.Context) (err error) {
		if e, err = c.dave.Own.ConfigbutlerV1alpha1().Environments(c.team).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if err = check(e); err != nil {
			err = fmt.Errorf("%w: %s", err, c.tell(ctx))
		}
		return err
	})
	return e
}

// tell is what a user sees of environments and records.
func (c *scene) tell(ctx context.Context) string {
	out, err := c.admin.Kubectl.Run(ctx, "get", "cat,envt,ss", "-n", c.team, "-o", "wide")
	return fmt.Sprintf("\n%s(%v)", out, err)
}

// offered waits until an environment knows that the catalog has come to a revision.
func (c *scene) offered(t *testing.T, name string, revision int64) *v1alpha1.Environment {
	t.Helper()
	return c.becomes(t, name, fmt.Sprintf("is offered revision %d", revision), func(e *v1alpha1.Environment) error {
		if e.Status.LatestRevision < revision {
			return fmt.Errorf("it is offered %d", e.Status.LatestRevision)
		}
		return nil
	})
}

// applied waits until an environment has a revision of the catalog.
func (c *scene) applied(t *testing.T, name string, revision int64) {
	t.Helper()
	c.becomes(t, name, fmt.Sprintf("comes to revision %d", revision), func(e *v1alpha1.Environment) error {
		if e.Status.AppliedRevision != revision {
			return fmt.Errorf("it is at revision %d", e.Status.AppliedRevision)
		}
		return nil
	})
}

// workloads is the line of a catalog that names Deployments.
func workloads(names ...string) string {
	for i, name := range names {
		names[i] = fmt.Sprintf("{kind: Deployment, name: %s}", name)
	}
	return "workloads: [" + strings.Join(names, ", ") + "]"
}
