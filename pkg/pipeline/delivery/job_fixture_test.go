// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

const (
	namespace = "scans"
	plain     = `{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"scan","image":"scan:1"}]}}}}`
)

var (
	errDied = errors.New("the process has died")
)

// jobFixture is a cluster in which a sink makes Jobs.
type jobFixture struct {
	*testing.T
	cluster *fake.Clientset
	source  format.Source
	spec    v1alpha1.JobSink
	created int
}

func newJobFixture(t *testing.T) *jobFixture {
	t.Helper()
	s := &jobFixture{
		T: t, cluster: fake.NewClientset(), source: format.Source{Pipeline: "search", Sink: "index"},
		spec: v1alpha1.JobSink{
			Namespace: namespace, ServiceAccountName: "scanner", Template: runtime.RawExtension{Raw: []byte(plain)},
			ConcurrencyPolicy: v1alpha1.PipelineConcurrencyForbid,
		},
	}
	// Objects get uids, as API servers give them.
	s.cluster.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		made := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
		s.created++
		made.UID = types.UID(fmt.Sprintf("uid-%d", s.created))
		return true, made, s.cluster.Tracker().Create(batchv1.SchemeGroupVersion.WithResource("jobs"), made, namespace)
	})
	return s
}

// fails makes requests fail after the first few.
func (s *jobFixture) fails(verb, resource string, after int, err error) (undo func()) {
	chain := s.cluster.ReactionChain
	s.cluster.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		after--
		return after < 0, nil, err
	})
	return func() { s.cluster.ReactionChain = chain }
}

func (s *jobFixture) sink() *delivery.Job {
	s.Helper()
	sink, err := delivery.NewJob(s.cluster, s.source, s.spec)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(sink.Close)
	return sink
}

// deliver delivers a batch like a process that has just started.
func (s *jobFixture) deliver(batch item.Batch) format.Result {
	s.Helper()
	var got []format.Result
	err := s.sink().Deliver(s.Context(), batch, func(keys []item.Key, result format.Result) error {
		if want := len(batch.Deletes) + len(batch.Upserts); len(keys) != want {
			s.Errorf("result for %d objects, want %d", len(keys), want)
		}
		got = append(got, result)
		return nil
	})
	if err != nil || len(got) != 1 {
		s.Fatalf("%+v, %v; want one result", got, err)
	}
	return got[0]
}

// expect delivers a batch and expects an outcome and a message.
func (s *jobFixture) expect(batch item.Batch, outcome format.Outcome, text string) {
	s.Helper()
	if got := s.deliver(batch); got.Outcome != outcome || got.Message != text {
		s.Errorf("got %+v, want %s, %q", got, outcome, text)
	}
}

// jobBatch returns the batch of a sequence number.
func jobBatch(number int64) item.Batch {
	return item.Batch{
		ID: fmt.Sprintf("batch-%d", number), Sequence: number, At: noon, Kind: item.Instance,
		Upserts: []item.Item{{
			Key:    item.Key{Kind: item.Instance, APIVersion: "apps/v1", ObjectKind: "Deployment", Namespace: "shop", Name: "web"},
			Labels: map[string]string{"app": "web"}, CreatedAt: noon, UpdatedAt: noon, UID: "1",
		}},
		Deletes: []item.Key{{Kind: item.Instance, APIVersion: "v1", ObjectKind: "Namespace", Name: "old"}},
	}
}

func (s *jobFixture) jobs() []batchv1.Job {
	s.Helper()
	list, err := s.cluster.BatchV1().Jobs(namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

func (s *jobFixture) configMaps() []corev1.ConfigMap {
	s.Helper()
	list, err := s.cluster.CoreV1().ConfigMaps(namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// only returns the only Job.
func (s *jobFixture) only() *batchv1.Job {
	s.Helper()
	jobs := s.jobs()
	if len(jobs) != 1 {
		s.Fatalf("%d Jobs, want one", len(jobs))
	}
	return &jobs[0]
}

// ends gives a Job a condition.
func (s *jobFixture) ends(job *batchv1.Job, kind batchv1.JobConditionType, reason, message string) {
	s.Helper()
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	})
	if _, err := s.cluster.BatchV1().Jobs(namespace).UpdateStatus(s.Context(), job, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *jobFixture) update(job *batchv1.Job) {
	s.Helper()
	if _, err := s.cluster.BatchV1().Jobs(namespace).Update(s.Context(), job, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// remove deletes an object.
func remove(s *jobFixture, name string, from func(context.Context, string, metav1.DeleteOptions) error) {
	s.Helper()
	if err := from(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}
