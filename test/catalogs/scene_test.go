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
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// deployment is the manifest of a Deployment: its namespace, name and image.
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

// catalogOf is the manifest of a catalog: its name, namespace, source namespace, and the rest of its spec.
const catalogOf = `
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: %s, namespace: %s}
spec:
  sourceNamespace: %s
%s`

// apiAndWorker is the part of a spec with two workloads.
const apiAndWorker = "  workloads: [{kind: Deployment, name: api}, {kind: Deployment, name: worker}]\n"

// fixture has a source namespace and the namespace of a team with eve's catalogs.
type fixture struct {
	*testCluster
	source, team string
}

// newFixture creates the Deployments api, worker and untracked in a source that the server can read.
func (s *testCluster) newFixture(t *testing.T, name string) *fixture {
	t.Helper()
	c := s.newUnreachable(t, name)
	c.permit(t)
	return c
}

// permit grants the server the permissions on the source.
func (c *fixture) permit(t *testing.T) {
	t.Helper()
	c.Apply(t, people.In(c.source, people.Catalogs, people.Server))
}

// newUnreachable creates the same fixture without the server's permissions on the source.
func (s *testCluster) newUnreachable(t *testing.T, name string) *fixture {
	t.Helper()
	c := &fixture{testCluster: s, source: name, team: name + "-team"}
	var manifests strings.Builder
	for _, namespace := range []string{c.source, c.team} {
		fmt.Fprintf(&manifests, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", namespace)
	}
	names := []string{"api", "worker", "untracked"}
	for _, workload := range names {
		fmt.Fprintf(&manifests, deployment, c.source, workload, "shop/"+workload+":1")
	}
	s.Apply(t, manifests.String())
	// kube-apiserver does not audit writes of the status. Later ones would be changes of an unknown author.
	for _, workload := range names {
		s.HasField(t, c.source, "deployment/"+workload, "{.status.updatedReplicas}", "1")
	}
	return c
}

// newCatalog has eve create a catalog of api and worker. It waits for its first record, and until the source is watched.
func (c *fixture) newCatalog(t *testing.T, name string) {
	t.Helper()
	c.edit(t, name, apiAndWorker)
	record := c.waitForRecords(t, name, 1)
	if record.Status.State != v1alpha1.SyncStateApplied || record.Status.Actor != c.eve.Name {
		t.Errorf("record of the new catalog: state %s, actor %q", record.Status.State, record.Status.Actor)
	}
	c.HaveCondition(t, c.team, v1alpha1.ConditionSourceReachable, "cat/"+name)
}

// edit has eve apply a catalog, and waits until the catalog has observed its spec.
func (c *fixture) edit(t *testing.T, name, spec string) {
	t.Helper()
	if _, err := c.eve.Kubectl.Feed(t.Context(), c.manifest(name, spec), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the catalog has observed its spec", func(ctx context.Context) error { return c.checkObserved(ctx, name) })
}

// manifest returns the manifest of a catalog.
func (c *fixture) manifest(name, spec string) string {
	return fmt.Sprintf(catalogOf, name, c.team, c.source, spec)
}

// setImage changes an image in the source.
func (c *fixture) setImage(t *testing.T, by *people.Person, workload, image string) {
	t.Helper()
	c.change(t, by, workload, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image))
}

// change patches a Deployment of the source, or a subresource.
func (c *fixture) change(t *testing.T, by *people.Person, workload, patch string, subresources ...string) {
	t.Helper()
	_, err := by.Client.AppsV1().Deployments(c.source).Patch(t.Context(), workload, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

// workloads returns the workloads that a catalog offers.
func (c *fixture) workloads(ctx context.Context, catalog string) ([]v1alpha1.CatalogWorkload, error) {
	list, err := c.eve.Own.ConfigbutlerV1alpha1().CatalogWorkloads(c.team).List(ctx, ofCatalog(catalog))
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ofCatalog selects the workloads or records of a catalog.
func ofCatalog(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: v1alpha1.LabelCatalog + "=" + name}
}

// records returns the records of a catalog, oldest first. A preview, which has no revision, comes before a revision of the same
// second.
func (c *fixture) records(ctx context.Context, catalog string) ([]v1alpha1.SyncStatus, error) {
	list, err := c.eve.Own.ConfigbutlerV1alpha1().SyncStatuses(c.team).List(ctx, ofCatalog(catalog))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, oldestFirst)
	return list.Items, nil
}

func oldestFirst(a, b v1alpha1.SyncStatus) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Status.Revision, b.Status.Revision))
}

// printed returns the records of a catalog as kubectl prints them, in the order of records.
func (c *fixture) printed(t *testing.T, catalog string) []v1alpha1.SyncStatus {
	t.Helper()
	out := c.eve.Run(t, "get", "ss", "-n", c.team, "-l", v1alpha1.LabelCatalog+"="+catalog, "-o", "json")
	list := &v1alpha1.SyncStatusList{}
	if err := json.Unmarshal([]byte(out), list); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, oldestFirst)
	return list.Items
}

// waitForRecords waits until a catalog has exactly so many records and shows their revision. It returns the last one.
func (c *fixture) waitForRecords(t *testing.T, catalog string, records int) *v1alpha1.SyncStatus {
	t.Helper()
	var found []v1alpha1.SyncStatus
	mirrortest.Eventually(t, fmt.Sprintf("%s/%s has %d records", c.team, catalog, records), func(ctx context.Context) (err error) {
		if found, err = c.records(ctx, catalog); err != nil {
			return err
		}
		if len(found) < records {
			return c.described(fmt.Errorf("%d records", len(found)))
		}
		return c.checkRevision(ctx, catalog, found[len(found)-1].Status.Revision)
	})
	if len(found) > records {
		t.Fatalf("%s/%s has %d records, want %d: %s", c.team, catalog, len(found), records, c.describe(t.Context()))
	}
	return &found[records-1]
}

// waitForChanges waits until the records after the first ones contain exactly these workloads, in one batch or several, because a
// busy API server may delay changes. It returns the number of records.
func (c *fixture) waitForChanges(t *testing.T, catalog string, first int, workloads ...string) int {
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
			return c.described(fmt.Errorf("workloads in records: %q", sets.List(names)))
		}
		return c.checkRevision(ctx, catalog, found[len(found)-1].Status.Revision)
	})
	for i := first; i < len(found); i++ {
		expectAutomatic(t, &found[i], found[i].Status.WorkloadNames...)
	}
	return len(found)
}

// checkRevision returns an error unless the status of a catalog has a revision. Records are written before the status.
func (c *fixture) checkRevision(ctx context.Context, name string, revision int64) error {
	catalog, err := c.eve.Own.ConfigbutlerV1alpha1().AppCatalogs(c.team).Get(ctx, name, metav1.GetOptions{})
	if err == nil && catalog.Status.Revision < revision {
		err = fmt.Errorf("status has revision %d, want %d", catalog.Status.Revision, revision)
	}
	return err
}

// checkObserved returns an error unless a catalog has observed its spec.
func (c *fixture) checkObserved(ctx context.Context, name string) error {
	catalog, err := c.eve.Own.ConfigbutlerV1alpha1().AppCatalogs(c.team).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if catalog.Status.ObservedGeneration != catalog.Generation {
		return fmt.Errorf("observed generation %d of %d", catalog.Status.ObservedGeneration, catalog.Generation)
	}
	return nil
}

// describe returns what kubectl prints about catalogs and records, for messages.
func (c *fixture) describe(ctx context.Context) string {
	out, err := c.eve.Kubectl.Run(ctx, "get", "cat,ss", "-n", c.team, "-o", "wide")
	return fmt.Sprintf("\n%s(%v)", out, err)
}

// described returns an error that ends with what kubectl prints about catalogs and records when it is read.
func (c *fixture) described(err error) error {
	return testkit.Described(err, c.describe)
}

// expectImages waits until a catalog offers workloads with these images. Workloads that it does not offer any more are deleted after its
// status is written.
func (c *fixture) expectImages(t *testing.T, catalog string, images map[string]string) {
	t.Helper()
	mirrortest.Eventually(t, "the offered images", func(ctx context.Context) error {
		offered, err := c.images(ctx, catalog)
		if err == nil && !maps.Equal(offered, images) {
			err = fmt.Errorf("images of %s/%s = %v, want %v", c.team, catalog, offered, images)
		}
		return err
	})
}

// images returns the images that a catalog offers, by workload.
func (c *fixture) images(ctx context.Context, catalog string) (map[string]string, error) {
	workloads, err := c.workloads(ctx, catalog)
	if err != nil {
		return nil, err
	}
	offered := map[string]string{}
	for _, record := range workloads {
		content := record.Status.Rendered
		if content == nil {
			content = record.Status.Manifest
		}
		var manifest appsv1.Deployment
		if err := json.Unmarshal(content.Raw, &manifest); err != nil {
			return nil, err
		}
		offered[record.Status.Name] = manifest.Spec.Template.Spec.Containers[0].Image
	}
	return offered, nil
}

// expectAutomatic expects a record of changes of the source.
func expectAutomatic(t *testing.T, record *v1alpha1.SyncStatus, workloads ...string) {
	t.Helper()
	status := &record.Status
	if status.State != v1alpha1.SyncStateAutoApplied || status.Actor != "" || !status.AutoTriggered {
		t.Errorf("state %s, actor %q, automatic %v", status.State, status.Actor, status.AutoTriggered)
	}
	if int(status.WorkloadCount) != len(workloads) || !slices.Equal(status.WorkloadNames, workloads) {
		t.Errorf("record has %d workloads: %q, want %q", status.WorkloadCount, status.WorkloadNames, workloads)
	}
}

// expectNextChange changes api once more and expects only this change to be recorded after the given number of records. Batches
// of a namespace are recorded in order.
func (c *fixture) expectNextChange(t *testing.T, catalog string, records int) {
	t.Helper()
	c.setImage(t, c.ann, "api", fmt.Sprintf("shop/api:after-%s-%d", catalog, records))
	expectAutomatic(t, c.waitForRecords(t, catalog, records+1), "api")
}

var gaps = regexp.MustCompile(` {2,}`)

// expectColumns expects what kubectl prints for one object, by column.
func (c *fixture) expectColumns(t *testing.T, cells map[string]string, arguments ...string) {
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
			t.Errorf("kubectl get %s printed\n%swant %s = %q", strings.Join(arguments, " "), out, name, want)
		}
	}
}
