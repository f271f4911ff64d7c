// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/test/testkit/people"
)

const (
	// names is the number of objects of each type in each namespace.
	names = 12
	// pause is the mean pause of a user between two changes. Together they make about eight changes a second.
	pause = 400 * time.Millisecond
	// slowPause is that of changes of the source, and of requested syncs.
	slowPause = 4 * time.Second
	// requestLimit is the timeout of a change.
	requestLimit = 10 * time.Second
)

// The types that users change.
var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	types       = []schema.GroupVersionResource{configMaps, secrets, deployments}
)

// work is what users do until it is stopped. It can be interrupted.
type work struct {
	soak  *soak
	group sync.WaitGroup
	stop  context.CancelFunc
	// running is held by each change, and by interrupt.
	running sync.RWMutex
}

// startWork starts the work of all users. seed determines what they do, but not when.
func (s *soak) startWork(ctx context.Context, seed uint64) *work {
	w := &work{soak: s}
	ctx, w.stop = context.WithCancel(ctx)
	for i, writer := range s.writers {
		w.repeat(ctx, rand.New(rand.NewPCG(seed, uint64(i))), pause, func(ctx context.Context, random *rand.Rand, number int) {
			s.changeAny(ctx, writer, random, number)
		})
	}
	w.repeat(ctx, rand.New(rand.NewPCG(seed, 100)), slowPause, func(ctx context.Context, random *rand.Rand, number int) {
		s.changeSource(ctx, random.IntN(4), fmt.Sprintf("sam-%d", number))
	})
	w.repeat(ctx, rand.New(rand.NewPCG(seed, 101)), slowPause, func(ctx context.Context, _ *rand.Rand, _ int) {
		_ = s.sync(ctx) // The server may be down, or a sync in progress. Another request follows.
	})
	return w
}

// repeat makes changes with random pauses until the work is stopped.
func (w *work) repeat(ctx context.Context, random *rand.Rand, mean time.Duration, change func(context.Context, *rand.Rand, int)) {
	w.group.Go(func() {
		for number := 0; ; number++ {
			select {
			case <-time.After(mean/2 + rand.N(mean)):
			case <-ctx.Done():
				return
			}
			w.once(ctx, func(ctx context.Context) { change(ctx, random, number) })
		}
	})
}

// once makes a change unless the work is interrupted. A change that has begun is not cut off by the end of the work.
func (w *work) once(ctx context.Context, change func(context.Context)) {
	w.running.RLock()
	defer w.running.RUnlock()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
	defer cancel()
	change(limited)
}

// interrupt waits for the changes in progress, and lets no others begin until resume is called.
func (w *work) interrupt() (resume func()) {
	w.running.Lock()
	return w.running.Unlock
}

// end stops the work.
func (w *work) end() {
	w.stop()
	w.group.Wait()
}

// changeAny has a user create, update or delete a random object. Each written value is unique.
func (s *soak) changeAny(ctx context.Context, by *people.Person, random *rand.Rand, number int) {
	resource := types[random.IntN(len(types))]
	namespace := mirrored[random.IntN(len(mirrored))]
	o := object{resource.Resource, namespace, fmt.Sprintf("o%02d", random.IntN(names))}
	value := fmt.Sprintf("%s-%d", by.Name, number)
	deletes := random.IntN(6) == 0
	objects := by.Dynamic.Resource(resource).Namespace(namespace)
	found, err := objects.Get(ctx, o.name, metav1.GetOptions{})
	s.journal.begin(o, by.Name)
	switch {
	case apierrors.IsNotFound(err):
		found, err = objects.Create(ctx, newObject(o, value), metav1.CreateOptions{})
	case err != nil:
		return
	case deletes:
		err = objects.Delete(ctx, o.name, metav1.DeleteOptions{})
		found = &unstructured.Unstructured{Object: map[string]any{}}
	default:
		setValue(found, value)
		found, err = objects.Update(ctx, found, metav1.UpdateOptions{})
	}
	switch {
	case err == nil:
		s.journal.acknowledge(o, by.Name, found.GetResourceVersion())
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // Another user was faster.
	default:
		s.journal.lose()
	}
}

// newObject returns an object with a value.
func newObject(o object, value string) *unstructured.Unstructured {
	created := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": o.name, "namespace": o.namespace}}}
	switch o.resource {
	case configMaps.Resource:
		created.SetAPIVersion("v1")
		created.SetKind("ConfigMap")
	case secrets.Resource:
		created.SetAPIVersion("v1")
		created.SetKind("Secret")
	default:
		created.SetAPIVersion("apps/v1")
		created.SetKind("Deployment")
		labels := map[string]any{"app": o.name}
		created.Object["spec"] = map[string]any{
			"replicas": int64(0), "revisionHistoryLimit": int64(1), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "shop/main"}}},
			},
		}
	}
	setValue(created, value)
	return created
}

// setValue changes a label, which pipelines send, and the content of an object.
func setValue(changed *unstructured.Unstructured, value string) {
	changed.SetLabels(map[string]string{"value": value})
	switch changed.GetKind() {
	case "ConfigMap":
		changed.Object["data"] = map[string]any{"value": value}
	case "Secret":
		delete(changed.Object, "data")
		changed.Object["stringData"] = map[string]any{"value": value}
	default:
		replicas, _, _ := unstructured.NestedInt64(changed.Object, "spec", "minReadySeconds")
		_ = unstructured.SetNestedField(changed.Object, replicas%100+1, "spec", "minReadySeconds")
	}
}

// changeSource has sam change one of the objects that the catalog offers or that they refer to.
func (s *soak) changeSource(ctx context.Context, which int, value string) {
	manifests := []string{
		fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {value: %s}}", value),
		fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: setup}, stringData: {value: %s}}", value),
	}
	if which < len(manifests) {
		_ = s.sam.Try.Apply(ctx, source, manifests[which]) // It may fail while a fault lasts, and changes nothing then that matters.
		return
	}
	name := []string{"api", "worker"}[which-len(manifests)]
	_ = s.sam.Try.Patch(ctx, source, "deployment/"+name, fmt.Sprintf(
		`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"shop/main","env":[{"name":"VALUE","value":%q}],
"envFrom":[{"configMapRef":{"name":"settings"}},{"secretRef":{"name":"setup"}}]}]}}}}`, value))
}

// sync has dave request a sync of the environment that does not sync automatically.
func (s *soak) sync(ctx context.Context) error {
	_, err := s.dave.Try.Post(ctx, "/apis/configbutler.ai/v1alpha1/namespaces/"+team+"/environments/"+manual+"/sync", "{}")
	return err
}
