// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestLossOfAPipelineIsSaid(t *testing.T) {
	const takeOver = ": nothing is sent until they may, or until a user who may sets spec.suspend to true and back"
	pipeline := &v1alpha1.SyncPipeline{
		ObjectMeta: metav1.ObjectMeta{Name: "index"},
		Spec:       v1alpha1.SyncPipelineSpec{Sinks: []v1alpha1.PipelineSink{{Name: "batch", Job: &v1alpha1.JobSink{Namespace: "shop"}}}},
	}
	const unknownEditor = "no user is known to have had it sent: nothing is, until a user who may sets spec.suspend to true and back"
	if lost, err := newFixture(t).reviews.Check(t.Context(), access.Sending(pipeline), nil); err != nil || lost != unknownEditor {
		t.Errorf("of a pipeline that no user is known to have written is said %q, %v", lost, err)
	}
	pipeline.Status.EditedBy = &v1alpha1.AutomatedBy{Username: "jane", UID: "7", Groups: []string{"shop-team"}}
	tests := []struct {
		name   string
		denied []string
		want   string
	}{
		{name: "nothing"},
		{
			name: "definitions", denied: []string{"list customresourcedefinitions"},
			want: `user "jane" may not list customresourcedefinitions.apiextensions.k8s.io in the whole cluster` + takeOver,
		},
		{
			name: "instances and Jobs", denied: []string{"list *", "create jobs", "impersonate serviceaccounts"},
			want: `user "jane" may not list *.* in the whole cluster, nor create jobs.batch in the namespace shop, ` +
				`nor impersonate serviceaccounts "default" in the namespace shop` + takeOver,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t)
			s.set(func(c *cluster) { c.denied = tt.denied })
			takes, _ := access.OfPipeline(nil, pipeline)
			lost, err := s.reviews.Check(t.Context(), access.Sending(pipeline), takes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, lost); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}
