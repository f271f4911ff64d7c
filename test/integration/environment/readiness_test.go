// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/readiness"
)

// watched is a stage whose environment's workloads are watched.
type watched struct {
	*stage
	environment *v1alpha1.Environment
	watcher     *readiness.Watcher
	// told are the environments of which something has changed.
	told chan types.NamespacedName
}

// newWatched has an environment and objects that somebody has put into its target.
func newWatched(t *testing.T, namespace string, objects ...string) *watched {
	t.Helper()
	w := &watched{stage: newTarget(t, namespace, objects...), told: make(chan types.NamespacedName, 1000)}
	w.environment = environmentIn(w.namespace, strings.TrimPrefix(namespace, "shop-"))
	var err error
	w.watcher, err = readiness.New(readiness.Config{Client: w.client, Changed: func(e types.NamespacedName) { w.told <- e }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.watcher.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

// is expects so many of the environment's workloads to be ready, and what is said of the others to contain a text.
func (w *watched) is(ready, total int32, trouble string) {
	w.Helper()
	var count *v1alpha1.WorkloadsReady
	var troubles []string
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("%v ready: %q", count, troubles)
		}
	})
	w.eventually("workloads", func(context.Context) (bool, error) {
		count, troubles = w.watcher.Of(w.environment)
		said := strings.Join(troubles, "\n")
		return count != nil && count.Ready == ready && count.Total == total && strings.Contains(said, trouble) && (trouble != "" || said == ""), nil
	})
}

// tells expects to hear of the environment.
func (w *watched) tells() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			w.Fatal("nothing is told of the environment")
		case e := <-w.told:
			if e.Name == w.environment.Name {
				return
			}
		}
	}
}

const pair = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

// runPods does the work of kubelets, which do not run here.
func (w *watched) runPods() {
	w.Helper()
	patch := []byte(`{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`)
	w.eventually("two Pods", func(context.Context) (bool, error) { return len(w.names("v1", "Pod")) == 2, nil })
	for _, name := range w.names("v1", "Pod") {
		pods := w.resource(w.object("{apiVersion: v1, kind: Pod}"))
		if _, err := pods.Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			w.Fatal(err)
		}
	}
}

func TestReadiness(t *testing.T) {
	w := newWatched(t, "shop-ready")
	w.succeeds(create(writtenBy(w.environment, w.object(pair))))
	w.is(0, 1, "Deployment web has 0 of 2 ready")
	w.tells()
	w.runPods()
	w.is(1, 1, "")
	w.tells()

	web := w.live(w.object(pair))
	w.succeeds(update(web, writtenBy(w.environment, w.object(strings.Replace(pair, "image: web", "image: web:2", 1)))))
	w.is(0, 1, "Deployment web is being rolled out")
	w.delete(web)
	w.is(0, 0, "")
	w.tells()
}

// Why Pods are not let in is said, and what others have put there does not count.
func TestReadinessUnderAQuota(t *testing.T) {
	w := newWatched(t, "shop-unready", strings.ReplaceAll(pair, "web", "theirs"))
	w.put("{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {pods: 0}}}")
	web := writtenBy(w.environment, w.object(pair))
	if _, err := w.resource(web).Apply(t.Context(), web.GetName(), web, metav1.ApplyOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
	w.is(0, 1, "Deployment web has 0 of 2 ready: ")
	w.is(0, 1, "quota: few")
}
