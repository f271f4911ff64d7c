// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/test/testkit"
)

// lister is a controller that reads the pipelines as soon as it runs.
type lister struct {
	found chan int
}

func (lister) Name() string { return "lister" }

func (l lister) Setup(_ context.Context, shared *controller.Shared) (controller.Run, error) {
	pipelines := shared.Informers.Configbutler().V1alpha1().SyncPipelines()
	pipelines.Informer()
	return func(ctx context.Context) error {
		all, err := pipelines.Lister().List(labels.Everything())
		l.found <- len(all)
		<-ctx.Done()
		return err
	}, nil
}

// TestControllersRunOnFilledCaches checks that no controller runs before its caches hold what exists. A controller that reads too early
// takes objects for deleted, and removes what belongs to them.
func TestControllersRunOnFilledCaches(t *testing.T) {
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(&v1alpha1.SyncPipeline{ObjectMeta: metav1.ObjectMeta{Name: "index"}})
		client.PrependReactor("list", "syncpipelines", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-time.After(300 * time.Millisecond) // longer than all other caches need
			return false, nil, nil
		})
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		meta := metadatafake.NewSimpleMetadataClient(scheme)
		types, err := watch.NewTypes(testkit.Discovery{}, meta, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var following sync.WaitGroup
		following.Go(func() { types.Run(ctx) })
		if !types.WaitForSync(ctx) {
			t.Fatal("the types are not known")
		}
		l := lister{make(chan int, 1)}
		group := controller.NewGroup(&controller.Process{Client: client, Cluster: &watch.Clients{Metadata: meta}, Types: types}, nil, l)
		ended := make(chan error)
		go func() { ended <- group.Run(ctx) }()
		if found := <-l.found; found != 1 {
			t.Errorf("a controller runs with %d pipelines in its cache, want 1", found)
		}
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		following.Wait()
	}
}
