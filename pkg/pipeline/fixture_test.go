// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/access/accesstest"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

func TestMain(m *testing.M) {
	// Idle connections of receivers are closed later.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

var noon = testkit.Noon

// fixture is the environment of a controller: the API, the cluster, the receivers, the store and the clock. They outlive the process.
type fixture struct {
	testing.TB
	api     *fakeapi.API
	cluster *cluster
	kube    *kubefake.Clientset
	kv      clientv3.KV
	// full makes the store reject writes.
	full     *atomic.Bool
	clock    *testkit.Clock
	reviewer *accesstest.Reviewer
	events   *testkit.EventLog
	// types are those of the process that was started last.
	types *watch.Types
	stop  func()
	// mu protects the fields below.
	mu sync.Mutex
	// statusWrites has the times of status writes.
	statusWrites []time.Time
	// conflicts is the number of status writes to reject.
	conflicts int
	// policyGeneration is the generation of the SyncPolicy.
	policyGeneration int64
}

// newFixture returns a fixture whose cluster has the ConfigMaps web and worker, and the definition of Coupons.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	s := &fixture{
		TB: t, cluster: newCluster(t), kube: kubefake.NewClientset(), full: &atomic.Bool{},
		clock: testkit.NewClock(t), reviewer: &accesstest.Reviewer{}, events: &testkit.EventLog{}, stop: func() {},
	}
	s.kv = bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error {
		if s.full.Load() {
			return errFull
		}
		return write.Commit()
	})
	s.api = fakeapi.New(t, s.clock)
	s.api.Reject(s.rejectStatus)
	s.cluster.put("one", "web", "worker")
	s.cluster.define("coupons", "Coupon")
	t.Cleanup(func() { s.stop() })
	return s
}

// inventory returns a pipeline of ConfigMaps and definitions, without resyncs.
func inventory(sinks ...v1alpha1.PipelineSink) *v1alpha1.SyncPipeline {
	return &v1alpha1.SyncPipeline{
		ObjectMeta: metav1.ObjectMeta{Name: "inventory"},
		Spec: v1alpha1.SyncPipelineSpec{
			Instances: v1alpha1.InstanceSource{Resources: []string{"configmaps"}}, Sinks: sinks,
			ResyncInterval: &metav1.Duration{},
		},
	}
}

// sinkTo returns an HTTP sink.
func sinkTo(name string, receiver *receivertest.Receiver) v1alpha1.PipelineSink {
	return v1alpha1.PipelineSink{
		Name: name, HTTP: &v1alpha1.HTTPSink{URL: receiver.URL, Format: v1alpha1.PipelineFormatCloudEvents},
	}
}

func (s *fixture) receiver() *receivertest.Receiver {
	s.Helper()
	return receivertest.New(s, v1alpha1.PipelineFormatCloudEvents)
}

// start starts a process. stop ends it.
func (s *fixture) start() {
	s.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(s, ktesting.NewConfig(ktesting.Verbosity(0)))))
	group, resourceTypes := s.group()
	s.types = resourceTypes
	ended := testkit.Run(ctx, s, group.Run, resourceTypes.Run)
	s.stop = sync.OnceFunc(func() { cancel(); <-ended })
}

// group returns a group of the controller and others, and the types that it needs.
func (s *fixture) group(others ...controller.Controller) (*controller.Group, *watch.Types) {
	s.Helper()
	resourceTypes, err := watch.NewTypes(s.cluster, s.cluster.meta, time.Hour)
	if err != nil {
		s.Fatal(err)
	}
	pipelines := &Controller{Config: Config{
		Resolver: func(*watch.Snapshot) access.Resolver { return resolver{} }, Network: &proxy.Network{Direct: (&net.Dialer{}).DialContext},
		SinkClient: func() (kubernetes.Interface, error) { return s.kube, nil },
	}}
	return controller.NewGroup(&controller.Process{
		Client: s.api.Client, Cluster: &watch.Clients{Dynamic: s.cluster.whole, Metadata: s.cluster.meta}, Types: resourceTypes,
		Access: s.reviewer, Events: s.events, Store: s.store(), Clock: s.clock,
	}, nil, append([]controller.Controller{pipelines}, others...)...), resourceTypes
}

var errFull = errors.New("the disk is full")

func (s *fixture) store() *table.Store { return table.New(s.kv, "/test") }

// rows returns the keys of all ledgers.
func (s *fixture) rows() []string {
	s.Helper()
	return keysOf(s, s.store().Table(ledger.TableName))
}

// eventually advances the clock until check returns no error.
func (s *fixture) eventually(what string, check func() error) {
	s.Helper()
	s.clock.Eventually(what, check)
}

// await waits until check returns no error, without advancing the clock.
func (s *fixture) await(what string, check func() error) {
	s.Helper()
	testkit.Eventually(s, what, check)
}

// pass advances the clock by seconds, in steps that let all goroutines act.
func (s *fixture) pass(seconds int) {
	s.clock.Advance(seconds, time.Second)
}

// knows waits until a receiver has exactly these objects.
func (s *fixture) knows(receiver *receivertest.Receiver, want ...string) {
	s.Helper()
	slices.Sort(want)
	s.eventually("the receiver has received them", func() error {
		if known := receiver.Known(); !slices.Equal(known, want) {
			return fmt.Errorf("objects of the receiver = %q after %d calls", known, len(receiver.Calls()))
		}
		return nil
	})
}

// reaches waits until a check accepts the status of the pipeline.
func (s *fixture) reaches(what string, is func(*v1alpha1.SyncPipelineStatus) bool) *v1alpha1.SyncPipelineStatus {
	s.Helper()
	var status *v1alpha1.SyncPipelineStatus
	s.eventually(what, func() error {
		if status = &s.pipeline("inventory").Status; !is(status) {
			return testkit.Described(errors.New("the status is"), func(context.Context) string {
				text, err := json.Marshal(status)
				if err != nil {
					return err.Error()
				}
				return string(text)
			})
		}
		return nil
	})
	return status
}

// says waits until a condition has a reason.
func (s *fixture) says(kind, reason string) *metav1.Condition {
	s.Helper()
	var found *metav1.Condition
	s.reaches(kind+" "+reason, func(status *v1alpha1.SyncPipelineStatus) bool {
		found = conditionOf(status, kind)
		return found != nil && found.Reason == reason
	})
	return found
}

func conditionOf(status *v1alpha1.SyncPipelineStatus, kind string) *metav1.Condition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

// level returns the label of a ConfigMap as the receiver has it.
func level(receiver *receivertest.Receiver, name string) string {
	object, _ := receiver.Object(named(name))
	return object.Labels["level"]
}

// Names of objects in the receiver.
const coupons = "coupons.example.com"

func named(configMap string) string { return "shop/v1/ConfigMap/" + configMap }

// resolver resolves nothing: these tests do not check the permissions themselves.
type resolver struct{}

func (resolver) Resolve(access.Selection) ([]schema.GroupResource, []string, bool) {
	return nil, nil, false
}
func (resolver) Preset() []schema.GroupResource { return nil }

func differs(got, want string) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("got %q, want %q", got, want)
}
