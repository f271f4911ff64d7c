// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
)

func record(objects int64) *v1alpha1.GitDestinationStatus {
	return &v1alpha1.GitDestinationStatus{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "dest",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "configbutler.ai/v1alpha1", Kind: "GitDestination", Name: "dest", UID: "1"}},
		},
		Status: v1alpha1.GitDestinationRecord{Objects: objects},
	}
}

func stored(t *testing.T, storage *registry.Storage) *configbutler.GitDestinationStatus {
	t.Helper()
	got, err := storage.Endpoints["gitdestinationstatuses"].(rest.Getter).Get(in(t), "dest", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.(*configbutler.GitDestinationStatus)
}

// TestWriteReturnsTheStoredRecord checks that a created, a replaced and an unchanged record are returned as a client reads them.
func TestWriteReturnsTheStoredRecord(t *testing.T) {
	storage := newStorage(t)
	for _, objects := range []int64{1, 2, 2} {
		returned, err := storage.Records.Write(t.Context(), record(objects))
		if err != nil {
			t.Fatal(err)
		}
		written, ok := returned.(*v1alpha1.GitDestinationStatus)
		if !ok {
			t.Fatalf("got a %T, want the version of the argument", returned)
		}
		want := stored(t, storage)
		if written.UID != want.UID || written.ResourceVersion != want.ResourceVersion || written.ResourceVersion == "" ||
			written.Status.Objects != objects || written.Kind != "" {
			t.Errorf("returned %+v, stored %+v", written, want)
		}
	}
}

func TestWriteCreatesAndReplaces(t *testing.T) {
	storage := newStorage(t)
	if _, err := storage.Records.Write(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	first := stored(t, storage)
	if first.Status.Objects != 1 || len(first.OwnerReferences) != 1 || first.UID == "" || first.CreationTimestamp.IsZero() {
		t.Errorf("created: %+v", first)
	}

	if _, err := storage.Records.Write(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	if same := stored(t, storage); same.ResourceVersion != first.ResourceVersion {
		t.Error("equal content was written again")
	}

	changed := record(2)
	changed.Labels = map[string]string{"a": "b"}
	if _, err := storage.Records.Write(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	second := stored(t, storage)
	if second.Status.Objects != 2 || second.Labels["a"] != "b" || second.UID != first.UID ||
		!second.CreationTimestamp.Equal(&first.CreationTimestamp) {
		t.Errorf("replaced: %+v", second)
	}
}

func TestWriteTakesTheInternalTypeToo(t *testing.T) {
	storage := newStorage(t)
	internal := &configbutler.GitDestinationStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dest"},
		Status:     configbutler.GitDestinationRecord{Objects: 3},
	}
	if _, err := storage.Records.Write(t.Context(), internal); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, storage).Status.Objects; got != 3 {
		t.Errorf("objects = %d, want 3", got)
	}
	if internal.UID != "" {
		t.Error("the caller's object was changed")
	}
}

func TestConcurrentWritesAllSucceed(t *testing.T) {
	storage := newStorage(t)
	var writers sync.WaitGroup
	for i := range int64(8) {
		writers.Go(func() {
			if _, err := storage.Records.Write(t.Context(), record(i)); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	stored(t, storage)
}

func TestWriteRefuses(t *testing.T) {
	storage := newStorage(t)
	if _, err := storage.Records.Write(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	successor := record(2)
	successor.UID = types.UID("of a predecessor")
	if _, err := storage.Records.Write(t.Context(), successor); !apierrors.IsConflict(err) {
		t.Errorf("another uid: %v, want Conflict", err)
	}
	if _, err := storage.Records.Write(t.Context(), &v1alpha1.GitDestination{}); err == nil {
		t.Error("a kind that users write was taken for a record")
	}
	invalid := record(-1)
	if _, err := storage.Records.Write(t.Context(), invalid); !apierrors.IsInvalid(err) {
		t.Errorf("a negative count: %v, want Invalid", err)
	}
}

// TestWriteIsRefusedToWhoHasReadAnEarlierVersion checks that a client that has read an earlier version of a record does
// not revert a later change.
func TestWriteIsRefusedToWhoHasReadAnEarlierVersion(t *testing.T) {
	storage := newStorage(t)
	if _, err := storage.Records.Write(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	read := stored(t, storage)
	if _, err := storage.Records.Write(t.Context(), record(2)); err != nil {
		t.Fatal(err)
	}
	late := read.DeepCopy()
	late.Status.Objects = 3
	if _, err := storage.Records.Write(t.Context(), late); !apierrors.IsConflict(err) {
		t.Errorf("an earlier version: %v, want Conflict", err)
	}
	if got := stored(t, storage).Status.Objects; got != 2 {
		t.Errorf("objects = %d, want the 2 written meanwhile", got)
	}
	late.ResourceVersion = stored(t, storage).ResourceVersion
	if _, err := storage.Records.Write(t.Context(), late); err != nil {
		t.Errorf("read again: %v", err)
	}
	if _, _, err := storage.Endpoints["gitdestinationstatuses"].(rest.GracefulDeleter).Delete(
		in(t), "dest", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.Records.Write(t.Context(), late); !apierrors.IsConflict(err) {
		t.Errorf("deleted meanwhile: %v, want Conflict", err)
	}
}

// A record that is written while its namespace goes would be left behind, or be taken for one that keeps it from going.
func TestWriteIntoNamespaces(t *testing.T) {
	client := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
	)
	plugin, err := lifecycle.NewLifecycle(nil)
	if err != nil {
		t.Fatal(err)
	}
	informers := informers.NewSharedInformerFactory(client, 0)
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(informers)
	informers.StartWithContext(t.Context())
	storage := newStorage(t, func(c *registry.Config) { c.RecordAdmission = plugin })
	write := func(namespace string) error {
		written := record(1)
		written.Namespace = namespace
		_, err := storage.Records.Write(t.Context(), written)
		return err
	}
	if err := write(namespace); err != nil {
		t.Error(err)
	}
	if err := write("going"); !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a terminating namespace: %v", err)
	}
	if err := write("gone"); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted namespace: %v", err)
	}
}
