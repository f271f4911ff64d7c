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

func TestLossOfANotificationSinkIsReported(t *testing.T) {
	const takeOver = ": nothing is sent until they may, or until a user who may sets spec.suspend to true and back"
	sink := &v1alpha1.NotificationSink{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chat"},
		Spec: v1alpha1.NotificationSinkSpec{
			Slack:  &v1alpha1.SlackSink{SecretRef: v1alpha1.SecretReference{Name: "slack"}},
			Events: []v1alpha1.NotificationEvent{v1alpha1.NotifyFailed, v1alpha1.NotifyCatalogFailing},
		},
	}
	const unknownEditor = "no user is known to have had it sent: nothing is, until a user who may sets spec.suspend to true and back"
	if lost, err := newFixture(t).reviews.Check(t.Context(), access.Notifying(sink), nil); err != nil || lost != unknownEditor {
		t.Errorf("lost of a sink without a known editor = %q, %v", lost, err)
	}
	sink.Status.EditedBy = &v1alpha1.AutomatedBy{Username: "jane", UID: "7", Groups: []string{"shop-team"}}
	tests := []struct {
		name   string
		denied []string
		want   string
	}{
		{name: "nothing"},
		{
			name: "the Secret", denied: []string{"get secrets"},
			want: `user "jane" may not get secrets "slack" in the namespace shop` + takeOver,
		},
		{
			name: "records and catalogs", denied: []string{"list syncstatuses", "list appcatalogs"},
			want: `user "jane" may not list syncstatuses.configbutler.ai in the namespace shop, ` +
				`nor list appcatalogs.configbutler.ai in the namespace shop` + takeOver,
		},
		{name: "what the sink does not send", denied: []string{"list changes", "list gitdestinations", "create events"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t)
			s.set(func(c *cluster) { c.denied = tt.denied })
			lost, err := s.reviews.Check(t.Context(), access.Notifying(sink), access.OfNotificationSink(sink, "slipstream-system"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, lost); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}
