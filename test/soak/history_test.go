// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

// controllers is the prefix of the users of kube-controller-manager, which change Deployments, too.
const controllers = "system:serviceaccount:kube-system:"

// minKnown is the share of changes that must have an author after a long run. Those of a time when the server or kube-apiserver was down have
// none, nor have those that a comparison found. On a busy machine such times take most of a short run.
const minKnown = 0.5

// checkHistory checks commits and Changes.
func (s *soak) checkHistory(t *testing.T, r *run) {
	t.Helper()
	commits, foreign := 0, 0
	known, all := 0, 0
	for _, m := range s.mirrors {
		m.ChangesAgree(t)
		m.Intact(t)
		s.checkSecrets(t, m)
		authors := authorsOf(t, m)
		for _, author := range authors {
			commits++
			foreign += number(author == foreignAuthor)
		}
		changes := s.changes(t, m.Namespace)
		s.checkVersions(t, changes)
		for i := range changes {
			all++
			known += number(s.checkAuthor(t, &changes[i], authors))
		}
	}
	if *minutes > 1 && float64(known) < minKnown*float64(all) {
		t.Errorf("the authors of %d of %d Changes are known", known, all)
	}
	r.row("writes with a response", s.journal.acknowledged)
	r.row("writes without a response", s.journal.unanswered)
	r.row("commits", commits)
	r.row("commits of another writer", foreign)
	r.row("Changes", all)
	r.row("Changes with an author", known)
}

// changes returns the Changes of a namespace, the newest first.
func (s *soak) changes(t *testing.T, namespace string) (all []v1alpha1.Change) {
	t.Helper()
	options := metav1.ListOptions{Limit: 500}
	for {
		page, err := s.admin.Own.ConfigbutlerV1alpha1().Changes(namespace).List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return all
		}
	}
}

// authorsOf returns the author of each commit by its hash.
func authorsOf(t *testing.T, m *mirrortest.Mirror) map[string]string {
	t.Helper()
	log, err := m.Git(t.Context(), "log", "--format=%H %an", m.Branch)
	if err != nil {
		t.Fatal(err)
	}
	authors := map[string]string{}
	for line := range strings.Lines(log) {
		hash, author, _ := strings.Cut(strings.TrimSpace(line), " ")
		authors[hash] = author
	}
	return authors
}

// checkVersions fails the test if a version of an object is in two Changes.
func (s *soak) checkVersions(t *testing.T, changes []v1alpha1.Change) {
	t.Helper()
	seen := map[string]string{}
	for _, change := range changes {
		last := change.Spec.ResourceVersions.Last
		if last == "" {
			continue
		}
		version := fmt.Sprintf("%s %s/%s %s", change.Spec.Object.Resource, change.Spec.Object.Namespace, change.Spec.Object.Name, last)
		if other, found := seen[version]; found {
			t.Errorf("%s is in the Changes %s and %s", version, change.Name, other)
		}
		seen[version] = change.Name
	}
}

// checkAuthor checks the author of a Change and of its commit: the user who wrote that version, or one who may have written the object if
// the version is not known, as that of a deletion. It reports whether there is an author.
func (s *soak) checkAuthor(t *testing.T, change *v1alpha1.Change, authors map[string]string) bool {
	t.Helper()
	spec := &change.Spec
	o := object{spec.Object.Resource, spec.Object.Namespace, spec.Object.Name}
	committed := authors[spec.Commits[0].SHA]
	if spec.Author == nil {
		if slices.ContainsFunc(s.writers, func(writer *people.Person) bool { return writer.Name == committed }) {
			t.Errorf("%s: the commit has the author %s, the Change none", change.Name, committed)
		}
		return false
	}
	user := spec.Author.Username
	if committed != user {
		t.Errorf("%s: the commit has the author %s, the Change %s", change.Name, committed, user)
	}
	if !s.journal.has(o) {
		return true
	}
	want, mayBe := s.journal.author(o, spec.ResourceVersions.Last, user)
	switch {
	case want != "" && want != user:
		t.Errorf("%s (%s at %s, versions %s to %s, by %s) of %v: the author is %s, want %s: %s", change.Name, spec.Operation,
			stamp(spec.Time.Time), spec.ResourceVersions.First, spec.ResourceVersions.Last, spec.Author.Signal, o, user, want,
			strings.Join(s.journal.describe(o), "; "))
	case want == "" && !mayBe && !strings.HasPrefix(user, controllers):
		t.Errorf("%s of %v: the author is %s, who has not written it", change.Name, o, user)
	}
	return true
}

// checkSecrets decrypts the Secrets in Git, and compares them with the cluster.
func (s *soak) checkSecrets(t *testing.T, m *mirrortest.Mirror) {
	t.Helper()
	key := s.privateKey(t)
	files, err := m.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := s.live(t.Context(), m.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	for path, live := range objects {
		if live.GetKind() != "Secret" {
			continue
		}
		opened, err := sopstest.Open(t, files[path], key)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want, err := manifest.Canonical(live)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := yaml.Unmarshal([]byte(opened), &got); err != nil || !reflect.DeepEqual(got, want.Object) {
			t.Errorf("%s has %v, want %v (%v)", path, got, want.Object, err)
		}
	}
}

// privateKey returns the key that the server has generated for Secrets.
func (s *soak) privateKey(t *testing.T) string {
	t.Helper()
	encoded := s.Field(t, devcluster.ServerNamespace, "secret/slipstream-age", `{.data.age\.agekey}`)
	file, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	identities, err := age.ParseIdentities(strings.NewReader(string(file)))
	if err != nil {
		t.Fatal(err)
	}
	pair, ok := identities[0].(*age.X25519Identity)
	if !ok {
		t.Fatalf("the key is a %T", identities[0])
	}
	return pair.String()
}
