// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/upgradetest"
)

// records are the kinds whose stored objects a controller writes again only when there is something new about them.
var records = []string{"changes", "syncstatuses", "catalogworkloads", "environmentdependencies"}

// stored is what the earlier version has stored.
type stored struct {
	*scene
	client dynamic.Interface
	// objects are all objects without what may differ after a restart.
	objects map[string]upgradetest.Object
	// lists have the objects of each resource as they are stored.
	lists map[string]*unstructured.UnstructuredList
}

// store waits until objects of all kinds exist and nothing changes any more, and returns them.
func (s *scene) store(t *testing.T) *stored {
	t.Helper()
	before := &stored{scene: s, client: mirrortest.ClientOf(t, s.Admin(), dynamic.NewForConfig)}
	same := 0
	mirrortest.Eventually(t, "objects of all kinds exist and are unchanged", func(ctx context.Context) error {
		now, err := s.lasting(ctx)
		if err != nil {
			return err
		}
		difference := cmp.Diff(before.objects, now)
		before.objects, same = now, same+1
		if difference != "" {
			same = 0
			return fmt.Errorf("changed: %s", difference)
		}
		if same < 5 {
			return fmt.Errorf("unchanged %d times", same)
		}
		return nil
	})
	before.lists = map[string]*unstructured.UnstructuredList{}
	for _, resource := range before.resources(t) {
		list := before.list(t, resource)
		if len(list.Items) == 0 {
			t.Errorf("no %s are stored", resource)
		}
		before.lists[resource] = list
	}
	return before
}

// lasting returns all objects, those whose work is unfinished without their status.
func (s *scene) lasting(ctx context.Context) (map[string]upgradetest.Object, error) {
	all, err := upgradetest.Objects(ctx, s.Administrator)
	for name, each := range all {
		if strings.Contains(name, unfinished) {
			each.Status = nil
			all[name] = each
		}
	}
	return all, err
}

// resources returns the resources of the API that can be listed.
func (s *scene) resources(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, name := range strings.Fields(s.Run(t, "api-resources", "--api-group="+v1alpha1.GroupName, "--verbs=list", "--output=name")) {
		resource, _, _ := strings.Cut(name, ".")
		names = append(names, resource)
	}
	return names
}

func (s *stored) of(resource string) dynamic.ResourceInterface {
	return s.client.Resource(schema.GroupVersionResource{Group: v1alpha1.GroupName, Version: "v1alpha1", Resource: resource})
}

func (s *stored) list(t *testing.T, resource string) *unstructured.UnstructuredList {
	t.Helper()
	list, err := s.of(resource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// expectStored requires that all stored objects exist, and that records are the same to the last field.
func (s *stored) expectStored(t *testing.T) {
	t.Helper()
	for resource, before := range s.lists {
		now := byKey(s.list(t, resource).Items)
		for key, was := range byKey(before.Items) {
			is := now[key]
			switch {
			case is == nil || is.GetUID() != was.GetUID():
				t.Errorf("%s %s does not exist, or has another uid", resource, key)
			case slices.Contains(records, resource):
				if difference := cmp.Diff(was.Object, is.Object); difference != "" {
					t.Errorf("%s %s differs (- before, + now):\n%s", resource, key, difference)
				}
			case revision(t, is) < revision(t, was):
				t.Errorf("%s %s has resourceVersion %s, and had %s", resource, key, is.GetResourceVersion(), was.GetResourceVersion())
			}
		}
	}
}

// expectWatches watches each resource from the resourceVersion of the list that the earlier version has returned: no change is missed, and
// no object is sent again. Only on etcd, where the history of a kind with a watch cache begins with the process, a client may have to list
// again.
func (s *stored) expectWatches(t *testing.T) {
	t.Helper()
	for resource, before := range s.lists {
		events, err := s.of(resource).Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.GetResourceVersion()})
		if err != nil {
			t.Errorf("watch %s from resourceVersion %s: %v", resource, before.GetResourceVersion(), err)
			continue
		}
		known := versions(before.Items)
		mirrortest.Eventually(t, "the watch of "+resource+" delivers all changes", func(context.Context) error {
			for {
				select {
				case event, open := <-events.ResultChan():
					if !open {
						t.Fatalf("the watch of %s has ended", resource)
					}
					if event.Type == watch.Error && s.expires && apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
						return nil
					}
					follow(t, known, resource, event)
					continue
				default:
				}
				if now := versions(s.list(t, resource).Items); !maps.Equal(known, now) {
					return fmt.Errorf("resourceVersions %v, want %v", known, now)
				}
				return nil
			}
		})
		events.Stop()
	}
}

// watchError returns the error of a watch of a resource, which can be its first event.
func (s *stored) watchError(t *testing.T, resource, resourceVersion string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mirrortest.Deadline)
	defer cancel()
	events, err := s.of(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: resourceVersion})
	if err != nil {
		return err
	}
	defer events.Stop()
	return apierrors.FromObject((<-events.ResultChan()).Object)
}

// follow applies an event of a watch to the known resourceVersions.
func follow(t *testing.T, known map[string]string, resource string, event watch.Event) {
	t.Helper()
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		t.Fatalf("the watch of %s sent %s %v", resource, event.Type, event.Object)
	}
	if event.Type == watch.Bookmark {
		return // It reports no change. A watch that lasts long enough can have one.
	}
	_, exists := known[key(object)]
	if exists != (event.Type != watch.Added) {
		t.Errorf("the watch of %s sent %s for %s, known before: %v", resource, event.Type, key(object), exists)
	}
	if event.Type == watch.Deleted {
		delete(known, key(object))
		return
	}
	known[key(object)] = object.GetResourceVersion()
}

// expectUnchanged waits until the objects are as the earlier version has left them.
func (s *stored) expectUnchanged(t *testing.T) {
	t.Helper()
	s.expectObjects(t, func(was upgradetest.Object) any { return was.Status })
}

// expectRestored waits until the objects are those of the backup, and requires that nothing was written to Git because of that.
func (s *stored) expectRestored(t *testing.T) {
	t.Helper()
	for resource, before := range s.lists {
		now := byKey(s.list(t, resource).Items)
		for key, was := range byKey(before.Items) {
			if is := now[key]; is == nil || is.GetUID() != was.GetUID() {
				t.Errorf("%s %s of the backup was not restored", resource, key)
			}
		}
		if err := s.watchError(t, resource, before.GetResourceVersion()); !apierrors.IsResourceExpired(err) {
			t.Errorf("watch %s from before the restore: %v, want that the resourceVersion is too old", resource, err)
		}
	}
	// What has happened since the backup is found again: statuses differ.
	s.expectObjects(t, func(upgradetest.Object) any { return nil })
	commits := s.number(t, s.quiet)
	mirrortest.InSync(t, s.Administrator, kept, "main")
	if now := s.number(t, s.quiet); now != commits {
		t.Errorf("%d commits after the restore, want %d", now, commits)
	}
	s.ConfigMap(t, kept, "settings", "BANNER: autumn")
	s.quiet.Holds(t, s.quiet.ConfigMapPath("settings"), "autumn")
}

// expectObjects waits until all objects of the earlier version are equal, of their status what is compared.
func (s *stored) expectObjects(t *testing.T, compared func(upgradetest.Object) any) {
	t.Helper()
	mirrortest.Eventually(t, "the objects are unchanged", func(ctx context.Context) error {
		all, err := s.lasting(ctx)
		if err != nil {
			return err
		}
		before, now := map[string]upgradetest.Object{}, map[string]upgradetest.Object{}
		for name, was := range s.objects {
			was.Status = compared(was)
			before[name] = was
			if is, exists := all[name]; exists {
				is.Status = compared(is)
				now[name] = is
			}
		}
		if difference := cmp.Diff(before, now, upgradetest.BetweenVersions()); difference != "" {
			return fmt.Errorf("objects differ (- before, + now):\n%s", difference)
		}
		return nil
	})
}

func byKey(items []unstructured.Unstructured) map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for i := range items {
		found[key(&items[i])] = &items[i]
	}
	return found
}

func versions(items []unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	for i := range items {
		found[key(&items[i])] = items[i].GetResourceVersion()
	}
	return found
}

func key(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

func revision(t *testing.T, object *unstructured.Unstructured) int64 {
	t.Helper()
	number, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}
