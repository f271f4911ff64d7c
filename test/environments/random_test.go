// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// changes makes random changes of the source and of an environment.
type changes struct {
	*fixture
	random *rand.Rand
	made   []string
}

// change is a possible change. unique is a text that no other change uses.
type change struct {
	name string
	make func(c *changes, t *testing.T, unique string)
}

// inProduction are changes of the source, inTarget changes that a developer makes.
var (
	inProduction = []change{
		{"image", func(c *changes, t *testing.T, unique string) { c.setImage(t, c.workload(), "shop/main:"+unique) }},
		{"memory", func(c *changes, t *testing.T, _ string) {
			patch(t, c.ann, c.source, "api", fmt.Sprintf(memoryOnly, fmt.Sprintf("%dMi", 64+c.random.IntN(64))))
		}},
		{"a variable", func(c *changes, t *testing.T, unique string) { c.setVariable(t, c.ann, c.source, "RELEASE", unique) }},
		{"a volume", func(c *changes, t *testing.T, unique string) {
			c.applyToSource(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: v-%[1]s}, data: {a: %[1]s}}", unique))
			patch(t, c.ann, c.source, c.workload(), fmt.Sprintf(
				`{"spec":{"template":{"spec":{"volumes":[{"name":"v-%[1]s","configMap":{"name":"v-%[1]s"}}]}}}}`, unique))
		}},
		{"a label", func(c *changes, t *testing.T, unique string) {
			patch(t, c.ann, c.source, c.workload(),
				fmt.Sprintf(`{"metadata":{"labels":{"release":%q}},"spec":{"template":{"metadata":{"labels":{"release":%q}}}}}`, unique, unique))
		}},
		{"a ConfigMap", func(c *changes, t *testing.T, unique string) {
			c.applyToSource(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: %q, k%s: v}}",
				unique, unique))
		}},
		{"a Secret", func(c *changes, t *testing.T, unique string) {
			c.applyToSource(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: setup}, stringData: {TOKEN: %q}}", unique))
		}},
		{"a port", func(c *changes, t *testing.T, _ string) {
			c.applyToSource(t, fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: api}, spec: {selector: {app: api}, "+
				"ports: [{name: http, port: %d, targetPort: http}]}}",
				1000+c.random.IntN(1000)))
		}},
	}
	inTarget = []change{
		{"the developer's variable", func(c *changes, t *testing.T, unique string) { c.setVariable(t, c.dave, c.target, "MINE", unique) }},
		{"the developer's image", func(c *changes, t *testing.T, unique string) {
			patch(t, c.dave, c.target, "worker",
				fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"dave/main:%s"}]}}}}`, unique))
		}},
		{"a deleted copy", func(c *changes, t *testing.T, _ string) {
			c.dave.Run(t, "delete", "-n", c.target, "configmap/pages", "--ignore-not-found")
		}},
		{"a changed copy", func(c *changes, t *testing.T, unique string) {
			c.dave.Run(t, "patch", "-n", c.target, "configmap/settings",
				"--type=merge", "-p", fmt.Sprintf(`{"data":{"level":"dave","own":%q}}`, unique))
		}},
	}
)

func (c *changes) workload() string { return []string{"api", "worker"}[c.random.IntN(2)] }

func (c *changes) setVariable(t *testing.T, by *people.Person, namespace, name, value string) {
	t.Helper()
	patch(t, by, namespace, c.workload(), fmt.Sprintf(
		`{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":%q,"value":%q}]}]}}}}`, name, value))
}

// make makes changes in both namespaces, the last one of a workload of the source, and waits until the catalog offers it.
func (c *changes) make(t *testing.T, round int) {
	t.Helper()
	for i := range 4 {
		from := inProduction
		if i == 0 {
			from = inTarget
		}
		c.apply(t, from[c.random.IntN(len(from))], fmt.Sprintf("r%d-%d", round, i))
	}
	last := fmt.Sprintf("r%d-last", round)
	c.apply(t, inProduction[0], last)
	c.waitForImage(t, "shop/main:"+last)
}

func (c *changes) apply(t *testing.T, change change, unique string) {
	t.Helper()
	c.made = append(c.made, change.name+" "+unique)
	change.make(c, t, unique)
}

// waitForImage waits until the catalog and the environment have an image.
func (c *changes) waitForImage(t *testing.T, image string) {
	t.Helper()
	var revision int64
	mirrortest.Eventually(t, "the catalog has the changes", func(ctx context.Context) error {
		workloads, err := c.eve.Own.ConfigbutlerV1alpha1().CatalogWorkloads(c.team).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, workload := range workloads.Items {
			if manifest := workload.Status.Manifest; manifest != nil && bytes.Contains(manifest.Raw, []byte(image)) {
				revision = workload.Status.Revision
				return nil
			}
		}
		return fmt.Errorf("no workload has the image %s", image)
	})
	c.waitForRevision(t, "alice", revision)
}
