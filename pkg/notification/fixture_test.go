// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/configbutler/slipstream/pkg/access/accesstest"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serverNamespace is the namespace of the server.
const serverNamespace = "slipstream-system"

// inbox is a receiver that accepts messages. It is the edge of the network.
type inbox struct {
	mu       sync.Mutex
	messages []*message.Message
	threads  []string
	// results are those of the next deliveries; without any, messages are accepted.
	results []delivery.Result
	// hang has deliveries wait until their context ends.
	hang bool
	// during is called during deliveries. Optional.
	during func()
}

// Deliver implements delivery.Receiver.
func (i *inbox) Deliver(ctx context.Context, m *message.Message, thread string) delivery.Result {
	i.mu.Lock()
	i.messages, i.threads = append(i.messages, m), append(i.threads, thread)
	result, hang := delivery.Result{Outcome: delivery.Delivered, Thread: cmp.Or(thread, fmt.Sprintf("message-%d", len(i.messages)))}, i.hang
	if len(i.results) > 0 {
		result, i.results = i.results[0], i.results[1:]
	}
	during := i.during
	i.mu.Unlock()
	if during != nil {
		during()
	}
	if hang {
		<-ctx.Done()
		return delivery.Result{Outcome: delivery.Retry, Message: "interrupted"}
	}
	return result
}

// Close implements delivery.Receiver.
func (i *inbox) Close() {}

// next sets the results of the next deliveries.
func (i *inbox) next(results ...delivery.Result) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.results = results
}

// received returns the messages so far.
func (i *inbox) received() []*message.Message {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.messages)
}

// lines returns a line for each message: its notifications, such as "Prompted teams/alice".
func (i *inbox) lines() []string {
	var lines []string
	for _, m := range i.received() {
		var parts []string
		for _, n := range m.Notifications {
			text := string(n.Event)
			if n.Recovered {
				text += " recovered"
			}
			if n.Reminder > 0 {
				text += fmt.Sprintf(" reminder %d", n.Reminder)
			}
			parts = append(parts, text+" "+n.Subject.Namespace+"/"+n.Subject.Name)
		}
		if more := m.Total() - len(m.Notifications); more > 0 {
			parts = append(parts, fmt.Sprintf("and %d", more))
		}
		lines = append(lines, strings.Join(parts, ", "))
	}
	return lines
}

// fixture is the environment of a controller: the API, the receiver, the store and the clock. They outlive the process.
type fixture struct {
	testing.TB
	api   *fakeapi.API
	inbox *inbox
	kv    clientv3.KV
	// full makes the store reject writes.
	full     *atomic.Bool
	clock    *testkit.Clock
	reviewer *accesstest.Reviewer
	events   *testkit.EventLog
	stop     func()
}

func newFixture(t testing.TB, objects ...runtime.Object) *fixture {
	t.Helper()
	s := &fixture{
		TB: t, clock: testkit.NewClock(t), inbox: &inbox{}, reviewer: &accesstest.Reviewer{}, events: &testkit.EventLog{},
		full: &atomic.Bool{}, stop: func() {},
	}
	s.kv = bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error {
		if s.full.Load() {
			return errors.New("the disk is full")
		}
		return write.Commit()
	})
	s.api = fakeapi.New(t, s.clock, objects...)
	t.Cleanup(func() { s.stop() })
	return s
}

// start starts a process. stop ends it.
func (s *fixture) start() {
	s.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(s, ktesting.NewConfig(ktesting.Verbosity(0)))))
	meta := fake.NewSimpleMetadataClient(fake.NewTestScheme())
	resourceTypes, err := watch.NewTypes(testkit.Discovery{}, meta, time.Hour)
	if err != nil {
		s.Fatal(err)
	}
	notifications := &Controller{Config: Config{
		Namespace: serverNamespace, Cluster: "production",
		Connect: func(*v1alpha1.NotificationSink) (delivery.Receiver, error) { return s.inbox, nil },
	}}
	group := controller.NewGroup(&controller.Process{
		Client: s.api.Client, Cluster: &watch.Clients{Metadata: meta}, Types: resourceTypes,
		Access: s.reviewer, Events: s.events, Store: table.New(s.kv, "/test"), Clock: s.clock,
	}, nil, notifications)
	ended := testkit.Run(ctx, s, group.Run, resourceTypes.Run)
	s.stop = sync.OnceFunc(func() { cancel(); <-ended })
}

// receives waits until the receiver has exactly these messages.
func (s *fixture) receives(want ...string) {
	s.Helper()
	s.clock.Eventually("the receiver has the messages", func() error {
		if got := s.inbox.lines(); !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
}

// staysQuiet checks that the receiver gets no further message for a while.
func (s *fixture) staysQuiet(minutes int) {
	s.Helper()
	before := s.inbox.lines()
	s.clock.Advance(minutes, time.Minute)
	if got := s.inbox.lines(); !slices.Equal(got, before) {
		s.Errorf("more messages: %q", got[len(before):])
	}
}

// collects waits until so many notifications wait for a message. The clock runs slowly, so that no message is due meanwhile.
func (s *fixture) collects(notifications int64) {
	s.Helper()
	s.clock.EventuallyBy(10*time.Millisecond, "they are collected", func() error {
		if pending := fakeapi.Get[*v1alpha1.NotificationSink](s.api, "teams", "chat").Status.Pending; pending != notifications {
			return fmt.Errorf("%d are collected, want %d", pending, notifications)
		}
		return nil
	})
}

// reaches waits until a check accepts the status of the sink.
func (s *fixture) reaches(what string, is func(*v1alpha1.NotificationSinkStatus) bool) *v1alpha1.NotificationSinkStatus {
	s.Helper()
	var status *v1alpha1.NotificationSinkStatus
	s.clock.Eventually(what, func() error {
		if status = &fakeapi.Get[*v1alpha1.NotificationSink](s.api, "teams", "chat").Status; !is(status) {
			return fmt.Errorf("%+v", *status)
		}
		return nil
	})
	return status
}

// says waits until a condition of the sink has a reason, and returns its message.
func (s *fixture) says(kind, reason string) string {
	s.Helper()
	var text string
	s.reaches(kind+" "+reason, func(status *v1alpha1.NotificationSinkStatus) bool {
		for _, c := range status.Conditions {
			if c.Type == kind && c.Reason == reason {
				text = c.Message
				return true
			}
		}
		return false
	})
	return text
}

// newSink returns the sink teams/chat, which is notified of everything in its namespace.
func newSink(changes ...func(*v1alpha1.NotificationSinkSpec)) *v1alpha1.NotificationSink {
	sink := &v1alpha1.NotificationSink{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "teams", Name: "chat", UID: "uid-of-chat", Generation: 1, CreationTimestamp: metav1.NewTime(testkit.Noon.Add(-time.Hour)),
		},
		Spec:   v1alpha1.NotificationSinkSpec{Webhook: &v1alpha1.WebhookSink{URL: "https://chat.example.com"}, Events: v1alpha1.NotificationEvents()},
		Status: v1alpha1.NotificationSinkStatus{EditedBy: &v1alpha1.AutomatedBy{Username: "jane"}},
	}
	for _, change := range changes {
		change(&sink.Spec)
	}
	v1alpha1.SetObjectDefaults_NotificationSink(sink)
	return sink
}

// prompting returns the environment teams/alice, for which a change waits for a decision.
func prompting() *v1alpha1.Environment {
	return &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "alice", UID: "uid-of-alice", Generation: 1},
		Spec:       v1alpha1.EnvironmentSpec{CatalogRef: v1alpha1.ObjectReference{Name: "shop"}, TargetNamespace: "alice"},
		Status: v1alpha1.EnvironmentStatus{
			ObservedGeneration: 1, LatestCatalogSync: "shop-2", LatestRevision: 2, AppliedCatalogSync: "shop-1", AppliedRevision: 1,
			ChangedWorkloadCount: 1,
			ChangedWorkloads:     []v1alpha1.WorkloadChange{{Kind: v1alpha1.WorkloadDeployment, Name: "web", ChangeType: v1alpha1.ChangeChanged}},
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionCatalogUpToDate, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWorkloadsChanged, Message: "web differs",
			}},
		},
	}
}

// record returns a SyncStatus of the environment teams/alice.
func record(name string, state v1alpha1.SyncState, changes ...func(*v1alpha1.SyncRecord)) *v1alpha1.SyncStatus {
	now := metav1.NewTime(testkit.Noon)
	r := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, UID: types.UID("uid-of-" + name)},
		Spec: v1alpha1.SyncStatusSpec{
			Type: v1alpha1.SyncTypeEnvironment, Batch: name,
			Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: "alice", UID: "uid-of-alice"},
		},
		Status: v1alpha1.SyncRecord{State: state, DetectedAt: now, Attempts: 1},
	}
	switch state {
	case v1alpha1.SyncStateCompleted, v1alpha1.SyncStateDismissed, v1alpha1.SyncStateSuperseded:
		r.Status.ResolvedAt = &now
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention:
		r.Status.Error = &v1alpha1.SyncError{Reason: v1alpha1.ReasonForbidden, Message: "deployments.apps is forbidden", At: now}
	case v1alpha1.SyncStateConflicted:
		r.Status.Error = &v1alpha1.SyncError{Reason: v1alpha1.ReasonFieldsChangedTwice, Message: "1 field was changed twice", At: now}
	}
	for _, change := range changes {
		change(&r.Status)
	}
	return r
}

// move replaces the record of a name.
func (s *fixture) move(name string, state v1alpha1.SyncState, changes ...func(*v1alpha1.SyncRecord)) {
	s.Helper()
	fakeapi.Change(s.api, "teams", name, func(r *v1alpha1.SyncStatus) { r.Status = record(name, state, changes...).Status })
}

// keys returns the keys of all rows.
func (s *fixture) keys() []string {
	s.Helper()
	var keys []string
	for key, err := range table.New(s.kv, "/test").Table(ledger.TableName).Keys(context.Background(), "") {
		if err != nil {
			s.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}
