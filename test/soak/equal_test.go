// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// equalLimit is how long the server may take to catch up: after a failure it waits twice as long as after the last one, five minutes
	// at most.
	equalLimit = 10 * time.Minute
	// syncInterval is the interval at which waitEqual requests a sync of the manual environment.
	syncInterval = 3 * time.Second
	// logInterval is the interval at which waitEqual logs what it waits for.
	logInterval = 10 * time.Second
)

// waitEqual waits until everything that follows the cluster is equal to it. The work is interrupted meanwhile.
func (s *soak) waitEqual(t *testing.T, when string) {
	t.Helper()
	var requested time.Time
	logged := time.Now()
	testkit.EventuallyWithin(t, equalLimit, "everything is equal "+when, func(ctx context.Context) error {
		err := s.checkEqual(ctx, &requested)
		if err != nil && time.Since(logged) > logInterval {
			logged = time.Now()
			t.Logf("%s not equal %s yet: %v", stamp(time.Now()), when, err)
		}
		return err
	})
}

// checkEqual returns an error unless everything is equal. It requests a sync of the manual environment if only that is missing.
func (s *soak) checkEqual(ctx context.Context, requested *time.Time) error {
	for _, m := range s.mirrors {
		if err := s.checkMirror(ctx, m); err != nil {
			return fmt.Errorf("mirror of %s: %w", m.Namespace, err)
		}
	}
	for _, check := range []func(context.Context) error{s.checkCatalog, s.checkReceiver, s.checkSink, s.checkCertificate} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	if err := s.checkEnvironment(ctx, automatic); err != nil {
		return err
	}
	err := s.checkEnvironment(ctx, manual)
	if err != nil && time.Since(*requested) > syncInterval {
		*requested = time.Now()
		if refused := s.sync(ctx); refused != nil {
			err = fmt.Errorf("%w; sync: %w", err, refused)
		}
	}
	return err
}

// checkMirror returns an error unless all changes are pushed, and Git has exactly the files that the objects are rendered to. The values
// of Secrets are encrypted; checkSecrets compares them at the end.
func (s *soak) checkMirror(ctx context.Context, m *mirrortest.Mirror) error {
	files, err := m.Contents(ctx)
	if err != nil {
		return err
	}
	objects, err := s.live(ctx, m.Namespace)
	if err != nil {
		return err
	}
	for path, live := range objects {
		file, found := files[path]
		if !found {
			return fmt.Errorf("%s is missing", path)
		}
		if live.GetKind() == "Secret" {
			if err := checkLabels(file, live); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			continue
		}
		want, err := manifest.Render(live)
		if err != nil {
			return err
		}
		if !bytes.Equal(file, want) {
			return fmt.Errorf("%s is\n%s\nwant\n%s", path, file, want)
		}
	}
	for path := range files {
		if objects[path] == nil {
			return fmt.Errorf("%s has no object", path)
		}
	}
	state, err := s.Try.Field(ctx, m.Namespace, "gds/main", "{.status.state}")
	if err == nil && state != "Up to date" {
		err = fmt.Errorf("state %q", state)
	}
	return err
}

// live returns the mirrored objects of a namespace by the paths of their files.
func (s *soak) live(ctx context.Context, namespace string) (map[string]*unstructured.Unstructured, error) {
	objects := map[string]*unstructured.Unstructured{}
	for _, resource := range types {
		list, err := s.admin.Dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			live := &list.Items[i]
			if _, generated := manifest.ClusterGenerated(resource.GroupResource(), live); generated {
				continue
			}
			path, err := manifest.LocationOf(resource, live).Path()
			if err != nil {
				return nil, err
			}
			objects[path] = live
		}
	}
	return objects, nil
}

func checkLabels(file []byte, live *unstructured.Unstructured) error {
	var mirrored metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(file, &mirrored); err != nil {
		return err
	}
	if !maps.Equal(mirrored.Labels, live.GetLabels()) {
		return fmt.Errorf("labels %v, want %v", mirrored.Labels, live.GetLabels())
	}
	return nil
}

// values returns what the workloads of the source and their objects contain in a namespace, by name.
func (s *soak) values(ctx context.Context, namespace string) (map[string]string, error) {
	values := map[string]string{}
	for name, resource := range map[string]schema.GroupVersionResource{
		"settings": configMaps, "setup": secrets, "api": deployments, "worker": deployments,
	} {
		found, err := s.admin.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if resource != deployments {
			values[name], _, _ = unstructured.NestedString(found.Object, "data", "value")
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &d); err != nil {
			return nil, err
		}
		values[name] = valueOf(&d)
	}
	return values, nil
}

func valueOf(d *appsv1.Deployment) string { return fmt.Sprint(d.Spec.Template.Spec.Containers[0].Env) }

// checkCatalog returns an error unless the catalog offers the workloads of the source as they are.
func (s *soak) checkCatalog(ctx context.Context) error {
	want, err := s.values(ctx, source)
	if err != nil {
		return err
	}
	list, err := s.admin.Own.ConfigbutlerV1alpha1().CatalogWorkloads(team).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) != 2 {
		return fmt.Errorf("%d workloads", len(list.Items))
	}
	for i := range list.Items {
		status := &list.Items[i].Status
		content := status.Rendered
		if content == nil {
			content = status.Manifest
		}
		var d appsv1.Deployment
		if err := json.Unmarshal(content.Raw, &d); err != nil {
			return err
		}
		if got := valueOf(&d); got != want[status.Name] {
			return fmt.Errorf("%s is offered with %s, want %s", status.Name, got, want[status.Name])
		}
	}
	return nil
}

// checkEnvironment returns an error unless the target of an environment has what the source has, and the environment reports that.
func (s *soak) checkEnvironment(ctx context.Context, name string) error {
	want, err := s.values(ctx, source)
	if err != nil {
		return err
	}
	got, err := s.values(ctx, name)
	if err == nil && !maps.Equal(got, want) {
		err = fmt.Errorf("has %v, want %v", got, want)
	}
	e, getErr := s.admin.Own.ConfigbutlerV1alpha1().Environments(team).Get(ctx, name, metav1.GetOptions{})
	switch {
	case getErr != nil:
		return getErr
	case err != nil:
		return fmt.Errorf("environment %s, %s: %w", name, e.Status.State, err)
	case !strings.HasPrefix(e.Status.State, "Synced"): // Pods do not run, so workloads are not ready.
		return fmt.Errorf("environment %s: %s", name, e.Status.State)
	}
	return nil
}

// checkReceiver returns an error unless the receiver of the pipeline has exactly the ConfigMaps of the cluster, with their labels.
func (s *soak) checkReceiver(ctx context.Context) error {
	list, err := s.admin.Client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var want []string
	for i := range list.Items {
		live := &list.Items[i]
		name := live.Namespace + "/v1/ConfigMap/" + live.Name
		want = append(want, name)
		if got, _ := s.receiver.Object(name); !maps.Equal(got.Labels, live.Labels) {
			return fmt.Errorf("%s has the labels %v, want %v", name, got.Labels, live.Labels)
		}
	}
	slices.Sort(want)
	if got := s.receiver.Known(); !slices.Equal(got, want) {
		return fmt.Errorf("the receiver has %q, want %q", got, want)
	}
	return nil
}

// checkSink returns an error unless all notifications are delivered.
func (s *soak) checkSink(ctx context.Context) error {
	sink, err := s.admin.Own.ConfigbutlerV1alpha1().NotificationSinks(mirrored[0]).Get(ctx, "soak", metav1.GetOptions{})
	if err == nil && (sink.Status.Pending > 0 || sink.Status.Failures > 0 || sink.Status.Rejected > 0) {
		err = fmt.Errorf("%d pending, %d failures (%s), %d rejected", sink.Status.Pending, sink.Status.Failures, sink.Status.LastError,
			sink.Status.Rejected)
	}
	return err
}
