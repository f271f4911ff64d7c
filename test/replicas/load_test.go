// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
	"github.com/configbutler/slipstream/test/testkit/people"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

const (
	// configMaps, workloads and writes are the numbers of objects, and of changes of ConfigMaps by each user in one round.
	configMaps, workloads, writes = 10, 4, 60
	// pace is the time from one change of a user to the next, so that the mirror pushes while they are made.
	pace = 50 * time.Millisecond
	// imageEvery is the number of changes of ConfigMaps between two changes of a Deployment.
	imageEvery = 15
)

// deployment is the manifest of a Deployment: its namespace and name.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: main, image: 'shop/%[2]s:1', resources: {limits: {memory: 64Mi}}}]}
---
`

// consumers is the manifest of what follows the changes: the namespaces of the source and of the target, the team's namespace, and the URLs
// and authority of the receivers. The environment is created after the sink, so that the sink collects all its syncs.
const consumers = `
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: %[3]s}
spec: {sourceNamespace: %[1]s, workloads: [%[4]s]}
---
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: %[3]s}
spec:
  debounce: 0s
  batch: {maxWait: 100ms}
  customResourceDefinitions: {enabled: false}
  instances: {resources: [configmaps]}
  sinks: [{name: index, retry: {backoff: 100ms, maxBackoff: 1s}, http: {url: '%[5]s', format: ClusterWhisperer}}]
---
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: chat, namespace: %[3]s}
spec:
  digestWindow: 1s
  maxPerMinute: 60
  events: [Change, Completed]
  webhook: {url: '%[6]s', caBundle: %[7]s}
---
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: alice, namespace: %[3]s}
spec: {targetNamespace: %[2]s, catalogRef: {name: shop}, autoSync: true}
`

// load is a team whose objects are mirrored, with a catalog, an environment that syncs automatically, a pipeline and a sink.
type load struct {
	*testCluster
	*mirrortest.Mirror
	source, target string
	index          *receivertest.Receiver
	inbox          *notifytest.Receiver
	// before is the number of Changes and completed syncs that exist before the sink collects.
	before int
	// authors has the user of each resourceVersion of a ConfigMap, from the responses of kube-apiserver.
	authors sync.Map
	made    atomic.Int64
}

func (s *testCluster) newLoad(t *testing.T) *load {
	t.Helper()
	l := &load{
		testCluster: s, Mirror: s.NewMirror(t, "team", "granularity: PerChange"), source: "team-source", target: "team-target",
		index: receivertest.New(t, v1alpha1.PipelineFormatClusterWhisperer), inbox: notifytest.Webhook(t),
	}
	l.Watch(t, "config", "configmaps")
	l.Settled(t)
	manifests, names := namespaceOf(l.source)+namespaceOf(l.target), ""
	for i := range workloads {
		manifests += fmt.Sprintf(deployment, l.source, workload(i))
		names += fmt.Sprintf("{kind: Deployment, name: %s}, ", workload(i))
	}
	s.Apply(t, manifests)
	l.before = l.happened(t)
	s.users[0].Apply(t, fmt.Sprintf(consumers, l.source, l.target, l.Namespace, names, l.index.URL, l.inbox.URL,
		base64.StdEncoding.EncodeToString(l.inbox.CABundle())))
	s.Ready(t, l.Namespace, "appcatalog/shop", "notificationsink/chat")
	s.Ready(t, "", "syncpipeline/"+l.Namespace)
	t.Cleanup(func() { s.DeleteIfExist(t, "", "syncpipeline/"+l.Namespace) }) // The receivers stop, too.
	return l
}

func workload(number int) string { return fmt.Sprint("web", number%workloads) }

// start has all users change objects. The returned channels are closed after half of the changes, and after all.
func (l *load) start(t *testing.T, round int) (half, all <-chan struct{}) {
	t.Helper()
	reached, done := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	var made atomic.Int64
	for number, user := range l.users {
		group.Go(func() {
			ticker := time.NewTicker(pace)
			defer ticker.Stop()
			for i := range writes {
				<-ticker.C
				if err := l.change(t.Context(), user, number, round, i); err != nil {
					t.Error(err)
				}
				if int(made.Add(1)) == writes*len(l.users)/2 {
					close(reached)
				}
			}
		})
	}
	go func() {
		defer close(done)
		group.Wait()
	}()
	return reached, done
}

// change has a user set a ConfigMap that all users change, create or delete one of their own, and sometimes change the image of a Deployment.
func (l *load) change(ctx context.Context, user *people.Person, number, round, i int) error {
	if err := l.set(ctx, user, fmt.Sprintf("c%02d", i%configMaps), fmt.Sprintf("%s-%d-%d", user.Name, round, i)); err != nil {
		return err
	}
	if own := fmt.Sprintf("%s-%d-%02d", user.Name, round, i/2); i%2 == 0 {
		if err := l.set(ctx, user, own, "own"); err != nil {
			return err
		}
	} else if i%4 == 1 {
		if err := user.Client.CoreV1().ConfigMaps(l.Namespace).Delete(ctx, own, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	if i%imageEvery != 0 {
		return nil
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"shop/web:%s-%d-%d"}]}}}}`, user.Name, round, i)
	_, err := user.Client.AppsV1().Deployments(l.source).Patch(ctx, workload(number+i/imageEvery), types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{})
	return err
}

// set sets the only value of a ConfigMap, creating it if necessary.
func (l *load) set(ctx context.Context, user *people.Person, name, value string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value}}
	client := user.Client.CoreV1().ConfigMaps(l.Namespace)
	written, err := client.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		written, err = client.Create(ctx, object, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) { // Another user was faster.
		written, err = client.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err == nil {
		l.authors.Store(written.ResourceVersion, user.Name)
		l.made.Add(1)
	}
	return err
}
