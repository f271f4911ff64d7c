// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

const (
	// pipelineOf is the manifest of a pipeline: its name, and the rest of its spec.
	pipelineOf = `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: %s}
spec:
  %s
`
	// patient makes changes wait for a sync request, so that calls do not depend on timing.
	patient = "debounce: 10m\n  batch: {maxWait: 5m}"
	// prompt makes changes be sent immediately.
	prompt = "debounce: 0s\n  batch: {maxWait: 0s}"
	// noDefinitions disables CustomResourceDefinitions, noInstances everything else.
	noDefinitions = "customResourceDefinitions: {enabled: false}"
	noInstances   = "instances: {enabled: false}"
)

// fixture has a namespace, an API group, and a pipeline for its objects.
type fixture struct {
	*testCluster
	// name is the name of the namespace and of the pipeline.
	name string
	// group is a unique API group.
	group string
}

func (s *testCluster) newFixture(t *testing.T, name string) *fixture {
	t.Helper()
	s.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", name))
	t.Cleanup(func() { s.DeleteIfExist(t, "", "pipe/"+name) }) // The receivers stop, too.
	return &fixture{testCluster: s, name: name, group: name + ".example.com"}
}

// widgets is the resource that most tests define.
const widgets = "widgets"

// definition is the manifest of a CustomResourceDefinition: its plural, group, kind, singular and schema description.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {plural: %[1]s, singular: %[4]s, kind: %[3]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, description: %[5]q, x-kubernetes-preserve-unknown-fields: true}
---
`

// manifest returns the definition of a plural.
func (c *fixture) manifest(plural, description string) string {
	singular := strings.TrimSuffix(plural, "s")
	return fmt.Sprintf(definition, plural, c.group, strings.ToUpper(singular[:1])+singular[1:], singular, description)
}

// define installs the definitions of plurals, and waits until they are established.
func (c *fixture) define(t *testing.T, plurals ...string) {
	t.Helper()
	var manifests strings.Builder
	for _, plural := range plurals {
		manifests.WriteString(c.manifest(plural, "as it was"))
	}
	c.Apply(t, manifests.String())
	c.HaveCondition(t, "", "Established", c.definitions(plurals...)...)
}

// definitions returns the definitions of plurals, as KIND/NAME.
func (c *fixture) definitions(plurals ...string) (names []string) {
	for _, plural := range plurals {
		names = append(names, "crd/"+plural+"."+c.group)
	}
	return names
}

// objects returns a client for the objects of a plural in the namespace of the fixture.
func (c *fixture) objects(plural string) dynamic.ResourceInterface {
	return c.admin.Dynamic.Resource(schema.GroupVersionResource{Group: c.group, Version: "v1", Resource: plural}).Namespace(c.name)
}

// create creates a widget with labels such as tier=front.
func (c *fixture) create(t *testing.T, name string, labels ...string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(c.group + "/v1")
	object.SetKind("Widget")
	object.SetName(name)
	object.SetLabels(pairs(labels))
	var created *unstructured.Unstructured
	mirrortest.Eventually(t, "widget "+name+" is created", func(ctx context.Context) (err error) {
		// A new definition is served some time after it is established.
		created, err = c.objects(widgets).Create(ctx, object, metav1.CreateOptions{})
		if !apierrors.IsNotFound(err) && err != nil {
			t.Fatal(err)
		}
		return err
	})
	return created
}

// relabel changes the labels of a widget.
func (c *fixture) relabel(t *testing.T, name string, labels ...string) *unstructured.Unstructured {
	t.Helper()
	object, err := c.objects(widgets).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.SetLabels(pairs(labels))
	if object, err = c.objects(widgets).Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return object
}

func (c *fixture) remove(t *testing.T, name string) {
	t.Helper()
	if err := c.objects(widgets).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pairs parses labels such as tier=front.
func pairs(labels []string) map[string]string {
	out := map[string]string{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		out[key] = value
	}
	return out
}

// pipeline has eve apply the pipeline, with the fixture's definitions and widgets unless the lines of its spec select others, and
// waits until the server has observed it.
func (c *fixture) pipeline(t *testing.T, lines ...string) {
	t.Helper()
	c.eve.Apply(t, c.ofLines(lines...))
	c.waitFor(t, "is observed", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("observed generation %d of %d", p.Status.ObservedGeneration, p.Generation)
		}
		return nil
	})
}

// readyPipeline applies the pipeline and waits until it is ready.
func (c *fixture) readyPipeline(t *testing.T, lines ...string) {
	t.Helper()
	c.pipeline(t, lines...)
	c.Ready(t, "", "pipe/"+c.name)
}

// apply has a user apply the pipeline with kubectl, to check what kubectl prints.
func (c *fixture) apply(ctx context.Context, by *people.Person, lines ...string) (string, error) {
	return by.Kubectl.Feed(ctx, c.ofLines(lines...), "apply", "-f", "-")
}

// ofLines returns the manifest of the pipeline with lines of its spec.
func (c *fixture) ofLines(lines ...string) string {
	given := func(field string) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, field+": ") })
	}
	if !given("customResourceDefinitions") {
		lines = append(lines, fmt.Sprintf("customResourceDefinitions: {include: ['*.%s']}", c.group))
	}
	if !given("instances") {
		lines = append(lines, c.selects(widgets))
	}
	return fmt.Sprintf(pipelineOf, c.name, strings.Join(lines, "\n  "))
}

// selects returns the field of a spec that selects types of the fixture.
func (c *fixture) selects(plurals ...string) string {
	var resources []string
	for _, plural := range plurals {
		resources = append(resources, plural+"."+c.group)
	}
	return fmt.Sprintf("instances: {resources: [%s]}", strings.Join(resources, ", "))
}

// waitFor waits until a check of the pipeline succeeds.
func (c *fixture) waitFor(t *testing.T, what string, check func(*v1alpha1.SyncPipeline) error) (p *v1alpha1.SyncPipeline) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("pipeline %s %s", c.name, what), func(ctx context.Context) (err error) {
		if p, err = c.eve.Own.ConfigbutlerV1alpha1().SyncPipelines().Get(ctx, c.name, metav1.GetOptions{}); err != nil {
			return err
		}
		if err = check(p); err != nil {
			err = fmt.Errorf("%w: %s", err, describe(p))
		}
		return err
	})
	return p
}

// describe returns the status of a pipeline, for messages.
func describe(p *v1alpha1.SyncPipeline) string {
	text, err := json.Marshal(p.Status)
	return fmt.Sprintf("%s (%v)", text, err)
}

// waitForPending waits until a number of objects are pending, counted for each sink.
func (c *fixture) waitForPending(t *testing.T, pending int64) {
	t.Helper()
	c.waitFor(t, fmt.Sprintf("has %d pending objects", pending), func(p *v1alpha1.SyncPipeline) error {
		if p.Status.Pending != pending {
			return fmt.Errorf("%d pending", p.Status.Pending)
		}
		return nil
	})
}

// waitForDelivered waits until the sink index has recorded a number of objects as delivered. A receiver has accepted them earlier: when the
// pipeline ends in between, they are sent again.
func (c *fixture) waitForDelivered(t *testing.T, delivered int64) {
	t.Helper()
	c.waitForSink(t, "index", fmt.Sprintf("has delivered %d objects", delivered), func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Delivered != delivered || sink.Pending > 0 {
			return fmt.Errorf("%d delivered, %d pending", sink.Delivered, sink.Pending)
		}
		return nil
	})
}

// waitForSink waits until a check of a sink's status succeeds.
func (c *fixture) waitForSink(t *testing.T, name, what string, check func(*v1alpha1.PipelineSinkStatus) error) {
	t.Helper()
	c.waitFor(t, "has a sink "+name+" that "+what, func(p *v1alpha1.SyncPipeline) error {
		for i := range p.Status.Sinks {
			if sink := &p.Status.Sinks[i]; sink.Name == name {
				return check(sink)
			}
		}
		return fmt.Errorf("no sink %s", name)
	})
}
