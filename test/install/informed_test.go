// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// informed is a controller with an informer for the GitRepoConfigs of a namespace.
type informed struct {
	*testCluster
	namespace string
	lister    cache.GenericLister
	deleted   atomic.Int64
}

func (s *testCluster) inform(t *testing.T, namespace string) *informed {
	t.Helper()
	config, err := s.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	resource := factory.ForResource(schema.GroupVersionResource{Group: "configbutler.ai", Version: "v1alpha1", Resource: "gitrepoconfigs"})
	i := &informed{testCluster: s, namespace: namespace, lister: resource.Lister()}
	_, err = resource.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { i.deleted.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(t.Context().Done(), resource.Informer().HasSynced) {
		t.Fatal("informer did not sync")
	}
	return i
}

// expectWorking fails the test unless the informer gets a change and got no deletion before.
func (i *informed) expectWorking(t *testing.T) {
	t.Helper()
	i.Run(t, "annotate", "gitrepoconfig/main", "-n", i.namespace, "--overwrite", numberAnnotation+"=last")
	mirrortest.Eventually(t, "the informer gets a change", func(context.Context) error {
		known, err := i.lister.ByNamespace(i.namespace).Get("main")
		if err != nil {
			return err
		}
		if number := known.(metav1.Object).GetAnnotations()[numberAnnotation]; number != "last" {
			return fmt.Errorf("annotation = %q", number)
		}
		return nil
	})
	if deleted := i.deleted.Load(); deleted > 0 {
		t.Errorf("informer got %d deletions", deleted)
	}
}
