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
	"github.com/configbutler/slipstream/test/mirrortest"
)

const (
	whisperer = v1alpha1.PipelineFormatClusterWhisperer
	dotAI     = v1alpha1.PipelineFormatDotAI
	events    = v1alpha1.PipelineFormatCloudEvents
)

// wanted are the calls that receivers of each format get of one change. NAME stands for the scene, words such as
// CREATED for what the cluster chose.
type wanted map[v1alpha1.PipelineFormat]string

var (
	definitionTold = wanted{
		whisperer: `/api/v1/capabilities/scan {"upserts": ["widgets.NAME.example.com"], "deletes": []}`,
		dotAI: `/api/v1/tools/manageOrgData {"dataType": "capabilities", "operation": "scan", "resourceList": "Widget.NAME.example.com",
			"collection": "capabilities"}`,
		events: `ai.configbutler.crd.changed {"upserts": [{"name": "widgets.NAME.example.com", "group": "NAME.example.com", "kind": "Widget"}],
			"deletes": []}`,
	}
	instanceTold = wanted{
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
	instanceGone = wanted{
		whisperer: `/api/v1/instances/sync {"upserts": [], "deletes": ["NAME/NAME.example.com/v1/Widget/first"]}`,
		dotAI: `/api/v1/resources/sync {"upserts": [], "deletes": [{"namespace": "NAME", "name": "first", "kind": "Widget",
			"apiVersion": "NAME.example.com/v1"}], "isResync": false}`,
		events: `ai.configbutler.instances.changed {"upserts": [], "deletes": [{"namespace": "NAME", "name": "first", "kind": "Widget",
			"apiVersion": "NAME.example.com/v1"}]}`,
	}
	definitionGone = wanted{
		whisperer: `/api/v1/capabilities/scan {"upserts": [], "deletes": ["widgets.NAME.example.com"]}`,
		dotAI: `/api/v1/tools/manageOrgData {"dataType": "capabilities", "operation": "delete", "id": "CAPABILITY",
			"collection": "capabilities"}`,
		events: `ai.configbutler.crd.changed {"upserts": [], "deletes": [{"name": "widgets.NAME.example.com", "group": "NAME.example.com",
			"kind": "Widget"}]}`,
	}
)

// widget is the instance as people write it: kubectl keeps what it applied in an annotation.
const widget = `
apiVersion: %s.example.com/v1
kind: Widget
metadata: {name: first, namespace: %[1]s, labels: {tier: front}, annotations: {note: kept}}
spec: {password: ` + secretText + `}
`

// audience are a scene and a receiver of each format.
type audience struct {
	*scene
	receivers map[v1alpha1.PipelineFormat]*receiver
}

func (s *stage) newAudience(t *testing.T, name string) *audience {
	t.Helper()
	a := &audience{scene: s.newScene(t, name), receivers: map[v1alpha1.PipelineFormat]*receiver{}}
	for _, format := range []v1alpha1.PipelineFormat{whisperer, dotAI, events} {
		a.receivers[format] = receive(t, format)
	}
	return a
}

// everybody is the line of a spec with a sink for each receiver.
func (a *audience) everybody() string {
	var all []string
	for format, receiver := range a.receivers {
		all = append(all, receiver.sink(strings.ToLower(string(format))))
	}
	return sinks(all...)
}

// expect expects that every receiver has been told this and nothing else since the last time.
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

// updated is when somebody last wrote an object.
func updated(of *unstructured.Unstructured) (last metav1.Time) {
	for _, entry := range of.GetManagedFields() {
		if entry.Time != nil && last.Before(entry.Time) {
			last = *entry.Time
		}
	}
	return last
}

// told has somebody install a definition and an instance of it, change and remove both, and looks at what each receiver gets of it.
// The pipeline is there before the definition is.
func (s *stage) told(t *testing.T) {
	a := s.newAudience(t, "told")
	a.pipeline(t, patient, a.everybody())
	a.define(t, widgets)
	a.sends(t)
	a.expect(t, definitionTold, nil, "")

	mirrortest.Eventually(t, "widgets can be applied", func(ctx context.Context) error {
		_, err := s.admin.Kubectl.Feed(ctx, fmt.Sprintf(widget, a.name), "apply", "-f", "-")
		return err
	})
	a.sends(t)
	a.expect(t, instanceTold, a.first(t), "front")

	a.Apply(t, a.manifest(widgets, "as it is now"))
	a.sends(t)
	a.expect(t, definitionTold, nil, "")

	a.relabel(t, "first", "tier=middle")
	a.relabel(t, "first", "tier=back")
	a.sends(t)
	a.expect(t, instanceTold, a.first(t), "back")

	before := a.first(t)
	a.remove(t, "first")
	a.waits(t, 3)
	before.SetResourceVersion("")
	before.SetUID("")
	before.SetManagedFields(nil)
	if _, err := a.objects(widgets).Create(t.Context(), before, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.sends(t)
	a.expect(t, instanceTold, a.first(t), "back")

	a.remove(t, "first")
	a.sends(t)
	a.expect(t, instanceGone, nil, "")

	a.Run(t, append([]string{"delete"}, a.definitions(widgets)...)...)
	a.sends(t)
	a.expect(t, definitionGone, nil, "")
	a.synced(t, all)
	a.synced(t, full)
	for _, receiver := range a.receivers {
		receiver.expect(t)
	}
}

func (c *scene) first(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object, err := c.objects(widgets).Get(t.Context(), "first", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// sends waits until one change waits for each receiver, and asks for it to be sent.
func (a *audience) sends(t *testing.T) {
	t.Helper()
	a.waits(t, int64(len(a.receivers)))
	a.synced(t, all)
}
