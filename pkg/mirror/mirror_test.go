// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata/fake"

	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// TestClusterUID checks that a cluster is identified by the UID of its namespace kube-system, and that the term ends without it.
func TestClusterUID(t *testing.T) {
	namespace := func(name string) *metav1.PartialObjectMetadata {
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
		object.Name, object.UID = name, types.UID("uid-of-"+name)
		return object
	}
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		objects []runtime.Object
		uid     string
		err     string
	}{
		"present": {[]runtime.Object{namespace("shop"), namespace("kube-system")}, "uid-of-kube-system", ""},
		"absent":  {[]runtime.Object{namespace("shop")}, "", "has no namespace kube-system"},
	} {
		t.Run(name, func(t *testing.T) {
			namespaces, err := watch.NewNamespaces(fake.NewSimpleMetadataClient(scheme, tt.objects...))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var group wait.Group
			group.StartWithContext(ctx, namespaces.Run)
			t.Cleanup(func() { cancel(); group.Wait() })
			if !namespaces.WaitForSync(ctx) {
				t.Fatal("the cache is not filled")
			}
			m := &mirror{shared: &controller.Shared{Namespaces: namespaces}, services: &branchServices{}}
			err = m.readClusterUID()
			if got := m.services.identity.ClusterUID; got != tt.uid {
				t.Errorf("UID of the cluster = %q, want %q", got, tt.uid)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error = %v, want %q in it", err, tt.err)
			}
		})
	}
}
