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
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

const (
	// pipelineOf is a pipeline: its name, and the rest of its spec.
	pipelineOf = `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: %s}
spec:
  %s
`
	// patient has changes wait until somebody asks for them to be sent, so that what is sent depends on nobody's speed.
	patient = "debounce: 10m\n  batch: {maxWait: 5m}"
	// prompt has them sent as they come.
	prompt = "debounce: 0s\n  batch: {maxWait: 0s}"
	// noDefinitions leaves CustomResourceDefinitions out, noInstances all else.
	noDefinitions = "customResourceDefinitions: {enabled: false}"
	noInstances   = "instances: {enabled: false}"
)

// scene is a namespace, an API group of definitions, and a pipeline that tells of them.
type scene struct {
	*stage
	// name is that of the namespace and of the pipeline.
	name string
	// group ends in that of every other scene.
	group string
}

func (s *stage) newScene(t *testing.T, name string) *scene {
	t.Helper()
	s.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", name))
	t.Cleanup(func() {
		// Its receivers end, too.
		if _, err := s.Administrator.Run(context.WithoutCancel(t.Context()), "delete", "pipe", name, "--ignore-not-found"); err != nil {
			t.Error(err)
		}
	})
	return &scene{stage: s, name: name, group: name + ".example.com"}
}

// widgets is the resource that most scenes define.
const widgets = "widgets"

// definition is a CustomResourceDefinition: its plural, its group, its kind and a description in its schema.
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

// manifest is the definition of a plural, whose kind is called accordingly.
func (c *scene) manifest(plural, description string) string {
	singular := strings.TrimSuffix(plural, "s")
	return fmt.Sprintf(definition, plural, c.group, strings.ToUpper(singular[:1])+singular[1:], singular, description)
}

// define installs the definitions of plurals, and waits until they are established.
func (c *scene) define(t *testing.T, plurals ...string) {
	t.Helper()
	var manifests strings.Builder
	for _, plural := range plurals {
		manifests.WriteString(c.manifest(plural, "as it was"))
	}
	c.Apply(t, manifests.String())
	c.Run(t, append([]string{"wait", "--for=condition=Established", "--timeout=180s"}, c.definitions(plurals...)...)...)
}

// definitions are the names under which kubectl knows those of plurals.
func (c *scene) definitions(plurals ...string) (names []string) {
	for _, plural := range plurals {
		names = append(names, "crd/"+plural+"."+c.group)
	}
	return names
}

// objects are those of a plural in the namespace of the scene.
func (c *scene) objects(plural string) dynamic.ResourceInterface {
	return c.admin.Dynamic.Resource(schema.GroupVersionResource{Group: c.group, Version: "v1", Resource: plural}).Namespace(c.name)
}

// create makes a widget. The labels are such as tier=front.
func (c *scene) create(t *testing.T, name string, labels ...string) *unstructured.Unstructured {
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
func (c *scene) relabel(t *testing.T, name string, labels ...string) *unstructured.Unstructured {
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

func (c *scene) remove(t *testing.T, name string) {
	t.Helper()
	if err := c.objects(widgets).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pairs are labels such as tier=front.
func pairs(labels []string) map[string]string {
	out := map[string]string{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		out[key] = value
	}
	return out
}

// pipeline has eve apply the scene's pipeline, which tells of the scene's definitions and widgets unless the lines of its spec
// say otherwise, and waits until the server has looked at it.
func (c *scene) pipeline(t *testing.T, lines ...string) {
	t.Helper()
	if _, err := c.apply(t.Context(), c.eve, lines...); err != nil {
		t.Fatal(err)
	}
	c.becomes(t, "is looked at", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("its status is about generation %d of %d", p.Status.ObservedGeneration, p.Generation)
		}
		return nil
	})
}

// listens does so and waits until everything that the pipeline selects is seen.
func (c *scene) listens(t *testing.T, lines ...string) {
	t.Helper()
	c.pipeline(t, lines...)
	c.Ready(t, "pipe/"+c.name)
}

func (c *scene) apply(ctx context.Context, by *people.Person, lines ...string) (string, error) {
	given := func(field string) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, field+": ") })
	}
	if !given("customResourceDefinitions") {
		lines = append(lines, fmt.Sprintf("customResourceDefinitions: {include: ['*.%s']}", c.group))
	}
	if !given("instances") {
		lines = append(lines, c.tellsOf(widgets))
	}
	return by.Kubectl.Feed(ctx, fmt.Sprintf(pipelineOf, c.name, strings.Join(lines, "\n  ")), "apply", "-f", "-")
}

// tellsOf is the line of a spec that chooses types of the scene.
func (c *scene) tellsOf(plurals ...string) string {
	var resources []string
	for _, plural := range plurals {
		resources = append(resources, plural+"."+c.group)
	}
	return fmt.Sprintf("instances: {resources: [%s]}", strings.Join(resources, ", "))
}

// becomes waits until the pipeline is as it should be.
func (c *scene) becomes(t *testing.T, what string, check func(*v1alpha1.SyncPipeline) error) (p *v1alpha1.SyncPipeline) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("pipeline %s %s", c.name, what), func(ctx context.Context) (err error) {
		if p, err = c.eve.Own.ConfigbutlerV1alpha1().SyncPipelines().Get(ctx, c.name, metav1.GetOptions{}); err != nil {
			return err
		}
		if err = check(p); err != nil {
			err = fmt.Errorf("%w: %s", err, tell(p))
		}
		return err
	})
	return p
}

// tell is what a pipeline says of itself.
func tell(p *v1alpha1.SyncPipeline) string {
	text, err := json.Marshal(p.Status)
	return fmt.Sprintf("%s (%v)", text, err)
}

// waits waits until so many objects wait to be sent, each sink's counted by itself.
func (c *scene) waits(t *testing.T, pending int64) {
	t.Helper()
	c.becomes(t, fmt.Sprintf("has %d objects that wait", pending), func(p *v1alpha1.SyncPipeline) error {
		if p.Status.Pending != pending {
			return fmt.Errorf("%d wait", p.Status.Pending)
		}
		return nil
	})
}

// sinkBecomes waits until what the status says of a sink is as it should be.
func (c *scene) sinkBecomes(t *testing.T, name, what string, check func(*v1alpha1.PipelineSinkStatus) error) {
	t.Helper()
	c.becomes(t, "has a sink "+name+" that "+what, func(p *v1alpha1.SyncPipeline) error {
		for i := range p.Status.Sinks {
			if sink := &p.Status.Sinks[i]; sink.Name == name {
				return check(sink)
			}
		}
		return fmt.Errorf("it has no sink %s", name)
	})
}
