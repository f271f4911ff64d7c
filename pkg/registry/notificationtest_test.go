// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
)

// notificationSink posts to a webhook, and has defaults for the rest.
func notificationSink() *configbutler.NotificationSink {
	external := &v1alpha1.NotificationSink{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "chat"},
		Spec:       v1alpha1.NotificationSinkSpec{Webhook: &v1alpha1.WebhookSink{URL: "https://hooks.example.com"}},
	}
	v1alpha1.SetObjectDefaults_NotificationSink(external)
	out := &configbutler.NotificationSink{}
	if err := v1alpha1.Convert_v1alpha1_NotificationSink_To_configbutler_NotificationSink(external, out, nil); err != nil {
		panic(err)
	}
	return out
}

func createSink(ctx context.Context, t *testing.T, storage *registry.Storage, obj *configbutler.NotificationSink) {
	t.Helper()
	if _, err := storage.Endpoints["notificationsinks"].(creator).Create(
		ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestEditorOfASink checks that the user who last made a sink send more, or elsewhere, is recorded, step by step.
func TestEditorOfASink(t *testing.T) {
	storage := newStorage(t)
	forged := notificationSink()
	forged.Status.EditedBy = &configbutler.AutomatedBy{Username: "admin"}
	createSink(as(t, "jane"), t, storage, forged)
	steps := []struct {
		name, user string
		do         func(*configbutler.NotificationSink)
		want       string
	}{
		{"nothing", "joe", func(*configbutler.NotificationSink) {}, "jane"},
		{"a label", "joe", func(o *configbutler.NotificationSink) { o.Labels = map[string]string{"a": "b"} }, "jane"},
		{"a suspension", "joe", func(o *configbutler.NotificationSink) { o.Spec.Suspend = true }, "jane"},
		{"a digest", "joe", func(o *configbutler.NotificationSink) { o.Spec.DigestWindow = &metav1.Duration{} }, "jane"},
		{"the end of the suspension", "joe", func(o *configbutler.NotificationSink) { o.Spec.Suspend = false }, "joe"},
		{"a forged status", "eve", func(o *configbutler.NotificationSink) { o.Status.EditedBy.Username = "admin" }, "joe"},
		{"another URL", "eve", func(o *configbutler.NotificationSink) { o.Spec.Webhook.URL = "https://mine.example.com" }, "eve"},
		{"fewer events", "joe", func(o *configbutler.NotificationSink) { o.Spec.Events = o.Spec.Events[:1] }, "eve"},
		{"no user", "", func(o *configbutler.NotificationSink) { o.Spec.Template.Title = "x" }, ""},
	}
	for _, step := range steps {
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			edited := old.DeepCopyObject().(*configbutler.NotificationSink)
			step.do(edited)
			return edited, nil
		})
		obj, _, err := storage.Endpoints["notificationsinks"].(rest.Updater).Update(as(t, step.user), "chat", info,
			rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var got string
		if by := obj.(*configbutler.NotificationSink).Status.EditedBy; by != nil {
			got = by.Username
		}
		if got != step.want {
			t.Errorf("editor after %s = %q, want %q", step.name, got, step.want)
		}
	}
}

// sender records tests and returns a result.
type sender struct {
	result v1alpha1.NotificationTestStatus
	err    error
	sent   []string
}

func (s *sender) Test(_ context.Context, sink *v1alpha1.NotificationSink, test *v1alpha1.NotificationTest, dryRun bool) error {
	text := sink.Namespace + "/" + sink.Name + " " + sink.Spec.Webhook.URL + " " + string(test.Spec.Event)
	if dryRun {
		text += " dry run"
	}
	s.sent = append(s.sent, text)
	test.Status = s.result
	return s.err
}

func TestNotificationTestIsSent(t *testing.T) {
	by := &sender{result: v1alpha1.NotificationTestStatus{Delivered: true, Message: "200 OK", Title: "Test", ContentType: "application/json"}}
	storage := newStorage(t, func(c *registry.Config) { c.Notifications = by })
	createSink(as(t, "jane"), t, storage, notificationSink())
	request := &configbutler.NotificationTest{
		Spec:   configbutler.NotificationTestSpec{Event: configbutler.NotifyBypass},
		Status: configbutler.NotificationTestStatus{Text: "forged"},
	}
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		obj, err := testSink(t, storage, request, dryRun)
		if err != nil {
			t.Fatal(err)
		}
		want := configbutler.NotificationTestStatus{Delivered: true, Message: "200 OK", Title: "Test", ContentType: "application/json"}
		if diff := cmp.Diff(want, obj.(*configbutler.NotificationTest).Status); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
	}
	const once = "shop/chat https://hooks.example.com Bypass"
	if diff := cmp.Diff([]string{once, once + " dry run"}, by.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func testSink(t *testing.T, storage *registry.Storage, request *configbutler.NotificationTest, dryRun []string) (runtime.Object, error) {
	t.Helper()
	return storage.Endpoints["notificationsinks/test"].(rest.NamedCreater).Create(
		as(t, "jane"), "chat", request, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
}

func TestNotificationTestIsRejected(t *testing.T) {
	valid := func() *configbutler.NotificationTest {
		return &configbutler.NotificationTest{Spec: configbutler.NotificationTestSpec{Event: configbutler.NotifyPrompted}}
	}
	conflict := apierrors.NewConflict(configbutler.Resource("notificationsinks"), "chat", errors.New("no"))
	tests := []struct {
		name    string
		sender  registry.Notifications
		isNew   bool
		request func(*configbutler.NotificationTest)
		want    func(error) bool
	}{
		{name: "by a server that sends nothing", want: apierrors.IsServiceUnavailable},
		{name: "without a sink", sender: &sender{}, isNew: true, want: apierrors.IsNotFound},
		{
			name: "of an unknown event", sender: &sender{}, want: apierrors.IsInvalid,
			request: func(r *configbutler.NotificationTest) { r.Spec.Event = "Synced" },
		},
		{name: "by the sender", sender: &sender{err: conflict}, want: apierrors.IsConflict},
		{name: "by a failure", sender: &sender{err: errors.New("no")}, want: apierrors.IsInternalError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			storage := newStorage(t, func(c *registry.Config) { c.Notifications = tt.sender })
			if !tt.isNew {
				createSink(as(t, "jane"), t, storage, notificationSink())
			}
			request := valid()
			if tt.request != nil {
				tt.request(request)
			}
			if _, err := testSink(t, storage, request, nil); !tt.want(err) {
				t.Errorf("error = %v", err)
			}
		})
	}
}
