// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	whisperer = v1alpha1.PipelineFormatClusterWhisperer
	dotAI     = v1alpha1.PipelineFormatDotAI
	events    = v1alpha1.PipelineFormatCloudEvents
)

// wanted are the calls in each format for one change. NAME stands for the name of the fixture, words such as CREATED for values
// that the cluster chooses.
type wanted map[v1alpha1.PipelineFormat]string

var (
	definitionUpsert = wanted{
		whisperer: `/api/v1/capabilities/scan {"upserts": ["widgets.NAME.example.com"], "deletes": []}`,
		dotAI: `/api/v1/tools/manageOrgData {"dataType": "capabilities", "operation": "scan", "resourceList": "Widget.NAME.example.com",
			"collection": "capabilities"}`,
		events: `ai.configbutler.crd.changed {"upserts": [{"name": "widgets.NAME.example.com", "group": "NAME.example.com", "kind": "Widget"}],
			"deletes": []}`,
	}
	instanceUpsert = wanted{
		whisperer: `/api/v1/instances/sync {"upserts": [{"id": "NAME/NAME.example.com/v1/Widget/first", "namespace": "NAME", "name": "first",
			"kind": "Widget", "apiVersion": "NAME.example.com/v1", "apiGroup": "NAME.example.com", "labels": {"tier": "TIER"},
			"annotations": {"note": "kept"}, "createdAt": "CREATED"}], "deletes": []}`,
		dotAI: `/api/v1/resources/sync {"upserts": [{"namespace": "NAME", "name": "first", "kind": "Widget", "apiVersion": "NAME.example.com/v1",
			"labels": {"tier": "TIER"}, "annotations": {"note": "kept"}, "createdAt": "CREATED", "updatedAt": "UPDATED"}], "deletes": [],
			"isResync": false}`,
		events: `ai.configbutler.instances.changed {"upserts": [{"namespace": "NAME", "name": "first", "kind": "Widget",
			"apiVersion": "NAME.example.com/v1", "uid": "UID", "labels": {"tier": "TIER"}, "annotations": {"note": "kept"},
			"createdAt": "CREATED", "updatedAt": "UPDATED"}], "deletes": []}`,
	}
	instanceDelete = wanted{
		whisperer: `/api/v1/instances/sync {"upserts": [], "deletes": ["NAME/NAME.example.com/v1/Widget/first"]}`,
		dotAI: `/api/v1/resources/sync {"upserts": [], "deletes": [{"namespace": "NAME", "name": "first", "kind": "Widget",
			"apiVersion": "NAME.example.com/v1"}], "isResync": false}`,
		events: `ai.configbutler.instances.changed {"upserts": [], "deletes": [{"namespace": "NAME", "name": "first", "kind": "Widget",
			"apiVersion": "NAME.example.com/v1"}]}`,
	}
	definitionDelete = wanted{
		whisperer: `/api/v1/capabilities/scan {"upserts": [], "deletes": ["widgets.NAME.example.com"]}`,
		dotAI: `/api/v1/tools/manageOrgData {"dataType": "capabilities", "operation": "delete", "id": "CAPABILITY",
			"collection": "capabilities"}`,
		events: `ai.configbutler.crd.changed {"upserts": [], "deletes": [{"name": "widgets.NAME.example.com", "group": "NAME.example.com",
			"kind": "Widget"}]}`,
	}
)

// widget is an instance as users write it. kubectl stores what it applied in an annotation.
const widget = `
apiVersion: %s.example.com/v1
kind: Widget
metadata: {name: first, namespace: %[1]s, labels: {tier: front}, annotations: {note: kept}}
spec: {password: ` + secretText + `}
`

// audience is a fixture with a receiver of each format.
type audience struct {
	*fixture
	receivers map[v1alpha1.PipelineFormat]*receiver
}

func (s *testCluster) newAudience(t *testing.T, name string) *audience {
	t.Helper()
	a := &audience{fixture: s.newFixture(t, name), receivers: map[v1alpha1.PipelineFormat]*receiver{}}
	for _, format := range []v1alpha1.PipelineFormat{whisperer, dotAI, events} {
		a.receivers[format] = receive(t, format)
	}
	return a
}

// allSinks returns the sinks field with a sink for each receiver.
func (a *audience) allSinks() string {
	var all []string
	for format, receiver := range a.receivers {
		all = append(all, receiver.sink(strings.ToLower(string(format))))
	}
	return sinks(all...)
}

// expect expects every receiver to have received exactly this call since the last check.
func (a *audience) expect(t *testing.T, want wanted, of *unstructured.Unstructured, tier string) {
	t.Helper()
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("capability-Widget."+a.group)))
	capability := strings.Join([]string{sum[:8], sum[8:12], sum[12:16], sum[16:20], sum[20:32]}, "-")
	replace := []string{"NAME", a.name, "TIER", tier, "CAPABILITY", capability}
	if of != nil {
		replace = append(replace, "UID", string(of.GetUID()), "CREATED", timestamp(of.GetCreationTimestamp()),
			"UPDATED", timestamp(updated(of)))
	}
	for format, receiver := range a.receivers {
		receiver.expect(t, strings.NewReplacer(replace...).Replace(want[format]))
	}
}

func timestamp(at metav1.Time) string { return at.UTC().Format(time.RFC3339) }

// updated returns the time of the last write of an object.
func updated(of *unstructured.Unstructured) (last metav1.Time) {
	for _, entry := range of.GetManagedFields() {
		if entry.Time != nil && last.Before(entry.Time) {
			last = *entry.Time
		}
	}
	return last
}

// testFormats creates, changes and deletes a definition and an instance, and checks the calls in each format. The pipeline is
// created before the definition.
func (s *testCluster) testFormats(t *testing.T) {
	a := s.newAudience(t, "formats")
	a.pipeline(t, patient, a.allSinks())
	a.define(t, widgets)
	a.send(t)
	a.expect(t, definitionUpsert, nil, "")

	mirrortest.Eventually(t, "the widget is applied", func(ctx context.Context) error {
		_, err := s.admin.Kubectl.Feed(ctx, fmt.Sprintf(widget, a.name), "apply", "-f", "-")
		return err
	})
	a.send(t)
	a.expect(t, instanceUpsert, a.first(t), "front")

	a.Apply(t, a.manifest(widgets, "as it is now"))
	a.send(t)
	a.expect(t, definitionUpsert, nil, "")

	a.relabel(t, "first", "tier=middle")
	a.relabel(t, "first", "tier=back")
	a.send(t)
	a.expect(t, instanceUpsert, a.first(t), "back")

	before := a.first(t)
	a.remove(t, "first")
	a.waitForPending(t, 3)
	before.SetResourceVersion("")
	before.SetUID("")
	before.SetManagedFields(nil)
	if _, err := a.objects(widgets).Create(t.Context(), before, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.send(t)
	a.expect(t, instanceUpsert, a.first(t), "back")

	a.remove(t, "first")
	a.send(t)
	a.expect(t, instanceDelete, nil, "")

	a.Delete(t, "", a.definitions(widgets)...)
	a.send(t)
	a.expect(t, definitionDelete, nil, "")
	a.mustSync(t, all)
	a.mustSync(t, full)
	for _, receiver := range a.receivers {
		receiver.expect(t)
	}
}

func (c *fixture) first(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object, err := c.objects(widgets).Get(t.Context(), "first", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// send waits until one change is pending for each receiver, and requests a sync.
func (a *audience) send(t *testing.T) {
	t.Helper()
	a.waitForPending(t, int64(len(a.receivers)))
	a.mustSync(t, all)
}
