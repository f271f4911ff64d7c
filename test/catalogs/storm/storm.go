// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storm changes the sources of catalogs faster than catalogs record changes, and checks the result.
package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// namespace is the namespace of the source and the catalogs.
	namespace = "storm"
	// everything is a catalog of all workloads, by a selector. half is a catalog of every other workload, by name.
	everything, half = "everything", "half"
	// writers is the number of concurrent clients, each with its own workloads. The number of workloads must be a multiple of it.
	writers = 50
)

// Storm is a namespace of Deployments with two catalogs.
type Storm struct {
	cluster    kubernetes.Interface
	slipstream versioned.Interface
	// images are the current images of the Deployments by number.
	images []string
}

// New creates the Deployments, which must be a multiple of 50, and the catalogs, and waits until the catalogs offer all of them.
func New(t testing.TB, cluster *mirrortest.AdminCluster, workloads int) *Storm {
	t.Helper()
	config, err := cluster.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // no client-side limit
	s := &Storm{images: make([]string, workloads)}
	if s.cluster, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.slipstream, err = versioned.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	cluster.CreateNamespace(t, namespace)
	s.each(t, workloads, 0, s.create)
	s.follow(t, everything, v1alpha1.AppCatalogSpec{WorkloadSelector: &metav1.LabelSelector{}})
	s.follow(t, half, v1alpha1.AppCatalogSpec{Workloads: s.everyOther()})
	s.WaitForCatalogs(t)
	return s
}

// Run changes the images of the Deployments in turn. The updates are spread over the length, or take longer if the control plane is
// slower. It returns the duration.
func (s *Storm) Run(t testing.TB, updates int, length time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	s.each(t, updates, length/time.Duration(updates), s.change)
	return time.Since(began)
}

// each calls a function a number of times at a pace. Calls for the same Deployment are made in order.
func (s *Storm) each(t testing.TB, times int, pace time.Duration, do func(ctx context.Context, number int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	began := time.Now()
	for writer := range writers {
		group.Go(func() error {
			for number := writer; number < times; number += writers {
				select {
				case <-time.After(time.Until(began.Add(time.Duration(number) * pace))):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				if err := do(ctx, number); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func name(number int) string { return fmt.Sprintf("web-%03d", number) }

// create creates a paused Deployment, so that its controller does not use the control plane's time.
func (s *Storm) create(ctx context.Context, number int) error {
	s.images[number] = "shop/web:0"
	labels := map[string]string{"app": name(number)}
	_, err := s.cluster.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name(number), Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Paused: true, Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: s.images[number]}}},
			},
		},
	}, metav1.CreateOptions{})
	return err
}

func (s *Storm) change(ctx context.Context, number int) error {
	workload, image := number%len(s.images), fmt.Sprintf("shop/web:%d", number+1)
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image)
	_, err := s.cluster.AppsV1().Deployments(namespace).Patch(ctx, name(workload), types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{})
	if err == nil {
		s.images[workload] = image
	}
	return err
}

func (s *Storm) follow(t testing.TB, catalog string, spec v1alpha1.AppCatalogSpec) {
	t.Helper()
	spec.SourceNamespace = namespace
	_, err := s.slipstream.ConfigbutlerV1alpha1().AppCatalogs(namespace).Create(t.Context(), &v1alpha1.AppCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: catalog}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *Storm) everyOther() (workloads []v1alpha1.WorkloadReference) {
	for number := 0; number < len(s.images); number += 2 {
		workloads = append(workloads, v1alpha1.WorkloadReference{Kind: v1alpha1.WorkloadDeployment, Name: name(number)})
	}
	return workloads
}

// imageOf returns the image that a catalog offers for a Deployment.
func imageOf(record *v1alpha1.CatalogWorkload) (string, error) {
	if record.Status.Manifest == nil {
		return "", fmt.Errorf("%s has no manifest", record.Name)
	}
	var manifest appsv1.Deployment
	if err := json.Unmarshal(record.Status.Manifest.Raw, &manifest); err != nil {
		return "", fmt.Errorf("decode manifest of %s: %w", record.Name, err)
	}
	return manifest.Spec.Template.Spec.Containers[0].Image, nil
}
