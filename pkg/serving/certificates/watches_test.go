// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"context"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/serving/certificates"
	"github.com/configbutler/slipstream/test/testkit"
)

var watchedServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// watched is a replica with watches, and the client that they use.
type watched struct {
	*replica
	client *metadatafake.FakeMetadataClient
}

func (c *cluster) watched(t *testing.T, source certificates.Source) *watched {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &watched{client: metadatafake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: certificates.APIServiceName},
	})}
	config := c.config(t, source)
	config.Watcher = w.client
	w.replica = newReplica(config)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		w.controller.Unwatched()
	})
	if err := w.controller.RunOnce(quiet(t)); err != nil {
		t.Fatal(err)
	}
	if err := w.controller.Watch(ctx); err != nil {
		t.Fatal(err)
	}
	w.settles(t)
	return w
}

// settles waits until looks have seen all that there is to see.
func (w *watched) settles(t *testing.T) {
	t.Helper()
	testkit.EventuallyTrue(t, "to be idle", func() bool {
		if err := w.controller.RunOnce(quiet(t)); err != nil {
			t.Fatal(err)
		}
		w.leader.RunOnce(quiet(t))
		return w.controller.Idle() && w.leader.Idle()
	})
}

// While nothing happens nothing is asked, for a minute.
func TestRest(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	w := c.watched(t, nil)
	c.clock.Step(59 * time.Second)
	if !w.controller.Idle() || !w.leader.Idle() {
		t.Error("a look is made although nothing has happened")
	}
	c.clock.Step(time.Second)
	if w.controller.Idle() || w.leader.Idle() {
		t.Error("no look is made for more than a minute")
	}
	w.settles(t)
	c.clock.Step(-time.Hour)
	if w.controller.Idle() || w.leader.Idle() {
		t.Error("no look is made after the clock has been put back")
	}
}

// TestChangesEndIdling checks that after an event of a watched object both controllers run again.
func TestChangesEndIdling(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	w := c.watched(t, nil)
	// The watches of a fake client do not send deletions from before they began.
	testkit.EventuallyTrue(t, "the watch has begun", func() bool {
		return slices.ContainsFunc(w.client.Actions(), func(action clienttesting.Action) bool {
			return action.Matches("watch", watchedServices.Resource)
		})
	})
	objects := w.client.Resource(watchedServices)
	if err := objects.Delete(t.Context(), certificates.APIServiceName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.EventuallyTrue(t, "to be restless", func() bool { return !w.controller.Idle() && !w.leader.Idle() })
	w.settles(t)
}

// TestChangesWithoutAWatchEvent checks that the controllers run again because of the time or of changed files.
func TestChangesWithoutAWatchEvent(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	by := newIssuer(t, c.clock.Now(), 1000*time.Hour)
	folder, name := t.TempDir(), certificates.ServerName(service)
	files := filesOf(t, folder, by.server(t, name), by)
	fromFiles, own := c.watched(t, files), c.watched(t, nil)

	filesOf(t, folder, by.server(t, name), by)
	if fromFiles.controller.Idle() {
		t.Error("no look is made although the files are others")
	}
	fromFiles.settles(t)
	if err := os.WriteFile(files.Key, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if fromFiles.controller.Idle() {
			t.Error("no look is made while the files do not fit each other")
		}
		if err := fromFiles.controller.RunOnce(quiet(t)); err != nil {
			t.Fatal(err)
		}
	}

	c.clock.Step(certificateLifetime * 2 / 3)
	if own.controller.Idle() {
		t.Error("no look is made although the certificate is old")
	}
}

// TestNoRestBeforeItIsDone checks that the controllers are not idle while a request fails or a certificate waits.
func TestNoRestBeforeItIsDone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	w := c.watched(t, nil)
	look := func() {
		if err := w.controller.RunOnce(quiet(t)); err != nil {
			t.Fatal(err)
		}
		w.leader.RunOnce(quiet(t))
	}
	c.setRefuse(func(method, _ string) (int, bool) {
		if method == http.MethodGet {
			return http.StatusForbidden, false
		}
		return 0, false
	})
	look()
	if w.controller.Idle() || w.leader.Idle() {
		t.Error("what has failed is not tried again")
	}
	c.setRefuse(nil)
	w.settles(t)

	// Another authority is shown when it has been in the bundles for a while.
	before, by := w.leaf(t), newIssuer(t, c.clock.Now(), 1000*time.Hour)
	c.putSecret(t, by.certificates, by.key)
	for w.leaf(t).Equal(before) {
		look()
		if w.controller.Idle() && w.leaf(t).Equal(before) {
			t.Fatal("the controller is idle while the next certificate waits")
		}
		c.clock.Step(5 * time.Second)
	}
}

// Without a word of what happens every look is made.
func TestNoRestUnwatched(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.start(t, nil)
	r.leader.RunOnce(quiet(t))
	if r.controller.Idle() || r.leader.Idle() {
		t.Error("a look is left out although nothing is watched")
	}
}
