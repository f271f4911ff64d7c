// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// listed is the number of environments.
	listed = 1000
	// listRounds is how often they are listed, after warmUp rounds that are not measured.
	listRounds, warmUp = 30, 5
	// creators is the number of clients that create them concurrently.
	creators = 20
	// teams is their namespace.
	teams = "teams"
)

// copied is a resource of a CustomResourceDefinition with the same objects.
var copied = schema.GroupVersionResource{Group: "bench.example.com", Version: "v1", Resource: "environments"}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: environments.bench.example.com}
spec:
  group: bench.example.com
  scope: Namespaced
  names: {plural: environments, singular: environment, kind: Environment, listKind: EnvironmentList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
`

// list measures lists of environments through the aggregation layer, and compares them with lists of the same objects of a
// CustomResourceDefinition. The lists alternate.
func (s *testCluster) list(b *testing.B) {
	s.Run(b, "create", "namespace", teams)
	s.createEnvironments(b)
	s.copyEnvironments(b)
	client, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		b.Fatal(err)
	}
	took := func(group string) time.Duration {
		began := time.Now()
		path := "/apis/" + group + "/namespaces/" + teams + "/environments"
		if _, err := client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).
			DoRaw(b.Context()); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	var ours, theirs []time.Duration
	for round := range warmUp + listRounds {
		our, their := took(v1alpha1.SchemeGroupVersion.String()), took(copied.GroupVersion().String())
		if round >= warmUp {
			ours, theirs = append(ours, our), append(theirs, their)
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	b.ReportMetric(ours[listRounds/2].Seconds()*1000, "list-ms")
	b.ReportMetric(theirs[listRounds/2].Seconds()*1000, "crd-ms")
	b.ReportMetric(ours[listRounds/2].Seconds()/theirs[listRounds/2].Seconds(), "list/crd")
	s.showStatus(b)
}

// showStatus measures how long the plugin takes to show all environments, and its memory.
func (s *testCluster) showStatus(b *testing.B) {
	b.Helper()
	program := clustertest.Program(b, "cmd/kubectl-slipstream")
	var took []time.Duration
	var peak int64
	for range listRounds {
		command := exec.CommandContext(b.Context(), program, "status", "-A")
		command.Env = append(os.Environ(), "KUBECONFIG="+string(s.Admin()))
		began := time.Now()
		out, err := command.Output()
		if lines := bytes.Count(out, []byte("\n")); err != nil || lines < listed {
			b.Fatalf("%d lines: %v", lines, err)
		}
		took = append(took, time.Since(began))
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, usage.Maxrss)
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[listRounds/2].Seconds()*1000, "status-ms")
	b.ReportMetric(float64(peak)/1024, "status-MiB")
}

// createEnvironments creates environments without targets, and waits until all are reconciled.
func (s *testCluster) createEnvironments(b *testing.B) {
	b.Helper()
	client := s.slipstream.ConfigbutlerV1alpha1().Environments(teams)
	each(b, func(ctx context.Context, number int) error {
		_, err := client.Create(ctx, &v1alpha1.Environment{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("environment-", number)},
			Spec: v1alpha1.EnvironmentSpec{
				CatalogRef: v1alpha1.ObjectReference{Name: "shop"}, TargetNamespace: fmt.Sprint("target-", number),
			},
		}, metav1.CreateOptions{})
		return err
	})
	mirrortest.Eventually(b, "all environments are reconciled", func(ctx context.Context) error {
		all, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range all.Items {
			if all.Items[i].Status.ObservedGeneration == 0 {
				return fmt.Errorf("%s is not reconciled", all.Items[i].Name)
			}
		}
		return nil
	})
}

// copyEnvironments creates the objects of the CustomResourceDefinition.
func (s *testCluster) copyEnvironments(b *testing.B) {
	b.Helper()
	s.Apply(b, definition)
	s.Run(b, "wait", "--for=condition=Established", "crd/environments.bench.example.com")
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		b.Fatal(err)
	}
	all, err := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("environments")).Namespace(teams).List(b.Context(),
		metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	each(b, func(ctx context.Context, number int) error {
		return create(ctx, client.Resource(copied).Namespace(teams), &all.Items[number])
	})
}

func create(ctx context.Context, client dynamic.ResourceInterface, of *unstructured.Unstructured) error {
	object := of.DeepCopy()
	object.SetGroupVersionKind(copied.GroupVersion().WithKind("Environment"))
	object.SetResourceVersion("")
	object.SetUID("")
	object.SetFinalizers(nil)
	_, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	return err
}

// each calls a function with the number of each object, concurrently.
func each(b *testing.B, do func(ctx context.Context, number int) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(creators)
	for number := range listed {
		group.Go(func() error { return do(ctx, number) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}
