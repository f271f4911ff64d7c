// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/job"
)

const (
	namespace = "scans"
	plain     = `{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"scan","image":"scan:1"}]}}}}`
)

var (
	noon    = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	errDied = errors.New("the process has died")
)

// stage is a cluster in which a sink makes Jobs.
type stage struct {
	*testing.T
	cluster *fake.Clientset
	source  format.Source
	spec    v1alpha1.JobSink
	created int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
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

// fails has requests answered with an error, those after the first few.
func (s *stage) fails(verb, resource string, after int, err error) (undo func()) {
	chain := s.cluster.ReactionChain
	s.cluster.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		after--
		return after < 0, nil, err
	})
	return func() { s.cluster.ReactionChain = chain }
}

func (s *stage) sink() *job.Sink {
	s.Helper()
	sink, err := job.New(s.cluster, s.source, s.spec)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(sink.Close)
	return sink
}

// tell delivers a batch as a process does that has just started.
func (s *stage) tell(batch format.Batch) format.Verdict {
	s.Helper()
	var got []format.Verdict
	err := s.sink().Deliver(s.Context(), batch, func(keys []item.Key, verdict format.Verdict) error {
		if want := len(batch.Deletes) + len(batch.Upserts); len(keys) != want {
			s.Errorf("a verdict on %d objects of %d", len(keys), want)
		}
		got = append(got, verdict)
		return nil
	})
	if err != nil || len(got) != 1 {
		s.Fatalf("%+v, %v; want one verdict", got, err)
	}
	return got[0]
}

// expect delivers a batch and expects an outcome and what is said of it.
func (s *stage) expect(batch format.Batch, outcome format.Outcome, text string) {
	s.Helper()
	if got := s.tell(batch); got.Outcome != outcome || got.Text != text {
		s.Errorf("got %+v, want %s, %q", got, outcome, text)
	}
}

// batch is one of a sequence: its second one is number 2.
func batch(number int64) format.Batch {
	return format.Batch{
		ID: fmt.Sprintf("batch-%d", number), Sequence: number, At: noon, Kind: item.Instance,
		Upserts: []item.Item{{
			Key:    item.Key{Kind: item.Instance, APIVersion: "apps/v1", ObjectKind: "Deployment", Namespace: "shop", Name: "web"},
			Labels: map[string]string{"app": "web"}, CreatedAt: noon, UpdatedAt: noon, UID: "1",
		}},
		Deletes: []item.Key{{Kind: item.Instance, APIVersion: "v1", ObjectKind: "Namespace", Name: "old"}},
	}
}

func (s *stage) jobs() []batchv1.Job {
	s.Helper()
	list, err := s.cluster.BatchV1().Jobs(namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

func (s *stage) configMaps() []corev1.ConfigMap {
	s.Helper()
	list, err := s.cluster.CoreV1().ConfigMaps(namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// only is the one Job that there is.
func (s *stage) only() *batchv1.Job {
	s.Helper()
	jobs := s.jobs()
	if len(jobs) != 1 {
		s.Fatalf("there are %d Jobs", len(jobs))
	}
	return &jobs[0]
}

// ends gives a Job a condition.
func (s *stage) ends(job *batchv1.Job, kind batchv1.JobConditionType, reason, message string) {
	s.Helper()
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	})
	if _, err := s.cluster.BatchV1().Jobs(namespace).UpdateStatus(s.Context(), job, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) update(job *batchv1.Job) {
	s.Helper()
	if _, err := s.cluster.BatchV1().Jobs(namespace).Update(s.Context(), job, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// remove takes an object away, as somebody who deletes it does.
func remove(s *stage, name string, from func(context.Context, string, metav1.DeleteOptions) error) {
	s.Helper()
	if err := from(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}
