// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

const prefix = "/test"

var alice = copies.Environment{NamespacedName: types.NamespacedName{Namespace: "teams", Name: "alice"}, UID: "5a0d9a3e"}

// fixture is a store with copies, and the process that writes them.
type fixture struct {
	*testing.T
	kv      clientv3.KV
	process *testkit.Process
	*copies.Copies
}

func newFixture(t *testing.T, keep int) *fixture {
	t.Helper()
	process := &testkit.Process{}
	kv := bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error { return process.Write(write.Commit) })
	return &fixture{t, kv, process, copies.New(table.New(kv, prefix), keep)}
}

// put stores a change of alice.
func (s *fixture) put(revision int64, applied []*unstructured.Unstructured, deleted ...string) {
	s.Helper()
	if err := s.Put(s.Context(), alice, change(revision, applied, deleted...)); err != nil {
		s.Fatal(err)
	}
}

func change(revision int64, applied []*unstructured.Unstructured, deleted ...string) copies.Change {
	c := copies.Change{Revision: revision, Applied: applied}
	for _, name := range deleted {
		key := copies.Key{Name: name}
		key.Kind = "ConfigMap"
		c.Deleted = append(c.Deleted, key)
	}
	return c
}

// settings returns ConfigMaps, by "name=value".
func settings(texts ...string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "twin"},
			"data": map[string]any{"value": value},
		}})
	}
	return objects
}

func texts(objects []*unstructured.Unstructured) string {
	var out []string
	for _, object := range objects {
		value, _, _ := unstructured.NestedString(object.Object, "data", "value")
		out = append(out, object.GetName()+"="+value)
	}
	return strings.Join(out, " ")
}

// listed returns the applied revision and objects.
func (s *fixture) listed() string {
	s.Helper()
	objects, revision, err := s.List(s.Context(), alice.UID)
	if err != nil {
		s.Fatal(err)
	}
	if alone, err := s.Revision(s.Context(), alice.UID); alone != revision || err != nil {
		s.Errorf("revision %d, want %d: %v", alone, revision, err)
	}
	return strings.TrimSpace(fmt.Sprintf("%d: %s", revision, texts(objects)))
}

// at returns the objects that were applied at a revision.
func (s *fixture) at(revision int64) string {
	s.Helper()
	objects, known, err := s.At(s.Context(), alice.UID, revision)
	if err != nil {
		s.Fatal(err)
	}
	if !known {
		return "unknown"
	}
	return texts(objects)
}

// rows returns the stored rows, by key.
func (s *fixture) rows() map[string]string {
	s.Helper()
	answer, err := s.kv.Get(s.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		s.Fatal(err)
	}
	rows := map[string]string{}
	for _, kv := range answer.Kvs {
		rows[string(kv.Key)] = string(kv.Value)
	}
	return rows
}

// revisions returns the stored revisions of alice, the lowest first.
func (s *fixture) revisions() []int64 {
	s.Helper()
	var revisions []int64
	for key := range s.rows() {
		number, isHead := strings.CutPrefix(key, prefix+"/"+copies.TableName+"/head/"+string(alice.UID)+"/")
		if revision, err := strconv.ParseInt(number, 16, 64); isHead && err == nil && revision > 0 {
			revisions = append(revisions, revision)
		}
	}
	slices.Sort(revisions)
	return revisions
}

// contents returns the number of stored contents.
func (s *fixture) contents() int {
	s.Helper()
	n := 0
	for key := range s.rows() {
		if strings.HasPrefix(key, prefix+"/"+copies.TableName+"/content/") {
			n++
		}
	}
	return n
}

const password = "correct-horse-battery"

func secret() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "database", "namespace": "twin"},
		"data": map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(password))},
	}}
}
