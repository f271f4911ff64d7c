// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// workloads is the number of workloads of an environment, with a ConfigMap and a Secret each.
	workloads = 100
	// syncRounds is large enough for a stable median on a noisy machine.
	syncRounds = 3
	// production is the source namespace, with the catalog and the environments.
	production = "production"
)

// workload returns a workload of the source with its dependencies. It has no Pods, because their start is not measured.
const workload = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings-%[1]d, namespace: %[2]s}
data: {level: info, number: "%[1]d"}
---
apiVersion: v1
kind: Secret
metadata: {name: access-%[1]d, namespace: %[2]s}
stringData: {password: "secret %[1]d"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[1]d, namespace: %[2]s, labels: {part-of: shop}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d}}
    spec:
      containers:
      - name: main
        image: shop/web:1
        envFrom: [{configMapRef: {name: settings-%[1]d}}]
        volumeMounts: [{name: access, mountPath: /access}]
      volumes: [{name: access, secret: {secretName: access-%[1]d}}]
---
`

const catalog = `
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: %[1]s}
spec:
  sourceNamespace: %[1]s
  workloadSelector: {matchLabels: {part-of: shop}}
`

// everything returns the given number of workloads in a namespace.
func everything(namespace string, many int) string {
	var all strings.Builder
	for number := range many {
		fmt.Fprintf(&all, workload, number, namespace)
	}
	return all.String()
}

// sync measures the time from the request for the first sync of an environment until its record is completed, and compares it
// with kubectl, which applies the same objects from a file to another namespace before that.
func (s *testCluster) sync(b *testing.B) {
	s.newSource(b, production, workloads)
	var synced, applied []time.Duration
	for round := range syncRounds {
		applied = append(applied, s.applyOnce(b, fmt.Sprint("applied-", round)))
		synced = append(synced, s.syncOnce(b, production, fmt.Sprint("synced-", round)))
	}
	slices.Sort(synced)
	slices.Sort(applied)
	b.ReportMetric(synced[syncRounds/2].Seconds(), "sync-s")
	b.ReportMetric(applied[syncRounds/2].Seconds(), "kubectl-s")
	b.ReportMetric(synced[syncRounds/2].Seconds()/applied[syncRounds/2].Seconds(), "sync/kubectl")
}

// newSource creates a namespace with the given number of workloads, and a catalog of them.
func (s *testCluster) newSource(b *testing.B, namespace string, many int) {
	b.Helper()
	s.Run(b, "create", "namespace", namespace)
	s.Apply(b, everything(namespace, many))
	s.Apply(b, fmt.Sprintf(catalog, namespace))
	mirrortest.Eventually(b, "the catalog offers all workloads", func(ctx context.Context) error {
		catalog, err := s.slipstream.ConfigbutlerV1alpha1().AppCatalogs(namespace).Get(ctx, "shop", metav1.GetOptions{})
		if err == nil && len(catalog.Status.Workloads) < many {
			err = fmt.Errorf("catalog has %d workloads", len(catalog.Status.Workloads))
		}
		return err
	})
}

// applyOnce has kubectl apply everything to a new namespace.
func (s *testCluster) applyOnce(b *testing.B, namespace string) time.Duration {
	b.Helper()
	s.Run(b, "create", "namespace", namespace)
	file := filepath.Join(b.TempDir(), "everything.yaml")
	if err := os.WriteFile(file, []byte(everything(namespace, workloads)), 0o600); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	s.Run(b, "apply", "--server-side", "-f", file)
	return time.Since(began)
}

// syncOnce creates an environment and requests its first sync.
func (s *testCluster) syncOnce(b *testing.B, source, name string) time.Duration {
	b.Helper()
	s.Run(b, "create", "namespace", name)
	client := s.slipstream.ConfigbutlerV1alpha1()
	_, err := client.Environments(source).Create(b.Context(), &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.EnvironmentSpec{CatalogRef: v1alpha1.ObjectReference{Name: "shop"}, TargetNamespace: name},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	mirrortest.Eventually(b, "the environment is reconciled", func(ctx context.Context) error {
		found, err := client.Environments(source).Get(ctx, name, metav1.GetOptions{})
		if err == nil && found.Status.ObservedGeneration == 0 {
			err = errors.New("environment is not reconciled")
		}
		return err
	})
	began := time.Now()
	answer, err := client.Environments(source).Sync(b.Context(), name, &v1alpha1.SyncRequest{}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if len(answer.Status.SyncStatuses) == 0 {
		b.Fatalf("response names no record: %s", answer.Status.Message)
	}
	s.completed(b, source, answer.Status.SyncStatuses[0])
	return time.Since(began)
}

// completed waits until the record of a run is completed.
func (s *testCluster) completed(b *testing.B, namespace, record string) {
	b.Helper()
	records := s.slipstream.ConfigbutlerV1alpha1().SyncStatuses(namespace)
	mirrortest.Eventually(b, record+" is completed", func(ctx context.Context) error {
		found, err := records.Get(ctx, record, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return err
		}
		if err != nil {
			b.Fatal(err)
		}
		switch found.Status.State {
		case v1alpha1.SyncStateCompleted:
			return nil
		case v1alpha1.SyncStatePending, v1alpha1.SyncStateInProgress:
			return fmt.Errorf("state of the record = %s, %+v", found.Status.State, found.Status.Progress)
		}
		b.Fatalf("state of the record = %s: %+v", found.Status.State, found.Status.Error)
		return nil
	})
}
