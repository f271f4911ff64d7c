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
	"github.com/configbutler/slipstream/test/devcluster"
)

// watched is a fixture with a readiness watcher for an environment.
type watched struct {
	*fixture
	environment *v1alpha1.Environment
	watcher     *readiness.Watcher
	// changed receives the environments whose readiness has changed.
	changed chan types.NamespacedName
}

// newWatched returns a watched fixture with other objects in its target.
func newWatched(t *testing.T, namespace string, objects ...string) *watched {
	t.Helper()
	w := &watched{fixture: newTarget(t, namespace, objects...), changed: make(chan types.NamespacedName, 1000)}
	w.environment = environmentIn(w.namespace, strings.TrimPrefix(namespace, "shop-"))
	var err error
	w.watcher, err = readiness.New(readiness.Config{Client: w.client, Changed: func(e types.NamespacedName) { w.changed <- e }})
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

// waitForReady waits until the environment has these numbers of workloads, and a message about the others contains a text.
func (w *watched) waitForReady(ready, total int32, trouble string) {
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
		message := strings.Join(troubles, "\n")
		return count != nil && count.Ready == ready && count.Total == total && strings.Contains(message, trouble) &&
			(trouble != "" || message == ""), nil
	})
}

// waitForChange waits for a notification about the environment.
func (w *watched) waitForChange() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			w.Fatal("no change of the environment was reported")
		case e := <-w.changed:
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

// unready returns a Deployment with a label by which its Pods do not become ready.
func unready(deployment string) string {
	return strings.Replace(deployment, "{labels: {", "{labels: {"+devcluster.UnreadyLabel+`: "true", `, 1)
}

func TestReadiness(t *testing.T) {
	w := newWatched(t, "shop-ready")
	w.mustApply(create(writtenBy(w.environment, w.object(unready(pair)))))
	w.waitForReady(0, 1, "Deployment web has 0 of 2 ready")
	w.waitForChange()
	w.replace(pair)
	w.waitForReady(1, 1, "")
	w.waitForChange()
	w.replace(unready(pair))
	w.waitForReady(0, 1, "Deployment web is being rolled out")
	w.delete(w.live(w.object(pair)))
	w.waitForReady(0, 0, "")
	w.waitForChange()
}

// replace writes another version of an object for the environment.
func (w *watched) replace(text string) {
	w.Helper()
	w.mustApply(update(w.live(w.object(text)), writtenBy(w.environment, w.object(text))))
}

// TestReadinessUnderAQuota checks that the reason for missing Pods is reported, and that other workloads do not count.
func TestReadinessUnderAQuota(t *testing.T) {
	w := newWatched(t, "shop-unready", strings.ReplaceAll(pair, "web", "theirs"))
	w.applyQuota("pods: 0", "pods")
	web := writtenBy(w.environment, w.object(pair))
	if _, err := w.resource(web).Apply(t.Context(), web.GetName(), web, metav1.ApplyOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
	w.waitForReady(0, 1, "Deployment web has 0 of 2 ready: ")
	w.waitForReady(0, 1, "quota: small")
}
