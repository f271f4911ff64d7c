// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// client makes requests until a test has restarted all replicas.
type client struct {
	name     string
	request  func(ctx context.Context, number int) error
	requests atomic.Int64
}

// testRollingRestart stops the replicas one after the other, and starts each again, while clients read, write and watch through the
// aggregator. Their libraries retry as they do by default: no read may fail, and the watch must not lose an object. A write fails only if
// it was on the connection when it ended (see again), and then it was not carried out.
func (s *testCluster) testRollingRestart(t *testing.T) {
	const namespace = "rolling"
	s.CreateNamespace(t, namespace)
	user := s.users[0]
	writes := &writer{t: t, user: user}
	informed := inform(t, user, namespace)
	clients := []*client{
		{name: "client-go writes", request: func(ctx context.Context, number int) error { return writes.write(ctx, namespace, number) }},
		{name: "client-go reads", request: func(ctx context.Context, _ int) error {
			_, err := user.Own.ConfigbutlerV1alpha1().GitRepoConfigs(namespace).List(ctx, metav1.ListOptions{})
			return err
		}},
		{name: "kubectl get", request: func(ctx context.Context, _ int) error {
			_, err := user.Kubectl.Run(ctx, "get", "gitrepoconfigs,changes", "-n", namespace)
			return err
		}},
		{name: "kubectl apply", request: func(ctx context.Context, number int) error {
			return writes.again("kubectl apply", func() error {
				_, err := user.Kubectl.Feed(ctx, fmt.Sprintf(repository, namespace, "applied", number), "apply", "-f", "-")
				return err
			})
		}},
	}
	ctx, end := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, c := range clients {
		group.Go(func() { c.run(ctx, t) })
	}
	for replica := range replicas {
		began := time.Now()
		if err := s.StopServer(t.Context(), syscall.SIGTERM, replica); err != nil {
			t.Error(err)
		}
		t.Logf("replica %d stopped after %s", replica, time.Since(began).Round(10*time.Millisecond))
		s.restart(t)
		progress(t, clients)
	}
	end()
	group.Wait()
	for _, c := range clients {
		t.Logf("%s: %d requests", c.name, c.requests.Load())
	}
	// Two clients write, each one request at a time.
	if repeated := writes.repeated.Load(); repeated > 2*replicas {
		t.Errorf("%d writes were repeated, more than those that were on connections when they ended", repeated)
	}
	mirrortest.Eventually(t, "the informer has all objects", func(ctx context.Context) error {
		list, err := user.Own.ConfigbutlerV1alpha1().GitRepoConfigs(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, each := range list.Items {
			if version := informed.version(each.Name); version != each.ResourceVersion {
				return fmt.Errorf("the informer has %s with resourceVersion %q, want %s", each.Name, version, each.ResourceVersion)
			}
		}
		if got := len(informed.GetStore().ListKeys()); got != len(list.Items) {
			err = fmt.Errorf("the informer has %d objects, want %d", got, len(list.Items))
		}
		return err
	})
}

// run makes requests one after the other until ctx is done.
func (c *client) run(ctx context.Context, t *testing.T) {
	for number := 0; ctx.Err() == nil; number++ {
		// A request that has begun is completed.
		if err := c.request(context.WithoutCancel(ctx), number); err != nil {
			t.Errorf("%s: request %d: %v", c.name, number, err)
		}
		c.requests.Add(1)
	}
}

// progress waits until each client has made more requests.
func progress(t *testing.T, clients []*client) {
	t.Helper()
	for _, c := range clients {
		before := c.requests.Load()
		mirrortest.Eventually(t, c.name+" continues", func(context.Context) error {
			if c.requests.Load() < before+2 {
				return fmt.Errorf("%d requests, %d before", c.requests.Load(), before)
			}
			return nil
		})
	}
}

// repository is the manifest of a GitRepoConfig: its namespace, its name and a number.
const repository = `
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {namespace: %s, name: %s, annotations: {number: '%d'}}
spec: {repoUrl: 'https://git.example.com/a.git', allowedBranches: [main]}
`

func named(number int) string { return fmt.Sprint("written-", number) }

// writer makes writes.
type writer struct {
	t    *testing.T
	user *people.Person
	// repeated counts the writes that were repeated.
	repeated atomic.Int64
}

// again makes a write, and repeats it if kube-apiserver could not complete it.
func (w *writer) again(what string, write func() error) error {
	return clustertest.Again(write, func(failure error) {
		w.t.Logf("%s: repeated after %v", what, failure)
		w.repeated.Add(1)
	})
}

// write creates, updates and reads a GitRepoConfig, and deletes most of them. A create or delete that is repeated succeeds only if the first
// one was not carried out.
func (w *writer) write(ctx context.Context, namespace string, number int) error {
	client, name := w.user.Own.ConfigbutlerV1alpha1().GitRepoConfigs(namespace), named(number)
	steps := []struct {
		verb string
		make func() error
	}{
		{"create", func() error {
			_, err := client.Create(ctx, &v1alpha1.GitRepoConfig{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       v1alpha1.GitRepoConfigSpec{RepoURL: "https://git.example.com/a.git", AllowedBranches: []string{"main"}},
			}, metav1.CreateOptions{})
			return err
		}},
		{"patch", func() error {
			patch := []byte(`{"metadata":{"annotations":{"number":"2"}}}`)
			_, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}},
		{"delete", func() error { return client.Delete(ctx, name, metav1.DeleteOptions{}) }},
	}
	if number%4 == 0 {
		steps = steps[:2]
	}
	for _, step := range steps {
		if err := w.again(step.verb, step.make); err != nil {
			return fmt.Errorf("%s: %w", step.verb, err)
		}
		if step.verb == "delete" {
			continue
		}
		if _, err := client.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("get: %w", err)
		}
	}
	return nil
}

// informer is an informer of the GitRepoConfigs of a namespace.
type informer struct{ cache.SharedIndexInformer }

func inform(t *testing.T, user *people.Person, namespace string) informer {
	t.Helper()
	factory := externalversions.NewSharedInformerFactoryWithOptions(user.Own, 0, externalversions.WithNamespace(namespace))
	i := informer{factory.Configbutler().V1alpha1().GitRepoConfigs().Informer()}
	ctx, stop := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
	})
	factory.WaitForCacheSyncWithContext(ctx)
	return i
}

// version returns the resourceVersion of an object, empty if it does not exist.
func (i informer) version(name string) string {
	for _, each := range i.GetStore().List() {
		if config, is := each.(*v1alpha1.GitRepoConfig); is && config.Name == name {
			return config.ResourceVersion
		}
	}
	return ""
}
