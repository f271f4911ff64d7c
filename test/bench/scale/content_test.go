// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

const (
	// source is the namespace of the workloads, and of the catalog and the environments.
	source = "production"
	// creators is the number of concurrent clients that create environments, and request their syncs. A request waits until its sync has
	// started.
	creators = 64
)

// deployment is a workload of the source. It has no Pods.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[1]d, namespace: production, labels: {part-of: shop}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d}}
    spec: {containers: [{name: main, image: "shop/web:1"}]}
---
`

// settings allow as many syncs as the server can make.
const settings = `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec: {batchWindow: 1s, maxSyncsPerMinute: 10000}
---
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: production}
spec: {sourceNamespace: production, workloadSelector: {matchLabels: {part-of: shop}}}
`

// createSource creates the source namespace with its workloads, and a catalog of them.
func (s *testCluster) createSource(b *testing.B) {
	b.Helper()
	s.CreateNamespace(b, source)
	var all strings.Builder
	for number := range workloads {
		fmt.Fprintf(&all, deployment, number)
	}
	s.Apply(b, all.String())
	s.Apply(b, settings)
	eventually(b, "the catalog offers all workloads", func(ctx context.Context) error {
		catalog, err := s.slipstream.ConfigbutlerV1alpha1().AppCatalogs(source).Get(ctx, "shop", metav1.GetOptions{})
		if err == nil && len(catalog.Status.Workloads) < workloads {
			err = fmt.Errorf("catalog has %d workloads", len(catalog.Status.Workloads))
		}
		return err
	})
}

// createEnvironments creates environments and syncs them.
func (s *testCluster) createEnvironments(b *testing.B) {
	b.Helper()
	began := time.Now()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(creators)
	for number := range *environments {
		group.Go(func() error { return s.createEnvironment(ctx, fmt.Sprint("environment-", number)) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	eventually(b, "every environment is synced", func(ctx context.Context) error {
		all, err := s.slipstream.ConfigbutlerV1alpha1().Environments(source).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		synced := 0
		for i := range all.Items {
			if all.Items[i].Status.AppliedRevision > 0 {
				synced++
			}
		}
		if synced < *environments {
			return fmt.Errorf("%d of %d are synced", synced, *environments)
		}
		return nil
	})
	eventually(b, "the control plane has made a ReplicaSet for each Deployment", func(ctx context.Context) error {
		first, err := s.cluster.AppsV1().ReplicaSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		if made, want := 1+ptr.Deref(first.RemainingItemCount, 0), int64(workloads*(*environments+1)); made < want {
			return fmt.Errorf("%d of %d exist", made, want)
		}
		return nil
	})
	b.Logf("%d environments were created and synced in %v", *environments, time.Since(began).Round(time.Second))
}

// createEnvironment creates an environment with a namespace of the same name, and requests its first sync.
func (s *testCluster) createEnvironment(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := s.cluster.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	api := s.slipstream.ConfigbutlerV1alpha1()
	_, err := api.Environments(source).Create(ctx, &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.EnvironmentSpec{CatalogRef: v1alpha1.ObjectReference{Name: "shop"}, TargetNamespace: name},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, caughtUp, true, func(ctx context.Context) (bool, error) {
		found, err := api.Environments(source).Get(ctx, name, metav1.GetOptions{})
		return err == nil && found.Status.ObservedGeneration > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until %s is known: %w", name, err)
	}
	if _, err = api.Environments(source).Sync(ctx, name, &v1alpha1.SyncRequest{}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("sync %s: %w", name, err)
	}
	return nil
}

// createPipelines creates pipelines to a receiver, and waits until each has sent everything.
func (s *testCluster) createPipelines(b *testing.B) {
	b.Helper()
	receiver := receivertest.New(b, v1alpha1.PipelineFormatClusterWhisperer)
	api := s.slipstream.ConfigbutlerV1alpha1().SyncPipelines()
	for number := range pipelines {
		_, err := api.Create(b.Context(), &v1alpha1.SyncPipeline{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pipeline-", number)},
			Spec: v1alpha1.SyncPipelineSpec{
				CustomResourceDefinitions: v1alpha1.DefinitionSource{Enabled: ptr.To(false)},
				Instances:                 v1alpha1.InstanceSource{Resources: []string{"configmaps"}},
				Sinks: []v1alpha1.PipelineSink{{
					Name: "index", HTTP: &v1alpha1.HTTPSink{URL: receiver.URL, Format: v1alpha1.PipelineFormatClusterWhisperer},
				}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
	}
	eventually(b, "every pipeline has sent everything", func(ctx context.Context) error {
		all, err := api.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range all.Items {
			if status := all.Items[i].Status; len(status.Sinks) == 0 || status.Sinks[0].Delivered == 0 || status.Pending > 0 {
				return fmt.Errorf("%s has not sent everything", all.Items[i].Name)
			}
		}
		return nil
	})
}

// eventually waits until check succeeds.
func eventually(b *testing.B, what string, check func(ctx context.Context) error) {
	b.Helper()
	last := errors.New("not checked")
	err := wait.PollUntilContextTimeout(b.Context(), time.Second, caughtUp, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		b.Fatalf("%s: %v (last: %v)", what, err, last)
	}
}
