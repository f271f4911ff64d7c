// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const (
	namespace = "slipstream-system"
	leaseName = "slipstream"
	patience  = 2 * time.Minute
)

// recorder is a runner that says when it starts and stops, and stops only after the test lets it.
type recorder struct {
	running atomic.Int32
	starts  atomic.Int32
	started chan struct{}
	drain   chan struct{}
	fail    chan error
	// lingers is how long it takes to stop.
	lingers time.Duration
}

func newRecorder() *recorder {
	return &recorder{started: make(chan struct{}, 10), drain: make(chan struct{}), fail: make(chan error)}
}

func (r *recorder) Name() string { return "recorder" }

func (r *recorder) Run(ctx context.Context) error {
	r.running.Add(1)
	defer r.running.Add(-1)
	r.starts.Add(1)
	r.started <- struct{}{}
	select {
	case err := <-r.fail:
		return err
	case <-ctx.Done():
		<-time.After(r.lingers)
		<-r.drain
		return nil
	}
}

// shortLease is quick enough for a test and obeys the rules of the elector.
func shortLease(client *fake.Clientset, identity string) Lease {
	return Lease{
		NewLock: func() resourcelock.Interface {
			return &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
				Client:     client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			}
		},
		Watch: func(ctx context.Context) (watch.Interface, error) {
			return client.CoordinationV1().Leases(namespace).Watch(ctx, metav1.ListOptions{})
		},
		Times: Times{Duration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 100 * time.Millisecond},
	}
}

// start runs a loop in the background and returns its end and what ends it.
func start(t *testing.T, lease Lease, runners ...Runner) (over <-chan struct{}, stop context.CancelFunc) {
	t.Helper()
	l, err := NewManager(lease, runners...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		await(t, done, "the end of the loop")
	})
	return done, cancel
}

func await(t *testing.T, happened <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}

// holder is the identity in the Lease, empty when it is free or absent.
func holder(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases(namespace).Get(context.Background(), leaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func TestLeaseIsReleasedOnlyAfterTheRunnersHaveDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		runner := newRecorder()
		over, stop := start(t, shortLease(client, "a"), runner)
		await(t, runner.started, "the start of the runner")

		stop()
		select {
		case <-over:
			t.Fatal("the loop ended although its runner has not drained")
		case <-time.After(300 * time.Millisecond):
		}
		if got := holder(t, client); got != "a" {
			t.Errorf("holder while draining = %q, want a", got)
		}
		close(runner.drain)
		await(t, over, "the end of the loop")
		if got := holder(t, client); got != "" {
			t.Errorf("holder after the end = %q, want none", got)
		}
	})
}

func TestOnlyTheLeaderRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		first, second := newRecorder(), newRecorder()
		close(first.drain)
		close(second.drain)
		over, stop := start(t, shortLease(client, "a"), first)
		await(t, first.started, "the first leader")
		start(t, shortLease(client, "b"), second)

		select {
		case <-second.started:
			t.Fatal("both replicas lead")
		case <-time.After(500 * time.Millisecond):
		}
		stop()
		await(t, over, "the end of the first leader")
		await(t, second.started, "the second leader")
	})
}

func TestAReleasedLeaseIsTakenBeforeTheRetryPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		slow := func(identity string) Lease {
			lease := shortLease(client, identity)
			lease.Times = Times{Duration: 9 * patience, RenewDeadline: 6 * patience, RetryPeriod: 3 * patience}
			return lease
		}
		var counting atomic.Bool
		observed := firstRead(client, &counting)
		first, second := newRecorder(), newRecorder()
		close(first.drain)
		close(second.drain)
		over, stop := start(t, slow("a"), first)
		await(t, first.started, "the first leader")
		counting.Store(true)
		start(t, slow("b"), second)
		await(t, observed, "the second replica to read the Lease")
		stop()
		await(t, over, "the end of the first leader")
		await(t, second.started, "the second leader") // patience is shorter than the retry period
	})
}

// firstRead is closed when the Lease has been read while counting.
func firstRead(client *fake.Clientset, counting *atomic.Bool) <-chan struct{} {
	done := make(chan struct{})
	var once sync.Once
	client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if counting.Load() {
			once.Do(func() { close(done) })
		}
		return false, nil, nil
	})
	return done
}

func TestLostLeaseStopsTheRunnersAndTheLoopTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var broken atomic.Bool
		client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return broken.Load(), nil, errors.New("the API server is away")
		})
		runner := newRecorder()
		close(runner.drain)
		start(t, shortLease(client, "a"), runner)
		await(t, runner.started, "the first term")

		broken.Store(true)
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
			return runner.running.Load() == 0, nil
		})
		if err != nil {
			t.Fatal("the runner is still running without the lease")
		}
		broken.Store(false)
		await(t, runner.started, "the second term")
	})
}

func TestARunnerThatReturnsEndsTheTermOfAll(t *testing.T) {
	tests := []struct {
		name  string
		lease Lease
		fault error
	}{
		{name: "with an error, under a lease", lease: shortLease(fake.NewClientset(), "a"), fault: errors.New("broken")},
		{name: "with an error, without a lease", fault: errors.New("broken")},
		{name: "without an error", fault: nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			steady, faulty := newRecorder(), newRecorder()
			close(steady.drain)
			close(faulty.drain)
			start(t, tt.lease, steady, faulty)
			await(t, steady.started, "the steady runner")
			await(t, faulty.started, "the faulty runner")
			faulty.fail <- tt.fault
			await(t, faulty.started, "the faulty runner's second start")
			await(t, steady.started, "the steady runner's second start")
		})
	}
}

// talker reports the first log level at which its logger is disabled.
type talker struct{ level chan int }

func (talker) Name() string { return "talker" }

func (r talker) Run(ctx context.Context) error {
	level := 0
	for klog.FromContext(ctx).V(level).Enabled() {
		level++
	}
	select {
	case r.level <- level:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return nil
}

// From level 8 on, clients log what they read.
func TestRunnersLogNothingThatTheyRead(t *testing.T) {
	r := talker{make(chan int)}
	l, err := NewManager(Lease{}, r)
	if err != nil {
		t.Fatal(err)
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(10), ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.Run(ctx)
	}()
	if level := <-r.level; level != 8 {
		t.Errorf("runners log nothing from level %d on, want 8", level)
	}
	cancel()
	await(t, over, "the end of the loop")
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	for _, line := range []string{"Leading: starting the controllers", "Leading no longer: the controllers have stopped"} {
		if strings.Count(log, line) != 1 {
			t.Errorf("the log does not have %q once:\n%s", line, log)
		}
	}
}

func TestNewRefusesTimesThatDoNotFit(t *testing.T) {
	lease := shortLease(fake.NewClientset(), "a")
	lease.RenewDeadline = lease.Duration
	if _, err := NewManager(lease); err == nil {
		t.Error("New accepted a renew deadline as long as the lease")
	}
}
