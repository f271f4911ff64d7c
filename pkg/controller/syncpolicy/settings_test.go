// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncpolicy_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
)

func TestSettings(t *testing.T) {
	ctx := t.Context()
	client := fake.NewClientset(policy(1, time.Minute))
	policies := client.ConfigbutlerV1alpha1().SyncPolicies()
	factory := externalversions.NewSharedInformerFactory(client, 0)
	informer := factory.Configbutler().V1alpha1().SyncPolicies()
	notified := make(chan time.Duration, 10)
	if err := syncpolicy.Follow(informer, func() { notified <- window(informer.Lister().Get) }); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced)
	if got := syncpolicy.Of(informer.Lister()).BatchWindow.Duration; got != time.Minute {
		t.Errorf("window of %v before any change", got)
	}
	// An update of the status does not change the generation: there is no notification for the first of the two updates.
	status := policy(1, time.Minute)
	status.Status.Records = 12
	for _, update := range []*v1alpha1.SyncPolicy{status, policy(2, time.Hour)} {
		if _, err := policies.Update(ctx, update, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-notified; got != time.Hour {
		t.Errorf("notification with a window of %v", got)
	}
	if err := policies.Delete(ctx, v1alpha1.SyncPolicyName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	<-notified
	if got, want := syncpolicy.Of(informer.Lister()).BatchWindow.Duration,
		syncpolicy.WithDefaults(&v1alpha1.SyncPolicy{}).Spec.BatchWindow.Duration; got != want || got == 0 {
		t.Errorf("window of %v without settings, want %v", got, want)
	}
}

func window(get func(string) (*v1alpha1.SyncPolicy, error)) time.Duration {
	found, err := get(v1alpha1.SyncPolicyName)
	if err != nil {
		return 0
	}
	return found.Spec.BatchWindow.Duration
}

func policy(generation int64, window time.Duration) *v1alpha1.SyncPolicy {
	return &v1alpha1.SyncPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName, Generation: generation},
		Spec:       v1alpha1.SyncPolicySpec{BatchWindow: &metav1.Duration{Duration: window}},
	}
}
