// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirrortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
)

// underID matches the message of a response to a request for a comparison that takes longer than the response waits.
var underID = regexp.MustCompile(`status\.syncs of GitDestinationStatus .* under the id ([0-9a-f-]{36})`)

// InSync compares a destination's branch with the cluster until nothing differs, and waits until everything is pushed. It requests a
// comparison only after the one before has ended.
func InSync(t testing.TB, admin devcluster.Kubectl, namespace, destination string) {
	t.Helper()
	statuses := statusesOf(t, admin.User, namespace)
	c := &comparison{admin: ObjectsOf(t, admin.User).Try, statuses: statuses, namespace: namespace, destination: destination}
	Eventually(t, destination+" equals the cluster", c.compare)
	Eventually(t, destination+" is pushed", func(ctx context.Context) error { return upToDate(ctx, statuses, destination) })
}

// statusesOf returns a client of a user for the GitDestinationStatuses of a namespace.
func statusesOf(t testing.TB, user devcluster.Kubeconfig, namespace string) typed.GitDestinationStatusInterface {
	t.Helper()
	return ClientOf(t, user, typed.NewForConfig).GitDestinationStatuses(namespace)
}

// upToDate returns an error unless all changes of a destination are pushed.
func upToDate(ctx context.Context, statuses typed.GitDestinationStatusInterface, destination string) error {
	record, err := statuses.Get(ctx, destination, metav1.GetOptions{})
	if err == nil && record.Status.State != "Up to date" {
		err = fmt.Errorf("state %q", record.Status.State)
	}
	return err
}

// comparison compares a destination's branch with the cluster.
type comparison struct {
	admin                  *devcluster.Objects
	statuses               typed.GitDestinationStatusInterface
	namespace, destination string
	// id is that of the request in progress, empty if there is none.
	id string
}

// compare requests a comparison unless one is in progress. It returns an error unless the comparison has ended without a difference.
func (c *comparison) compare(ctx context.Context) error {
	var found *v1alpha1.SyncProgress
	var err error
	if c.id == "" {
		found, err = c.request(ctx)
	} else {
		found, err = c.progress(ctx)
	}
	switch {
	case err != nil:
		return err
	case found == nil || found.CompletionTime == nil:
		return fmt.Errorf("comparison %s has not ended: %+v", c.id, found)
	}
	c.id = ""
	if found.FilesWritten > 0 || found.FilesRemoved > 0 {
		return fmt.Errorf("%d files written, %d removed", found.FilesWritten, found.FilesRemoved)
	}
	return nil
}

// request requests a comparison, and returns its result if the response has it.
func (c *comparison) request(ctx context.Context) (*v1alpha1.SyncProgress, error) {
	path := "/apis/configbutler.ai/v1alpha1/namespaces/" + c.namespace + "/gitdestinations/" + c.destination + "/sync"
	out, err := c.admin.Post(ctx, path, `{"spec":{"full":true}}`)
	if err != nil {
		return nil, err
	}
	var response v1alpha1.MirrorSync
	if err := json.Unmarshal([]byte(out), &response); err != nil {
		return nil, err
	}
	if found := response.Status.Found; found != nil {
		c.id = found.ID
		return found, nil
	}
	id := underID.FindStringSubmatch(response.Status.Message)
	if id == nil {
		return nil, errors.New("unexpected response: " + out)
	}
	c.id = id[1]
	return nil, nil
}

// progress returns the progress of the requested comparison, nil before the server has started it.
func (c *comparison) progress(ctx context.Context) (*v1alpha1.SyncProgress, error) {
	record, err := c.statuses.Get(ctx, c.destination, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(record.Status.Syncs, func(sync v1alpha1.SyncProgress) bool { return sync.ID == c.id })
	if i < 0 {
		return nil, nil
	}
	return &record.Status.Syncs[i], nil
}
