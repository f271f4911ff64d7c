// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// deployment is one of production: its namespace, its name and its image.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: main, image: %[3]s}]}
---
`

// catalogOf is a catalog: its name, its namespace, its source, and the rest of its spec.
const catalogOf = `
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: %s, namespace: %s}
spec:
  sourceNamespace: %s
%s`

// apiAndWorker are the lines of a spec that name two workloads.
const apiAndWorker = "  workloads: [{kind: Deployment, name: api}, {kind: Deployment, name: worker}]\n"

// scene is a production namespace and that of a team, where eve's catalogs of it are.
type scene struct {
	*stage
	source, team string
}

// newScene has the Deployments api, worker and untracked in production, which the server may follow.
func (s *stage) newScene(t *testing.T, name string) *scene {
	t.Helper()
	c := s.newHiddenScene(t, name)
	c.permit(t)
	return c
}

// permit lets the server follow production.
func (c *scene) permit(t *testing.T) {
	t.Helper()
	c.Apply(t, people.In(c.source, people.Catalogs, people.Server))
}

// newHiddenScene has a production that the server may not follow.
func (s *stage) newHiddenScene(t *testing.T, name string) *scene {
	t.Helper()
	c := &scene{stage: s, source: name, team: name + "-team"}
	var manifests strings.Builder
	for _, namespace := range []string{c.source, c.team} {
		fmt.Fprintf(&manifests, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", namespace)
	}
	for _, workload := range []string{"api", "worker", "untracked"} {
		fmt.Fprintf(&manifests, deployment, c.source, workload, "shop/"+workload+":1")
	}
	s.Apply(t, manifests.String())
	return c
}

// newCatalog has eve make a catalog of api and worker, and waits for its first record, and until no change of production goes
// unseen.
func (c *scene) newCatalog(t *testing.T, name string) {
	t.Helper()
	c.edit(t, name, apiAndWorker)
	record := c.recorded(t, name, 1)
	if record.Status.State != v1alpha1.SyncStateApplied || record.Status.Actor != c.eve.Name {
		t.Errorf("the record of the new catalog is %s by %q", record.Status.State, record.Status.Actor)
	}
	c.Run(t, "wait", "-n", c.team, "cat/"+name, "--for=condition=SourceReachable", "--timeout=180s")
}

// edit has eve apply a catalog, and waits until that is taken over.
func (c *scene) edit(t *testing.T, name, spec string) {
	t.Helper()
	if _, err := c.apply(t.Context(), c.eve, name, spec); err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the catalog shows its spec", func(ctx context.Context) error { return c.settled(ctx, name) })
}

func (c *scene) apply(ctx context.Context, by *people.Person, name, spec string) (string, error) {
	return by.Kubectl.Feed(ctx, fmt.Sprintf(catalogOf, name, c.team, c.source, spec), "apply", "-f", "-")
}

// setImage changes production.
func (c *scene) setImage(t *testing.T, by *people.Person, workload, image string) {
	t.Helper()
	c.change(t, by, workload, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image))
}

// change patches a Deployment of production, or its subresources.
func (c *scene) change(t *testing.T, by *people.Person, workload, patch string, subresources ...string) {
	t.Helper()
	_, err := by.Client.AppsV1().Deployments(c.source).Patch(t.Context(), workload, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

// get reads an object, or a list, as kubectl prints it.
func (c *scene) get(ctx context.Context, into any, arguments ...string) error {
	out, err := c.eve.Kubectl.Run(ctx, append([]string{"get", "-n", c.team, "-o", "json"}, arguments...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// records are those of a catalog, the oldest first. A preview, which has no revision, comes before a revision of its second.
func (c *scene) records(ctx context.Context, catalog string) ([]v1alpha1.SyncStatus, error) {
	list := &v1alpha1.SyncStatusList{}
	err := c.get(ctx, list, "ss", "-l", v1alpha1.LabelCatalog+"="+catalog)
	slices.SortFunc(list.Items, func(a, b v1alpha1.SyncStatus) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Status.Revision, b.Status.Revision))
	})
	return list.Items, err
}

// recorded waits until a catalog has so many records, and shows what they tell of, and returns the last one.
func (c *scene) recorded(t *testing.T, catalog string, records int) *v1alpha1.SyncStatus {
	t.Helper()
	var found []v1alpha1.SyncStatus
	mirrortest.Eventually(t, fmt.Sprintf("%s/%s has %d records", c.team, catalog, records), func(ctx context.Context) (err error) {
		if found, err = c.records(ctx, catalog); err != nil {
			return err
		}
		if len(found) < records {
			return fmt.Errorf("it has %d: %s", len(found), c.tell(t.Context()))
		}
		return c.shows(ctx, catalog, found[len(found)-1].Status.Revision)
	})
	if len(found) > records {
		t.Fatalf("%s/%s has %d records, want %d: %s", c.team, catalog, len(found), records, c.tell(t.Context()))
	}
	return &found[records-1]
}

// recordedSince waits until the records after the first ones name workloads and no others, in one batch or in several: a busy API server
// may show one change long before the next. It returns how many records there are then.
func (c *scene) recordedSince(t *testing.T, catalog string, first int, workloads ...string) int {
	t.Helper()
	var found []v1alpha1.SyncStatus
	mirrortest.Eventually(t, fmt.Sprintf("%s/%s records %q", c.team, catalog, workloads), func(ctx context.Context) (err error) {
		if found, err = c.records(ctx, catalog); err != nil {
			return err
		}
		names := sets.New[string]()
		for i := first; i < len(found); i++ {
			names.Insert(found[i].Status.WorkloadNames...)
		}
		if !names.Equal(sets.New(workloads...)) {
			return fmt.Errorf("it records %q: %s", sets.List(names), c.tell(t.Context()))
		}
		return c.shows(ctx, catalog, found[len(found)-1].Status.Revision)
	})
	for i := first; i < len(found); i++ {
		automatic(t, &found[i], found[i].Status.WorkloadNames...)
	}
	return len(found)
}

// shows says whether a catalog has come to a revision. Records come before.
func (c *scene) shows(ctx context.Context, name string, revision int64) error {
	catalog := &v1alpha1.AppCatalog{}
	err := c.get(ctx, catalog, "cat", name)
	if err == nil && catalog.Status.Revision < revision {
		err = fmt.Errorf("it shows revision %d, not %d", catalog.Status.Revision, revision)
	}
	return err
}

// settled says whether a catalog shows its spec.
func (c *scene) settled(ctx context.Context, name string) error {
	catalog := &v1alpha1.AppCatalog{}
	if err := c.get(ctx, catalog, "cat", name); err != nil {
		return err
	}
	if catalog.Status.ObservedGeneration != catalog.Generation {
		return fmt.Errorf("its status is about generation %d of %d", catalog.Status.ObservedGeneration, catalog.Generation)
	}
	return nil
}

// tell is what a user sees of the records.
func (c *scene) tell(ctx context.Context) string {
	out, err := c.eve.Kubectl.Run(ctx, "get", "cat,ss", "-n", c.team, "-o", "wide")
	return fmt.Sprintf("\n%s(%v)", out, err)
}

// offers expects the images that a catalog offers, by workload.
func (c *scene) offers(t *testing.T, catalog string, images map[string]string) {
	t.Helper()
	list := &v1alpha1.CatalogWorkloadList{}
	if err := c.get(t.Context(), list, "cw", "-l", v1alpha1.LabelCatalog+"="+catalog); err != nil {
		t.Fatal(err)
	}
	offered := map[string]string{}
	for _, record := range list.Items {
		content := record.Status.Rendered
		if content == nil {
			content = record.Status.Manifest
		}
		var manifest appsv1.Deployment
		if err := json.Unmarshal(content.Raw, &manifest); err != nil {
			t.Fatal(err)
		}
		offered[record.Status.Name] = manifest.Spec.Template.Spec.Containers[0].Image
	}
	if !maps.Equal(offered, images) {
		t.Errorf("%s/%s offers %v, want %v", c.team, catalog, offered, images)
	}
}

// automatic expects a record of what the source has changed by itself.
func automatic(t *testing.T, record *v1alpha1.SyncStatus, workloads ...string) {
	t.Helper()
	status := &record.Status
	if status.State != v1alpha1.SyncStateAutoApplied || status.Actor != "" || !status.AutoTriggered {
		t.Errorf("state %s, actor %q, automatic %v", status.State, status.Actor, status.AutoTriggered)
	}
	if int(status.WorkloadCount) != len(workloads) || !slices.Equal(status.WorkloadNames, workloads) {
		t.Errorf("%d workloads are recorded: %q, want %q", status.WorkloadCount, status.WorkloadNames, workloads)
	}
}

// onlyTheNext changes api once more and expects nothing but that to be recorded, after so many records: batches of a
// namespace are recorded in their order.
func (c *scene) onlyTheNext(t *testing.T, catalog string, records int) {
	t.Helper()
	c.setImage(t, c.ann, "api", fmt.Sprintf("shop/api:after-%s-%d", catalog, records))
	automatic(t, c.recorded(t, catalog, records+1), "api")
}

var gaps = regexp.MustCompile(` {2,}`)

// reads expects what kubectl prints of one object, by the names of columns.
func (c *scene) reads(t *testing.T, cells map[string]string, arguments ...string) {
	t.Helper()
	out, err := c.eve.Kubectl.Run(t.Context(), append([]string{"get", "-n", c.team, "-o", "wide"}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	names, row := gaps.Split(lines[0], -1), gaps.Split(lines[len(lines)-1], -1)
	for name, want := range cells {
		at := slices.Index(names, name)
		if len(lines) != 2 || at < 0 || row[at] != want {
			t.Errorf("kubectl get %s prints\n%swith another %s than %q", strings.Join(arguments, " "), out, name, want)
		}
	}
}
