// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

const (
	// manyChanges is the number of ConfigMaps that testManyChanges creates, and writers the number of clients that do.
	manyChanges, writers = 10_000, 32
)

// testManyChanges creates many objects while a digest is open, and then has it sent.
func (s *testCluster) testManyChanges(t *testing.T) {
	const namespace = "many"
	s.mirrored(t, namespace)
	r := newInbox(t)
	// It is open until all have been collected, however long that takes.
	s.sink(t, namespace, "chat", r.sink(), "digestWindow: 24h", "events: [Change]")
	begun := time.Now()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(writers)
	for number := range manyChanges {
		group.Go(func() error {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%05d", number)}}
			_, err := s.admin.Client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	written := time.Since(begun)
	s.status(t, namespace, "chat", "has collected all", func(status *v1alpha1.NotificationSinkStatus) bool { return status.Pending >= manyChanges })
	t.Logf("%d changes were written in %s, and collected %s after the first", manyChanges, written.Round(time.Second),
		time.Since(begun).Round(time.Second))
	s.sink(t, namespace, "chat", r.sink(), "digestWindow: 0s", "events: [Change]")
	s.delivered(t, namespace, "chat", manyChanges)
	status := s.status(t, namespace, "chat", "is idle", func(*v1alpha1.NotificationSinkStatus) bool { return true })
	letters := r.letters()
	if len(letters) != 1 || status.Messages != 1 || status.Notifications != manyChanges {
		t.Fatalf("%d requests, status: %+v", len(letters), status)
	}
	if one := letters[0]; one.Count != manyChanges || len(one.Notifications) == 0 || len(one.Notifications) > message.MaxNotifications {
		t.Errorf("the message has %d notifications and lists %d", one.Count, len(one.Notifications))
	}
}
